"""Resampling of clusters over sums per cluster: the arrays behind the statistics, which check, align and name them.

A mean over the queries of resampled clusters is a ratio of sums (values over queries), and so is a relative
difference (differences over base values). Everything here works on such ratios, one per column, and on their
*residuals*, ``numerator - ratio * denominator``, which sum to zero over the clusters: what cancels is exactly zero, and
swapping two systems flips signs and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import NormalDist, fmean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.evaluation.statistics import Bounds, Resampling

Matrix = NDArray[np.float64]
"""One row for each cluster (or resample), one column for each ratio."""

ROUNDING: Final = 1e-12
"""Sums below this part of their terms are zero: what is left of numbers that cancel."""

# Batches that fit into the processor's cache took a third of the time of batches forty times as large.
_BATCH_CELLS: Final = 50_000
_NORMAL: Final = NormalDist()


def column_means(values: Matrix) -> Matrix:
    """Means over the rows, exact but for the last rounding, as the measures take them."""
    return np.array([fmean(column) for column in values.T.tolist()])


def differences(left: Matrix, right: Matrix) -> Matrix:
    """Left minus right, with rounding errors set to zero."""
    return _without_noise(left - right, np.abs(left) + np.abs(right))


def cluster_sums(values: Matrix, membership: Sequence[int]) -> Matrix:
    """Sums over the rows of each cluster, (n_clusters, n_columns); ``membership`` numbers each row's from 0."""
    sums = np.zeros((max(membership) + 1, values.shape[1]))
    np.add.at(sums, membership, values)
    return sums


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # what is not finite is looked for, below
def ratio_bounds(
    ratios: Matrix, numerators: Matrix, denominators: Matrix, resampling: Resampling
) -> list[Bounds]:
    """Bootstrap bounds of ratios of sums; every column meets the same resamples.

    Args:
        ratios: (n_columns,), the ratios themselves.
        numerators: (n_clusters, n_columns), the sums over each cluster.
        denominators: As ``numerators``.
        resampling: How many resamples, and which bounds.

    Returns:
        For each column low, high and the method used. Both bounds are None with one cluster (``single``), or if some
        resample has a denominator that is not above 0 (``unbounded``).
    """
    if len(numerators) == 1:
        return [(None, None, "single")] * len(ratios)
    residuals = _residuals(ratios, numerators, denominators)
    deviations = _resampled(residuals, denominators, resampling)
    remaining = denominators.sum(axis=0) - denominators
    influence = residuals / remaining  # the ratio minus that of the other clusters
    return [
        _bounds(float(ratios[column]), deviations[:, column], influence[:, column], resampling)
        for column in range(len(ratios))
    ]


def minimum_detectable_effects(
    means: Matrix, sums: Matrix, sizes: Matrix, power: float, alpha: float
) -> list[float | None]:
    """``(t(1 - alpha/2) + t(power)) * SE`` of each column's mean difference; see ``PairedDifference``.

    Args:
        means: (n_columns,).
        sums: (n_clusters, n_columns), of differences.
        sizes: As ``sums``, the queries of each cluster.
        power: Between 0 and 1.
        alpha: Between 0 and 1, two-sided.

    Returns:
        For each column the effect, None without spread.
    """
    from scipy.special import stdtrit

    freedom = len(sums) - 1
    if not freedom:
        return [None] * len(means)
    squares = (_residuals(means, sums, sizes) ** 2).sum(axis=0)
    errors = np.sqrt(squares * len(sums) / freedom) / sizes.sum(axis=0)
    effects = (stdtrit(freedom, 1 - alpha / 2) + stdtrit(freedom, power)) * errors
    return [float(effect) or None for effect in effects]


def sign_flip_p_values(sums: Matrix, resampling: Resampling) -> list[float]:
    """Two-sided p-values of the hypothesis that each cluster's sum could as well have had the other sign.

    With few clusters every pattern of signs is tried, and the share of those at least as extreme as the observed one
    is exact. Else patterns are drawn, and the observed one is counted among them, ``(b + 1) / (n + 1)``, so that p is
    never 0 (Phipson and Smyth, "Permutation p-values should never be zero", 2010).

    Args:
        sums: (n_clusters, n_columns), the sums of differences; every column meets the same signs.
        resampling: How many patterns may be tried.
    """
    observed = sums.sum(axis=0)
    threshold = np.abs(observed) - ROUNDING * np.abs(sums).sum(axis=0)
    n_patterns = 2 ** len(sums)
    exact = n_patterns <= resampling.n_resamples
    extreme = np.zeros(sums.shape[1])
    for flips in [_all_flips(len(sums))] if exact else _drawn_flips(len(sums), resampling):
        extreme += (np.abs(observed - 2 * (flips @ sums)) >= threshold).sum(axis=0)
    p_values = extreme / n_patterns if exact else (extreme + 1) / (resampling.n_resamples + 1)
    return [float(p) for p in p_values]


