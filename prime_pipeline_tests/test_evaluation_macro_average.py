"""Macro-averages worked by hand, and their intervals against an independent way to make them."""

from __future__ import annotations

import numpy as np
import pytest

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.macro_average import macro_average, macro_difference
from prime_pipeline.evaluation.statistics import Resampling

SMALL = {"a": {"q1": 1.0, "q2": 0.0}, "b": {"q1": 0.5, "q2": 0.5, "q3": 0.2, "q4": 0.0}}


def many(seed: int, **sizes: int) -> dict[str, dict[str, float]]:
    generator = np.random.default_rng(seed)
    return {
        name: {f"q{at}": float(value) for at, value in enumerate(generator.beta(1, 2, n))}
        for name, n in sizes.items()
    }


def test_every_data_set_counts_alike() -> None:
    assert macro_average(SMALL).value == pytest.approx((0.5 + 0.3) / 2)
    assert macro_average(SMALL).n == 6


def test_the_interval_is_that_of_independent_data_sets() -> None:
    values = many(1, a=80, b=300, c=40)
    found = macro_average(values)
    variances = [np.var(list(row.values())) / len(row) for row in values.values()]
    half = 1.96 * np.sqrt(sum(variances)) / len(values)
    assert found.low == pytest.approx(found.value - half, abs=0.004)
    assert found.high == pytest.approx(found.value + half, abs=0.004)


def test_the_order_of_the_input_does_not_matter() -> None:
    turned = {name: dict(reversed(SMALL[name].items())) for name in reversed(SMALL)}
    assert macro_average(turned) == macro_average(SMALL)
    assert macro_difference(turned, turned) == macro_difference(SMALL, SMALL)


def test_a_difference_is_that_of_the_means_and_its_change_that_of_every_data_set() -> None:
    right = {"a": {"q1": 0.5, "q2": 0.3}, "b": {"q1": 0.2, "q2": 0.4, "q3": 0.1, "q4": 0.1}}
    found = macro_difference(SMALL, right)
    assert found.difference.value == pytest.approx((0.1 + 0.1) / 2)
    assert found.relative is not None
    assert found.relative.value == pytest.approx((0.5 / 0.4 - 1 + 0.3 / 0.2 - 1) / 2)


def test_sign_flips_weigh_a_query_as_the_mean_does() -> None:
    right = {"a": {"q1": 0.0, "q2": 0.0}, "b": {"q1": 0.5, "q2": 0.5, "q3": 0.2, "q4": 0.0}}
    # Of all differences only q1 of a is not 0: both signs of it are as extreme.
    assert macro_difference(SMALL, right).p_value == 1.0
    left = {"a": {"q1": 1.0, "q2": 1.0}, "b": {"q1": 1.0, "q2": 1.0}}
    none = {name: dict.fromkeys(row, 0.0) for name, row in left.items()}
    assert macro_difference(left, none).p_value == 2 / 2**4


def test_a_real_difference_is_found_and_noise_is_not() -> None:
    base = many(2, a=100, b=100)
    better = {name: {q: value + 0.05 for q, value in row.items()} for name, row in base.items()}
    found = macro_difference(better, base)
    assert found.p_value < 0.001
    assert found.difference.low == pytest.approx(0.05)
    assert found.difference.high == pytest.approx(0.05)
    other = macro_difference(many(3, a=100, b=100), base)
    assert other.difference.low is not None
    assert other.difference.high is not None
    assert other.difference.low < 0 < other.difference.high
    assert other.p_value > 0.05


def test_nothing_is_not_a_number() -> None:
    zero = {name: dict.fromkeys(row, 0.0) for name, row in SMALL.items()}
    assert macro_difference(SMALL, zero).relative is None
    same = macro_difference(SMALL, SMALL)
    assert (same.difference.value, same.difference.low, same.difference.high, same.p_value) == (0, 0, 0, 1)
    rarely = {"a": {"q1": 1.0, "q2": 0.0}, "b": {"q1": 1.0, "q2": 0.0}}
    unbounded = macro_difference(rarely, rarely).relative
    assert unbounded is not None
    assert (unbounded.low, unbounded.high, unbounded.method) == (None, None, "unbounded")
    single = macro_average({"a": {"q1": 1.0}, "b": {"q1": 0.0}})
    assert (single.value, single.low, single.high, single.method) == (0.5, None, None, "single")


def test_the_seed_makes_the_resamples() -> None:
    values = many(4, a=30, b=50)
    assert macro_average(values) == macro_average(values)
    assert macro_average(values, Resampling(seed=1)) != macro_average(values)


@pytest.mark.parametrize("values", [{}, {"a": {}}, {"a": {"q1": 1.0}, "b": {}}])
def test_what_cannot_be_averaged_is_refused(values: dict[str, dict[str, float]]) -> None:
    with pytest.raises(EvaluationError):
        macro_average(values)


def test_other_queries_cannot_be_compared() -> None:
    with pytest.raises(EvaluationError, match="measure both alike"):
        macro_difference(SMALL, {**SMALL, "a": {"q1": 1.0}})
