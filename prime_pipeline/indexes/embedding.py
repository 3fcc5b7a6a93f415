"""Embedding texts through the cache, so that a text is encoded once by a model and never again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.models.embedder import Embedder
from prime_pipeline.progress import Progress, silent
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.fingerprint import text_fingerprint

_BATCH_SIZE = 64


def embed_texts(
    texts: Sequence[str], embedder: Embedder, cache: BlobCache, progress: Progress = silent
) -> tuple[NDArray[np.float32], int]:
    """Unit vectors of texts, shape (n_texts, dim) float32 in their order, and the number that had to be encoded.

    Every batch is kept as soon as it is encoded, so that finished work survives a crash.
    """
    keys = [text_fingerprint(embedder.fingerprint, text) for text in texts]
    vectors = {key: np.frombuffer(value, dtype="<f4") for key, value in cache.lookup(keys).items()}
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
    # Texts of like length share a batch: little padding, and a remaining time that can be told from the batches done.
    by_length = sorted(missing, key=lambda key: (len(missing[key]), key))
    for start in range(0, len(by_length), _BATCH_SIZE):
        batch = by_length[start : start + _BATCH_SIZE]
        encoded = embedder.encode([missing[key] for key in batch])
        cache.store({key: row.astype("<f4").tobytes() for key, row in zip(batch, encoded, strict=True)})
        vectors.update(zip(batch, encoded, strict=True))
        progress("embeddings", start + len(batch), len(by_length))
    if not keys:
        return np.empty((0, embedder.dimensions), dtype=np.float32), 0
    return np.stack([vectors[key] for key in keys]).astype(np.float32), len(missing)
