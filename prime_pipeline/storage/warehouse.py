"""The warehouse: a DuckDB file, published as a snapshot.

DuckDB takes one writer and then locks readers out, so a new file is built beside the old one and renamed over it:
readers never wait and never block. (DuckDB keeps one instance per path in a process: whoever opens the new snapshot beside
an old one that is still open there gets the old one. Other processes get the new one.)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_pipeline.errors import StoreCorrupt, StoreUnavailable
from prime_pipeline.storage.atomic import atomic_path

SCHEMA_VERSION = 2

Columns = Mapping[str, str]
"""DuckDB type by column name."""

Row = Mapping[str, Any]
"""Values by column name."""


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """Rows that depend on a single document each; those of the snapshot before stay where its version is the same.

    Attributes:
        versions: Version by document id: equal where the document's rows are. The table has a column ``doc_id``.
        rows: Gives the rows of some documents.
    """

    versions: Mapping[str, str]
    rows: Callable[[Collection[str]], Iterable[Row]]


Rows = Iterable[Row] | DocumentRows

_VERSIONS: Columns = {"of_table": "VARCHAR", "doc_id": "VARCHAR", "version": "VARCHAR"}


def publish_warehouse(
    path: Path, tables: Mapping[str, tuple[Columns, Rows]], fingerprint: str
) -> dict[str, int]:
    """Write a snapshot and put it in place; returns the rows of each table.

    Args:
        path: The DuckDB file.
        tables: Columns and rows by table name.
        fingerprint: Of what the snapshot is made of, kept in the table ``provenance``.

    Rows are in no particular order. The table ``row_versions`` is there for the next snapshot.

    Half of a surrogate pair, which no UTF-8 text can hold, becomes a question mark.

    Raises:
        StoreUnavailable: The disk is full, or the folder cannot be written.
    """
    import duckdb

    with atomic_path(path) as temporary, tempfile.TemporaryDirectory() as folder:
        temporary.unlink()  # DuckDB wants to make the file itself
        try:
            connection, taken_over = _begun(temporary, path, tables)
            try:
                counts = {
                    name: _write_table(
                        connection, Path(folder), name, columns, _missing(rows, taken_over.get(name, set()))
                    )
                    for name, (columns, rows) in tables.items()
                }
                _write_table(connection, Path(folder), "row_versions", _VERSIONS, _row_versions(tables))
                connection.execute("CREATE TABLE provenance (schema_version INTEGER, fingerprint VARCHAR)")
                connection.execute("INSERT INTO provenance VALUES (?, ?)", [SCHEMA_VERSION, fingerprint])
            finally:
                connection.close()
        except duckdb.IOException as error:
            raise StoreUnavailable(path, str(error)) from error
    return counts


def warehouse_fingerprint(path: Path) -> str | None:
    """What the published snapshot was made of, or None where there is none that this version can read."""
    import duckdb

    # Attached to an instance of its own: see the module's docstring.
    with duckdb.connect() as connection:
        return _attached(connection, path)


def warehouse_counts(path: Path, tables: Iterable[str]) -> dict[str, int]:
    """How many rows some tables of the published snapshot have.

    Raises:
        StoreCorrupt: It cannot be read by this version.
    """
    import duckdb

    with duckdb.connect() as connection:
        if _attached(connection, path) is None:
            raise StoreCorrupt(path, "it is no snapshot of this version")
        try:
            return {
                table: int(connection.execute(f"SELECT count(*) FROM snapshot.{table}").fetchone()[0])  # type: ignore[index]  # noqa: S608
                for table in tables
            }
        except duckdb.Error as error:
            raise StoreCorrupt(path, str(error)) from error


def _attached(connection: Any, path: Path) -> str | None:
    """Attach a published snapshot as ``snapshot`` and return its fingerprint; None where that cannot be read."""
    import duckdb

    if not path.is_file():
        return None
    try:
        quoted = str(path).replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS snapshot (READ_ONLY)")
        row = connection.execute("SELECT schema_version, fingerprint FROM snapshot.provenance").fetchone()
    except duckdb.Error:
        return None
    return str(row[1]) if row and row[0] == SCHEMA_VERSION else None


def _begun(
    temporary: Path, path: Path, tables: Mapping[str, tuple[Columns, Rows]]
) -> tuple[Any, dict[str, set[str]]]:
    """An open new file with what the snapshot before can give, and the documents of each table that it gave."""
    import duckdb

    connection = duckdb.connect(str(temporary))
    try:
        taken_over = _taken_over(connection, path, tables)
    except duckdb.Error:  # the snapshot before is damaged: nothing is taken over
        connection.close()
        temporary.unlink()
        return duckdb.connect(str(temporary)), {}
    return connection, taken_over


def _taken_over(
    connection: Any, path: Path, tables: Mapping[str, tuple[Columns, Rows]]
) -> dict[str, set[str]]:
    if _attached(connection, path) is None:
        return {}
    found = connection.execute("SELECT of_table, doc_id, version FROM snapshot.row_versions").fetchall()
    before = {(of_table, doc_id): version for of_table, doc_id, version in found}
    taken_over = {}
    for name, (_, rows) in tables.items():
        if isinstance(rows, DocumentRows):
            same = {
                doc_id for doc_id, version in rows.versions.items() if before.get((name, doc_id)) == version
            }
            copy = f"CREATE TABLE {name} AS SELECT * FROM snapshot.{name} WHERE doc_id IN (SELECT unnest(?))"  # noqa: S608
            connection.execute(copy, [sorted(same)])
            taken_over[name] = same
    connection.execute("DETACH snapshot")
    return taken_over


def _missing(rows: Rows, taken_over: set[str]) -> Iterable[Row]:
    return rows.rows(rows.versions.keys() - taken_over) if isinstance(rows, DocumentRows) else rows


def _row_versions(tables: Mapping[str, tuple[Columns, Rows]]) -> Iterator[Row]:
    for name, (_, rows) in tables.items():
        if isinstance(rows, DocumentRows):
            for doc_id, version in rows.versions.items():
                yield {"of_table": name, "doc_id": doc_id, "version": version}


def _write_table(connection: Any, folder: Path, name: str, columns: Columns, rows: Iterable[Row]) -> int:
    """Add rows to a table, which is made if need be; returns how many it has then."""
    # Through a file of JSON lines: DuckDB reads it in bulk, where an INSERT per row costs about a millisecond.
    path = folder / f"{name}.jsonl"
    has_rows = False
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            has_rows = True
    definition = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({definition})")
    if has_rows:
        types = "{" + ", ".join(f"{column}: '{kind}'" for column, kind in columns.items()) + "}"
        read = (
            f"read_json(?, format = 'newline_delimited', columns = {types}, maximum_object_size = 67108864)"
        )
        connection.execute(f"INSERT INTO {name} SELECT * FROM {read}", [str(path)])  # noqa: S608
    return int(connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0])  # noqa: S608
