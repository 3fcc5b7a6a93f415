"""Whether weights beat plain reciprocal rank fusion, and what section scoring is worth; prints one Markdown table a home.

    python benchmarks/fusion.py HOME [HOME ...]

A home is one that was refreshed with queries. Every choice is made by two-fold cross-fitting over the documents that
queries are asked of (:mod:`prime_pipeline.evaluation.cross_fit`), so that no query is reported under a choice that it had a
say in. Adaptive weights take one of two triples for each query, by whether a feature of the query that is known before
anything is ranked by documents is below its median.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from statistics import fmean, median

import numpy as np
from captured import (
    DEFAULT_MIXTURE,
    Captured,
    CapturedQuery,
    Mixture,
    Weights,
    capture,
    difference,
    shown,
    structure_chunks,
)

from prime_pipeline.evaluation.cross_fit import cross_fit
from prime_pipeline.evaluation.statistics import PerQuery
from prime_pipeline.text.words import lexical_words

PLAIN: Weights = (1.0, 1.0, 1.0)
BUDGET = 48
SECTION_BM25: Weights = (0.0, 1.0, 0.0)
MIXTURES: tuple[Mixture, ...] = (
    DEFAULT_MIXTURE,
    *(m for m in product((0.5, 1.0, 1.5, 2.0), (0.0, 0.5, 1.0, 1.5, 2.0)) if m != DEFAULT_MIXTURE),
)
WEIGHTS: tuple[Weights, ...] = (
    PLAIN,
    *((a, b, c) for a, b, c in product((0.5, 1.0, 2.0), repeat=3) if 1.0 in (a, b, c) and (a, b, c) != PLAIN),
)
FEATURES: Mapping[str, Callable[[CapturedQuery], float]] = {
    "length of the query": lambda query: len(lexical_words(query.text)),
    "share of sections that match": lambda query: np.count_nonzero(query.lexical) / len(query.lexical),
    "best section's BM25": lambda query: float(query.lexical.max(initial=0.0)),
    "agreement of BM25 and vectors": lambda query: float(
        np.count_nonzero((query.ranks[0] <= 10) & (query.ranks[2] <= 10))
    ),
}


def stage1(captured: Captured, weights: Weights) -> PerQuery:
    """NDCG@5 of weighted fusion."""
    return captured.ndcg({q.query_id: captured.stage1(q.fused(weights)) for q in captured.queries})


def scored(captured: Captured, mixture: Mixture, weights: Weights = PLAIN) -> PerQuery:
    """NDCG@5 after the best 48 sections were scored."""
    run = {}
    for query in captured.queries:
        fused = query.fused(weights)
        sections = captured.cheap_order(query, fused)[:BUDGET]
        run[query.query_id] = captured.reranked(query, fused, sections, mixture)
    return captured.ndcg(run)


def rows(
    captured: Captured, chunked: Captured, clusters: Mapping[str, str]
) -> Iterator[tuple[str, str, PerQuery, PerQuery]]:
    """What, what was chosen, its values, and the values that it is compared with."""
    by_weights = {weights: stage1(captured, weights) for weights in WEIGHTS}
    plain = by_weights[PLAIN]
    section_bm25 = stage1(captured, SECTION_BM25)
    yield "stage 1, section BM25 alone", "", section_bm25, plain
    yield "stage 1, equal weights", "", plain, section_bm25
    fixed = cross_fit({str(weights): values for weights, values in by_weights.items()}, clusters)
    yield "stage 1, fixed weights", " and ".join(fixed.chosen), fixed.per_query, plain
    for name, feature in FEATURES.items():
        values = {query.query_id: feature(query) for query in captured.queries}
        middle = median(values[query_id] for query_id in plain)
        candidates = {str(PLAIN): plain}
        for low, high in product(WEIGHTS, WEIGHTS):
            candidates[f"{low} / {high}"] = {
                query_id: by_weights[low if values[query_id] <= middle else high][query_id]
                for query_id in plain
            }
        adaptive = cross_fit(candidates, clusters)
        yield f"stage 1, weights by {name}", " and ".join(adaptive.chosen), adaptive.per_query, plain
    by_mixture = {mixture: scored(captured, mixture) for mixture in MIXTURES}
    first = by_mixture[MIXTURES[0]]
    yield f"sections scored, mixture {DEFAULT_MIXTURE}", "", first, plain
    mixed = cross_fit({str(mixture): values for mixture, values in by_mixture.items()}, clusters)
    yield "sections scored, mixture by folds", " and ".join(mixed.chosen), mixed.per_query, first
    yield "the same, against section BM25", "", mixed.per_query, section_bm25
    chunks = cross_fit({str(mixture): scored(chunked, mixture) for mixture in MIXTURES}, clusters)
    yield "the same, against structure-chunks likewise", "", mixed.per_query, chunks.per_query


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("homes", nargs="+", type=Path)
    for home in parser.parse_args().homes:
        captured, chunked = capture(home), capture(home, vectors=structure_chunks(home))
        clusters = {query_id: captured.clusters[query_id] for query_id in stage1(captured, PLAIN)}
        print(f"\n{home.name}\n\n| | chosen | NDCG@5 | compared with | difference |")
        print("| --- | --- | ---: | ---: | ---: |")
        for what, chosen, values, base in rows(captured, chunked, clusters):
            means = f"{fmean(values.values()):.4f} | {fmean(base.values()):.4f}"
            print(
                f"| {what} | {chosen} | {means} | {shown(difference(values, base, clusters))} |", flush=True
            )


if __name__ == "__main__":
    main()
