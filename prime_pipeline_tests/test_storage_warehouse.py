"""The published snapshot, read as a user would read it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from prime_pipeline.storage.warehouse import Columns, DocumentRows, publish_warehouse, warehouse_fingerprint

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


PAGES: Columns = {"doc_id": "VARCHAR", "page": "INTEGER", "text": "VARCHAR"}


def publish_pages(path: Path, texts: Mapping[str, str]) -> tuple[list[str], int]:
    """Publish a table of two rows per document; returns the documents whose rows were asked for, and the rows it has."""
    asked: list[str] = []

    def rows(doc_ids: Collection[str]) -> Iterable[Mapping[str, Any]]:
        asked.extend(sorted(doc_ids))
        return [{"doc_id": i, "page": page, "text": texts[i]} for i in doc_ids for page in (1, 2)]

    counts = publish_warehouse(path, {"pages": (PAGES, DocumentRows(texts, rows)), "other": (PAGES, [])}, "f")
    return asked, counts["pages"]


def pages_of(path: Path) -> list[tuple[str, int, str]]:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS snapshot (READ_ONLY)")
        found = connection.execute("SELECT doc_id, page, text FROM snapshot.pages ORDER BY ALL").fetchall()
        return [(doc_id, page, text) for doc_id, page, text in found]


def test_rows_of_unchanged_documents_are_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    assert publish_pages(path, {"a": "one", "b": "two", "c": "three"}) == (["a", "b", "c"], 6)
    assert publish_pages(path, {"a": "one", "b": "new", "d": "four"}) == (["b", "d"], 6)
    assert pages_of(path) == [
        (i, n, t) for i, t in (("a", "one"), ("b", "new"), ("d", "four")) for n in (1, 2)
    ]
    assert publish_pages(path, {"a": "one", "b": "new", "d": "four"}) == ([], 6)
    assert len(pages_of(path)) == 6
    assert publish_pages(path, {}) == ([], 0)
    assert publish_pages(path, {"a": "one"}) == (["a"], 2)


def test_nothing_is_taken_over_from_another_table_or_a_damaged_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    publish(path, [row("x")])
    assert publish_pages(path, {"a": "one"}) == (["a"], 2)
    path.write_bytes(path.read_bytes()[:12_288])
    assert publish_pages(path, {"a": "one"}) == (["a"], 2)
    assert pages_of(path) == [("a", 1, "one"), ("a", 2, "one")]