def _residuals(ratios: Matrix, numerators: Matrix, denominators: Matrix) -> Matrix:
    expected = ratios * denominators
    return _without_noise(numerators - expected, np.abs(numerators) + np.abs(expected))


def _without_noise(values: Matrix, scale: Matrix) -> Matrix:
    return np.where(np.abs(values) <= ROUNDING * scale, 0.0, values)


def _resampled(residuals: Matrix, denominators: Matrix, resampling: Resampling) -> Matrix:
    """Resampled ratio minus ratio, (n_resamples, n_columns); NaN where the resampled denominator is not above 0."""
    scale = np.abs(residuals).sum(axis=0)
    batches = []
    for counts in _cluster_counts(len(residuals), resampling):
        above, below = _without_noise(counts @ residuals, scale), counts @ denominators
        batches.append(np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0))
    return np.concatenate(batches)


def _cluster_counts(n_clusters: int, resampling: Resampling) -> Iterator[Matrix]:
    """How often each resample holds each cluster, in batches (rows, n_clusters) of bounded size.

    Counting drawn numbers takes a quarter of the time of numpy's multinomial, of which these are draws.
    """
    generator = np.random.default_rng(resampling.seed)
    for n_rows in batches(n_clusters, resampling.n_resamples):
        drawn = generator.integers(0, n_clusters, size=(n_rows, n_clusters))
        drawn += np.arange(n_rows)[:, None] * n_clusters
        counts = np.bincount(drawn.ravel(), minlength=n_rows * n_clusters)
        yield counts.reshape(n_rows, n_clusters).astype(np.float64)


def _all_flips(n_clusters: int) -> Matrix:
    return (np.arange(2**n_clusters)[:, None] >> np.arange(n_clusters) & 1).astype(np.float64)


def _drawn_flips(n_clusters: int, resampling: Resampling) -> Iterator[Matrix]:
    generator = np.random.default_rng(resampling.seed)
    for n_rows in batches(n_clusters, resampling.n_resamples):
        yield generator.integers(0, 2, size=(n_rows, n_clusters), dtype=np.bool_).astype(np.float64)


def batches(n_columns: int, n_rows: int) -> list[int]:
    """Sizes of batches of rows that stay within the processor's cache, and make up all rows."""
    size = max(1, _BATCH_CELLS // n_columns)
    return [min(size, n_rows - start) for start in range(0, n_rows, size)]


def _bounds(ratio: float, deviations: Matrix, influence: Matrix, resampling: Resampling) -> Bounds:
    if not np.isfinite(deviations).all():
        return None, None, "unbounded"
    tail = (1 - resampling.confidence) / 2
    levels = _bca_levels(deviations, influence, (tail, 1 - tail)) if resampling.method == "bca" else None
    quantiles = np.quantile(deviations, levels or (tail, 1 - tail))
    low, high = _without_noise(ratio + quantiles, abs(ratio) + np.abs(quantiles)).tolist()
    return low, high, "bca" if levels else "percentile"


def _bca_levels(deviations: Matrix, influence: Matrix, levels: Sequence[float]) -> tuple[float, ...] | None:
    """The levels corrected for bias and acceleration (Efron 1987); None where they are not defined.

    That is where all resamples lie on one side of the ratio, or no cluster has any influence on it.
    """
    below = float((deviations < 0).mean() + (deviations <= 0).mean()) / 2
    centred = influence - influence.mean()
    scale = np.abs(centred).max()
    if not 0 < below < 1 or not np.isfinite(scale) or scale == 0:
        return None
    centred = centred / scale  # so that no power overflows
    acceleration = float((centred**3).sum() / (6 * (centred**2).sum() ** 1.5))
    bias = _NORMAL.inv_cdf(below)
    shifted = [bias + _NORMAL.inv_cdf(level) for level in levels]
    if any(acceleration * z >= 1 for z in shifted):
        return None
    return tuple(_NORMAL.cdf(bias + z / (1 - acceleration * z)) for z in shifted)
