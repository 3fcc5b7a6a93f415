"""Rows and parts of parquet files: plain Python whatever the path is called, and faults that name the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_pipeline.errors import (
    DataFileDamaged,
    DataFileUnavailable,
    StorageError,
    StoreCorrupt,
    StoreUnavailable,
)
from prime_pipeline.storage.parquet import parquet_parts, parquet_records
from prime_pipeline_tests.tables import write_parquet

NESTED = {"id": "VARCHAR", "parts": "STRUCT(name VARCHAR, lines VARCHAR[][], ok BOOLEAN)[]"}


def test_rows_are_plain_python_at_any_depth_and_in_order(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "parts": [{"name": None, "lines": [["x", "y"], []], "ok": True}]},
        {"id": "b", "parts": []},
        {"id": None, "parts": None},
    ]
    assert list(parquet_records(write_parquet(tmp_path / "t.parquet", NESTED, rows))) == rows


def test_more_rows_than_are_fetched_at_once(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "t.parquet", {"n": "BIGINT"}, [{"n": n} for n in range(1000)])
    assert [row["n"] for row in parquet_records(path)] == list(range(1000))


def test_a_table_without_rows(tmp_path: Path) -> None:
    assert list(parquet_records(write_parquet(tmp_path / "t.parquet", {"n": "BIGINT"}, []))) == []


@pytest.mark.parametrize(
    "name", ["year=2024/t.parquet", "[a]/t*.parquet", "it's/?.parquet", "$1 {x}/é.parquet"]
)
def test_a_path_is_no_pattern_and_no_column(tmp_path: Path, name: str) -> None:
    path = write_parquet(tmp_path / name, {"n": "BIGINT"}, [{"n": 1}])
    write_parquet(path.with_name("tx.parquet"), {"n": "BIGINT"}, [{"n": 2}])
    assert list(parquet_records(path)) == [{"n": 1}]


@settings(max_examples=20, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), max_size=5))
def test_texts_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("texts") / "t.parquet"
    write_parquet(path, {"texts": "VARCHAR[]"}, [{"texts": texts}])
    assert list(parquet_records(path)) == [{"texts": texts}]


def test_a_missing_file_or_a_folder_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"cannot read .*gone\.parquet \(No such file"):
        list(parquet_records(tmp_path / "gone.parquet"))
    with pytest.raises(DataFileUnavailable, match="Is a directory") as raised:
        list(parquet_records(tmp_path))
    assert raised.value.reason == "Is a directory"


@pytest.mark.parametrize("keep", [slice(0), slice(10), slice(-8), slice(8, None)])
def test_a_damaged_file_is_named(tmp_path: Path, keep: slice) -> None:
    path = write_parquet(tmp_path / "t.parquet", {"n": "BIGINT"}, [{"n": 1}])
    path.write_bytes(path.read_bytes()[keep])
    with pytest.raises(StoreCorrupt, match=r"t\.parquet is damaged .*: download or copy it again") as raised:
        list(parquet_records(path))
    assert "\n" not in str(raised.value)


@settings(max_examples=40, deadline=None, derandomize=True)  # another library reads the bytes
@given(data=st.data())
def test_wrong_bytes_give_rows_or_one_of_our_errors(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    sound = tmp_path_factory.getbasetemp() / "sound.parquet"
    if not sound.exists():
        write_parquet(sound, {"n": "BIGINT", "t": "VARCHAR"}, [{"n": n, "t": "x" * n} for n in range(9)])
    found, path = bytearray(sound.read_bytes()), sound.with_name("wrong.parquet")
    for at in data.draw(st.lists(st.integers(0, len(found) - 1), min_size=1, max_size=4)):
        found[at] = data.draw(st.integers(0, 255))
    path.write_bytes(found)
    try:
        rows = list(parquet_records(path))
    except DataFileDamaged:
        return
    assert len(rows) <= 9


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).touch()
    return folder


@pytest.mark.parametrize(
    "names",
    [
        ["t-00000-of-00001.parquet"],
        ["t-00000-of-00002-0123456789abcdef.parquet", "t-00001-of-00002-fedcba9876543210.parquet"],
        ["t-2.parquet", "t-10.parquet"],
    ],
)
def test_parts_are_in_the_order_of_their_numbers(tmp_path: Path, names: list[str]) -> None:
    touched(tmp_path, "other-00000-of-00001.parquet", "t.parquet", "t-x.parquet", "at-0.parquet", "t-0.csv")
    touched(tmp_path, *reversed(names))
    assert [path.name for path in parquet_parts(tmp_path, "t")] == names


def test_no_parts_are_no_fault(tmp_path: Path) -> None:
    assert parquet_parts(touched(tmp_path, "readme.md"), "t") == []


@pytest.mark.parametrize(
    "names",
    [
        ["t-00001-of-00002.parquet"],
        ["t-00000-of-00002.parquet"],
        ["t-00000-of-00001.parquet", "t-00000-of-00002.parquet", "t-00001-of-00002.parquet"],
        ["t-00000-of-00001.parquet", "t-00000-of-00001-ab.parquet"],
        ["t-00000-of-00001.parquet", "t-7.parquet"],
        ["t-0-of-99999999999999999999.parquet"],
    ],
)
def test_missing_and_doubled_parts_are_told(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(DataFileUnavailable, match=rf"t-\*\.parquet .*missing or there twice.*{names[0]}"):
        parquet_parts(touched(tmp_path, *names), "t")


def test_a_folder_that_is_not_there_has_no_parts(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot read .*gone \(No such file"):
        parquet_parts(tmp_path / "gone", "t")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="Not a directory"):
        parquet_parts(tmp_path / "pipe", "t")
