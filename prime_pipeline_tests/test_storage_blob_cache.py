"""The cache: what comes back, what goes first, and what survives."""

from __future__ import annotations

import math
import multiprocessing
import random
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
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


def test_use_in_one_process_keeps_what_another_would_evict(tmp_path: Path) -> None:
    reader, writer = (BlobCache(tmp_path / "c.sqlite", size_limit_bytes=100) for _ in range(2))
    for key in "abcde":
        writer.store({key: bytes(20)})
    reader.lookup(["a"])
    writer.store({"f": bytes(20)})
    assert set(reader.lookup("abcdef")) == {"a", "d", "e", "f"}
    reader.close()
    writer.close()


def bytes_stored_with_use_between(path: Path) -> Iterator[tuple[int, bool]]:
    """Store a byte at a time and use one entry after each: bytes stored so far, and whether the use was written."""
    cache = BlobCache(path, size_limit_bytes=320)  # a sixteenth of it is 20
    cache.store({"used": b"x"})
    with closing(sqlite3.connect(path)) as observer:
        for n_stored in range(1, 62):
            cache.store({str(n_stored): b"x"})
            before = observer.execute("PRAGMA data_version").fetchone()  # changes when others have written
            cache.lookup(["used"])
            yield n_stored, observer.execute("PRAGMA data_version").fetchone() != before
    cache.close()


def test_use_is_noted_again_only_after_a_sixteenth_of_the_limit(tmp_path: Path) -> None:
    # Storing one byte is two ticks, one for the byte; so the twentieth tick is not passed before the eleventh byte.
    noted_at = [n for n, is_noted in bytes_stored_with_use_between(tmp_path / "c.sqlite") if is_noted]
    assert noted_at == [11, 22, 33, 44, 55]


def test_what_is_there_is_used_without_writing(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = BlobCache(path, size_limit_bytes=10_000)
    cache.store({str(i): bytes(100) for i in range(50)})
    with closing(sqlite3.connect(path)) as observer:
        before = observer.execute("PRAGMA data_version").fetchone()
        for _ in range(3):
            cache.lookup(map(str, range(50)))
            cache.present(map(str, range(50)))
        assert observer.execute("PRAGMA data_version").fetchone() == before
    cache.close()


@pytest.mark.parametrize("seed", range(3))
def test_what_goes_was_used_before_what_stays_but_for_a_sixteenth_of_the_limit(
    tmp_path: Path, seed: int
) -> None:
    chance, limit, n_stored = random.Random(seed), 1_600, 0
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=limit)
    last_use: dict[str, int] = {}
    for i in range(250):
        value = bytes(chance.randrange(1, 30))
        cache.store({str(i): value})
        n_stored += len(value) + 2
        last_use[str(i)] = n_stored
        with closing(sqlite3.connect(tmp_path / "c.sqlite")) as connection:
            kept = {key for (key,) in connection.execute("SELECT key FROM blobs")}
        gone = last_use.keys() - kept
        if gone:
            newest_gone = max(last_use.pop(key) for key in gone)
            assert newest_gone <= min(last_use.values()) + limit / 16 + 30
        for key in chance.sample(sorted(last_use), min(3, len(last_use))):
            found = set(cache.lookup([key])) if chance.random() < 0.5 else set(cache.present([key]))
            assert found == {key}
            last_use[key] = n_stored
    assert 0 < len(last_use) < 200
    cache.close()


def test_what_is_present_is_told_with_its_size(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "c.sqlite")
    cache.store({f"k{i}": bytes(i) for i in range(1_200)})  # more than one query takes
    keys = [f"k{i}" for i in range(0, 1_400, 2)]
    assert cache.present(keys) == {f"k{i}": i for i in range(0, 1_200, 2)}
    assert cache.present([]) == {}
    cache.close()


def test_being_asked_for_counts_as_use(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=100)
    for key in "abcde":
        cache.store({key: bytes(20)})
    cache.present(["a"])
    cache.store({"f": bytes(20)})
    assert set(cache.present("abcdef")) == {"a", "d", "e", "f"}
    cache.close()


def test_what_fits_the_capacity_and_was_used_last_is_not_evicted(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=1_000)
    cache.store({f"old{i}": bytes(100) for i in range(10)})
    assert cache.capacity_bytes == 900
    for i in range(9):
        cache.store({f"new{i}": bytes(100)})
    assert len(cache.present([f"new{i}" for i in range(9)])) == 9
    cache.close()
    unlimited = BlobCache(tmp_path / "other.sqlite")
    assert unlimited.capacity_bytes == math.inf
    unlimited.close()


FIRST_LAYOUT = """
CREATE TABLE blobs (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, size_bytes INTEGER NOT NULL, used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO state VALUES ('clock', 3), ('total_bytes', 40);
CREATE INDEX blobs_by_use ON blobs (used);
INSERT INTO blobs VALUES ('a', zeroblob(20), 20, 3), ('b', zeroblob(20), 20, 2);
PRAGMA user_version = 1;
"""


def test_a_file_in_the_first_layout_still_serves(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "c.sqlite")) as connection:
        connection.executescript(FIRST_LAYOUT)
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=100)
    assert cache.present("abc") == {"a": 20, "b": 20}
    cache.store({"c": bytes(30), "d": bytes(20)})  # 90 bytes
    cache.store({"e": bytes(20)})  # 110: b was used first
    assert set(cache.lookup("abcde")) == {"a", "c", "d", "e"}
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
    assert (cache.lookup("a"), cache.present("a"), cache.capacity_bytes) == ({}, {}, 0)
    cache.close()


def test_what_is_forgotten_cannot_be_read_from_the_file(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "c.sqlite", size_limit_bytes=1_000)
    cache.store({"a": b"first value", "b": b"second value", "c": b"a third one"})
    assert cache.forget(["a", "a", "unknown"]) == 1
    assert cache.forget_values_with(b"second") == 1
    assert cache.lookup(["a", "b", "c"]) == {"c": b"a third one"}
    assert cache.total_bytes == len(b"a third one")
    cache.compact()
    cache.close()
    data = (tmp_path / "c.sqlite").read_bytes()
    assert b"third" in data
    assert b"first" not in data
    assert b"second" not in data


def test_a_value_that_changed_on_the_disk_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    cache = BlobCache(path)
    cache.store({"a": b"a value of some length", "b": b"another one"})
    cache.close()
    path.write_bytes(path.read_bytes().replace(b"some length", b"some lenght"))
    again = BlobCache(path)
    assert again.lookup(["a", "b"]) == {"b": b"another one"}
    again.store({"a": b"a value of some length"})
    assert again.lookup(["a"]) == {"a": b"a value of some length"}
    assert again.total_bytes == len(b"a value of some length" + b"another one")


def test_entries_from_before_checksums_serve_on(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE blobs (key TEXT NOT NULL PRIMARY KEY, size_bytes INTEGER NOT NULL, used INTEGER NOT NULL,"
            " value BLOB NOT NULL);"
            "CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL);"
            "INSERT INTO state VALUES ('clock', 0), ('total_bytes', 3);"
            "INSERT INTO blobs VALUES ('a', 3, 0, x'616263'); PRAGMA user_version = 1;"
        )
    cache = BlobCache(path)
    cache.store({"b": b"new"})
    assert cache.lookup(["a", "b"]) == {"a": b"abc", "b": b"new"}
