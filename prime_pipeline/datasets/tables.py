"""A user's queries in a CSV or TSV file: a header, then a line for each relevant document or section of a query."""

from __future__ import annotations

import csv
import io
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from prime_pipeline.datasets.reading import (
    JudgedQuery,
    RecordError,
    file_text,
    grade_of,
    identifier,
    relevant_place,
    text_field,
)
from prime_pipeline.errors import EvaluationError
from prime_pipeline.records import Query

TABLE_SUFFIXES: Final[Mapping[str, str]] = {".csv": ",", ".tsv": "\t"}
"""What stands between two fields, by suffix of the file."""

_NEEDED: Final = ("query", "relevant")
_OPTIONAL: Final = ("query_id", "type", "grade")


@dataclass(slots=True)
class _Draft:
    """A query, and what the lines so far say of it."""

    query: Query
    type: str = ""
    grades: dict[tuple[str, str], int] = field(default_factory=dict)


def table_queries(path: Path, doc_ids: Container[str] = frozenset()) -> Iterator[JudgedQuery]:
    """The queries of a file, in the order of their first lines.

    Lines with one ``query_id`` are one query; so are, where they have none, lines with one ``query``, whose id is then
    ``<file>:<first line>``. A document has the highest grade of its lines; a line without ``grade`` has 1. Sections are
    those of lines with a grade above 0.

    Args:
        path: Its suffix is one of ``TABLE_SUFFIXES``.
        doc_ids: See :func:`~prime_pipeline.datasets.reading.relevant_place`.

    Raises:
        EvaluationError: The file cannot be read, or a line cannot be used; names file and line.
    """
    drafts: dict[tuple[str, str], _Draft] = {}
    for line_number, record in _records(path):
        try:
            _take(drafts, record, f"{path.stem}:{line_number}", doc_ids)
        except RecordError as fault:
            raise EvaluationError(f"{path}:{line_number}: {fault}") from None
    for draft in drafts.values():
        yield _judged(draft)


def _take(
    drafts: dict[tuple[str, str], _Draft], record: Mapping[str, str], place: str, doc_ids: Container[str]
) -> None:
    text, query_id = text_field(record, "query"), record.get("query_id", "").strip()
    key = ("id", query_id) if query_id else ("text", text)
    draft = drafts.setdefault(key, _Draft(Query(identifier(query_id or place), text)))
    if draft.query.text != text:
        raise RecordError(f"query_id {query_id!r} stands for two queries, {draft.query.text!r} and {text!r}")
    kind = record.get("type", "").strip()
    if kind and draft.type not in {"", kind}:
        raise RecordError(f"the query has two types, {draft.type!r} and {kind!r}: keep one")
    draft.type = kind or draft.type
    relevant = text_field(record, "relevant").strip()
    grade = grade_of(record.get("grade", "").strip() or "1")
    if draft.grades.setdefault(relevant_place(relevant, doc_ids), grade) != grade:
        raise RecordError(f"the query has two grades for {relevant!r}: keep one")


def _judged(draft: _Draft) -> JudgedQuery:
    grades: dict[str, int] = {}
    for (doc_id, _), grade in draft.grades.items():
        grades[doc_id] = max(grade, grades.get(doc_id, grade))
    sections = tuple(place for place, grade in draft.grades.items() if place[1] and grade > 0)
    return JudgedQuery(draft.query, grades, draft.type, sections=sections)


def _records(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Number of the first line and fields by column, of each record that is not blank."""
    rows = _rows(path)
    header_line, header = next(rows, (1, []))
    names = [name.strip().lower() for name in header]
    if fault := _header_fault(names):
        raise EvaluationError(f"{path}:{header_line}: {fault}")
    for line_number, row in rows:
        if len(row) != len(names):
            raise EvaluationError(
                f"{path}:{line_number}: expected {len(names)} fields, found {len(row)}: quote a field that holds what stands "
                "between two fields"
            )
        yield line_number, dict(zip(names, row, strict=True))


def _header_fault(names: list[str]) -> str:
    known = (*_NEEDED, *_OPTIONAL)
    shown = f"expected a header of query, relevant and, if you like, {', '.join(_OPTIONAL)}"
    if missing := [name for name in _NEEDED if name not in names]:
        return f"{shown}; there is no {missing[0]!r}"
    if unknown := [name for name in names if name not in known]:
        return f"{shown}; found {unknown[0]!r}"
    if len(set(names)) < len(names):
        return f"{shown}, each of them once"
    return ""


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number of the first line and fields of each record with anything in it; quoted fields may hold line ends."""
    reader = csv.reader(
        io.StringIO(file_text(path)), delimiter=TABLE_SUFFIXES[path.suffix.lower()], strict=True
    )
    line_number = 1
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield line_number, row
            line_number = reader.line_num + 1
    except csv.Error as error:
        raise EvaluationError(f"{path}:{line_number}: {error}: check its quotes") from error
