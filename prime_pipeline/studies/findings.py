"""What a study finds, where that is kept, and how findings become one report.

A study is named, has a fingerprint of all that determines it, and is made again only where that changes. What it finds is
a part of a report, and rows for the warehouse.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from prime_pipeline.errors import ReportError
from prime_pipeline.evaluation.families import Family
from prime_pipeline.evaluation.statistics import (
    Interval,
    Pair,
    PairedDifference,
    PerQuery,
    are_few,
    mean_intervals,
    paired_difference,
    paired_differences,
)
from prime_pipeline.reports.content import Cell, Comparison, Contrast, Measured, ReportContent
from prime_pipeline.reports.report_json import from_json, to_json
from prime_pipeline.storage.atomic import write_text
from prime_pipeline.storage.fingerprint import fingerprint

MAX_DOCUMENTS: Final = 500
"""Studies that read texts take so many documents at most, so that a refresh of many documents stays cheap."""

_NOTHING: Final = ReportContent(title="", dataset="", created="")
_NO_INTERVAL: Final = {
    "single": "one query or document only, which says nothing about others",
    "unbounded": "the base is zero in some resample",
}

Row = Mapping[str, str | float | int | None]
"""One row of a warehouse table."""


def part(**values: Any) -> ReportContent:
    """A report with some of its fields; which report it belongs to is said when parts are merged."""
    return replace(_NOTHING, **values)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a study found.

    Attributes:
        content: A part of the report.
        rows: For the warehouse, by table.
        counts: What making it took, by name, such as the texts that were ``encoded``; nothing where it was kept.
    """

    content: ReportContent = _NOTHING
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Study:
    """A study as it is kept.

    Attributes:
        name: Of the study.
        fingerprint: Hash of all that determines what it finds.
        findings: What it found.
        changed: Whether it was made now.
        seconds: What making it took, now or then.
    """

    name: str
    fingerprint: str
    findings: Findings
    changed: bool
    seconds: float


def made(path: Path, determinants: Any, make: Callable[[], Findings]) -> Study:
    """The study whose file is ``path``: as it is kept, or made and written if its determinants are others now.

    Args:
        path: ``<name of the study>.json``.
        determinants: Plain JSON values that tell all that the findings depend on.
        make: Called where it has to be made.
    """
    wanted = fingerprint(determinants)
    kept = read_study(path)
    if kept is not None and kept.fingerprint == wanted:
        return kept
    started = time.monotonic()
    findings = make()
    seconds = time.monotonic() - started
    payload = {
        "fingerprint": wanted,
        "seconds": round(seconds, 3),
        "content": json.loads(to_json(findings.content)),
        "rows": {table: list(rows) for table, rows in findings.rows.items()},
    }
    write_text(path, json.dumps(payload) + "\n")
    return Study(path.stem, wanted, findings, changed=True, seconds=seconds)


def read_study(path: Path) -> Study | None:
    """A study as it is kept, or None where there is none that can be read (it can always be made again)."""
    try:
        fields_ = json.loads(path.read_text(encoding="utf-8"))
        rows = {table: [dict(row) for row in of_table] for table, of_table in fields_["rows"].items()}
        findings = Findings(from_json(json.dumps(fields_["content"])), rows)
        seconds = float(fields_["seconds"])
        return Study(path.stem, fields_["fingerprint"], findings, changed=False, seconds=seconds)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ReportError):
        return None


def merged(head: ReportContent, parts: Iterable[ReportContent]) -> ReportContent:
    """One report of many parts, in their order.

    Tuples are joined, sentences that repeat come once, mappings are united, and of what a report has only once the head
    or the first part that has it decides.
    """
    content = head
    for each in parts:
        content = replace(content, **{f.name: _joined(content, each, f.name) for f in fields(content)})
    return content


