"""Tables of data sets in parquet files: their rows as plain Python, and the parts that a table may be split into.

What the columns mean is for the readers of the single data sets.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from prime_pipeline.errors import DataFileDamaged, DataFileUnavailable

_N_ROWS_AT_ONCE: Final = 64
_PART: Final = r"-(?P<number>\d+)(?:-of-(?P<total>\d+))?(?:-[0-9a-f]+)?\.parquet"


def parquet_records(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file in order, by column name; lists and structs at any depth are lists and dicts.

    Rows are read a few at a time, so a file may be larger than memory. Faults are raised by the iteration, which may have
    given rows before.

    Raises:
        DataFileUnavailable: There is no such file, or it cannot be read. It is a :class:`~prime_pipeline.errors.StoreUnavailable`.
        DataFileDamaged: It is no parquet, or a part of it is lost. It is a :class:`~prime_pipeline.errors.StoreCorrupt`.
    """
    import duckdb

    try:
        path.open("rb").close()  # DuckDB calls a lack of permission, a folder and damage by the same name
    except OSError as error:
        raise DataFileUnavailable(path, error.strerror or str(error)) from error
    with duckdb.connect() as connection:
        try:
            # The path is a pattern to DuckDB; a folder named "a=b" would become a column.
            rows = "SELECT * FROM read_parquet(?, hive_partitioning = false)"
            result = connection.execute(rows, [glob.escape(str(path))])
            names = [name for name, *_ in result.description or []]
            while records := result.fetchmany(_N_ROWS_AT_ONCE):
                yield from (dict(zip(names, record, strict=True)) for record in records)
        except duckdb.OutOfMemoryException as error:
            raise DataFileUnavailable(path, _first_line(error)) from error
        except duckdb.Error as error:
            raise DataFileDamaged(path, _first_line(error)) from error


def parquet_parts(folder: Path, name: str) -> list[Path]:
    """The files of a table in a folder, in order: ``<name>-00000-of-00002.parquet`` and so on; none if there are none.

    Files that bear no total, such as ``<name>-0.parquet``, are taken as they are.

    Raises:
        DataFileUnavailable: The folder cannot be listed, or a part is missing or there twice.
    """
    try:
        matches = [(re.fullmatch(re.escape(name) + _PART, path.name), path) for path in folder.iterdir()]
    except OSError as error:
        raise DataFileUnavailable(folder, error.strerror or str(error)) from error
    found = sorted((int(match["number"]), match["total"] or "", path) for match, path in matches if match)
    totals = {int(total) if total else None for _, total, _ in found}
    is_whole = totals == {len(found)} and all(number == at for at, (number, _, _) in enumerate(found))
    if totals - {None} and not is_whole:
        names = ", ".join(path.name for _, _, path in found)
        raise DataFileUnavailable(folder / f"{name}-*.parquet", f"parts are missing or there twice: {names}")
    return [path for _, _, path in found]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
