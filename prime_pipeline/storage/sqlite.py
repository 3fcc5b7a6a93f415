"""SQLite files: stores that several processes share and write, and finished files that are only read.

Here is decided how they are opened, how long one waits, and what a SQLite error means. What is in them is for others.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prime_pipeline.errors import PrimeError, SchemaMismatch, StoreCorrupt, StoreUnavailable

BUSY_TIMEOUT_S = 60.0
_POLL_S = 0.02
_DAMAGE = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class SharedDatabase:
    """A writable database for any number of threads and processes: WAL, patience, and a schema version.

    Args:
        path: The file; its folder is made.
        schema: Statements that create the tables, each with IF NOT EXISTS.
        schema_version: Kept in ``user_version``; above 0.

    Raises:
        SchemaMismatch: Another version of this program wrote the file.
        StoreCorrupt: The file is not such a database. Every method may raise it.
        StoreUnavailable: The file cannot be opened, read or written now. Every method may raise it.
    """

    def __init__(self, path: Path, schema: str, schema_version: int) -> None:
        self._path = path
        self._lock = threading.Lock()
        with _storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_S, check_same_thread=False, isolation_level=None
            )
        try:
            self._set_up(schema, schema_version)
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for single statements; no other thread has it meanwhile."""
        with self._lock, _storage_errors(self._path):
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection inside a transaction, which is taken back if the block raises."""
        with self.reading() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    def add_column(self, table: str, name: str, kind: str) -> None:
        """Give a table another column, if it is not there yet: what was written before has no value in it."""
        with self.reading() as connection:
            names = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if name in names:
            return
        with self.writing() as connection:
            names = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            if name not in names:  # another process may have been first
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")

    def compact(self) -> None:
        """Write the file anew without what was deleted or replaced, of which nothing can be read any more then.

        Takes as much room on the disk again for a moment.

        Raises:
            StoreUnavailable: Another process is reading or writing for longer than one waits; what it holds open stays.
        """
        with self.reading() as connection:
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreUnavailable(self._path, "another process is at work in it")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _set_up(self, schema: str, schema_version: int) -> None:
        with self.reading() as connection:
            _switch_to_wal(connection)
            connection.execute("PRAGMA synchronous=NORMAL")
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found == 0:  # new; another process may be making it too, hence IF NOT EXISTS
                connection.executescript(
                    f"BEGIN IMMEDIATE;{schema};PRAGMA user_version={schema_version};COMMIT;"
                )
        if found not in (0, schema_version):
            raise SchemaMismatch(self._path, found, schema_version)


def open_finished(path: Path, error: Callable[[Path, str], PrimeError]) -> sqlite3.Connection:
    """Open a file that nobody writes any more, from a folder that need not be writable; for threads that take turns.

    Args:
        path: The file; any name will do.
        error: Makes the error for a file that is missing or no database.
    """
    with errors_as(path, error):
        # As a URI made by pathlib: a question mark or a hash in the name would end the path otherwise.
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
        )
        try:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
    return connection


def fault_of(path: Path) -> str | None:
    """What is wrong with a database that others may be using; None if it is sound. Reads all of it, writes nothing.

    Raises:
        StoreUnavailable: It cannot be read now.
    """
    log = path.with_name(path.name + "-wal")
    # With an empty log the file is whole by itself; opened otherwise, SQLite would put files of its own beside it.
    is_whole = not log.exists() or log.stat().st_size == 0
    try:
        with _storage_errors(path):
            mode = "mode=ro&immutable=1" if is_whole else "mode=ro"
            connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=BUSY_TIMEOUT_S
            )
            try:
                found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            finally:
                connection.close()
    except StoreCorrupt as error:
        return str(error.__cause__)
    return None if found == "ok" else str(found)


Kinds = tuple[type | tuple[type, ...], ...]
"""The type of each column of a row, or several types."""


def checked(path: Path, row: tuple[Any, ...], kinds: Kinds) -> tuple[Any, ...]:
    """A row, if its values are of these kinds: bytes that changed inside a row are nothing that SQLite would notice.

    Raises:
        StoreCorrupt: They are not.
    """
    for value, kind in zip(row, kinds, strict=True):
        if not isinstance(value, kind):
            raise StoreCorrupt(path, f"{value!r} stands in a row where it cannot stand")
    return row


def remove_database(path: Path) -> None:
    """Remove a database with the two files that SQLite keeps beside it.

    Raises:
        StoreUnavailable: It cannot be removed.
    """
    with _storage_errors(path):
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def errors_as(path: Path, error: Callable[[Path, str], PrimeError]) -> Iterator[None]:
    """Turn what SQLite raises about a file into an error that names the file.

    ProgrammingError passes, here and in shared databases: it says that the caller is wrong, by using what he closed,
    say, and not the file.
    """
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except (
        sqlite3.DatabaseError,
        UnicodeDecodeError,
    ) as cause:  # the latter where even SQLite's message quotes damage
        raise error(path, str(cause)) from cause


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.DatabaseError as error:
        # The low byte is the primary code. "No such table" (SQLITE_ERROR) is a file that lost what was in it.
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _DAMAGE:
            raise StoreCorrupt(path, str(error)) from error
        raise StoreUnavailable(path, str(error)) from error
    except UnicodeDecodeError as error:  # SQLite's message quotes what is damaged
        raise StoreCorrupt(path, str(error)) from error
    except OSError as error:
        raise StoreUnavailable(path, error.strerror or str(error)) from error


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    # SQLite answers "locked" at once, whatever the time-out, when two connections switch a new file at the same time.
    deadline_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(_POLL_S)
        else:
            return
