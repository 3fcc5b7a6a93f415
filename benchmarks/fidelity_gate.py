"""Recall and false refusals of the fidelity gate on planted faults and faithful rewrites, by kind of fault.

    PRIME_TEST_DATA=DIR python benchmarks/fidelity_gate.py [--half PART|all] [--entities rule|spacy|auto]
        [--similarity minilm|none] [--corpus DIR] [--show-misses] [--json]

Sections that are all protected blocks are left out. Intervals are Wilson's at 95 %. ``fitting`` is the share of faults refused by a code that names their kind.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prime_pipeline.corpus.folder import FolderCorpus
from prime_pipeline.corpus.qasper import papers_in, qasper_entries
from prime_pipeline.corpus.source import SourceEntry
from prime_pipeline.models.embedder import SentenceTransformerEmbedder
from prime_pipeline.models.sentence_similarity import EmbedderSimilarity
from prime_pipeline.records import Document
from prime_pipeline.restructuring.gate import FidelityGate
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.text.entities import entity_finder
from prime_pipeline.text.protected import protect

Row = Mapping[str, Any]
Place = tuple[str, str]

CORPUS = Path(__file__).parent / "gate_corpus"
_NUMBER = ("number_missing", "number_invented", "unit_missing", "unit_changed", "inline_missing", "inline_invented", "swapped")  # fmt: skip
FITTING: dict[str, tuple[str, ...]] = {
    "number_changed": _NUMBER,
    "number_dropped": (*_NUMBER, "statement_missing"),
    "unit_changed": _NUMBER,
    "negation_dropped": ("negation_missing", "statement_missing"),
    "negation_added": ("negation_added",),
    "acronym_dropped": ("acronym_missing", "entity_missing"),
    "acronym_changed": ("acronym_missing", "acronym_invented", "entity_missing", "entity_invented"),
    "invented_name": ("entity_invented", "acronym_invented", "unsupported"),
    "invented_claim": (
        "unsupported",
        "entity_invented",
        "number_invented",
        "acronym_invented",
        "negation_added",
    ),
    "swapped_entities": ("swapped",),
    "truncated": ("truncated", "too_short", "statement_missing"),
    "echoed": ("echo", "prompt_echo", "chatter"),
    "translated": ("language",),
    "filler": ("filler", "chatter", "unsupported", "too_long", "repetition", "prompt_echo"),
}
REQUIRED = ("number_", "unit_", "acronym_", "negation_", "invented_", "truncated")
"""Kinds of which at least 95 % must be refused."""


@dataclass(frozen=True, slots=True)
class Share:
    """``hits`` of ``n`` with Wilson's interval."""

    hits: int
    n: int
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.hits / max(self.n, 1):.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate said of one rewrite."""

    id: str
    kind: str
    note: str
    codes: tuple[str, ...]
    details: tuple[str, ...]

    @property
    def is_fitting(self) -> bool:
        return bool(set(FITTING.get(self.kind, ())).intersection(self.codes))


def wilson(hits: int, n: int) -> Share:
    if not n:
        return Share(0, 0, 0.0, 1.0)
    z, p = 1.96, hits / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Share(
        hits, n, max(0.0, (middle - half) / (1 + z * z / n)), min(1.0, (middle + half) / (1 + z * z / n))
    )


def rows(folder: Path, stem: str, half: str) -> list[Row]:
    """The lines of one kind of file without those withdrawn."""
    names = sorted(folder.glob(f"{stem}{'*' if half == 'all' else f'-{half}'}.jsonl"))
    withdrawn = {row["id"] for row in _lines(folder / "withdrawn.jsonl")}
    return [row for name in names for row in _lines(name) if row["id"] not in withdrawn]


def _lines(path: Path) -> Iterator[Row]:
    if path.is_file():
        yield from map(json.loads, filter(str.strip, path.read_text(encoding="utf-8").split("\n")))


def sources() -> dict[str, Document]:
    """The papers and the Markdown documents that rewrites were made of, by id."""
    data = Path(os.environ.get("PRIME_TEST_DATA", ""))
    path = data / "qasper-mini" / "qasper-mini.json"
    papers = qasper_entries(papers_in(path.read_bytes(), path.name) or {}, path.name)
    markdown = FolderCorpus(data / "markdown" / "rust-rfcs", "rust-rfcs").entries()
    entries = (entry for entry in [*papers, *markdown] if isinstance(entry, SourceEntry))
    return {entry.doc_id: entry.parse() for entry in entries}


def section_of(documents: Mapping[str, Document], row: Row) -> Place:
    """The raw body, and the title and headings that a rewriter is told."""
    document = documents[row["paper"]]
    section = next(section for section in document.sections if section.ordinal == row["ordinal"])
    return section.body, "\n".join((document.own_title, *section.heading_path))


def faulty(row: Row, base: Row | None, raw: str) -> str:
    """The rewrite with its fault: a whole text, the raw one, or edits of a faithful rewrite.

    Raises:
        ValueError: An edit does not fit its base.
    """
    if row.get("echo") == "raw":
        return raw
    if "rewrite" in row:
        return str(row["rewrite"])
    text = str(base["rewrite"]) if base else ""
    for find, put in row["edits"]:
        if text.count(find) != 1:
            raise ValueError(
                f"{row['id']}: {find!r} occurs {text.count(find)} times in its base, expected once"
            )
        text = text.replace(find, put)
    return text


def is_rewritable(place: Place) -> bool:
    """Whether a section holds prose; one that is all protected blocks is never given to a rewriter."""
    body = protect(place[0])
    prose = body.text
    for placeholder in body.placeholders_in(prose):
        prose = prose.replace(placeholder, " ")
    return bool(prose.strip())


def judged(gate: FidelityGate, row: Row, place: Place, rewrite: str, kind: str) -> Verdict:
    raw, context = place
    found = gate.findings(protect(raw), rewrite, context)
    codes, details = tuple(f.code for f in found), tuple(f"{f.code}: {f.detail}" for f in found)
    return Verdict(row["id"], kind, str(row.get("note", "")), codes, details)


def faults(
    gate: FidelityGate, documents: Mapping[str, Document], folder: Path, half: str
) -> Iterator[Verdict]:
    bases = {row["id"]: row for row in rows(folder, "faithful", half)}
    for row in rows(folder, "faults", half):
        base = bases.get(row.get("base", ""))
        place = section_of(documents, base or row)
        if is_rewritable(place):
            yield judged(gate, row, place, faulty(row, base, place[0]), row["kind"])


def faithful(
    gate: FidelityGate, documents: Mapping[str, Document], folder: Path, half: str
) -> Iterator[Verdict]:
    for row in rows(folder, "faithful", half):
        place = section_of(documents, row)
        if is_rewritable(place):
            yield judged(gate, row, place, row["rewrite"], "faithful")


def scripted(
    gate: FidelityGate, documents: Mapping[str, Document], folder: Path, half: str
) -> Iterator[Verdict]:
    """What extractive restructuring makes of the same sections; a text that it leaves alone is no rewrite."""
    if find_spec("prime_pipeline.restructuring.extractive") is None:
        return
    from prime_pipeline.restructuring.extractive import extract

    places = {(row["paper"], row["ordinal"]) for row in rows(folder, "faithful", half)}
    outcomes = {paper: extract(documents[paper]) for paper in sorted({paper for paper, _ in places})}
    for paper, ordinal in sorted(places):
        place = section_of(documents, {"paper": paper, "ordinal": ordinal})
        rewrite = outcomes[paper].get(ordinal)
        if rewrite is not None and rewrite != place[0]:
            verdict = judged(gate, {"id": f"{paper}#{ordinal}"}, place, rewrite, "scripted")
            if verdict.codes != ("echo",):
                yield verdict


def by_kind(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    found: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        found[verdict.kind].append(verdict)
    return dict(sorted(found.items()))


def refused(verdicts: Iterable[Verdict]) -> Share:
    all_of_them = list(verdicts)
    return wilson(sum(bool(v.codes) for v in all_of_them), len(all_of_them))


def print_faults(kinds: Mapping[str, list[Verdict]], *, show_misses: bool) -> None:
    print("| kind | faults | refused | recall [95 %] | fitting |")
    print("| --- | ---: | ---: | --- | ---: |")
    required = [v for kind, verdicts in kinds.items() if kind.startswith(REQUIRED) for v in verdicts]
    for kind, verdicts in [*kinds.items(), ("all required kinds", required)]:
        share, fitting = refused(verdicts), sum(v.is_fitting for v in verdicts) / max(len(verdicts), 1)
        print(f"| {kind} | {share.n} | {share.hits} | {share} | {fitting:.3f} |")
    for verdict in (v for verdicts in kinds.values() for v in verdicts if show_misses):
        if not verdict.codes:
            print(f"miss {verdict.id} {verdict.kind}: {verdict.note}")
        elif not verdict.is_fitting:
            print(f"by chance {verdict.id} {verdict.kind}: {verdict.note} -> {verdict.details[0]}")


def print_faithful(name: str, verdicts: list[Verdict], *, show_misses: bool) -> None:
    share = refused(verdicts)
    codes = Counter(code for verdict in verdicts for code in set(verdict.codes))
    listed = ", ".join(
        f"{code} {n}" for code, n in sorted(codes.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    print(f"\n{name}: {share.n}, refused {share.hits}, share {share}" + (f" ({listed})" if listed else ""))
    for verdict in verdicts if show_misses else ():
        for detail in verdict.details:
            print(f"refused {verdict.id}: {detail}")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="all", help="the part of the corpus: a letter, or all")
    parser.add_argument("--entities", choices=("rule", "spacy", "auto"), default="rule")
    parser.add_argument("--similarity", choices=("minilm", "none"), default="minilm")
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--show-misses", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    parts = [path.stem.rpartition("-")[2] for path in sorted(given.corpus.glob("faults-*.jsonl"))]
    if given.half not in (*parts, "all"):
        parser.error(f"--half {given.half}: {given.corpus} has the parts {', '.join(parts) or 'none'}")
    return given


def main() -> None:
    given = options()
    similarity = EmbedderSimilarity(SentenceTransformerEmbedder()) if given.similarity == "minilm" else None
    gate = FidelityGate(GateOptions(), entity_finder(given.entities), similarity=similarity)
    place = gate, sources(), given.corpus, given.half
    planted, true, extracts = list(faults(*place)), list(faithful(*place)), list(scripted(*place))
    if given.json:
        print(
            json.dumps(
                [{**asdict(v), "fitting": v.is_fitting} for v in [*planted, *true, *extracts]], indent=1
            )
        )
        return
    print_faults(by_kind(planted), show_misses=given.show_misses)
    print_faithful("faithful rewrites", true, show_misses=given.show_misses)
    print_faithful("scripted rewrites", extracts, show_misses=given.show_misses)


if __name__ == "__main__":
    main()
