"""MaxSim and quantisation, with numbers that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from prime_pipeline.models.late_interaction import (
    MAX_QUANTISATION_ERROR,
    dequantise,
    maxsim,
    maxsim_quantised,
    quantise,
)

QUERY = np.array([[1, 0], [0, 1]], dtype=np.float32)
TEXT = np.array([[0.6, 0.8], [-1, 0]], dtype=np.float32)


def random_unit_vectors(n: int, dim: int) -> NDArray[np.float32]:
    vectors = np.random.default_rng(7).normal(size=(n, dim))
    unit: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([1, 1], (0.6 + 0.8) / 2),
        ([3, 1], (3 * 0.6 + 0.8) / 4),
        ([0, 2], 0.8),
        ([30, 10], (3 * 0.6 + 0.8) / 4),
    ],
)
def test_maxsim_is_the_weighted_mean_of_the_best_cosines(weights: list[float], expected: float) -> None:
    assert maxsim(QUERY, np.array(weights, dtype=np.float32), TEXT) == pytest.approx(expected, abs=1e-6)


def test_maxsim_may_be_negative() -> None:
    assert maxsim(QUERY[:1], np.ones(1), TEXT[1:]) == -1.0


def test_maxsim_agrees_with_plain_loops() -> None:
    query, text = random_unit_vectors(9, 16)[:4], random_unit_vectors(9, 16)[4:]
    weights = np.array([0.5, 2.0, 0.0, 1.5])
    best = [max(sum(a * b for a, b in zip(q, t, strict=True)) for t in text) for q in query.tolist()]
    expected = sum(w * b for w, b in zip(weights, best, strict=True)) / 4.0
    assert maxsim(query, weights, text) == pytest.approx(expected, abs=1e-6)


def test_nothing_to_compare_scores_nought() -> None:
    assert maxsim(QUERY, np.ones(2), np.empty((0, 2), dtype=np.float32)) == 0.0
    assert maxsim(QUERY, np.zeros(2), TEXT) == 0.0
    assert maxsim(np.empty((0, 2), dtype=np.float32), np.empty(0), TEXT) == 0.0


@pytest.mark.parametrize("weights", [[1.0], [1.0, -0.1], [1.0, float("nan")], [1.0, float("inf")]])
def test_weights_that_make_no_mean_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        maxsim(QUERY, np.array(weights), TEXT)


def test_quantisation_stays_within_its_stated_error() -> None:
    vectors = np.vstack(
        [random_unit_vectors(500, 8), np.eye(8, dtype=np.float32), -np.eye(8, dtype=np.float32)]
    )
    stored = quantise(vectors)
    assert stored.dtype == np.int8
    assert stored.shape == vectors.shape
    error = np.abs(dequantise(stored) - vectors).max()
    assert 0.9 * MAX_QUANTISATION_ERROR < error <= MAX_QUANTISATION_ERROR + 1e-7


def test_quantised_vectors_score_nearly_the_same_and_never_above_one() -> None:
    vectors = random_unit_vectors(200, 384)
    weights = np.ones(20)
    exact = maxsim(vectors[:20], weights, vectors[20:])
    assert maxsim(vectors[:20], weights, dequantise(quantise(vectors[20:]))) == pytest.approx(
        exact, abs=0.005
    )
    assert maxsim(vectors[:20], weights, dequantise(quantise(vectors))) <= 1.0


def test_what_is_quantised_can_be_scored_as_it_is() -> None:
    vectors, weights = random_unit_vectors(60, 32), np.linspace(0, 2, 9)
    stored = quantise(vectors[9:])
    expected = maxsim(vectors[:9], weights, dequantise(stored))
    assert maxsim_quantised(vectors[:9], weights, stored) == pytest.approx(expected, abs=1e-6)
    assert maxsim_quantised(vectors[:9], weights, stored[:0]) == 0.0


def test_quantising_twice_changes_nothing_more() -> None:
    stored = quantise(random_unit_vectors(50, 16))
    assert np.array_equal(quantise(dequantise(stored)), stored)


@pytest.mark.parametrize("component", [1.1, -1.1, float("nan"), float("inf")])
def test_other_vectors_are_not_quantised(component: float) -> None:
    with pytest.raises(ValueError, match="unit length"):
        quantise(np.array([[component, 0]], dtype=np.float32))
