"""Embedding through the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from prime_pipeline.indexes.embedding import embed_texts
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline_tests.fakes import HashingEmbedder


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[BlobCache]:
    opened = BlobCache(tmp_path / "cache.sqlite")
    yield opened
    opened.close()


def test_vectors_come_in_the_order_of_the_texts(cache: BlobCache) -> None:
    texts = ["a long text with many words", "b", "a long text with many words", "", "c d"]
    embedder = HashingEmbedder()
    vectors, n_encoded = embed_texts(texts, embedder, cache)
    assert vectors.dtype == np.float32
    assert n_encoded == len(embedder.texts_encoded) == 4
    np.testing.assert_array_equal(vectors, HashingEmbedder().encode(texts))


def test_a_text_is_encoded_once(cache: BlobCache) -> None:
    first, _ = embed_texts(["a", "b"], HashingEmbedder(), cache)
    embedder = HashingEmbedder()
    second, n_encoded = embed_texts(["b", "new", "a"], embedder, cache)
    assert (n_encoded, embedder.texts_encoded) == (1, ["new"])
    np.testing.assert_array_equal(second[[2, 0]], first)


def test_another_model_shares_nothing(cache: BlobCache) -> None:
    embed_texts(["a"], HashingEmbedder(), cache)
    assert embed_texts(["a"], HashingEmbedder(dimensions=32), cache)[0].shape == (1, 32)


def test_no_texts(cache: BlobCache) -> None:
    vectors, n_encoded = embed_texts([], HashingEmbedder(), cache)
    assert (vectors.shape, str(vectors.dtype), n_encoded) == ((0, 64), "float32", 0)


class FailingEmbedder(HashingEmbedder):
    """Gives up after some texts."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def encode(self, texts: Sequence[str], on_progress: object = None) -> NDArray[np.float32]:
        if len(self.texts_encoded) + len(texts) > self.capacity:
            raise RuntimeError("out of memory")
        return super().encode(texts)


def test_finished_batches_survive_a_failure(cache: BlobCache) -> None:
    texts = [f"text {i}" for i in range(200)]
    failing = FailingEmbedder(capacity=150)
    with pytest.raises(RuntimeError, match="out of memory"):
        embed_texts(texts, failing, cache)
    embedder = HashingEmbedder()
    _, n_encoded = embed_texts(texts, embedder, cache)
    assert 0 < len(failing.texts_encoded) < 150
    assert n_encoded == 200 - len(failing.texts_encoded)
    assert set(embedder.texts_encoded).isdisjoint(failing.texts_encoded)


def test_progress_ends_at_the_total(cache: BlobCache) -> None:
    told: list[tuple[str, int, int | None]] = []
    embed_texts(
        [f"text {i}" for i in range(130)], HashingEmbedder(), cache, lambda *state: told.append(state)
    )
    assert [done for _, done, _ in told] == [64, 128, 130]
    assert {(activity, total) for activity, _, total in told} == {("embeddings", 130)}
