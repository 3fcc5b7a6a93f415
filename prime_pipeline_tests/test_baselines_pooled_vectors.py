"""Maximum pooling: a document scores as the best of its vectors, whatever else it holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from prime_pipeline.baselines.pooled_vectors import PooledVectors
from prime_pipeline.indexes.vectors import ExactVectors

Matrix = NDArray[np.float32]


def matrix(*rows: tuple[float, ...]) -> Matrix:
    return np.array(rows, dtype=np.float32).reshape(len(rows), -1)


def test_a_document_scores_as_its_best_vector() -> None:
    vectors = PooledVectors(["b", "a", "b"], matrix((1, 0), (0.6, 0.8), (0, 1)))
    assert vectors.doc_ids == ["a", "b"]
    assert vectors.search(matrix((1, 0))[0], 9) == [("b", 1.0), ("a", pytest.approx(0.6))]
    assert vectors.search(matrix((0, 1))[0], 9) == [("b", 1.0), ("a", pytest.approx(0.8))]
    assert vectors.search(matrix((0, 1))[0], 1) == [("b", 1.0)]


def test_a_document_on_the_far_side_is_found_all_the_same() -> None:
    vectors = PooledVectors(["a", "b"], matrix((-1, 0), (0, 1)))
    assert vectors.search(matrix((1, 0))[0], 9) == [("b", 0.0), ("a", -1.0)]


def test_one_vector_a_document_is_plain_search() -> None:
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(50, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = [f"d{at:02}" for at in range(50)]
    pooled, plain = PooledVectors(ids, rows), ExactVectors(ids, rows)
    for query in rows[:10]:
        found, expected = pooled.search(query, 20), plain.search(query, 20)
        assert [doc_id for doc_id, _ in found] == [doc_id for doc_id, _ in expected]
        assert [score for _, score in found] == pytest.approx([score for _, score in expected])


def test_equal_vectors_tie_wherever_they_stand() -> None:
    row = np.random.default_rng(2).normal(size=384).astype(np.float32)
    rows = np.tile(row, (67, 1))
    vectors = PooledVectors([f"d{at:02}" for at in reversed(range(67))], rows)
    found = vectors.search(row, 67)
    assert len({score for _, score in found}) == 1
    assert [doc_id for doc_id, _ in found] == [f"d{at:02}" for at in range(67)]


def test_nothing_is_found_among_nothing() -> None:
    vectors = PooledVectors([], np.empty((0, 2), dtype=np.float32))
    assert vectors.doc_ids == []
    assert vectors.search(matrix((1, 0))[0], 5) == []


@pytest.mark.parametrize(("n_owners", "n_vectors"), [(1, 2), (2, 1), (0, 1)])
def test_a_vector_without_an_owner_is_refused(n_owners: int, n_vectors: int) -> None:
    with pytest.raises(ValueError, match=f"{n_owners} owners for {n_vectors} vectors"):
        PooledVectors(["a"] * n_owners, np.zeros((n_vectors, 2), dtype=np.float32))


# Small whole numbers: exact in any order of adding up, and many ties.
COMPONENTS = st.integers(-2, 2).map(float)
ROWS = st.tuples(st.sampled_from("cab"), st.tuples(COMPONENTS, COMPONENTS, COMPONENTS))


@given(rows=st.lists(ROWS, max_size=12), query=ROWS, depth=st.integers(0, 4))
def test_search_is_a_loop_over_all_vectors(
    rows: list[tuple[str, tuple[float, ...]]], query: tuple[str, tuple[float, ...]], depth: int
) -> None:
    best: dict[str, float] = {}
    for owner, row in rows:
        score = sum(a * b for a, b in zip(row, query[1], strict=True))
        best[owner] = max(best.get(owner, score), score)
    expected = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:depth]
    vectors = np.array([row for _, row in rows], dtype=np.float32).reshape(len(rows), 3)
    found = PooledVectors([owner for owner, _ in rows], vectors)
    assert found.search(np.array(query[1], dtype=np.float32), depth) == expected
