"""Macro-averages: the mean over data sets of their means over queries, so that each counts alike however many queries it has.

Queries are resampled within their data set, and all data sets together make one resample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.statistics import DEFAULT_RESAMPLING, Interval, Pair, PerQuery, Resampling

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PerDataset = Mapping[str, PerQuery]
"""Data set to query to value."""


@dataclass(frozen=True, slots=True)
class MacroDifference:
    """Two systems over the same queries of several data sets.

    Attributes:
        difference: The macro-average of left minus that of right.
        relative: The mean over data sets of ``(left - right) / right``, as the PRIME paper averages BRIGHT (Table 3); None if
            ``right`` is not above 0 somewhere. Its bounds are None if that is so in some resample.
        p_value: Of the two-sided sign-flip permutation test over all queries, each weighted as in the difference.
    """

    difference: Interval
    relative: Interval | None
    p_value: float


def macro_average(values: PerDataset, resampling: Resampling = DEFAULT_RESAMPLING) -> Interval:
    """The macro-average with its percentile bootstrap interval; ``n`` counts all queries.

    Raises:
        EvaluationError: There is no data set, or one has no query.
    """
    _check(values)
    value = fmean(fmean(per_query.values()) for per_query in values.values())
    resampled = _resampled(values, resampling).mean(axis=1)
    return _interval(value, resampled, values, resampling)


def macro_difference(
    left: PerDataset, right: PerDataset, resampling: Resampling = DEFAULT_RESAMPLING
) -> MacroDifference:
    """Left minus right; see :func:`macro_differences`."""
    pair = ("left", "right")
    return macro_differences({"left": left, "right": right}, [pair], resampling)[pair]


def macro_differences(
    systems: Mapping[str, PerDataset], pairs: Sequence[Pair], resampling: Resampling = DEFAULT_RESAMPLING
) -> dict[Pair, MacroDifference]:
    """Left minus right of pairs of systems, over the same queries of the same data sets; all meet the same resamples.

    Raises:
        EvaluationError: As :func:`macro_average`, or data sets or queries differ.
    """
    first = next(iter(systems.values()), {})
    for values in systems.values():
        _check(values)
        if {d: v.keys() for d, v in values.items()} != {d: v.keys() for d, v in first.items()}:
            raise EvaluationError(
                "two systems were measured on other data sets or queries: measure both alike"
            )
    resampled = {name: _resampled(values, resampling) for name, values in systems.items()}
    return {
        (left, right): _difference(
            systems[left], systems[right], resampled[left], resampled[right], resampling
        )
        for left, right in pairs
    }


def _difference(
    left: PerDataset,
    right: PerDataset,
    lefts: NDArray[np.float64],
    rights: NDArray[np.float64],
    resampling: Resampling,
) -> MacroDifference:
    import numpy as np

    from prime_pipeline.evaluation.resampling import sign_flip_p_values

    means = {d: (fmean(left[d].values()), fmean(right[d].values())) for d in left}
    value = fmean(ours - theirs for ours, theirs in means.values())
    weighted = [
        (left[d][query] - right[d][query]) / len(left[d]) for d in sorted(left) for query in sorted(left[d])
    ]
    relative = None
    if all(theirs > 0 for _, theirs in means.values()):
        change = fmean(ours / theirs - 1 for ours, theirs in means.values())
        has_base = bool((rights > 0).all())
        changes = (lefts / rights - 1).mean(axis=1) if has_base else None
        relative = _interval(change, changes, left, resampling)
    return MacroDifference(
        difference=_interval(value, (lefts - rights).mean(axis=1), left, resampling),
        relative=relative,
        p_value=sign_flip_p_values(np.array(weighted)[:, None], resampling)[0],
    )


def _check(values: PerDataset) -> None:
    if not values:
        raise EvaluationError("no data set was measured: there is nothing to average")
    if empty := sorted(dataset for dataset, per_query in values.items() if not per_query):
        raise EvaluationError(f"data set {empty[0]!r} has no query: nothing follows from none")


def _resampled(values: PerDataset, resampling: Resampling) -> NDArray[np.float64]:
    """Means of every data set in every resample, (n_resamples, n_datasets); data sets in order of their names.

    What is drawn depends on sizes and names only, so that systems over the same queries meet the same resamples.
    """
    import numpy as np

    from prime_pipeline.evaluation.resampling import batches

    columns = []
    for at, dataset in enumerate(sorted(values)):
        of_queries = np.array([values[dataset][query] for query in sorted(values[dataset])])
        n_queries = len(of_queries)
        generator = np.random.default_rng([resampling.seed, at])
        drawn = (
            of_queries[generator.integers(0, n_queries, size=(n_rows, n_queries))].mean(axis=1)
            for n_rows in batches(n_queries, resampling.n_resamples)
        )
        columns.append(np.concatenate(list(drawn)))
    return np.stack(columns, axis=1)


def _interval(
    value: float, resampled: NDArray[np.float64] | None, values: PerDataset, resampling: Resampling
) -> Interval:
    n = sum(map(len, values.values()))
    if resampled is None:
        return Interval(value, None, None, n, n, "unbounded")
    if n == len(values):  # one query in each: nothing can be drawn otherwise
        return Interval(value, None, None, n, n, "single")
    import numpy as np

    tail = (1 - resampling.confidence) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail)).tolist()
    return Interval(value, low, high, n, n, "percentile")
