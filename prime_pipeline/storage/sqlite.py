"""Opening SQLite files that several processes share: WAL, patience, and a schema version."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from prime_pipeline.errors import SchemaMismatch, StoreCorrupt

BUSY_TIMEOUT_S = 60.0


def open_store(path: Path, schema: str, schema_version: int) -> sqlite3.Connection:
    """Open or create a writable store.

    Args:
        path: The file; its folder is made.
        schema: Statements that create the tables, each with IF NOT EXISTS.
        schema_version: Kept in ``user_version``.

    Raises:
        SchemaMismatch: Another version of this program wrote the file.
        StoreCorrupt: The file is not a SQLite database.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, check_same_thread=False, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found == 0:
            connection.executescript(f"BEGIN IMMEDIATE;{schema};PRAGMA user_version={schema_version};COMMIT;")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StoreCorrupt(path, str(error)) from error
    if found not in (0, schema_version):
        connection.close()
        raise SchemaMismatch(path, found, schema_version)
    return connection
