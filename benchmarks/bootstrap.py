"""Time of bootstrap intervals for many systems over shared resamples, against scipy.stats.bootstrap for one.

1,500 queries, 10,000 resamples, BCa. Ours also resamples clusters, and compares systems in pairs with permutation
p-values. Rounds alternate within one process, so that a change of the machine's load meets both.

    python benchmarks/bootstrap.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
from scipy import stats

from prime_pipeline.evaluation.statistics import mean_intervals, paired_differences

N_QUERIES, N_SYSTEMS, N_CLUSTERS, N_RESAMPLES, ROUNDS = 1_500, 15, 400, 10_000, 5


def systems() -> dict[str, dict[str, float]]:
    """Values that look like NDCG@5: many zeros, some ones, the rest between."""
    values = np.clip(np.random.default_rng(0).normal(0.2, 0.5, size=(N_SYSTEMS, N_QUERIES)), 0, 1)
    return {
        f"s{at:02}": {f"q{query:04}": float(v) for query, v in enumerate(row)}
        for at, row in enumerate(values)
    }


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    measured = systems()
    first, *others = measured
    one = {first: measured[first]}
    values = np.array(list(one[first].values()))
    clusters = {query: f"c{at % N_CLUSTERS:03}" for at, query in enumerate(one[first])}
    pairs = [(first, other) for other in others]
    contenders: dict[str, Callable[[], object]] = {
        "scipy.stats.bootstrap, 1 system": lambda: stats.bootstrap(
            (values,), np.mean, n_resamples=N_RESAMPLES, batch=1_000, rng=np.random.default_rng(0)
        ),
        "ours, 1 system": lambda: mean_intervals(one),
        f"ours, {N_SYSTEMS} systems": lambda: mean_intervals(measured),
        f"ours, {N_SYSTEMS} systems, {N_CLUSTERS} clusters": lambda: mean_intervals(measured, clusters),
        f"ours, {len(pairs)} pairs (intervals and p-values)": lambda: paired_differences(measured, pairs),
    }
    for function in contenders.values():
        function()  # imports are not what is timed
    rounds = [[seconds(function) for function in contenders.values()] for _ in range(ROUNDS)]
    print("| what | seconds | ratio to scipy, 1 system (min to max) |")
    print("| --- | ---: | ---: |")
    for at, name in enumerate(contenders):
        ratios = sorted(times[at] / times[0] for times in rounds)
        print(
            f"| {name} | {median(times[at] for times in rounds):.2f} "
            f"| {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |"
        )


if __name__ == "__main__":
    main()
