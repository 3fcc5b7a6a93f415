"""A content-addressed cache of bytes in SQLite, safe with several processes, optionally under a size limit.

Keys are hashes of everything that determines the value, so an entry is never wrong, only unneeded. Losing the file
costs time and nothing else, which is why a damaged one is thrown away without asking. SQLite does not notice bytes that
changed inside a value: a checksum beside it does, and such an entry is as good as none.
"""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Any, Protocol

from prime_pipeline.errors import StoreCorrupt
from prime_pipeline.storage.sqlite import BUSY_TIMEOUT_S, SharedDatabase, remove_database

# The keys have a B-tree of their own, and the value comes last in its row. In a table WITHOUT ROWID, which this was once
# (such a file still serves, only slower), SQLite reads whole values to compare keys, and past the value for what follows.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS blobs (
    key TEXT NOT NULL PRIMARY KEY, size_bytes INTEGER NOT NULL, used INTEGER NOT NULL, value BLOB NOT NULL,
    checksum INTEGER
);
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT OR IGNORE INTO state VALUES ('clock', 0), ('total_bytes', 0);
"""
_SCHEMA_LIMITED = _SCHEMA + "CREATE INDEX IF NOT EXISTS blobs_by_use ON blobs (used);"
_KEYS_PER_QUERY = 500
_KEPT_AFTER_EVICTION = 0.9
_NOTED_AGAIN_AFTER = 1 / 16
"""The share of the limit that has to be stored before another use of an entry is noted.

A reader of what is there writes nothing, then; and the order in which entries go is right but for this share.
"""
_NOTING_TIMEOUT_S = 0.02


class Cache(Protocol):
    """Keeps bytes by key, or not."""

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The values of those keys that are present."""

    def present(self, keys: Iterable[str]) -> dict[str, int]:
        """The sizes in bytes of those keys' values that are present, without reading any."""

    def store(self, values: Mapping[str, bytes]) -> None:
        """Add values, if there is room for them."""

    @property
    def capacity_bytes(self) -> float:
        """Values of so many bytes together, used last, are never evicted for one another; infinite without a limit."""

    def close(self) -> None:
        """Let go of what was opened."""


