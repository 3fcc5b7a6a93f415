"""A content-addressed cache of bytes in SQLite, safe with several processes, optionally under a size limit.

Keys are hashes of everything that determines the value, so an entry is never wrong, only unneeded. Losing the file
costs time and nothing else.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from prime_pipeline.storage.sqlite import open_store

_SCHEMA = """
CREATE TABLE IF NOT EXISTS blobs (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, size_bytes INTEGER NOT NULL, used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT OR IGNORE INTO state VALUES ('clock', 0), ('total_bytes', 0);
"""
_SCHEMA_LIMITED = _SCHEMA + "CREATE INDEX IF NOT EXISTS blobs_by_use ON blobs (used);"
_KEYS_PER_QUERY = 500
_KEPT_AFTER_EVICTION = 0.9


class BlobCache:
    """Bytes by key.

    Args:
        path: The SQLite file.
        size_limit_bytes: When the values together exceed it, those unused for longest go, until nine tenths of the
            limit are left. None keeps everything.
    """

    def __init__(self, path: Path, size_limit_bytes: int | None = None) -> None:
        self._limit = size_limit_bytes
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection = open_store(
            path, _SCHEMA if size_limit_bytes is None else _SCHEMA_LIMITED, 1
        )

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The values of those keys that are present."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, bytes] = {}
        with self._lock:
            for start in range(0, len(wanted), _KEYS_PER_QUERY):
                some = wanted[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                rows = self._connection.execute(f"SELECT key, value FROM blobs WHERE key IN ({marks})", some)  # noqa: S608
                found.update(rows)
            if self._limit is not None and found:
                self._touch(list(found))
        return found

    def store(self, values: Mapping[str, bytes]) -> None:
        """Add values in one transaction; a key that is present stays as it is."""
        if not values:
            return
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            tick = self._next_tick()
            rows = [(key, value, len(value), tick) for key, value in values.items()]
            for row in rows:
                added = self._connection.execute(
                    "INSERT OR IGNORE INTO blobs VALUES (?, ?, ?, ?)", row
                ).rowcount
                self._add_to_total(row[2] * added)
            if self._limit is not None:
                self._evict(self._limit)

    @property
    def total_bytes(self) -> int:
        """Size of all values together."""
        return int(
            self._connection.execute("SELECT value FROM state WHERE name = 'total_bytes'").fetchone()[0]
        )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # Use is counted in ticks of a counter, not in seconds: a clock that is set back must not turn the order round.
    def _next_tick(self) -> int:
        row = self._connection.execute(
            "UPDATE state SET value = value + 1 WHERE name = 'clock' RETURNING value"
        ).fetchone()
        return int(row[0])

    def _add_to_total(self, size_bytes: int) -> None:
        self._connection.execute(
            "UPDATE state SET value = value + ? WHERE name = 'total_bytes'", (size_bytes,)
        )

    def _touch(self, keys: list[str]) -> None:
        # A reader must not wait for a long writer: if the file is busy, the order of use is a little less exact.
        try:
            self._connection.execute("PRAGMA busy_timeout=20")
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                tick = self._next_tick()
                self._connection.executemany(
                    "UPDATE blobs SET used = ? WHERE key = ?", [(tick, key) for key in keys]
                )
        except sqlite3.OperationalError:
            pass
        finally:
            self._connection.execute("PRAGMA busy_timeout=60000")

    def _evict(self, limit: int) -> None:
        total = self.total_bytes
        if total <= limit:
            return
        for key, size_bytes in self._connection.execute(
            "SELECT key, size_bytes FROM blobs ORDER BY used, key"
        ).fetchall():
            if total <= limit * _KEPT_AFTER_EVICTION:
                break
            self._connection.execute("DELETE FROM blobs WHERE key = ?", (key,))
            total -= size_bytes
            self._add_to_total(-size_bytes)
