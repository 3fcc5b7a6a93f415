"""How sure a mean of per-query values is, and whether two systems differ: intervals, tests and what they could detect.

Values come from the measures; which systems are worth comparing is for the caller to say, and to say beforehand. A
result holds no NaN and no infinity: what is not defined is None, or has the defined answer that the docstring names.
The order of the input never matters; queries and clusters are sorted by id, and the seed is part of the options.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal

from prime_pipeline.errors import EvaluationError

Method = Literal["bca", "percentile", "wilson", "single", "unbounded"]
"""Where an interval's bounds come from.

``single``: there is one cluster only, which says nothing about others, so the bounds are None. ``unbounded``: the base
of a relative difference is 0 or less in some resample, so the bounds are None.
"""

Bounds = tuple[float | None, float | None, Method]
"""Low, high, and where they come from."""

PerQuery = Mapping[str, float]
"""Query id to value."""

Pair = tuple[str, str]
"""Two systems by name, left and right; the difference is left minus right."""

ALPHA: Final = 0.05
POWER: Final = 0.8
FEW_CLUSTERS: Final = 20
"""Below, bootstrap intervals are too narrow, by whichever method."""
MAX_VALUE: Final = 1e100
"""Values beyond it, up or down, are refused: their squares would overflow."""


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise EvaluationError(f"confidence is {confidence}: it lies between 0 and 1, usually at 0.95")


@dataclass(frozen=True, slots=True)
class Resampling:
    """How to resample.

    Attributes:
        n_resamples: Bootstrap resamples, and patterns of flipped signs; 100 at least.
        seed: 0 or more. Analyses with the same seed and number of clusters meet the same resamples.
        confidence: Of intervals, between 0 and 1.
        method: ``bca`` falls back to ``percentile`` where it is not defined.
    """

    n_resamples: int = 10_000
    seed: int = 0
    confidence: float = 0.95
    method: Literal["bca", "percentile"] = "bca"

    def __post_init__(self) -> None:
        if self.n_resamples < 100:
            raise EvaluationError(f"{self.n_resamples} resamples carry no interval: use 100 or more")
        if self.seed < 0:
            raise EvaluationError(f"the seed is {self.seed}: use 0 or more")
        _check_confidence(self.confidence)


DEFAULT_RESAMPLING: Final = Resampling()


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its confidence interval.

    Attributes:
        value: The mean, the relative difference or the share.
        low: Lower bound; None if ``method`` is ``single`` or ``unbounded``.
        high: Upper bound; None where ``low`` is.
        n: Queries (or, of a share, trials).
        n_clusters: What was resampled: ``n`` unless queries are clustered.
        method: The one used, see :data:`Method`.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    n_clusters: int
    method: Method


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Two systems over the same queries.

    The minimum detectable effect is the true difference that a two-sided test at 0.05 would find with a probability of
    80 %, given the spread of these differences: ``(t(0.975) + t(0.8)) * SE`` with quantiles of Student's t at
    ``n_clusters - 1`` degrees of freedom (Bloom, "Minimum detectable effects", Evaluation Review 19, 1995). SE is the
    standard error of a ratio of sums over clusters (Cochran, *Sampling Techniques*, 1977, chapter 6), which without
    clusters is the standard deviation over the root of n. It tells what the data could have shown, also where the
    observed difference is smaller. It knows nothing of a family that the p-value is adjusted over, which asks for more,
    nor that few clusters may allow no small p-value at all: see :func:`smallest_p_value`.

    Attributes:
        left: Mean of the left system.
        right: Mean of the right system, the base.
        difference: Left minus right.
        low: Lower bound of the difference; None with one cluster.
        high: Upper bound; None with one cluster.
        p_value: Of the two-sided sign-flip permutation test, above 0; 1 if no query differs or there is one cluster.
        n: Queries.
        n_clusters: What was resampled and had its signs flipped.
        relative: Difference over ``right``, 0.222 for +22.2 %; None unless ``right`` is above 0. Its bounds
            are None with one cluster, or if the mean of ``right`` is not above 0 in every resample.
        minimum_detectable_effect: As above; None with one cluster, or if the differences do not vary.
        method: Of ``low`` and ``high``.
    """

    left: float
    right: float
    difference: float
    low: float | None
    high: float | None
    p_value: float
    n: int
    n_clusters: int
    relative: Interval | None
    minimum_detectable_effect: float | None
    method: Method


