"""The vector index: one unit vector per document, searched exactly or by hnswlib.

The matrix is always kept, so scores are exact inner products in either case and hnswlib only proposes candidates.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.errors import IndexCorrupt, IndexOutdated
from prime_pipeline.storage.atomic import atomic_path, write_text

VECTORS_VERSION = 1
REBUILD_SHARE = 0.2
"""When more of the graph's elements than this are deleted or new, it is built afresh."""
_RANDOM_SEED = 100
_ADD_BATCH = 1_000
_UNIT_TOLERANCE = 1e-3
_EVERYTHING = slice(None)

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VectorOptions:
    """How vectors are searched.

    Attributes:
        search: ``exact``, ``hnsw``, or ``auto``: exact up to ``exact_limit`` vectors.
        exact_limit: See ``search``.
        m: hnswlib's M, links per element (the PRIME paper uses 32).
        ef_construction: hnswlib's search width while building.
        ef_search: hnswlib's search width while searching (the PRIME paper uses 200); raised to the number of results
            that are asked for.
    """

    search: Literal["auto", "exact", "hnsw"] = "auto"
    exact_limit: int = 20_000
    m: int = 32
    ef_construction: int = 200
    ef_search: int = 200

    def uses_hnsw(self, n_vectors: int) -> bool:
        """Whether a graph is built for so many vectors."""
        return self.search == "hnsw" or (self.search == "auto" and n_vectors > self.exact_limit)


@dataclass(frozen=True, slots=True)
class VectorBuild:
    """What building the index came to.

    Attributes:
        n_vectors: Vectors in the index.
        dimensions: Of each.
        search: ``exact`` or ``hnsw``.
        from_previous: Whether the graph of the build before was extended.
    """

    n_vectors: int
    dimensions: int
    search: Literal["exact", "hnsw"]
    from_previous: bool


def check_vectors(vectors: Matrix) -> str | None:
    """What is wrong with a matrix (n, dim) of unit vectors, or None."""
    if not np.isfinite(vectors).all():
        return "vectors hold NaN or infinity"
    lengths = np.linalg.norm(vectors, axis=1)
    if vectors.size and float(np.abs(lengths - 1.0).max()) > _UNIT_TOLERANCE:
        return "vectors are not of unit length"
    return None


def build_vector_index(
    folder: Path,
    doc_ids: Sequence[str],
    vectors: Matrix,
    options: VectorOptions,
    *,
    previous: Path | None = None,
) -> VectorBuild:
    """Write ``vectors.npy``, ``vectors.json`` and, where it is used, ``hnsw.bin`` into a folder.

    A fresh graph is built by one thread in order of id and is therefore reproducible; a graph of the build before is
    extended while at most a fifth of it is deleted or new.

    Args:
        folder: Of the build. ``vectors.json`` is written last; without it the index does not exist.
        doc_ids: Sorted.
        vectors: Shape (n, dim), unit length, in the order of ``doc_ids``.
        options: How to search.
        previous: Folder of the build before, if there is one. Its hnsw.bin has to be the file that was written:
            hnswlib does not notice damage. Whatever else does not fit makes a fresh graph.

    Raises:
        IndexCorrupt: The vectors are not finite, not of unit length, or not one for each id.
    """
    if (fault := check_vectors(vectors)) is not None:
        raise IndexCorrupt(folder, fault)
    if len(doc_ids) != len(vectors):
        raise IndexCorrupt(folder, f"{len(doc_ids)} documents, but {len(vectors)} vectors")
    with atomic_path(folder / "vectors.npy") as temporary, temporary.open("wb") as file:
        np.save(file, vectors)
    labels: dict[str, int] = {}
    from_previous = False
    if doc_ids and options.uses_hnsw(len(doc_ids)):
        graph, labels, from_previous = _graph(doc_ids, vectors, options, previous)
        with atomic_path(folder / "hnsw.bin") as temporary:
            graph.save_index(str(temporary))
    description = {
        "version": VECTORS_VERSION,
        "doc_ids": list(doc_ids),
        "dimensions": int(vectors.shape[1]),
        "labels": [labels[doc_id] for doc_id in doc_ids] if labels else None,
        "n_elements": max(labels.values()) + 1 if labels else 0,
        "ef_search": options.ef_search,
        "graph": [options.m, options.ef_construction],
    }
    write_text(folder / "vectors.json", json.dumps(description))
    return VectorBuild(len(doc_ids), int(vectors.shape[1]), "hnsw" if labels else "exact", from_previous)