def _joined(left: ReportContent, right: ReportContent, name: str) -> Any:
    ours, theirs = getattr(left, name), getattr(right, name)
    if isinstance(ours, tuple):
        return tuple(dict.fromkeys(ours + theirs)) if name in {"conventions", "notes"} else ours + theirs
    if isinstance(ours, Mapping):
        return {**theirs, **ours}
    return ours if ours or name == "created" else theirs


def drawn(doc_ids: Iterable[str], n: int = MAX_DOCUMENTS) -> frozenset[str]:
    """At most ``n`` documents, drawn by hashes of their ids: one that comes or goes changes the draw by one at most."""
    return frozenset(sorted(doc_ids, key=lambda doc_id: (_draw(doc_id), doc_id))[:n])


def _draw(doc_id: str) -> bytes:
    return hashlib.blake2b(doc_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def sampling_note(what: str, n_drawn: int) -> tuple[str, ...]:
    """A sentence for the report where not all documents were looked at; of how many, the report's head says."""
    return (f"{what}: {n_drawn:,} of the documents, drawn by hashes of their ids.",)


def few_clusters_note(what: str, n_clusters: int) -> tuple[str, ...]:
    """A sentence for the report where intervals rest on so few documents that they are too narrow."""
    if not are_few(n_clusters):
        return ()
    return (
        f"{what}: from {n_clusters} documents only, so that the intervals are narrower than they should be.",
    )


# --- from statistics to what a report shows -----------------------------------------------------------------------


def measured(interval: Interval) -> Measured:
    """An interval as a report shows it."""
    return Measured(
        interval.value, interval.low, interval.high, interval.n, _NO_INTERVAL.get(interval.method, "")
    )


def difference(compared: PairedDifference) -> Measured:
    """Left minus right as a report shows it."""
    reason = _NO_INTERVAL.get(compared.method, "")
    return Measured(compared.difference, compared.low, compared.high, compared.n, reason)


def measured_cells(
    bare: Cell, intervals: Mapping[str, Interval], per_query: Mapping[str, PerQuery]
) -> Iterator[Cell]:
    """The cells of one system, a measure each; ``bare`` tells which system."""
    for measure, interval in intervals.items():
        yield replace(bare, measure=measure, result=measured(interval), per_query=per_query[measure])


def comparisons(
    family: str,
    measure: str,
    pairs: Sequence[Pair],
    values: Mapping[str, PerQuery],
    clusters: Mapping[str, str] | None,
) -> list[Comparison]:
    """A declared family of comparisons, in the order of its pairs, tested over the same queries and adjusted together.

    Left and right bear the names of the pairs; what else tells them apart (pipeline, level, models) is the caller's to add.
    """
    declared = Family(family, tuple(pairs))
    found = paired_differences(values, declared.comparisons, clusters)
    adjusted = declared.holm({pair: compared.p_value for pair, compared in found.items()})
    return [
        Comparison(
            family=family,
            measure=measure,
            pipeline="",
            left=left,
            right=right,
            difference=difference(compared),
            relative=None if compared.relative is None else measured(compared.relative),
            p_value=compared.p_value,
            p_adjusted=adjusted[left, right],
            minimum_detectable_effect=compared.minimum_detectable_effect,
            n_clusters=compared.n_clusters,
            n_family=len(declared.comparisons),
        )
        for (left, right), compared in found.items()
    ]


def contrast(
    measure: str,
    raw: PerQuery,
    restructured: PerQuery,
    clusters: Mapping[str, str] | None = None,
    question_type: str = "",
    *,
    follows_paper: bool = True,
) -> Contrast:
    """A measure of the raw and of the restructured text over the same queries or documents."""
    found = mean_intervals({"raw": raw, "restructured": restructured}, clusters)
    relative = paired_difference(restructured, raw, clusters).relative
    return Contrast(
        measure,
        measured(found["raw"]),
        measured(found["restructured"]),
        None if relative is None else measured(relative),
        question_type,
        follows_paper,
        found["raw"].n_clusters,
    )
