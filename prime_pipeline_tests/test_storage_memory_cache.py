"""Values in memory before a cache on disk: what was used last stays, and nothing is lost below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prime_pipeline.errors import StoreUnavailable
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.memory_cache import MemoryCache


class CountingCache(BlobCache):
    """Remembers what it was asked for."""

    asked: list[str]

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        wanted = list(keys)
        self.asked = [*getattr(self, "asked", []), *wanted]
        return super().lookup(wanted)


@pytest.fixture
def below(tmp_path: Path) -> Iterator[CountingCache]:
    cache = CountingCache(tmp_path / "cache.sqlite")
    yield cache
    cache.close()


def test_what_was_stored_or_found_is_not_asked_for_again(below: CountingCache) -> None:
    below.store({"a": b"1"})
    cache = MemoryCache(below, 100)
    cache.store({"b": b"22"})
    for _ in range(3):
        assert cache.lookup(["a", "b", "c"]) == {"a": b"1", "b": b"22"}
    assert below.asked == ["a", "c", "c", "c"]
    assert below.lookup(["b"]) == {"b": b"22"}


def test_beyond_the_limit_what_was_unused_for_longest_goes(below: CountingCache) -> None:
    cache = MemoryCache(below, 4)
    cache.store({"a": b"11", "b": b"22"})
    cache.lookup(["a"])
    cache.store({"c": b"33"})
    assert cache.lookup(["a", "b", "c"]) == {"a": b"11", "b": b"22", "c": b"33"}
    assert below.asked == ["b"]


def test_a_value_larger_than_the_limit_is_only_below(below: CountingCache) -> None:
    cache = MemoryCache(below, 4)
    cache.store({"big": b"12345"})
    assert cache.lookup(["big"]) == cache.lookup(["big"]) == {"big": b"12345"}
    assert below.asked == ["big", "big"]


def test_an_empty_value_is_a_value(below: CountingCache) -> None:
    cache = MemoryCache(below, 4)
    cache.store({"empty": b""})
    assert cache.lookup(["empty"]) == {"empty": b""}
    assert not hasattr(below, "asked")


class FullDisk:
    """A cache that can be written to no longer."""

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        del keys
        return {}

    def present(self, keys: Iterable[str]) -> dict[str, int]:
        del keys
        return {}

    capacity_bytes = 0.0

    def store(self, values: Mapping[str, bytes]) -> None:
        raise StoreUnavailable(Path("cache"), f"no room for {len(values)}")

    def close(self) -> None:
        """Nothing is open."""


def test_what_cannot_be_kept_below_is_kept_in_memory() -> None:
    cache = MemoryCache(FullDisk(), 100)
    with pytest.raises(StoreUnavailable):
        cache.store({"a": b"1"})
    assert cache.lookup(["a"]) == {"a": b"1"}
    cache.close()
    assert cache.lookup(["a"]) == {}


def test_what_is_present_and_how_much_is_kept_is_asked_below(tmp_path: Path) -> None:
    limited = BlobCache(tmp_path / "limited.sqlite", 100)
    cache = MemoryCache(limited, 1)
    cache.store({"a": b"123"})
    assert cache.present(["a", "b"]) == {"a": 3}
    assert cache.capacity_bytes == limited.capacity_bytes == 90
    cache.close()


def test_several_threads_find_what_each_stored(below: CountingCache) -> None:
    cache = MemoryCache(below, 50)

    def work(number: int) -> bool:
        key = f"k{number % 10}"
        cache.store({key: key.encode() * 5})
        return cache.lookup([key]) == {key: key.encode() * 5}

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))
