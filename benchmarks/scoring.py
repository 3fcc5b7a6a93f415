"""Seconds to score 1,000 queries of 1,000 results with six measures, beside ir_measures on the same data.

Ours breaks ties by id, checks every id and score, and keeps the values of each query; ir_measures takes the run as it
is. Rounds alternate within one process, so that a change of the machine's load meets both.

    python benchmarks/scoring.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import ir_measures
import numpy as np

from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.records import Qrels, Run

ROUNDS = 5
MEASURES = {
    "ndcg@5": ir_measures.nDCG @ 5,
    "ndcg@10": ir_measures.nDCG @ 10,
    "p@5": ir_measures.P @ 5,
    "r@5": ir_measures.R @ 5,
    "mrr": ir_measures.RR,
    "map": ir_measures.AP,
}


def random_data(n_queries: int, n_results: int) -> tuple[Run, Qrels]:
    """Results with tied scores out of 100 times as many sections; one in twenty is judged, from 0 to 3."""
    rng = np.random.default_rng(0)
    run, qrels = {}, {}
    for number in range(n_queries):
        ids = [f"doc-{i:07}#3" for i in rng.choice(100 * n_results, n_results, replace=False)]
        run[f"q{number:04}"] = dict(zip(ids, rng.integers(0, n_results // 2, n_results) / 7, strict=True))
        qrels[f"q{number:04}"] = {doc_id: int(rng.integers(0, 4)) for doc_id in ids[::20]}
    return run, qrels


def seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--results", type=int, default=1_000)
    given = parser.parse_args()
    run, qrels = random_data(given.queries, given.results)
    rounds = [
        (
            seconds(lambda: evaluate(run, qrels, tuple(MEASURES))),
            seconds(lambda: ir_measures.calc_aggregate(list(MEASURES.values()), qrels, run)),
        )
        for _ in range(ROUNDS)
    ]
    ours, theirs = (median(times) for times in zip(*rounds, strict=True))
    ratios = sorted(a / b for a, b in rounds)
    print(
        "| queries | results each | measures | ours, s | ir_measures, s | ours / ir_measures (min to max) |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    print(
        f"| {given.queries:,} | {given.results:,} | {len(MEASURES)} | {ours:.2f} | {theirs:.2f} "
        f"| {median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f}) |"
    )


if __name__ == "__main__":
    main()