class NoCache:
    """A cache that keeps nothing, for where none can be opened."""

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Nothing."""
        del keys
        return {}

    def present(self, keys: Iterable[str]) -> dict[str, int]:
        """Nothing."""
        del keys
        return {}

    def store(self, values: Mapping[str, bytes]) -> None:
        """Forget them."""

    @property
    def capacity_bytes(self) -> float:
        """None at all."""
        return 0.0

    def close(self) -> None:
        """Nothing is open."""


class BlobCache:
    """Bytes by key. A file that turns out to be damaged, now or later, is removed, and an empty one takes its place.

    Args:
        path: The SQLite file.
        size_limit_bytes: When the values together exceed it, those unused for longest go (ties by key), until nine
            tenths of the limit are left. None keeps everything. When an entry was used is known to within a sixteenth
            of the limit, counted in bytes stored since.

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
        rows = self._rows("value, checksum", keys)
        sound = {k: value for k, _, value, known in rows if known is None or known == zlib.crc32(value)}
        if len(sound) < len(rows):
            self.forget(key for key, *_ in rows if key not in sound)
        return sound

    def present(self, keys: Iterable[str]) -> dict[str, int]:
        """The sizes in bytes of those keys' values that are present. This counts as use; no value is read."""
        rows = self._rows("size_bytes", keys)
        return {key: size_bytes for key, _, size_bytes in rows}

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

    def forget(self, keys: Iterable[str]) -> int:
        """Drop entries, so that nothing of them can be read from the file; returns how many there were."""
        with self._database.writing() as connection:
            connection.execute("PRAGMA secure_delete=ON")
            return sum(_delete(connection, key) for key in set(keys))

    def forget_values_with(self, part: bytes) -> int:
        """Drop entries whose values hold some bytes, likewise. Reads all of them."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT key FROM blobs WHERE instr(value, ?)", (part,)).fetchall()
        return self.forget(key for (key,) in rows)

    def compact(self) -> None:
        """See :meth:`SharedDatabase.compact`."""
        self._database.compact()

    @property
    def total_bytes(self) -> int:
        """Size of all values together."""
        with self._database.reading() as connection:
            return _state(connection, "total_bytes")

    @property
    def capacity_bytes(self) -> float:
        """See :class:`Cache`: nine tenths of the limit, which is what eviction leaves."""
        return inf if self._limit is None else self._limit * _KEPT_AFTER_EVICTION

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _open(self) -> SharedDatabase:
        database = SharedDatabase(self._path, _SCHEMA if self._limit is None else _SCHEMA_LIMITED, 1)
        try:
            database.add_column(
                "blobs", "checksum", "INTEGER"
            )  # files from before have none, nor do their entries
        except BaseException:
            database.close()
            raise
        return database

    def _renew(self, damaged: SharedDatabase) -> None:
        """Put an empty file in the place of a damaged one, unless another thread has done so."""
        with self._renewing:
            if self._database is damaged:
                damaged.close()
                remove_database(self._path)
                self._database = self._open()

    def _rows(self, columns: str, keys: Iterable[str]) -> list[tuple[Any, ...]]:
        """Key, last noted use and further columns of every entry that is present, used now."""
        wanted = list(dict.fromkeys(keys))
        database = self._database
        try:
            return self._rows_in(database, columns, wanted)
        except StoreCorrupt:
            self._renew(database)
            return []

    def _rows_in(self, database: SharedDatabase, columns: str, wanted: list[str]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        with database.reading() as connection:
            for start in range(0, len(wanted), _KEYS_PER_QUERY):
                some = wanted[start : start + _KEYS_PER_QUERY]
                query = f"SELECT key, used, {columns} FROM blobs WHERE key IN ({','.join('?' * len(some))})"  # noqa: S608
                found += connection.execute(query, some)
            if self._limit is not None and found:
                long_ago = _state(connection, "clock") - self._limit * _NOTED_AGAIN_AFTER
                _note_use(connection, [key for key, used, *_ in found if used < long_ago])
        return found

    def _store(self, database: SharedDatabase, values: Mapping[str, bytes]) -> None:
        with database.writing() as connection:
            tick = _advance(connection, "clock", 1 + sum(map(len, values.values())))
            n_added_bytes = 0
            for key, value in values.items():
                insert = "INSERT OR IGNORE INTO blobs (key, size_bytes, used, value, checksum) VALUES (?, ?, ?, ?, ?)"
                row = (key, len(value), tick, value, zlib.crc32(value))
                added = connection.execute(insert, row).rowcount
                n_added_bytes += len(value) * added
            _advance(connection, "total_bytes", n_added_bytes)
            if self._limit is not None:
                _evict(connection, self._limit)


# Use is counted in ticks of a counter, not in seconds: a clock that is set back must not turn the order round. It ticks
# for every byte stored, and once for every transaction, so a difference tells how much was stored in between.
def _advance(connection: sqlite3.Connection, name: str, by: int) -> int:
    advance = "UPDATE state SET value = value + ? WHERE name = ? RETURNING value"
    return int(connection.execute(advance, (by, name)).fetchone()[0])


def _state(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()[0])


def _note_use(connection: sqlite3.Connection, keys: Sequence[str]) -> None:
    if not keys:
        return
    # A reader must not wait for a long writer, nor fail where it may not write: if the file is busy or read-only,
    # the order of use is a little less exact.
    connection.execute(f"PRAGMA busy_timeout={_NOTING_TIMEOUT_S * 1000:.0f}")
    try:
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            tick = _advance(connection, "clock", 1)
            connection.executemany("UPDATE blobs SET used = ? WHERE key = ?", [(tick, key) for key in keys])
    except sqlite3.OperationalError:
        pass
    finally:
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000:.0f}")


def _delete(connection: sqlite3.Connection, key: str) -> int:
    rows = connection.execute("DELETE FROM blobs WHERE key = ? RETURNING size_bytes", (key,)).fetchall()
    if rows:
        _advance(connection, "total_bytes", -sum(size_bytes for (size_bytes,) in rows))
    return len(rows)


def _evict(connection: sqlite3.Connection, limit_bytes: int) -> None:
    before = total = _state(connection, "total_bytes")
    if total <= limit_bytes:
        return
    gone: list[tuple[str]] = []
    with closing(connection.execute("SELECT key, size_bytes FROM blobs ORDER BY used, key")) as oldest_first:
        for key, size_bytes in oldest_first:
            if total <= limit_bytes * _KEPT_AFTER_EVICTION:
                break
            gone.append((key,))
            total -= size_bytes
    connection.executemany("DELETE FROM blobs WHERE key = ?", gone)
    _advance(connection, "total_bytes", total - before)
