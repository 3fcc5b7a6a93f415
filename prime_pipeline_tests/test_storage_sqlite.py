"""Shared databases under concurrency, and what errors are called."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from prime_pipeline.errors import IndexCorrupt, SchemaMismatch, StoreCorrupt, StoreUnavailable
from prime_pipeline.storage.sqlite import SharedDatabase, open_finished

SCHEMA = "CREATE TABLE IF NOT EXISTS numbers (n INTEGER);"


def add_one(path: Path) -> None:
    database = SharedDatabase(path, SCHEMA, 1)
    with database.writing() as connection:
        connection.execute("INSERT INTO numbers VALUES (1)")
    database.close()


def count(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return int(connection.execute("SELECT count(*) FROM numbers").fetchone()[0])


def test_threads_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.sqlite" for i in range(30)]
    start = threading.Barrier(8)

    def open_all(_: int) -> None:
        for path in paths:
            start.wait(timeout=30)
            add_one(path)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(open_all, range(8)))
    assert {count(path) for path in paths} == {8}


def open_each(paths: list[Path], start: Barrier) -> None:
    for path in paths:
        start.wait(timeout=30)
        add_one(path)


def test_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    # So often, because SQLite's refusal to wait shows in about one of fifty openings only.
    paths = [tmp_path / f"{i}.sqlite" for i in range(60)]
    context = multiprocessing.get_context("fork")
    start = context.Barrier(6)
    processes = [context.Process(target=open_each, args=(paths, start)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 6
    assert {count(path) for path in paths} == {6}


def test_an_exception_takes_the_transaction_back(tmp_path: Path) -> None:
    database = SharedDatabase(tmp_path / "a.sqlite", SCHEMA, 1)

    def fail_halfway() -> None:
        with database.writing() as connection:
            connection.execute("INSERT INTO numbers VALUES (1)")
            raise KeyError("halfway")

    with pytest.raises(KeyError, match="halfway"):
        fail_halfway()
    with database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM numbers").fetchone() == (0,)
    add_one(tmp_path / "a.sqlite")  # the write lock is free again
    database.close()


def test_another_schema_version_is_named(tmp_path: Path) -> None:
    SharedDatabase(tmp_path / "a.sqlite", SCHEMA, 2).close()
    with pytest.raises(SchemaMismatch, match=r"a\.sqlite has schema version 2, this program reads 1"):
        SharedDatabase(tmp_path / "a.sqlite", SCHEMA, 1)


def test_a_file_that_is_no_database_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_bytes(b"no database, but long enough to be read as one" * 50)
    with pytest.raises(StoreCorrupt, match="delete it and run `prime refresh`"):
        SharedDatabase(tmp_path / "a.sqlite", SCHEMA, 1)


def test_a_lost_table_is_damage(tmp_path: Path) -> None:
    database = SharedDatabase(tmp_path / "a.sqlite", SCHEMA, 1)
    with database.writing() as connection:
        connection.execute("DROP TABLE numbers")
    with pytest.raises(StoreCorrupt, match="no such table"), database.reading() as connection:
        connection.execute("SELECT * FROM numbers")
    database.close()


def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "folder.sqlite").mkdir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "folder.sqlite", tmp_path / "file" / "a.sqlite"):
        with pytest.raises(StoreUnavailable, match="make it writable"):
            SharedDatabase(path, SCHEMA, 1)


@pytest.mark.parametrize("name", ["a?mode=rw", "b#c", "100%41", "é \N{GRINNING FACE}"])
def test_a_finished_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    add_one(tmp_path / name)
    connection = open_finished(tmp_path / name, IndexCorrupt)
    assert connection.execute("SELECT * FROM numbers").fetchall() == [(1,)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("INSERT INTO numbers VALUES (2)")
    connection.close()


def test_a_finished_file_that_is_missing_is_an_error_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(IndexCorrupt, match="none"):
        open_finished(tmp_path / "none", IndexCorrupt)
    assert list(tmp_path.iterdir()) == []


def test_damage_that_no_message_can_quote_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    SharedDatabase(path, SCHEMA, 1).close()
    data = path.read_bytes().replace(
        b"tablenumbersnumbers", b"table\xdaumbersnumbers"
    )  # kind, name and table
    path.write_bytes(data.replace(b"CREATE TABLE numbers", b"CREATX TABLE numbers"))
    with pytest.raises(StoreCorrupt, match="is damaged"):
        SharedDatabase(path, SCHEMA, 1)
