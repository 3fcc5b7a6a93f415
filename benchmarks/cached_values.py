"""Time to look up the token vectors of a query's sections in the cache, beside two plainer ways to keep them.

``every use noted`` writes into the file at each lookup; ``values beside keys`` keeps key and value in one B-tree (a table
WITHOUT ROWID). Both were how the cache worked once. Rounds alternate within one process, so that a change of the machine's
load meets all of them; the file is warm in memory.

    python benchmarks/cached_values.py
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from prime_pipeline.storage.blob_cache import BlobCache

ROUNDS = 25
LIMIT_BYTES = 1 << 30
VALUES_BESIDE_KEYS = """
CREATE TABLE blobs (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, size_bytes INTEGER NOT NULL, used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO state VALUES ('clock', 0), ('total_bytes', 0);
CREATE INDEX blobs_by_use ON blobs (used);
PRAGMA user_version = 1;
"""


def filled(path: Path, values: dict[str, bytes], schema: str = "") -> BlobCache:
    if schema:
        with sqlite3.connect(path) as connection:
            connection.executescript(schema)
    cache = BlobCache(path, LIMIT_BYTES)
    keys = list(values)
    for start in range(0, len(keys), 16):
        cache.store({key: values[key] for key in keys[start : start + 16]})
    return cache


def noting_every_use(cache: BlobCache, path: Path) -> Callable[[Sequence[str]], object]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=NORMAL")

    def look_up(keys: Sequence[str]) -> object:
        found = cache.lookup(keys)
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE state SET value = value + 1 WHERE name = 'clock'")
            connection.executemany(
                "UPDATE blobs SET used = (SELECT value FROM state WHERE name = 'clock') WHERE key = ?",
                [(key,) for key in keys],
            )
        return found

    return look_up


def milliseconds(function: Callable[[Sequence[str]], object], keys: Sequence[str]) -> float:
    started = time.perf_counter()
    function(keys)
    return 1000 * (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--values", type=int, default=2_000)
    parser.add_argument("--size-bytes", type=int, default=60_000)
    parser.add_argument("--per-query", type=int, default=70)
    given = parser.parse_args()
    chance = random.Random(0)
    values = {chance.randbytes(32).hex(): chance.randbytes(given.size_bytes) for _ in range(given.values)}
    with tempfile.TemporaryDirectory() as folder:
        now, before = Path(folder, "now.sqlite"), Path(folder, "before.sqlite")
        ours, beside = filled(now, values), filled(before, values, VALUES_BESIDE_KEYS)
        ways: dict[str, Callable[[Sequence[str]], object]] = {
            "as it is": ours.lookup,
            "every use noted": noting_every_use(ours, now),
            "values beside keys": beside.lookup,
            "both": noting_every_use(beside, before),
            "whether they are there": ours.present,
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            keys = chance.sample(sorted(values), given.per_query)
            for name, way in ways.items():
                times[name].append(milliseconds(way, keys))
        ours.close()
        beside.close()
    print(f"{given.per_query} of {given.values:,} values of {given.size_bytes:,} bytes, {ROUNDS} rounds")
    print("| way | ms, median | to as it is (median of the rounds' ratios) |")
    print("| --- | ---: | ---: |")
    for name, found in times.items():
        ratio = median(a / b for a, b in zip(found, times["as it is"], strict=True))
        print(f"| {name} | {median(found):.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