def mean_interval(
    values: PerQuery, clusters: Mapping[str, str] | None = None, resampling: Resampling = DEFAULT_RESAMPLING
) -> Interval:
    """The mean of per-query values with its bootstrap interval; see :func:`mean_intervals`."""
    return mean_intervals({"values": values}, clusters, resampling)["values"]


def mean_intervals(
    systems: Mapping[str, PerQuery],
    clusters: Mapping[str, str] | None = None,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> dict[str, Interval]:
    """The means of several systems with bootstrap intervals; all systems meet the same resamples.

    Where queries nest in clusters, such as questions in the paper they were asked about, clusters are resampled and
    not queries; the statistic is the mean over all queries of the resampled clusters. Values that do not vary give an
    interval of no width, also where they are all 0 or all 1: for what can be counted, :func:`share_interval` knows
    better. Intervals from fewer than :data:`FEW_CLUSTERS` clusters are too narrow, by whichever method.

    Args:
        systems: Name to query to value.
        clusters: Query to cluster, for every query (others are ignored); None where each query stands for itself.
        resampling: Resamples, seed, confidence and method.

    Raises:
        EvaluationError: There is no query, the systems have different queries, a value is not finite or beyond
            ``MAX_VALUE``, or a query has no cluster.
    """
    if not systems:
        return {}
    import numpy as np

    from prime_pipeline.evaluation import resampling as kernel

    queries = _shared_queries(systems)
    membership = _membership(queries, clusters)
    values = np.array([[values[query] for values in systems.values()] for query in queries])
    means = kernel.column_means(values)
    sums, sizes = (kernel.cluster_sums(cells, membership) for cells in (values, np.ones_like(values)))
    bounds = kernel.ratio_bounds(means, sums, sizes, resampling)
    return dict(zip(systems, _intervals(means.tolist(), bounds, len(queries), len(sums)), strict=True))


def paired_difference(
    left: PerQuery,
    right: PerQuery,
    clusters: Mapping[str, str] | None = None,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> PairedDifference:
    """Left minus right over the same queries; see :func:`paired_differences`."""
    pair = ("left", "right")
    return paired_differences({"left": left, "right": right}, [pair], clusters, resampling)[pair]


def paired_differences(
    systems: Mapping[str, PerQuery],
    pairs: Sequence[Pair],
    clusters: Mapping[str, str] | None = None,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> dict[Pair, PairedDifference]:
    """Differences of pairs of systems, with intervals, p-values and what could have been detected.

    All pairs meet the same resamples and the same flipped signs. Where queries nest in clusters, clusters are
    resampled, and a cluster's differences change sign together. Two values of a query that agree to 12 digits are
    equal. Swapping left and right negates the difference and leaves the p-value. With pairs of a declared family,
    the p-values go to :meth:`~prime_pipeline.evaluation.families.Family.holm`.

    Args:
        systems: Name to query to value.
        pairs: Names of left and right.
        clusters: Query to cluster, for every query; None where each query stands for itself.
        resampling: Resamples, seed, confidence and method.

    Raises:
        EvaluationError: As :func:`mean_intervals`, or a pair names a system that is not there.
    """
    for name in (name for pair in pairs for name in pair):
        if name not in systems:
            raise EvaluationError(f"no system {name!r} to compare: there are {_listed(map(repr, systems))}")
    if not pairs:
        return {}
    compared = {name: systems[name] for pair in pairs for name in pair}
    queries = _shared_queries(compared)
    left = [[compared[name][query] for name, _ in pairs] for query in queries]
    right = [[compared[name][query] for _, name in pairs] for query in queries]
    return dict(zip(pairs, _compare(left, right, _membership(queries, clusters), resampling), strict=True))


def smallest_p_value(n_clusters: int, resampling: Resampling = DEFAULT_RESAMPLING) -> float:
    """The smallest p-value that a two-sided sign-flip test of so many clusters can give.

    Of all patterns of signs, the observed one and its opposite are always as extreme as observed; where patterns are
    drawn, one in ``n_resamples + 1`` is. If it is not below 0.05 once it is adjusted for a family, by Holm's method times
    the number of comparisons, no comparison of the family can be told apart, however large the differences.
    """
    return max(2.0 ** (1 - n_clusters), 1 / (resampling.n_resamples + 1))


def are_few(n_clusters: int | None) -> bool:
    """Whether intervals from so many clusters are too narrow; one has none, and of an unknown number nothing is said."""
    return n_clusters is not None and 1 < n_clusters < FEW_CLUSTERS


def share_interval(hits: int, n: int, confidence: float = 0.95) -> Interval | None:
    """The share of hits among n independent trials with Wilson's score interval, or None where there is no trial.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927; without
    continuity correction.

    Raises:
        EvaluationError: ``hits`` is not between 0 and ``n``, or ``confidence`` not between 0 and 1.
    """
    _check_confidence(confidence)
    if not 0 <= hits <= n:
        raise EvaluationError(f"{hits} hits of {n}: there must be 0 at least and {n} at most")
    if n == 0:
        return None
    share, z = hits / n, NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half_width = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = max(0.0, centre - half_width), min(1.0, centre + half_width)
    # At 0 and n hits one bound is the share itself, but for rounding.
    return Interval(share, low if hits else 0.0, high if hits < n else 1.0, n, n, "wilson")


def _compare(
    left_values: list[list[float]],
    right_values: list[list[float]],
    membership: list[int],
    resampling: Resampling,
) -> list[PairedDifference]:
    """One difference for each column; rows are queries."""
    import numpy as np

    from prime_pipeline.evaluation import resampling as kernel

    left, right = np.array(left_values), np.array(right_values)
    differences = kernel.differences(left, right)
    lefts, rights, means = map(kernel.column_means, (left, right, differences))
    sums, bases, sizes = (
        kernel.cluster_sums(cells, membership) for cells in (differences, right, np.ones_like(right))
    )
    has_base = rights > kernel.ROUNDING * np.abs(means)
    ratios = np.hstack([means, np.divide(means, rights, out=np.zeros_like(means), where=has_base)])
    bounds = kernel.ratio_bounds(ratios, np.hstack([sums, sums]), np.hstack([sizes, bases]), resampling)
    intervals = _intervals(ratios.tolist(), bounds, len(left), len(sums))
    p_values = kernel.sign_flip_p_values(sums, resampling)
    effects = kernel.minimum_detectable_effects(means, sums, sizes, POWER, ALPHA)
    return [
        PairedDifference(
            left=float(lefts[at]),
            right=float(rights[at]),
            difference=interval.value,
            low=interval.low,
            high=interval.high,
            p_value=p_values[at],
            n=interval.n,
            n_clusters=interval.n_clusters,
            relative=intervals[len(means) + at] if has_base[at] else None,
            minimum_detectable_effect=effects[at],
            method=interval.method,
        )
        for at, interval in enumerate(intervals[: len(means)])
    ]


def _intervals(values: Sequence[float], bounds: Sequence[Bounds], n: int, n_clusters: int) -> list[Interval]:
    return [
        Interval(value, low, high, n, n_clusters, method)
        for value, (low, high, method) in zip(values, bounds, strict=True)
    ]


def _shared_queries(systems: Mapping[str, PerQuery]) -> list[str]:
    """The queries of all systems in ascending order; refuses systems that differ, and values out of range."""
    first, *others = systems
    for name in others:
        if differing := systems[first].keys() ^ systems[name].keys():
            raise EvaluationError(
                f"systems {first!r} and {name!r} differ in {len(differing)} queries ({_listed(differing)}): measure both "
                "over the same judgements (qrels)"
            )
    if not systems[first]:
        raise EvaluationError(f"system {first!r} has no values: nothing follows from no query")
    for name, values in systems.items():
        for query, value in values.items():
            if not abs(value) <= MAX_VALUE:
                raise EvaluationError(
                    f"system {name!r} has value {value} for query {query!r}: values must be finite, and {MAX_VALUE:g} "
                    "at most"
                )
    return sorted(systems[first])


def _membership(queries: Sequence[str], clusters: Mapping[str, str] | None) -> list[int]:
    """The number of each query's cluster; clusters are numbered by ascending id, and none is empty."""
    if clusters is None:
        return list(range(len(queries)))
    if missing := [query for query in queries if query not in clusters]:
        raise EvaluationError(
            f"{len(missing)} queries have no cluster ({_listed(missing)}): name one for each"
        )
    numbers = {cluster: at for at, cluster in enumerate(sorted({clusters[query] for query in queries}))}
    return [numbers[clusters[query]] for query in queries]


def _listed(names: Iterable[str]) -> str:
    """The first five in order."""
    ordered = sorted(names)
    return ", ".join(ordered[:5]) + (", ..." if len(ordered) > 5 else "")
