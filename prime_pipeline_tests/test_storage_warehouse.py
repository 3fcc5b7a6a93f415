"""The published snapshot, read as a user would read it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from prime_pipeline.storage.warehouse import Columns, publish_warehouse, warehouse_fingerprint

COLUMNS: Columns = {"name": "VARCHAR", "n": "INTEGER", "path": "VARCHAR[]", "scores": "DOUBLE[]"}


def publish(path: Path, rows: Iterable[Mapping[str, Any]], fingerprint: str = "f") -> dict[str, int]:
    return publish_warehouse(path, {"things": (COLUMNS, rows), "nothing": (COLUMNS, [])}, fingerprint)


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:  # an instance of its own, as in another process
        connection.execute(f"ATTACH '{path}' AS snapshot (READ_ONLY)")
        return connection.execute("SELECT * FROM snapshot.things").fetchall()


def row(name: str | None, n: int | None = 1) -> dict[str, Any]:
    return {"name": name, "n": n, "path": ["a", "b"], "scores": [0.1, 2.0]}


def test_rows_and_nested_lists(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    others: dict[str, Any] = {"name": None, "n": None, "path": [], "scores": None}
    assert publish(path, [row("x"), others]) == {"things": 2, "nothing": 0}
    assert rows_of(path) == [("x", 1, ["a", "b"], [0.1, 2.0]), (None, None, [], None)]
    assert list(tmp_path.iterdir()) == [path]


def test_any_text(tmp_path: Path) -> None:
    names = [
        "it's",
        '"q"',
        "a\nb\r\nc",
        "tab\t,;",
        "Ünï \N{GRINNING FACE} 漢",
        "\\n",
        "",
        "NULL",
        "2024-01-01",
        "a\0b",
        "\u2028",
    ]
    publish(tmp_path / "w", [row(name) for name in [*names, "half \ud83d, \udc80"]])
    assert [name for name, *_ in rows_of(tmp_path / "w")] == [*names, "half ?, ?"]


def test_the_fingerprint_is_that_of_the_last_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "it's a w.duckdb"
    assert warehouse_fingerprint(path) is None
    publish(path, [row("x")], "one")
    assert warehouse_fingerprint(path) == "one"
    publish(path, [row("x")], "two")
    assert warehouse_fingerprint(path) == "two"
    path.write_bytes(b"damaged" * 1_000)
    assert warehouse_fingerprint(path) is None


def test_a_reader_of_the_old_snapshot_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    publish(path, [row("old")], "one")
    with duckdb.connect(str(path), read_only=True) as reader:
        publish(path, [row("new")], "two")
        assert reader.execute("SELECT name FROM things").fetchall() == [("old",)]
        assert warehouse_fingerprint(path) == "two"
        assert [name for name, *_ in rows_of(path)] == ["new"]
    program = f"import duckdb; print(duckdb.connect({str(path)!r}, read_only=True).sql('select name from things').fetchall())"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[('new',)]"


def test_a_failure_leaves_the_old_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    publish(path, [row("old")], "one")
    with pytest.raises(duckdb.Error):
        publish(path, [row("new") | {"n": "no number"}], "two")
    assert warehouse_fingerprint(path) == "one"
    assert list(tmp_path.iterdir()) == [path]