def _graph(
    doc_ids: Sequence[str], vectors: Matrix, options: VectorOptions, previous: Path | None
) -> tuple[Any, dict[str, int], bool]:
    extended = _extended_graph(doc_ids, vectors, options, previous) if previous else None
    if extended is not None:
        return (*extended, True)
    import hnswlib

    graph = hnswlib.Index(space="ip", dim=vectors.shape[1])
    graph.init_index(
        max_elements=len(doc_ids),
        M=options.m,
        ef_construction=options.ef_construction,
        random_seed=_RANDOM_SEED,
    )
    _add(graph, vectors, np.arange(len(doc_ids)))
    return graph, {doc_id: label for label, doc_id in enumerate(doc_ids)}, False


def _extended_graph(
    doc_ids: Sequence[str], vectors: Matrix, options: VectorOptions, previous: Path
) -> tuple[Any, dict[str, int]] | None:
    """The graph before with changes applied, or None where a fresh one is better."""
    try:
        before = VectorIndex(previous)
    except (IndexCorrupt, IndexOutdated):
        return None
    if (
        before.labels is None
        or before.dimensions != vectors.shape[1]
        or before.graph != (options.m, options.ef_construction)
    ):
        return None
    rows_before = {doc_id: row for row, doc_id in enumerate(before.doc_ids)}
    stays = {
        doc_id: before.labels[rows_before[doc_id]]
        for row, doc_id in enumerate(doc_ids)
        if doc_id in rows_before and np.array_equal(before.vectors[rows_before[doc_id]], vectors[row])
    }
    new = [doc_id for doc_id in doc_ids if doc_id not in stays]
    n_elements = before.n_elements + len(new)
    if n_elements - len(stays) > REBUILD_SHARE * n_elements:
        return None
    graph = before.load_graph(max_elements=n_elements)
    for doc_id, row in rows_before.items():
        if doc_id not in stays:
            graph.mark_deleted(before.labels[row])
    labels = dict(stays) | {doc_id: before.n_elements + i for i, doc_id in enumerate(new)}
    if new:
        row_of = {doc_id: row for row, doc_id in enumerate(doc_ids)}
        _add(graph, vectors[[row_of[doc_id] for doc_id in new]], np.array([labels[doc_id] for doc_id in new]))
    return graph, labels


def _add(graph: Any, vectors: Matrix, labels: NDArray[np.int64]) -> None:
    # In batches, so that a cancelled run stops between two of them; by one thread, so that the graph is reproducible.
    for start in range(0, len(labels), _ADD_BATCH):
        graph.add_items(
            vectors[start : start + _ADD_BATCH], labels[start : start + _ADD_BATCH], num_threads=1
        )


class VectorSearch(Protocol):
    """Finds the documents nearest to a vector."""

    def search(self, query_vector: NDArray[np.float32], depth: int) -> list[tuple[str, float]]:
        """At most ``depth`` (document id, inner product), best first; ties by id."""


@dataclass(frozen=True, slots=True)
class ExactVectors:
    """Vectors in memory, searched exactly.

    Attributes:
        doc_ids: Sorted.
        vectors: Shape (n, dim), unit length, in that order.
    """

    doc_ids: Sequence[str]
    vectors: Matrix

    def search(self, query_vector: NDArray[np.float32], depth: int) -> list[tuple[str, float]]:
        """See :class:`VectorSearch`."""
        return _best(self.doc_ids, self.vectors, _EVERYTHING, query_vector, depth)


