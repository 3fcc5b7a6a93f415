"""The cache: what comes back, what goes first, and what survives."""

from __future__ import annotations

import multiprocessing
import random
import sqlite3
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from prime_pipeline.storage.blob_cache import BlobCache, NoCache


def test_round_trip_also_after_reopening(tmp_path: Path) -> None:
    values = {f"k{i}": bytes([i % 256]) * i for i in range(1_200)}  # more than one query takes
    cache = BlobCache(tmp_path / "c.sqlite")
    cache.store(values)
    cache.store({})
    assert cache.lookup([*values, "unknown", "k1"]) == values
    assert cache.lookup([]) == {}
    cache.close()
    again = BlobCache(tmp_path / "c.sqlite")
    assert again.lookup(values) == values
    assert again.total_bytes == sum(map(len, values.values()))
    again.close()


def test_what_is_present_stays(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "c.sqlite")
    cache.store({"a": b"first"})
    cache.store({"a": b"second, longer", "b": b"x"})
    assert cache.lookup(["a", "b"]) == {"a": b"first", "b": b"x"}
    assert cache.total_bytes == 6
    cache.close()


def test_never_over_the_limit_and_the_count_is_right(tmp_path: Path) -> None:
    chance = random.Random(7)
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=1_000)
    for i in range(150):
        cache.store({f"{i}-{j}": bytes(chance.randrange(120)) for j in range(chance.randrange(1, 5))})
        cache.lookup([f"{chance.randrange(i + 1)}-0"])
        assert cache.total_bytes <= 1_000
    with sqlite3.connect(tmp_path / "c.sqlite") as connection:
        stored = connection.execute("SELECT sum(length(value)), sum(size_bytes) FROM blobs").fetchone()
    assert stored == (cache.total_bytes, cache.total_bytes)
    assert cache.total_bytes > 500
    cache.close()


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=100)
    for key in "abcde":
        cache.store({key: bytes(20)})
    cache.lookup(["a"])
    cache.store({"f": bytes(20)})  # 120 bytes: b and c go, then 80 are left
    assert set(cache.lookup("abcdef")) == {"a", "d", "e", "f"}
    cache.close()


def test_the_order_of_use_survives_reopening(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=100)
    for key in "abcde":
        cache.store({key: bytes(20)})
    cache.lookup(["a"])
    cache.close()
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=100)
    cache.store({"f": bytes(20)})
    assert set(cache.lookup("abcdef")) == {"a", "d", "e", "f"}
    cache.close()


def test_more_than_the_limit_at_once_is_not_kept_whole(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=10)
    cache.store({"large": bytes(100)})
    assert (cache.total_bytes, cache.lookup(["large"])) == (0, {})
    cache.close()


def test_a_lookup_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=100)
    cache.store({"a": b"x"})
    writer = sqlite3.connect(tmp_path / "c.sqlite", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    assert cache.lookup(["a"]) == {"a": b"x"}
    writer.close()
    cache.close()


def _fill(path: Path, prefix: str) -> None:
    cache = BlobCache(path, size_limit_bytes=10_000)
    for i in range(40):
        cache.store({f"{prefix}{i}": bytes(100), f"both{i}": bytes(10)})
        cache.lookup([f"{prefix}{i // 2}"])
    cache.close()


def test_two_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        for job in [pool.submit(_fill, path, prefix) for prefix in "ab"]:
            job.result()
    cache = BlobCache(path, size_limit_bytes=10_000)
    keys = [f"{prefix}{i}" for prefix in ("a", "b", "both") for i in range(40)]
    assert len(cache.lookup(keys)) == 120
    assert cache.total_bytes == 80 * 100 + 40 * 10
    cache.close()


def test_a_file_that_is_no_database_makes_room_for_a_new_one(tmp_path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"c.sqlite{suffix}").write_bytes(b"damaged" * 1_000)
    cache = BlobCache(tmp_path / "c.sqlite")
    cache.store({"a": b"x"})
    assert cache.lookup("ab") == {"a": b"x"}
    cache.close()


def damaged_inside(path: Path) -> BlobCache:
    cache = BlobCache(path)
    cache.store({f"k{i}": bytes(500) for i in range(100)})
    cache.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    return BlobCache(path)


def test_damage_that_shows_later_costs_the_content_and_nothing_else(tmp_path: Path) -> None:
    cache = damaged_inside(tmp_path / "read.sqlite")
    assert cache.lookup(["k1"]) == {}
    cache.store({"k1": b"again"})
    assert cache.lookup(["k1"]) == {"k1": b"again"}
    cache.close()
    cache = damaged_inside(tmp_path / "written.sqlite")
    cache.store({"k1": b"again"})
    assert cache.lookup(["k1", "k2"]) == {"k1": b"again"}
    cache.close()


def test_a_closed_cache_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "c.sqlite")
    cache.store({"a": b"x"})
    cache.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        cache.lookup("a")
    cache = BlobCache(tmp_path / "c.sqlite")
    assert cache.lookup("a") == {"a": b"x"}
    cache.close()


def test_no_cache_keeps_nothing() -> None:
    cache = NoCache()
    cache.store({"a": b"x"})
    assert cache.lookup("a") == {}
    cache.close()
