"""Speed of term statistics against scikit-learn's TfidfVectorizer, on the same words of the same documents.

Both start from lists of words. Ours counts, weighs positions and headings, and picks five terms per document; theirs
makes the weighted matrix. Rounds alternate within one process, so that a change of the machine's load meets both.

    PRIME_TEST_DATA=... python benchmarks/metadata_terms.py
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from sklearn.feature_extraction.text import TfidfVectorizer

from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.terms import TermStatistics
from prime_pipeline.text.words import term_words

ROUNDS = 9
Words = list[list[str]]


def papers(data: Path) -> list[str]:
    records = json.loads((data / "qasper-mini/qasper-mini.json").read_text(encoding="utf-8"))
    return ["\n".join(p for s in r["full_text"] for p in s["paragraphs"]) for r in records.values()]


def rfcs(data: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted((data / "markdown/rust-rfcs").glob("*.md"))]


def ours(documents: Words) -> None:
    statistics = TermStatistics()
    for words in documents:
        statistics.add(words, words[:50])
    statistics.best_terms(MetadataOptions())


def theirs(documents: Words) -> None:
    TfidfVectorizer(analyzer=lambda words: words).fit_transform(documents)


def seconds(function: Callable[[Words], None], documents: Words) -> float:
    start = time.perf_counter()
    function(documents)
    return time.perf_counter() - start


def main() -> None:
    data = Path(os.environ["PRIME_TEST_DATA"])
    print("| corpus | documents | words | ours, ms | TfidfVectorizer, ms | theirs / ours (min to max) |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, texts in (("qasper-mini", papers(data)), ("rust-rfcs", rfcs(data))):
        documents = [term_words(text) for text in texts]
        rounds = [(seconds(ours, documents), seconds(theirs, documents)) for _ in range(ROUNDS)]
        mine, other = (median(times) * 1000 for times in zip(*rounds, strict=True))
        ratios = sorted(b / a for a, b in rounds)
        print(
            f"| {name} | {len(documents)} | {sum(map(len, documents))} | {mine:.0f} | {other:.0f} "
            f"| {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |"
        )


if __name__ == "__main__":
    main()
