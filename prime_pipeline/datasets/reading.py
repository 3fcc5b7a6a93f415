"""Files of queries, read and checked: text, lines, rows, fields and ids, with a fault that says where it is.

What the fields mean is for the readers of the single layouts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from prime_pipeline.errors import DataFileDamaged, DataFileUnavailable, EvaluationError
from prime_pipeline.evaluation.answer_f1 import AnswerReference
from prime_pipeline.evaluation.measures import MAX_GRADE, id_fault
from prime_pipeline.records import Query
from prime_pipeline.storage.parquet import parquet_records

_T = TypeVar("_T")
_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,40}", re.ASCII)


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query as a reader finds it.

    Attributes:
        query: Id and text.
        grades: Document id to grade.
        type: What kind of question it is; empty if unknown.
        references: Its right answers; empty if unknown.
        excluded: Documents that leave its ranking.
        sections: Relevant sections, as document id and section as written; their documents stand in ``grades``, too.
    """

    query: Query
    grades: Mapping[str, int]
    type: str = ""
    references: Sequence[AnswerReference] = ()
    excluded: frozenset[str] = frozenset()
    sections: Sequence[tuple[str, str]] = ()


class RecordError(Exception):
    """What is wrong with one record; the reader adds where."""


def parsed_lines(path: Path, parse: Callable[[str, int], _T | None]) -> Iterator[_T]:
    """What ``parse`` makes of each line that is not blank, given its number; None is left out.

    Raises:
        EvaluationError: The file cannot be read, or ``parse`` raises RecordError; names file and line.
    """
    for line_number, line in enumerate(file_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            parsed = parse(line.rstrip("\r"), line_number)
        except RecordError as fault:
            raise EvaluationError(f"{path}:{line_number}: {fault}") from None
        if parsed is not None:
            yield parsed


def parsed_rows(path: Path, parse: Callable[[Mapping[str, Any]], _T]) -> Iterator[_T]:
    """What ``parse`` makes of each row of a parquet file.

    Raises:
        EvaluationError: The file cannot be read, or ``parse`` raises RecordError; names file and row.
    """
    try:
        for row, record in enumerate(parquet_records(path), start=1):
            try:
                parsed = parse(record)
            except RecordError as fault:
                raise EvaluationError(f"{path}:{row}: {fault}") from None
            yield parsed
    except (DataFileDamaged, DataFileUnavailable) as error:
        raise EvaluationError(f"{error}; a query set needs this file") from error


def file_text(path: Path) -> str:
    """The text of a UTF-8 file, without a byte order mark.

    Raises:
        EvaluationError: It cannot be read, or is in another encoding.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise EvaluationError(f"cannot read {path}: {error.strerror}; a query set needs this file") from error
    except UnicodeDecodeError as error:
        raise EvaluationError(
            f"{path}: byte {error.start} is not UTF-8: convert the file to UTF-8"
        ) from error


def json_value(text: str) -> Any:
    """The value of a JSON text; RecordError if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not valid JSON ({error})") from None


def json_object(text: str) -> dict[str, Any]:
    """The object in a JSON text; RecordError if it is anything else."""
    record = json_value(text)
    if not isinstance(record, dict):
        raise RecordError(f"expected a JSON object, found {type(record).__name__}")
    return record


def text_field(record: Mapping[str, Any], key: str) -> str:
    """A text of a record; RecordError if it is missing, blank or of another type."""
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        raise RecordError(f'"{key}" must be a text that is not blank')
    return value


def identifier(text: str) -> str:
    """An id that can be evaluated; RecordError for another."""
    if fault := id_fault(text):
        raise RecordError(f"id {text!r} {fault}: repair the id")
    return text


def grade_of(text: str) -> int:
    """The whole number that a grade is written as; RecordError for another text, or beyond ``MAX_GRADE``."""
    if not _WHOLE_NUMBER.fullmatch(text.strip()):
        raise RecordError(f"expected a whole-number grade, found {text[:40]!r}")
    grade = int(text)
    if abs(grade) > MAX_GRADE:
        raise RecordError(f"grade {grade} is out of range: grades go up to {MAX_GRADE:,}")
    return grade


def relevant_place(text: str, doc_ids: Container[str]) -> tuple[str, str]:
    """Document id and section of ``path`` or ``path#section``; the section is empty where the document as a whole is meant.

    A text that is one of ``doc_ids`` is a document. Else the last ``#`` with something on both sides of it parts the two.
    """
    doc_id, _, section = text.rpartition("#")
    is_whole = text in doc_ids or not doc_id.strip() or not section.strip()
    return (identifier(text), "") if is_whole else (identifier(doc_id), section)
