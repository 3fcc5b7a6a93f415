"""The vector index: exact and approximate search agree, changes equal fresh builds, faults are refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from prime_pipeline.errors import IndexCorrupt, IndexOutdated
from prime_pipeline.indexes.vectors import (
    ExactVectors,
    VectorBuild,
    VectorIndex,
    VectorOptions,
    build_vector_index,
    check_vectors,
)

Matrix = NDArray[np.float32]
HNSW = VectorOptions(search="hnsw", ef_search=60)
EXACT = VectorOptions(search="exact")


def unit_rows(n: int, seed: int, dimensions: int = 16) -> Matrix:
    rows = np.random.default_rng(seed).normal(size=(n, dimensions))
    unit: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def build(
    folder: Path, vectors: dict[str, Matrix], options: VectorOptions, previous: Path | None = None
) -> VectorBuild:
    ids = sorted(vectors)
    matrix = np.array([vectors[i] for i in ids], dtype=np.float32).reshape(len(ids), -1 if ids else 16)
    return build_vector_index(folder, ids, matrix, options, previous=previous)


def named(matrix: Matrix, start: int = 0) -> dict[str, Matrix]:
    return {f"d{i:04}": row for i, row in enumerate(matrix, start=start)}


def exact(vectors: dict[str, Matrix]) -> ExactVectors:
    ids = sorted(vectors)
    return ExactVectors(ids, np.array([vectors[i] for i in ids]))


@pytest.mark.parametrize("options", [EXACT, HNSW])
def test_search_finds_the_nearest(tmp_path: Path, options: VectorOptions) -> None:
    vectors = named(unit_rows(800, 1))
    made = build(tmp_path, vectors, options)
    assert (made.n_vectors, made.dimensions, made.search) == (800, 16, options.search)
    index = VectorIndex(tmp_path)
    assert index.search_method == options.search
    queries = unit_rows(50, 2)
    matrix = np.array([vectors[i] for i in index.doc_ids])
    n_right = 0
    for query in queries:
        hits = index.search(query, 10)
        best = [index.doc_ids[i] for i in np.argsort(-(matrix @ query), kind="stable")[:10]]
        n_right += len({doc_id for doc_id, _ in hits} & set(best))
        assert [score for _, score in hits] == pytest.approx(
            [float(vectors[i] @ query) for i, _ in hits], abs=1e-6
        )
        assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)
    assert n_right == 500 if options is EXACT else n_right >= 495


def test_equal_vectors_tie_and_are_in_order_of_id(tmp_path: Path) -> None:
    # Many copies, a number that no block of a matrix product divides: their scores must be equal to the last bit.
    copies = dict.fromkeys((f"copy{i:03}" for i in range(37)), unit_rows(1, 3, 384)[0])
    vectors = named(unit_rows(300, 4, 384)) | copies
    query = unit_rows(1, 5, 384)[0] * 0.1 + copies["copy000"]
    for options in (EXACT, HNSW):
        build(tmp_path / options.search, vectors, options)
        hits = VectorIndex(tmp_path / options.search).search(query, 10)
        assert [doc_id for doc_id, _ in hits] == [f"copy{i:03}" for i in range(10)]
        assert len({score for _, score in hits}) == 1


@pytest.mark.parametrize("options", [EXACT, HNSW])
def test_more_than_there_is_one_and_none(tmp_path: Path, options: VectorOptions) -> None:
    query = unit_rows(1, 9)[0]
    build(tmp_path / "3", named(unit_rows(3, 1)), options)
    index = VectorIndex(tmp_path / "3")
    assert len(index.search(query, 1_000)) == 3
    assert len(index.search(query, 1)) == 1
    assert index.search(query, 0) == []
    build(tmp_path / "0", {}, options)
    empty = VectorIndex(tmp_path / "0")
    assert (empty.search(query, 5), empty.search_method, empty.dimensions) == ([], "exact", 16)


def test_asking_for_more_than_the_graph_search_is_wide(tmp_path: Path) -> None:
    vectors = named(unit_rows(400, 1))
    build(tmp_path, vectors, VectorOptions(search="hnsw", ef_search=10))
    hits = VectorIndex(tmp_path).search(unit_rows(1, 2)[0], 300)
    assert len({doc_id for doc_id, _ in hits}) == 300


def test_auto_is_exact_up_to_the_limit() -> None:
    options = VectorOptions(exact_limit=10)
    assert (options.uses_hnsw(10), options.uses_hnsw(11)) == (False, True)


@pytest.mark.parametrize("options", [EXACT, HNSW])
def test_fresh_builds_are_equal_byte_by_byte(tmp_path: Path, options: VectorOptions) -> None:
    vectors = named(unit_rows(500, 1))
    for name in "ab":
        assert not build(tmp_path / name, vectors, options).from_previous
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(files) == (3 if options is HNSW else 2)
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("seed", range(3))
def test_changes_equal_exact_search(tmp_path: Path, seed: int) -> None:
    chance = np.random.default_rng(seed)
    vectors = named(unit_rows(400, seed))
    build(tmp_path / "0", vectors, HNSW)
    removed: dict[str, Matrix] = {}
    for step in range(1, 7):
        gone = [str(i) for i in chance.choice(sorted(vectors), 6, replace=False)]
        returned = dict(removed)  # with the vector they had
        removed = {doc_id: vectors.pop(doc_id) for doc_id in gone}
        moved = [str(i) for i in chance.choice(sorted(vectors), 4, replace=False)]
        vectors |= dict(zip(moved, unit_rows(4, 100 + step), strict=True)) | returned
        vectors |= {f"new{step}": unit_rows(1, 200 + step)[0]}
        made = build(tmp_path / f"{step}", vectors, HNSW, tmp_path / f"{step - 1}")
        assert made.from_previous
        index = VectorIndex(tmp_path / f"{step}")
        for query in [*unit_rows(10, 300 + step), *removed.values(), *(vectors[i] for i in moved)]:
            assert index.search(query, 5) == exact(vectors).search(query, 5)
    assert index.n_elements > len(index.doc_ids)


def test_a_fifth_of_dead_or_new_elements_makes_a_fresh_graph(tmp_path: Path) -> None:
    vectors = named(unit_rows(100, 1))
    build(tmp_path / "0", vectors, HNSW)
    vectors |= named(unit_rows(25, 2), start=100)
    assert build(tmp_path / "1", vectors, HNSW, tmp_path / "0").from_previous  # 25 of 125
    vectors["more"] = unit_rows(1, 3)[0]
    assert build(tmp_path / "2", vectors, HNSW, tmp_path / "0").from_previous is False  # 26 of 126


def test_the_method_may_change_between_builds(tmp_path: Path) -> None:
    vectors = named(unit_rows(120, 1))
    query = unit_rows(1, 2)[0]
    plans = [EXACT, HNSW, EXACT, HNSW, VectorOptions(search="hnsw", m=8)]
    for step, options in enumerate(plans):
        previous = tmp_path / f"{step - 1}" if step else None
        made = build(tmp_path / f"{step}", vectors, options, previous)
        assert (made.search, made.from_previous) == (options.search, False)
        assert VectorIndex(tmp_path / f"{step}").search(query, 5) == exact(vectors).search(query, 5)


def test_a_previous_build_of_other_dimensions_is_not_used(tmp_path: Path) -> None:
    build(tmp_path / "0", named(unit_rows(50, 1, 8)), HNSW)
    assert not build(tmp_path / "1", named(unit_rows(50, 1, 16)), HNSW, tmp_path / "0").from_previous


@pytest.mark.parametrize(
    ("spoilt", "fault"),
    [(np.nan, "NaN or infinity"), (np.inf, "NaN or infinity"), (5.0, "unit length"), (0.0, "unit length")],
)
def test_vectors_that_are_not_unit_vectors_are_refused(tmp_path: Path, spoilt: float, fault: str) -> None:
    vectors = unit_rows(5, 1)
    assert check_vectors(vectors) is None
    vectors[3] = spoilt
    with pytest.raises(IndexCorrupt, match=fault):
        build(tmp_path / "b", named(vectors), EXACT)
    assert not (tmp_path / "b").exists()


def test_a_vector_for_each_document(tmp_path: Path) -> None:
    with pytest.raises(IndexCorrupt, match="2 documents, but 3 vectors"):
        build_vector_index(tmp_path, ["a", "b"], unit_rows(3, 1), EXACT)


@pytest.mark.parametrize("name", ["vectors.json", "vectors.npy", "hnsw.bin"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "other"])
def test_damaged_files_are_noticed(tmp_path: Path, name: str, damage: str) -> None:
    build(tmp_path, named(unit_rows(40, 1)), HNSW)
    build(tmp_path / "other", named(unit_rows(41, 1)), HNSW)
    path = tmp_path / name
    data = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(
            {"empty": b"", "cut": data[: len(data) // 2], "other": (tmp_path / "other" / name).read_bytes()}[
                damage
            ]
        )
    with pytest.raises(IndexCorrupt, match="is damaged"):
        VectorIndex(tmp_path)
    made = build(tmp_path / "next", named(unit_rows(40, 1)), HNSW, tmp_path)
    assert not made.from_previous


def test_another_version_and_lost_labels_are_noticed(tmp_path: Path) -> None:
    build(tmp_path, named(unit_rows(40, 1)), HNSW)
    path = tmp_path / "vectors.json"
    good = json.loads(path.read_text())
    path.write_text(json.dumps(good | {"labels": good["labels"][1:]}))
    with pytest.raises(IndexCorrupt, match="one label for each"):
        VectorIndex(tmp_path)
    path.write_text(json.dumps(good | {"version": 99}))
    with pytest.raises(IndexOutdated, match="schema version 99"):
        VectorIndex(tmp_path)
    assert not build(tmp_path / "next", named(unit_rows(40, 1)), HNSW, tmp_path).from_previous


def test_threads_share_one_reader(tmp_path: Path) -> None:
    build(tmp_path, named(unit_rows(500, 1)), HNSW)
    index, queries = VectorIndex(tmp_path), unit_rows(64, 2)
    expected = [index.search(query, 1 + i) for i, query in enumerate(queries)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda i: index.search(queries[i], 1 + i), range(64))) == expected
