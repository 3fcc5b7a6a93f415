"""Vectors of units, searched exactly; a document scores as its best unit does (maximum pooling)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class PooledVectors:
    """Any number of vectors for each document, in memory; see :class:`~prime_pipeline.indexes.vectors.VectorSearch`.

    Args:
        owners: The document of each vector.
        vectors: Unit vectors, shape (n_units, dim).

    Attributes:
        doc_ids: Sorted.

    Raises:
        ValueError: There are not as many owners as vectors.
    """

    def __init__(self, owners: Sequence[str], vectors: NDArray[np.float32]) -> None:
        if len(owners) != len(vectors):
            raise ValueError(
                f"{len(owners)} owners for {len(vectors)} vectors: each vector stands for one document"
            )
        self.doc_ids = sorted(set(owners))
        positions = {doc_id: at for at, doc_id in enumerate(self.doc_ids)}
        self._owners = np.array([positions[owner] for owner in owners], dtype=np.int64)
        self._vectors = vectors

    def search(self, query_vector: NDArray[np.float32], depth: int) -> list[tuple[str, float]]:
        """(document id, best inner product), best first; ties by id; at most ``depth``."""
        best = np.full(len(self.doc_ids), -np.inf)
        # By einsum, because BLAS adds up in an order that depends on the row: equal vectors would not tie.
        np.maximum.at(best, self._owners, np.einsum("ij,j->i", self._vectors, query_vector))
        order = np.lexsort((np.arange(len(best)), -best))[:depth]
        return [(self.doc_ids[at], float(best[at])) for at in order]
