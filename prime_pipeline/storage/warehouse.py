"""The warehouse: a DuckDB file, published as a snapshot.

DuckDB takes one writer and then locks readers out, so a new file is built beside the old one and renamed over it:
readers never wait and never block. (DuckDB keeps one instance per path in a process: whoever opens the new snapshot beside
an old one that is still open there gets the old one. Other processes get the new one.)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prime_pipeline.errors import StoreUnavailable
from prime_pipeline.storage.atomic import atomic_path

SCHEMA_VERSION = 1

Columns = Mapping[str, str]
"""DuckDB type by column name."""


def publish_warehouse(
    path: Path, tables: Mapping[str, tuple[Columns, Iterable[Mapping[str, Any]]]], fingerprint: str
) -> dict[str, int]:
    """Write a snapshot and put it in place; returns the rows of each table.

    Args:
        path: The DuckDB file.
        tables: Columns and rows by table name.
        fingerprint: Of what the snapshot is made of, kept in the table ``provenance``.

    Half of a surrogate pair, which no UTF-8 text can hold, becomes a question mark.

    Raises:
        StoreUnavailable: The disk is full, or the folder cannot be written.
    """
    import duckdb

    counts = {}
    with atomic_path(path) as temporary, tempfile.TemporaryDirectory() as folder:
        temporary.unlink()  # DuckDB wants to make the file itself
        try:
            connection = duckdb.connect(str(temporary))
        except duckdb.IOException as error:
            raise StoreUnavailable(path, str(error)) from error
        try:
            for name, (columns, rows) in tables.items():
                counts[name] = _write_table(connection, Path(folder), name, columns, rows)
            connection.execute("CREATE TABLE provenance (schema_version INTEGER, fingerprint VARCHAR)")
            connection.execute("INSERT INTO provenance VALUES (?, ?)", [SCHEMA_VERSION, fingerprint])
        except duckdb.IOException as error:
            raise StoreUnavailable(path, str(error)) from error
        finally:
            connection.close()
    return counts


def warehouse_fingerprint(path: Path) -> str | None:
    """What the published snapshot was made of, or None where there is none that this version can read."""
    import duckdb

    if not path.is_file():
        return None
    # Attached to an instance of its own: see the module's docstring.
    with duckdb.connect() as connection:
        try:
            quoted = str(path).replace("'", "''")
            connection.execute(f"ATTACH '{quoted}' AS snapshot (READ_ONLY)")
            row = connection.execute("SELECT schema_version, fingerprint FROM snapshot.provenance").fetchone()
        except duckdb.Error:
            return None
    return str(row[1]) if row and row[0] == SCHEMA_VERSION else None


def _write_table(
    connection: Any, folder: Path, name: str, columns: Columns, rows: Iterable[Mapping[str, Any]]
) -> int:
    # Through a file of JSON lines: DuckDB reads it in bulk, where an INSERT per row costs about a millisecond.
    path = folder / f"{name}.jsonl"
    n_rows = 0
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            n_rows += 1
    definition = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    connection.execute(f"CREATE TABLE {name} ({definition})")
    if n_rows:
        types = "{" + ", ".join(f"{column}: '{kind}'" for column, kind in columns.items()) + "}"
        read = (
            f"read_json(?, format = 'newline_delimited', columns = {types}, maximum_object_size = 67108864)"
        )
        connection.execute(f"INSERT INTO {name} SELECT * FROM {read}", [str(path)])  # noqa: S608
    return n_rows
