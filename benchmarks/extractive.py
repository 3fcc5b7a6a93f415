"""What extractive restructuring saves on the annotated QASPER papers, and which evidence it keeps; prints one table.

    PRIME_TEST_DATA=DIR python benchmarks/extractive.py [--development]

An evidence sentence counts if the raw sections hold it. It is kept *verbatim* if its section still holds it; *shortened*
if its section holds it once the same cuts are made inside it; in *content* if one sentence of its section has all its
content words. The intervals resample papers (95 %, percentile). The control drops whole sentences at random until as
many words are gone. ``--development`` reads the papers without evidence instead and prints the words alone.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.source import SourceEntry
from prime_pipeline.records import Document, Section
from prime_pipeline.restructuring.extractive import content_words, extract
from prime_pipeline.text.sentences import sentence_spans, sentences

N_RESAMPLES = 10_000
N_CONTROL_DRAWS = 20
SEED = 0
FLOAT_EVIDENCE = "FLOAT SELECTED"
CARRIER = "It is this and that to all of them, and there is one for each of us."

Bodies = Mapping[int, str]
Kept = Callable[[str, str], bool]


def bodies(document: Document) -> dict[int, str]:
    return {s.ordinal: s.body for s in document.sections if s.kind != "captions" and s.body}


def squeezed(text: str) -> str:
    return " ".join(text.split())


def n_words(texts: Bodies) -> int:
    return sum(len(text.split()) for text in texts.values())


def evidence_sentences(paper: Mapping[str, Any]) -> list[str]:
    """The distinct sentences that annotators marked, else those of the paragraphs that they marked, in order."""
    spans: dict[str, None] = {}
    for question in paper.get("qas", []):
        for answer in question["answers"]:
            marked = answer["answer"].get("highlighted_evidence") or answer["answer"].get("evidence") or []
            spans |= dict.fromkeys(span for span in marked if not span.startswith(FLOAT_EVIDENCE))
    return list(dict.fromkeys(squeezed(s) for span in spans for s in sentences(span)))


def shortened(sentence: str) -> str:
    """The sentence with the cuts that are made inside it, as a paragraph of its own; itself if it would go."""
    # A sentence may hold too few stop words to be taken for English by itself.
    section = Section(0, "whole", "", (), f"{sentence}\n\n{CARRIER}")
    document = Document("", "", "file-name", (section,), "", "text/plain")
    return extract(document).get(0, section.body).removesuffix(CARRIER).strip() or sentence


def in_one_sentence(evidence: str, text: str) -> bool:
    words = set(content_words(evidence))
    return any(words <= set(content_words(sentence)) for sentence in sentences(text))


KEPT: dict[str, Kept] = {
    "verbatim": lambda evidence, text: evidence in squeezed(text),
    "shortened": lambda evidence, text: evidence in squeezed(text) or squeezed(shortened(evidence)) in squeezed(text),
    "content": in_one_sentence,
}  # fmt: skip


def without_random_sentences(raw: Bodies, n_words_less: int, dice: random.Random) -> Bodies:
    """The bodies without whole sentences, drawn until at least so many words are gone."""
    spans = [(ordinal, *span) for ordinal, body in raw.items() for span in sentence_spans(body)]
    dice.shuffle(spans)
    gone: dict[int, list[tuple[int, int]]] = {ordinal: [] for ordinal in raw}
    for ordinal, start, end in spans:
        if n_words_less <= 0:
            break
        n_words_less -= len(raw[ordinal][start:end].split())
        gone[ordinal].append((start, end))
    return {ordinal: _without(body, sorted(gone[ordinal])) for ordinal, body in raw.items()}


def _without(body: str, spans: list[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        body = f"{body[:start].rstrip(' ')}{body[end:]}"
    return body


def n_kept(evidence: list[tuple[str, int]], texts: Bodies, kept: Kept) -> int:
    return sum(kept(sentence, texts[ordinal]) for sentence, ordinal in evidence)


def located(paper: Mapping[str, Any], raw: Bodies) -> list[tuple[str, int]]:
    """The evidence sentences that can be found, each with the first section that holds it."""
    plain = {ordinal: squeezed(body) for ordinal, body in raw.items()}
    pairs = (
        (s, next((o for o, text in plain.items() if s in text), None)) for s in evidence_sentences(paper)
    )
    return [(sentence, ordinal) for sentence, ordinal in pairs if ordinal is not None]


def with_interval(parts: NDArray[np.float64], wholes: NDArray[np.float64]) -> str:
    """The share of the sums with its percentile interval over resampled papers."""
    picks = np.random.default_rng(SEED).integers(len(parts), size=(N_RESAMPLES, len(parts)))
    shares = parts[picks].sum(axis=1) / wholes[picks].sum(axis=1)
    low, high = np.percentile(shares, [2.5, 97.5])
    return f"{parts.sum() / wholes.sum():.1%} ({low:.1%} to {high:.1%})"


def papers(location: Path, *, annotated: bool) -> Iterator[Document]:
    for entry in open_corpus(str(location)).entries():
        if isinstance(entry, SourceEntry) and entry.doc_id.startswith("test-") != annotated:
            yield entry.parse()


def print_words(raws: list[Bodies], texts: list[Bodies]) -> None:
    before, after = np.array([*map(n_words, raws)]), np.array([*map(n_words, texts)])
    saved = 1 - after / before
    print(
        f"{len(raws)} papers, {before.sum():,} words before, {after.sum():,} after: {1 - after.sum() / before.sum():.1%} saved,"
    )
    print(f"by paper {saved.mean():.1%} on average, from {saved.min():.1%} to {saved.max():.1%}\n")


def print_evidence(
    records: Mapping[str, Any], ids: list[str], raws: list[Bodies], texts: list[Bodies]
) -> None:
    evidence = [located(records[doc_id], raw) for doc_id, raw in zip(ids, raws, strict=True)]
    wholes = np.array([*map(len, evidence)], dtype=np.float64)
    dice = random.Random(SEED)
    controls = [
        [without_random_sentences(raw, n_words(raw) - n_words(text), dice) for _ in range(N_CONTROL_DRAWS)]
        for raw, text in zip(raws, texts, strict=True)
    ]
    print(
        f"| of {wholes.sum():.0f} evidence sentences kept | extractive | random sentences |\n| --- | ---: | ---: |"
    )
    for name, kept in KEPT.items():
        ours = [n_kept(e, text, kept) for e, text in zip(evidence, texts, strict=True)]
        theirs = [
            np.mean([n_kept(e, text, kept) for text in draws])
            for e, draws in zip(evidence, controls, strict=True)
        ]
        cells = [with_interval(np.array(parts, dtype=np.float64), wholes) for parts in (ours, theirs)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    location = Path(os.environ.get("PRIME_TEST_DATA", "")) / "qasper-mini" / "qasper-mini.json"
    development = "--development" in sys.argv[1:]
    documents = list(papers(location, annotated=not development))
    raws: list[Bodies] = [bodies(document) for document in documents]
    texts: list[Bodies] = [
        raw | extract(document) for raw, document in zip(map(bodies, documents), documents, strict=True)
    ]
    print_words(raws, texts)
    if not development:
        records = json.loads(location.read_text(encoding="utf-8"))
        print_evidence(records, [document.doc_id for document in documents], raws, texts)


if __name__ == "__main__":
    main()