def _best(
    doc_ids: Sequence[str],
    vectors: Matrix,
    rows: NDArray[np.int64] | slice,
    query_vector: NDArray[np.float32],
    depth: int,
) -> list[tuple[str, float]]:
    # By einsum, because BLAS adds up in an order that depends on the row: equal vectors would not tie.
    scores = np.einsum("ij,j->i", vectors[rows], query_vector)
    positions = np.arange(len(doc_ids))[rows]
    order = np.lexsort((positions, -scores))[:depth]
    return [(doc_ids[positions[i]], float(scores[i])) for i in order]


class VectorIndex:
    """A finished vector index, opened for reading. Safe for several threads.

    Attributes:
        doc_ids: Sorted ids.
        vectors: Shape (n, dim), unit length, in that order; mapped from the file.
        dimensions: Length of a vector.
        labels: hnswlib label by row; None where search is exact.
        n_elements: Elements of the graph, deleted ones included.
        graph: (M, ef_construction) that the graph was built with.

    Raises:
        IndexCorrupt: The files are missing, damaged or do not belong together.
        IndexOutdated: Another version of this program wrote them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            description = json.loads((folder / "vectors.json").read_bytes())
            if description["version"] != VECTORS_VERSION:
                raise IndexOutdated(folder / "vectors.json", description["version"], VECTORS_VERSION)
            self.doc_ids: list[str] = description["doc_ids"]
            self.dimensions: int = description["dimensions"]
            self.labels: list[int] | None = description["labels"]
            self.n_elements: int = description["n_elements"]
            self.graph: tuple[int, int] = tuple(description["graph"])
            self._ef_search: int = description["ef_search"]
            self.vectors: Matrix = np.load(folder / "vectors.npy", mmap_mode="r")
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise IndexCorrupt(folder, str(error)) from error
        if self.vectors.shape != (len(self.doc_ids), self.dimensions) or self.vectors.dtype != np.float32:
            raise IndexCorrupt(
                folder, f"vectors.npy has shape {self.vectors.shape}, vectors.json says otherwise"
            )
        self._row_of_label = {label: row for row, label in enumerate(self.labels or [])}
        if self.labels is not None and len(self._row_of_label) != len(self.doc_ids):
            raise IndexCorrupt(folder, "vectors.json does not have one label for each document")
        self._graph = self.load_graph() if self.labels is not None else None
        if self._graph is not None:
            self._graph.set_ef(self._ef_search)  # hnswlib forgets it when it loads

    @property
    def search_method(self) -> Literal["exact", "hnsw"]:
        """How :meth:`search` proposes candidates."""
        return "exact" if self.labels is None else "hnsw"

    def search(self, query_vector: NDArray[np.float32], depth: int) -> list[tuple[str, float]]:
        """The documents nearest to a unit vector (dim,), by inner product; ties by id, higher is better."""
        rows = self._candidate_rows(query_vector, max(self._ef_search, depth))
        return _best(self.doc_ids, self.vectors, rows, query_vector, depth)

    def load_graph(self, max_elements: int = 0) -> Any:
        """Hnswlib's index from the file, with room for ``max_elements`` (0: as many as it holds)."""
        import hnswlib

        graph = hnswlib.Index(space="ip", dim=self.dimensions)
        try:
            graph.load_index(str(self._folder / "hnsw.bin"), max_elements=max_elements)
        except RuntimeError as error:
            raise IndexCorrupt(self._folder / "hnsw.bin", str(error)) from error
        if graph.get_current_count() != self.n_elements:
            raise IndexCorrupt(
                self._folder / "hnsw.bin", f"{graph.get_current_count()} elements, not {self.n_elements}"
            )
        return graph

    def _candidate_rows(
        self, query_vector: NDArray[np.float32], n_candidates: int
    ) -> NDArray[np.int64] | slice:
        # All that the graph search comes across are scored exactly, not just the best few: it costs next to nothing, and
        # documents that tie are all there to be put in order of id.
        if self._graph is None or n_candidates >= len(self.doc_ids):
            return _EVERYTHING
        try:
            labels, _ = self._graph.knn_query(query_vector, k=n_candidates, num_threads=1)
        except RuntimeError:  # the graph reaches fewer than asked for; the matrix always answers
            return _EVERYTHING
        return np.array([self._row_of_label[int(label)] for label in labels[0]], dtype=np.int64)
