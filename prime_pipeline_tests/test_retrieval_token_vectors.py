"""Token vectors: what is read of a section, how it is cut, and what is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from prime_pipeline.indexes.lexical import StoredSection
from prime_pipeline.models.embedder import Vectors
from prime_pipeline.models.late_interaction import MAX_QUANTISATION_ERROR, dequantise
from prime_pipeline.retrieval.token_vectors import TokenVectors, scoring_text
from prime_pipeline.storage.blob_cache import BlobCache, NoCache
from prime_pipeline_tests.fakes import Clock, HashingEmbedder, SlowEmbedder


def section(text: str, *heading_path: str, body_start: int = 0) -> StoredSection:
    return StoredSection("d", 1, "Title", heading_path, text, body_start, "d.md", 1, 2)


@pytest.fixture
def embedder() -> SlowEmbedder:
    return SlowEmbedder(Clock())


@pytest.fixture
def vectors(embedder: SlowEmbedder, tmp_path: Path) -> TokenVectors:
    return TokenVectors(embedder, BlobCache(tmp_path / "vectors.sqlite"))


def test_a_scorer_reads_heading_path_and_body_without_the_heading_line() -> None:
    assert scoring_text(section("## B\nbody\n", "A", "B", body_start=5)) == "A > B\nbody"
    assert scoring_text(section("\n body \n")) == "body"


def test_a_text_is_cut_into_what_the_embedder_reads(vectors: TokenVectors) -> None:
    words = [f"word{i}" for i in range(70)]
    cut = (" ".join(words[:64]), " ".join(words[64:]))
    assert vectors.cut(" ".join(words)) == vectors.windows(" ".join(words)) == cut
    assert vectors.windows("a few") == ("a few",)
    assert vectors.windows("") == ()


def test_vectors_are_made_once_and_kept_in_a_byte_per_component(
    vectors: TokenVectors, embedder: SlowEmbedder
) -> None:
    assert vectors.kept(["bread and", "salt"]) == {}
    made = vectors.of(["bread and", "salt", "bread and"])
    assert embedder.token_texts == ["bread and", "salt"]
    exact = HashingEmbedder().token_vectors(["bread and"])[0]
    assert made["bread and"].shape == exact.shape == (2, 64)
    assert np.abs(dequantise(made["bread and"]) - exact).max() <= MAX_QUANTISATION_ERROR * 1.01
    keys = [vectors.key(window) for window in ("bread and", "salt", "pepper")]
    assert vectors.present(keys) == {keys[0]: 2 * 64, keys[1]: 64}
    again = vectors.of(["salt", "bread and"])
    assert all(np.array_equal(again[window], made[window]) for window in made)
    assert len(embedder.token_texts) == 2


class WatchedCache(BlobCache):
    """Tells when it has been asked so many times."""

    def __init__(self, path: Path, n_lookups: int) -> None:
        super().__init__(path)
        self.n_left = n_lookups
        self.asked = threading.Event()

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        found = super().lookup(keys)
        self.n_left -= 1
        if not self.n_left:
            self.asked.set()
        return found


class WaitingEmbedder(SlowEmbedder):
    """Encodes once every search has seen that there is something to encode."""

    def __init__(self, asked: threading.Event) -> None:
        super().__init__(Clock())
        self._asked = asked
        self.began = threading.Event()

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        self.began.set()
        assert self._asked.wait(60)
        return super().token_vectors(texts)


def test_searches_that_meet_the_same_new_windows_encode_them_once(tmp_path: Path) -> None:
    cache = WatchedCache(tmp_path / "vectors.sqlite", n_lookups=3)  # each one's first, the first one's second
    embedder = WaitingEmbedder(cache.asked)
    vectors = TokenVectors(embedder, cache)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(vectors.of, [["bread", "salt"], ["salt", "bread", "pepper"]])
    assert sorted(embedder.token_texts) == ["bread", "pepper", "salt"]
    assert all(np.array_equal(first[window], second[window]) for window in first)


def test_waiting_for_the_encoding_of_others_ends_when_the_time_is_over(tmp_path: Path) -> None:
    embedder = WaitingEmbedder(released := threading.Event())
    vectors = TokenVectors(embedder, BlobCache(tmp_path / "vectors.sqlite"))
    vectors.keep(TokenVectors(HashingEmbedder(), NoCache()).encoded(["salt"]))
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(vectors.of, ["bread"])
        embedder.began.wait(60)
        assert set(vectors.of(["salt", "pepper"], lambda: True)) == {"salt"}
        released.set()
        assert set(slow.result()) == {"bread"}
    assert embedder.token_texts == ["bread"]


def test_what_is_encoded_is_not_kept_unless_told(vectors: TokenVectors) -> None:
    encoded = vectors.encoded(["bread"])
    assert vectors.kept(["bread"]) == {}
    vectors.keep(encoded)
    assert set(vectors.kept(["bread", "salt"])) == {"bread"}


def test_another_model_has_other_keys(vectors: TokenVectors) -> None:
    assert TokenVectors(HashingEmbedder("other"), NoCache()).key("bread") != vectors.key("bread")
    assert vectors.key("salt") != vectors.key("bread")


def test_the_room_is_that_of_the_cache(embedder: SlowEmbedder, tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "limited.sqlite", size_limit_bytes=1_000)
    assert TokenVectors(embedder, cache).capacity_bytes == 900
    assert TokenVectors(embedder, NoCache()).capacity_bytes == 0
