"""The caching tokenizer: the numbers of the one behind it, asked for once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from prime_pipeline.models.caching_tokenizer import CachingTokenizer
from prime_pipeline.models.tokenizer import Tokenizer
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline_tests.fakes import WordTokenizer

TEXTS = ["one two three four", "one two", "", "Ünï \N{GRINNING FACE} c d", "one two"]


class Counting(WordTokenizer):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(window=3)
        self.asked: list[str] = []

    def count(self, texts: list[str]) -> list[int]:
        self.asked += texts
        return super().count(texts)

    def fit(self, texts: list[str]) -> list[str]:
        self.asked += texts
        return super().fit(texts)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[BlobCache]:
    with closing(BlobCache(tmp_path / "token_counts.sqlite")) as opened:
        yield opened


def test_it_counts_and_cuts_as_the_one_behind_it(cache: BlobCache) -> None:
    behind = WordTokenizer(window=3)
    for _ in range(2):  # from the one behind it, and from the cache
        tokenizer: Tokenizer = CachingTokenizer(behind, "e", cache)
        assert tokenizer.count(TEXTS) == [4, 2, 0, 4, 2]
        assert tokenizer.fit(TEXTS) == ["one two three", "one two", "", "Ünï \N{GRINNING FACE} c", "one two"]
        assert (tokenizer.window, tokenizer.windows("a b c", 2)) == (3, ["a b", "c"])
    assert tokenizer.count([]) == []
    assert tokenizer.fit([]) == []


def test_a_text_is_counted_once_and_cut_once(cache: BlobCache) -> None:
    behind = Counting()
    CachingTokenizer(behind, "e", cache).count(TEXTS)
    assert sorted(behind.asked) == sorted(set(TEXTS))
    behind.asked.clear()
    again = CachingTokenizer(behind, "e", cache)
    again.count(TEXTS)
    assert behind.asked == []
    again.fit(["one two"])
    again.fit(["one two", "new"])
    assert behind.asked == ["one two", "new"]


def test_another_encoder_counts_for_itself(cache: BlobCache) -> None:
    CachingTokenizer(WordTokenizer(window=3), "e", cache).fit(TEXTS)
    assert CachingTokenizer(WordTokenizer(window=1), "other", cache).fit(["one two"]) == ["one"]
