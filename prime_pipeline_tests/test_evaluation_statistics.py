"""Statistics: by hand, against scipy and statsmodels on random data, and as properties that must hold on any data."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]
from statsmodels.stats.power import NormalIndPower, TTestPower  # type: ignore[import-untyped]
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.families import Family, holm
from prime_pipeline.evaluation.statistics import (
    Interval,
    PairedDifference,
    Resampling,
    mean_interval,
    mean_intervals,
    paired_difference,
    paired_differences,
    share_interval,
    smallest_p_value,
)

FEW = Resampling(n_resamples=100)
PERCENTILE = Resampling(method="percentile")
IDS = [f"q{number}" for number in range(12)]
VALUES = st.one_of(
    st.sampled_from([0.0, 1.0, 0.1, 0.2, 0.3, 0.5, 1e-300, 5e-324, -1e100, 1e100]),
    st.floats(-1e6, 1e6),
)
ROWS = st.tuples(VALUES, VALUES, st.sampled_from("abc"))
TABLES = st.dictionaries(st.sampled_from(IDS), ROWS, min_size=1)
"""Query to left value, right value and cluster."""


def named(values: object) -> dict[str, float]:
    return {f"q{at:04}": float(value) for at, value in enumerate(np.asarray(values, dtype=float))}


def skewed(n: int, seed: int) -> dict[str, float]:
    return named(np.random.default_rng(seed).beta(0.4, 1.5, size=n))


def numbers(result: PairedDifference | Interval) -> list[float]:
    own = [getattr(result, name) for name in result.__slots__]
    nested = numbers(result.relative) if isinstance(result, PairedDifference) and result.relative else []
    return [value for value in own if isinstance(value, int | float)] + nested


# --- means ------------------------------------------------------------------------------------------------------


def test_all_resamples_of_two_values_worked_by_hand() -> None:
    # Means of resamples: 0 and 1 in a quarter each, 0.5 in half of them.
    result = mean_interval({"a": 0.0, "b": 1.0}, resampling=PERCENTILE)
    assert result == Interval(0.5, 0.0, 1.0, 2, 2, "percentile")


def test_clusters_are_resampled_whole_and_weigh_by_their_queries() -> None:
    # Resamples hold x twice (mean 0.25), y twice (mean 1), or each once (mean 2/5 of 4 + 1 queries).
    values = {"x1": 1.0, "x2": 0.0, "x3": 0.0, "x4": 0.0, "y1": 1.0}
    clusters = {query: query[0] for query in values} | {"not asked": "z"}
    result = mean_interval(values, clusters, PERCENTILE)
    assert result == Interval(0.4, 0.25, 1.0, 5, 2, "percentile")
    narrow = mean_interval(values, clusters, replace(PERCENTILE, confidence=0.4))
    assert (narrow.low, narrow.high) == pytest.approx((0.4, 0.4))


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("n", [8, 150])
def test_bounds_agree_with_scipy(method: str, seed: int, n: int) -> None:
    values = skewed(n, seed)
    array = np.array(list(values.values()))
    generator = np.random.default_rng(seed + 10)
    theirs = stats.bootstrap((array,), np.mean, n_resamples=40_000, method=method, rng=generator)
    chosen: Literal["bca", "percentile"] = "bca" if method == "bca" else "percentile"
    ours = mean_interval(values, resampling=Resampling(n_resamples=40_000, method=chosen))
    assert ours.method == method
    # From seed to seed a bound varies by about 1.5 % of the standard error.
    within = 0.08 * float(array.std() / math.sqrt(n))
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=within)


def test_bca_bounds_of_very_skewed_values_are_those_of_scipy_and_far_from_percentiles() -> None:
    values = [0.0] * 12 + [1.0, 0.3]
    generator = np.random.default_rng(3)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=100_000, rng=generator).confidence_interval
    ours = mean_interval(named(values), resampling=Resampling(n_resamples=100_000))
    assert ours.method == "bca"
    assert (ours.low, ours.high) == pytest.approx((0.0, theirs.high), abs=0.003)
    assert mean_interval(named(values), resampling=PERCENTILE).high == pytest.approx(0.26, abs=0.02)


@pytest.mark.parametrize("n", range(4, 13))
def test_resamples_that_tie_with_the_mean_stay_ties_whatever_the_rounding(n: int) -> None:
    # BCa counts them half; of a few hits they are many, and rounding would throw them to either side.
    for n_hits in range(1, n):
        hits = np.array([1.0] * n_hits + [0.0] * (n - n_hits))
        interval, shifted, mirrored = (mean_interval(named(row)) for row in (hits, hits + 0.7, 1 - hits))
        assert numbers(shifted)[:3] == pytest.approx([value + 0.7 for value in numbers(interval)[:3]])
        assert numbers(mirrored)[:3] == pytest.approx([1 - numbers(interval)[at] for at in (0, 2, 1)])


def test_a_bound_of_zero_is_zero() -> None:
    for n in range(3, 30):
        assert mean_interval(named([0.3] + [0.0] * (n - 1)), resampling=PERCENTILE).low == 0.0
        assert mean_interval(named([-0.7] + [0.0] * (n - 1)), resampling=PERCENTILE).high == 0.0


@pytest.mark.parametrize("confidence", [0.95, 1 - 1e-10])
def test_percentiles_stand_in_where_bca_is_not_defined(confidence: float) -> None:
    # An acceleration of almost 1/6 and a normal quantile above 6 turn the corrected levels around.
    values = named([1.0] + [0.0] * 500)
    result = mean_interval(values, resampling=Resampling(confidence=confidence))
    assert result.method == ("bca" if confidence == 0.95 else "percentile")
    assert result.low == 0.0


def test_clustered_bca_agrees_with_scipy_where_clusters_are_equally_large() -> None:
    # Of such clusters the mean of the means is the mean of the queries.
    means = np.random.default_rng(3).beta(0.5, 1, size=40)
    values = {f"{c}-{q}": float(mean + q / 100) for c, mean in enumerate(means) for q in (-1, 0, 1)}
    ours = mean_interval(values, {query: query.split("-")[0] for query in values})
    theirs = stats.bootstrap((means,), np.mean, n_resamples=10_000, rng=np.random.default_rng(0))
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.006)
    assert (ours.n, ours.n_clusters, ours.method) == (120, 40, "bca")


def test_clustered_values_have_a_wider_interval() -> None:
    values = {f"{c}-{q}": float(c % 2) for c in range(30) for q in range(10)}
    alone = mean_interval(values)
    clustered = mean_interval(values, {query: query.split("-")[0] for query in values})
    assert width(clustered) == pytest.approx(math.sqrt(10) * width(alone), rel=0.1)


def width(interval: Interval) -> float:
    assert interval.low is not None
    assert interval.high is not None
    return interval.high - interval.low


def test_systems_meet_the_same_resamples_whoever_they_are_with() -> None:
    systems = {name: skewed(50, seed) for seed, name in enumerate("abc")}
    systems["a + 1"] = {query: value + 1 for query, value in systems["a"].items()}
    together = mean_intervals(systems)
    for name, values in systems.items():
        assert numbers(together[name]) == pytest.approx(numbers(mean_interval(values)))
    shifted = together["a + 1"]
    assert numbers(shifted)[:3] == pytest.approx([value + 1 for value in numbers(together["a"])[:3]])


def test_another_seed_gives_other_bounds_and_the_same_seed_the_same() -> None:
    values = skewed(50, 0)
    assert mean_interval(values) == mean_interval(values)
    assert mean_interval(values) != mean_interval(values, resampling=Resampling(seed=1))


@pytest.mark.parametrize("clustered", [False, True])
def test_a_95_percent_interval_covers_the_truth_95_times_in_100(clustered: bool) -> None:
    generator = np.random.default_rng(7)
    resampling = Resampling(n_resamples=500)
    n_clusters, size = (50, 4) if clustered else (100, 1)
    clusters = {query: query[:2] for query in (f"{c:02}{q}" for c in range(n_clusters) for q in range(size))}
    n_covered = 0
    for _ in range(400):
        rows = generator.beta(1, 3, size=n_clusters)[:, None] + generator.normal(0, 0.1, (n_clusters, size))
        values = dict(zip(clusters, rows.ravel().tolist(), strict=True))
        interval = mean_interval(values, clusters if clustered else None, resampling)
        assert interval.low is not None
        assert interval.high is not None
        n_covered += interval.low <= 0.25 <= interval.high
    assert 0.92 <= n_covered / 400 <= 0.98


# --- differences ------------------------------------------------------------------------------------------------


def test_a_difference_worked_by_hand() -> None:
    left = {"a": 0.5, "b": 1.0, "c": 0.75}
    right = {"a": 0.25, "b": 0.5, "c": 0.75}
    result = paired_difference(left, right, resampling=PERCENTILE)
    # Differences 1/4, 1/2, 0. Of the 8 patterns of signs, the two that flip none or only the 0 reach 3/4, two -3/4.
    assert result.p_value == 4 / 8
    assert (result.left, result.right, result.difference) == (0.75, 0.5, 0.25)
    assert (result.low, result.high, result.method) == (0.0, 0.5, "percentile")
    # Ratios of resamples go from 0 (all c) to 1 (none).
    assert result.relative == Interval(0.5, 0.0, 1.0, 3, 3, "percentile")
    # Standard deviation 1/4; quantiles of Student's t with 2 degrees of freedom, from a table.
    assert result.minimum_detectable_effect == pytest.approx(
        (4.3027 + 1.0607) * 0.25 / math.sqrt(3), rel=1e-4
    )


def test_signs_flip_per_cluster() -> None:
    left, right = dict.fromkeys(IDS, 1.0), dict.fromkeys(IDS, 0.0)
    assert paired_difference(left, right).p_value == 2 / 2**12
    clusters = {query: str(at % 4) for at, query in enumerate(IDS)}
    assert paired_difference(left, right, clusters).p_value == 2 / 2**4


def test_without_enumeration_p_is_never_0() -> None:
    left, right = named([1.0] * 14), named([0.0] * 14)
    assert paired_difference(left, right, resampling=FEW).p_value == 1 / 101
    assert paired_difference(left, right).p_value == pytest.approx(2 / 2**14, abs=3e-4)


@pytest.mark.parametrize("n", range(1, 14))
def test_the_smallest_p_value_is_that_of_differences_of_one_sign(n: int) -> None:
    left, right = named([1.0] * n), named([0.0] * n)
    assert smallest_p_value(n) == paired_difference(left, right).p_value == 2 / 2**n


@pytest.mark.parametrize("n", [14, 20, 100_000])
def test_where_patterns_are_drawn_no_p_value_is_smaller_than_one_of_them(n: int) -> None:
    assert smallest_p_value(n) == max(2 / 2 ** min(n, 60), 1 / 10_001)
    assert smallest_p_value(n, FEW) == 1 / 101


@pytest.mark.parametrize("n", [10, 60])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_p_values_agree_with_scipy(n: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    right = generator.beta(0.5, 1, size=n).round(1)
    left = (right + generator.normal(0.03, 0.15, size=n)).round(1)
    theirs = stats.permutation_test(
        (left, right),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=10_000,
        rng=np.random.default_rng(seed),
    )
    exact = n == 10
    tolerance = 1e-12 if exact else 0.02
    assert paired_difference(named(left), named(right)).p_value == pytest.approx(theirs.pvalue, abs=tolerance)


def test_the_difference_is_bounded_like_the_mean_of_differences() -> None:
    left, right = skewed(80, 0), skewed(80, 1)
    result = paired_difference(left, right)
    interval = mean_interval({query: left[query] - right[query] for query in left})
    assert (result.difference, result.low, result.high) == pytest.approx(
        (interval.value, interval.low, interval.high)
    )


def test_the_relative_difference_is_bounded_as_scipy_bounds_a_ratio_of_means() -> None:
    left, right = skewed(120, 0), skewed(120, 1)
    relative = paired_difference(left, right).relative
    theirs = stats.bootstrap(
        (list(left.values()), list(right.values())),
        lambda x, y, axis=-1: x.mean(axis=axis) / y.mean(axis=axis) - 1,
        paired=True,
        vectorized=True,
        n_resamples=10_000,
        rng=np.random.default_rng(5),
    )
    assert relative is not None
    assert relative.method == "bca"
    assert (relative.low, relative.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.025)


@pytest.mark.parametrize("n", [12, 60, 1500])
def test_the_detectable_effect_is_the_one_of_statsmodels(n: int) -> None:
    left, right = skewed(n, 0), skewed(n, 1)
    deviation = np.std([left[query] - right[query] for query in left], ddof=1)
    standardized = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8, alternative="two-sided")
    effect = paired_difference(left, right, resampling=FEW).minimum_detectable_effect
    assert effect == pytest.approx(standardized * deviation, rel=0.01)
    if n > 1000:
        normal = NormalIndPower().solve_power(nobs1=n, alpha=0.05, power=0.8, ratio=0)
        assert effect == pytest.approx(normal * deviation, rel=0.002)


def test_repeating_each_query_in_its_cluster_detects_nothing_more() -> None:
    left, right = skewed(40, 0), skewed(40, 1)
    left_twice, right_twice = (
        {f"{copy}{query}": value for query, value in values.items() for copy in "xy"}
        for values in (left, right)
    )
    clusters = {query: query[1:] for query in left_twice}
    once, clustered = paired_difference(left, right), paired_difference(left_twice, right_twice, clusters)
    assert (clustered.n, clustered.n_clusters) == (80, 40)
    assert clustered.relative is not None
    as_if_once = replace(clustered, n=40, relative=replace(clustered.relative, n=40))
    assert numbers(as_if_once) == pytest.approx(numbers(once), abs=1e-12)
    alone = paired_difference(left_twice, right_twice).minimum_detectable_effect
    assert alone is not None
    assert clustered.minimum_detectable_effect == pytest.approx(math.sqrt(2) * alone, rel=0.02)


def test_many_pairs_are_those_pairs_one_by_one() -> None:
    systems = {name: skewed(40, seed) for seed, name in enumerate("abc")} | {"zero": named([0.0] * 40)}
    pairs = [("a", "b"), ("c", "a"), ("a", "zero"), ("b", "b")]
    together = paired_differences(systems, pairs)
    assert list(together) == pairs
    for left, right in pairs:
        alone = paired_difference(systems[left], systems[right])
        assert numbers(together[left, right]) == pytest.approx(numbers(alone), abs=1e-12)


# --- the degenerate ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clusters", [None, {f"q{at:04}": str(at % 5) for at in range(30)}])
def test_differences_of_zero(clusters: dict[str, str] | None) -> None:
    values = skewed(30, 0)
    result = paired_difference(values, dict(values), clusters)
    assert (result.difference, result.low, result.high, result.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert result.method == "percentile"
    assert result.relative is not None
    assert (result.relative.value, result.relative.low, result.relative.high) == (0.0, 0.0, 0.0)
    assert result.minimum_detectable_effect is None


def test_differences_by_rounding_are_none() -> None:
    result = paired_difference(named([0.1 + 0.2] * 20), named([0.3] * 20))
    assert (result.difference, result.high, result.p_value) == (0.0, 0.0, 1.0)


def test_constant_values_have_an_interval_of_no_width() -> None:
    clusters = {f"q{at:04}": str(at**2 % 7) for at in range(30)}
    assert mean_interval(named([0.1] * 30), clusters) == Interval(0.1, 0.1, 0.1, 30, 4, "percentile")
    assert mean_interval(named([1.0] * 30), clusters) == Interval(1.0, 1.0, 1.0, 30, 4, "percentile")
    result = paired_difference(named([0.4] * 30), named([0.1] * 30))
    assert (result.low, result.high) == (result.difference, result.difference)
    assert result.minimum_detectable_effect is None
    assert result.p_value < 0.001


def test_one_cluster_has_no_bounds() -> None:
    assert mean_interval({"q": 0.5}) == Interval(0.5, None, None, 1, 1, "single")
    result = paired_difference({"a": 1.0, "b": 0.5}, {"a": 0.5, "b": 0.5}, {"a": "d", "b": "d"})
    relative = Interval(0.5, None, None, 2, 1, "single")
    assert result == PairedDifference(0.75, 0.5, 0.25, None, None, 1.0, 2, 1, relative, None, "single")


def test_no_relative_difference_over_a_base_of_zero() -> None:
    assert paired_difference(named([1.0, 0.5]), named([0.0, 0.0])).relative is None
    assert paired_difference(named([1.0, 0.5]), named([-1.0, 0.5])).relative is None


def test_a_base_that_vanishes_in_some_resamples_has_no_bounds() -> None:
    result = paired_difference(named([1.0, 0.5, 0.5]), named([1.0, 0.0, 0.0]))
    assert result.relative == Interval(1.0, None, None, 3, 3, "unbounded")
    assert result.low is not None
    # No sum of three of these is zero, but some are negative.
    result = paired_difference(named([1.0, 1.0, 1.0]), named([1.0, 1.0, -0.2]))
    assert result.relative is not None
    assert result.relative.method == "unbounded"


@given(TABLES, st.booleans(), st.randoms())
@example({"q1": (5e-324, 1e100, "a"), "q2": (-1e100, 5e-324, "b")}, False, random.Random(0))
@settings(deadline=None, max_examples=150)
def test_on_any_data(
    table: dict[str, tuple[float, float, str]], clustered: bool, order: random.Random
) -> None:
    left = {query: row[0] for query, row in table.items()}
    right = {query: row[1] for query, row in table.items()}
    clusters = {query: row[2] for query, row in table.items()} if clustered else None
    result = paired_difference(left, right, clusters, FEW)
    assert all(map(math.isfinite, numbers(result)))
    assert 0 < result.p_value <= 1

    shuffled = list(table)
    order.shuffle(shuffled)
    other_left, other_right = ({query: values[query] for query in shuffled} for values in (left, right))
    assert paired_difference(other_left, other_right, clusters, FEW) == result

    swapped = paired_difference(right, left, clusters, FEW)
    assert (swapped.left, swapped.right) == (result.right, result.left)
    assert (swapped.difference, swapped.p_value) == (-result.difference, result.p_value)
    assert swapped.minimum_detectable_effect == result.minimum_detectable_effect
    if result.low is not None and result.high is not None:
        assert result.low <= result.high
        scale = 1e-9 * max(abs(result.low), abs(result.high))
        assert swapped.low == pytest.approx(-result.high, abs=scale)
        assert swapped.high == pytest.approx(-result.low, abs=scale)

    same = paired_difference(left, dict(left), clusters, FEW)
    assert (same.difference, same.p_value) == (0.0, 1.0)
    assert same.low == same.high == (None if same.method == "single" else 0.0)


# --- families and shares ----------------------------------------------------------------------------------------


def test_holm_worked_by_hand() -> None:
    assert holm({"a": 0.04, "b": 0.01, "c": 0.03, "d": 0.9}) == pytest.approx(
        {"a": 0.09, "b": 0.04, "c": 0.09, "d": 0.9}
    )
    assert list(holm({"b": 0.5, "a": 0.1})) == ["b", "a"]
    assert holm({}) == {}


@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.02, 0.5])), min_size=1, max_size=12))
@settings(deadline=None, max_examples=50)
def test_holm_agrees_with_statsmodels(p_values: list[float]) -> None:
    theirs = multipletests(p_values, method="holm")[1]
    assert list(holm(dict(enumerate(p_values))).values()) == pytest.approx(list(theirs))


@pytest.mark.parametrize("p", [math.nan, -0.1, 1.1, math.inf])
def test_holm_refuses_what_is_no_p_value(p: float) -> None:
    with pytest.raises(EvaluationError, match="comparison 'b' has p-value"):
        holm({"a": 0.5, "b": p})


def test_a_family_adjusts_what_was_declared_and_nothing_else() -> None:
    family = Family("Does PRIME beat chunks?", (("full", "chunks"), ("offline", "chunks")))
    p_values = {("offline", "chunks"): 0.04, ("full", "chunks"): 0.03}
    assert list(family.holm(p_values).items()) == [
        (("full", "chunks"), 0.06),
        (("offline", "chunks"), 0.06),
    ]
    with pytest.raises(EvaluationError, match=r"Does PRIME.*\('offline', 'full'\)"):
        family.holm(p_values | {("offline", "full"): 0.001})
    with pytest.raises(EvaluationError, match=r"\('offline', 'chunks'\)"):
        family.holm({("full", "chunks"): 0.03})


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@example((0, 1))
@example((0, 13))  # here, and at 15 of 15, a bound by formula alone misses the share by rounding
@example((15, 15))
def test_shares_agree_with_statsmodels(hits_of: tuple[int, int]) -> None:
    hits, n = hits_of
    interval = share_interval(hits, n)
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    assert 0 <= interval.low <= interval.value == hits / n <= interval.high <= 1
    theirs = proportion_confint(hits, n, method="wilson")
    assert (interval.low, interval.high) == pytest.approx(theirs, abs=1e-9)


def test_no_trial_has_no_share() -> None:
    assert share_interval(0, 0) is None


# --- refusals ---------------------------------------------------------------------------------------------------


def test_refuses_systems_over_different_queries_and_names_them() -> None:
    with pytest.raises(EvaluationError, match=r"'x' and 'y' differ in 2 queries \(q1, q3\)"):
        mean_intervals({"x": {"q1": 0.1, "q2": 0.1}, "y": {"q2": 0.1, "q3": 0.1}})
    with pytest.raises(EvaluationError, match=r"12 queries \(q0, q1, q10, q11, q2, \.\.\.\)"):
        paired_difference(dict.fromkeys(IDS, 0.0), {})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e101])
def test_refuses_values_that_cannot_be_averaged(value: float) -> None:
    with pytest.raises(EvaluationError, match=r"'right' has value .* for query 'b'"):
        paired_difference({"a": 0.0, "b": 0.0}, {"a": 0.0, "b": value})


def test_refuses_no_query_an_unknown_system_and_a_query_without_cluster() -> None:
    with pytest.raises(EvaluationError, match="no values"):
        mean_interval({})
    with pytest.raises(EvaluationError, match="no system 'y' to compare: there are 'x'"):
        paired_differences({"x": {"q": 1.0}}, [("x", "y")])
    with pytest.raises(EvaluationError, match=r"1 queries have no cluster \(b\)"):
        mean_interval({"a": 0.0, "b": 0.0}, {"a": "d"})
    assert mean_intervals({}) == {}
    assert paired_differences({"x": {"q": 1.0}}, []) == {}


def test_refuses_options_that_mean_nothing() -> None:
    with pytest.raises(EvaluationError, match="99 resamples"):
        Resampling(n_resamples=99)
    with pytest.raises(EvaluationError, match="confidence is 95"):
        Resampling(confidence=95)
    with pytest.raises(EvaluationError, match="seed is -1"):
        Resampling(seed=-1)
    with pytest.raises(EvaluationError, match="3 hits of 2"):
        share_interval(3, 2)


def test_importing_loads_no_numpy() -> None:
    program = "import sys, prime_pipeline.evaluation.statistics, prime_pipeline.evaluation.families; print('numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
