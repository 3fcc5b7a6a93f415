"""A content-addressed cache of bytes in SQLite, safe with several processes, optionally under a size limit.

Keys are hashes of everything that determines the value, so an entry is never wrong, only unneeded. Losing the file
costs time and nothing else, which is why a damaged one is thrown away without asking.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from prime_pipeline.errors import StoreCorrupt
from prime_pipeline.storage.sqlite import BUSY_TIMEOUT_S, SharedDatabase, remove_database

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
_TOUCH_TIMEOUT_S = 0.02


class Cache(Protocol):
    """Keeps bytes by key, or not."""

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The values of those keys that are present."""

    def store(self, values: Mapping[str, bytes]) -> None:
        """Add values, if there is room for them."""

    def close(self) -> None:
        """Let go of what was opened."""


class NoCache:
    """A cache that keeps nothing, for where none can be opened."""

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Nothing."""
        del keys
        return {}

    def store(self, values: Mapping[str, bytes]) -> None:
        """Forget them."""

    def close(self) -> None:
        """Nothing is open."""


class BlobCache:
    """Bytes by key. A file that turns out to be damaged, now or later, is removed, and an empty one takes its place.

    Args:
        path: The SQLite file.
        size_limit_bytes: When the values together exceed it, those unused for longest go (ties by key), until nine
            tenths of the limit are left. None keeps everything.

    Raises:
        SchemaMismatch, StoreUnavailable: See :class:`~prime_pipeline.storage.sqlite.SharedDatabase`; methods may
            raise the latter.
    """

    def __init__(self, path: Path, size_limit_bytes: int | None = None) -> None:
        self._path = path
        self._limit = size_limit_bytes
        self._renewing = threading.Lock()
        try:
            self._database = self._open()
        except StoreCorrupt:
            remove_database(path)
            self._database = self._open()

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The values of those keys that are present."""
        wanted = list(dict.fromkeys(keys))
        database = self._database
        try:
            return self._lookup(database, wanted)
        except StoreCorrupt:
            self._renew(database)
            return {}

    def store(self, values: Mapping[str, bytes]) -> None:
        """Add values in one transaction; a key that is present stays as it is."""
        if not values:
            return
        database = self._database
        try:
            self._store(database, values)
        except StoreCorrupt:
            self._renew(database)
            self._store(self._database, values)

    @property
    def total_bytes(self) -> int:
        """Size of all values together."""
        with self._database.reading() as connection:
            return _total_bytes(connection)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _open(self) -> SharedDatabase:
        return SharedDatabase(self._path, _SCHEMA if self._limit is None else _SCHEMA_LIMITED, 1)

    def _renew(self, damaged: SharedDatabase) -> None:
        """Put an empty file in the place of a damaged one, unless another thread has done so."""
        with self._renewing:
            if self._database is damaged:
                damaged.close()
                remove_database(self._path)
                self._database = self._open()

    def _lookup(self, database: SharedDatabase, wanted: list[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        with database.reading() as connection:
            for start in range(0, len(wanted), _KEYS_PER_QUERY):
                some = wanted[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                found.update(
                    connection.execute(f"SELECT key, value FROM blobs WHERE key IN ({marks})", some)  # noqa: S608
                )
            if self._limit is not None and found:
                _touch(connection, found)
        return found

    def _store(self, database: SharedDatabase, values: Mapping[str, bytes]) -> None:
        with database.writing() as connection:
            tick = _next_tick(connection)
            n_added_bytes = 0
            for key, value in values.items():
                insert = "INSERT OR IGNORE INTO blobs VALUES (?, ?, ?, ?)"
                added = connection.execute(insert, (key, value, len(value), tick)).rowcount
                n_added_bytes += len(value) * added
            _add_to_total(connection, n_added_bytes)
            if self._limit is not None:
                _evict(connection, self._limit)


# Use is counted in ticks of a counter, not in seconds: a clock that is set back must not turn the order round.
def _next_tick(connection: sqlite3.Connection) -> int:
    tick = "UPDATE state SET value = value + 1 WHERE name = 'clock' RETURNING value"
    return int(connection.execute(tick).fetchone()[0])


def _total_bytes(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT value FROM state WHERE name = 'total_bytes'").fetchone()[0])


def _add_to_total(connection: sqlite3.Connection, size_bytes: int) -> None:
    connection.execute("UPDATE state SET value = value + ? WHERE name = 'total_bytes'", (size_bytes,))


def _touch(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    # A reader must not wait for a long writer, nor fail where it may not write: if the file is busy or read-only,
    # the order of use is a little less exact.
    connection.execute(f"PRAGMA busy_timeout={_TOUCH_TIMEOUT_S * 1000:.0f}")
    try:
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            tick = _next_tick(connection)
            connection.executemany("UPDATE blobs SET used = ? WHERE key = ?", [(tick, key) for key in keys])
    except sqlite3.OperationalError:
        pass
    finally:
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000:.0f}")


def _evict(connection: sqlite3.Connection, limit_bytes: int) -> None:
    before = total = _total_bytes(connection)
    if total <= limit_bytes:
        return
    oldest_first = "SELECT key, size_bytes FROM blobs ORDER BY used, key"
    for key, size_bytes in connection.execute(oldest_first).fetchall():
        if total <= limit_bytes * _KEPT_AFTER_EVICTION:
            break
        connection.execute("DELETE FROM blobs WHERE key = ?", (key,))
        total -= size_bytes
    _add_to_total(connection, total - before)
