"""How alike sentences are in meaning, as the cosine of their vectors; what likeness means is for others to say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.models.embedder import Embedder, Vectors

_MAX_KEPT: Final = 8
"""Sets of windows whose vectors are kept: a text is compared with a rewrite, with its repair and with its patch."""


class EmbedderSimilarity:
    """Cosines of an embedder's vectors. Loads nothing before it is asked; as safe for threads as its embedder.

    Attributes:
        fingerprint: The embedder's: two of one fingerprint find the same.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.fingerprint = embedder.fingerprint
        self._embedder = embedder
        self._vectors_of = lru_cache(maxsize=_MAX_KEPT)(self._encode)

    def __call__(self, passages: Sequence[str], windows: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Cosines, (n_passages, n_windows), each in [-1, 1].

        Args:
            passages: Read up to the embedder's window of tokens.
            windows: Sentences that stand together. A window's vector is the direction of its sentences' sum, so each
                sentence is encoded once, in however many windows it stands; one without sentences is like nothing.
        """
        if not passages or not windows:
            return np.zeros((len(passages), len(windows)), dtype=np.float32)
        rows: Vectors = self._embedder.encode(passages) @ self._vectors_of(tuple(map(tuple, windows))).T
        return rows.clip(-1.0, 1.0)

    def _encode(self, windows: tuple[tuple[str, ...], ...]) -> Vectors:
        places = {
            text: i for i, text in enumerate(dict.fromkeys(text for window in windows for text in window))
        }
        vectors = self._embedder.encode(list(places))
        sums = np.stack([vectors[[places[text] for text in window]].sum(axis=0) for window in windows])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        unit: Vectors = sums / np.maximum(lengths, np.finfo(np.float32).tiny)
        return unit
