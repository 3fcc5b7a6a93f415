"""Queries with judgements, read from what users have: BEIR folders, QASPER files, lines of JSON, or the environment.

Only queries are read here; the documents of the same data sets are the corpus readers' business, and document ids are
theirs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from prime_pipeline.corpus.source import INSTALLED
from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.measures import MAX_GRADE, id_fault
from prime_pipeline.records import Qrels, Query

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries and what is relevant to them.

    Attributes:
        name: For reports: the folder's or file's name without suffix, or ``installed``.
        queries: In the order of the source; every one is judged.
        qrels: Document grades by query id; the keys are exactly the ids of ``queries``.
        known_item: Whether each query was written for one known document, which alone counts as relevant. Measured
            on the whole corpus, such queries are a stress test: other documents may answer them as well.
    """

    name: str
    queries: tuple[Query, ...]
    qrels: Qrels
    known_item: bool

    @property
    def relevant_documents(self) -> frozenset[str]:
        """Ids of all documents that are relevant to some query."""
        return frozenset(
            doc_id for judged in self.qrels.values() for doc_id, grade in judged.items() if grade > 0
        )


class _RecordError(Exception):
    """What is wrong with one record; the reader adds where."""


def load_query_set(location: str) -> QuerySet:
    """Read queries and judgements.

    Args:
        location: One of

            * a BEIR folder: ``queries.jsonl`` and ``qrels/test.tsv``; queries without judgements are left out;
            * a QASPER file (``.json``): every question, its paper being the one relevant document;
            * a ``.jsonl`` file of ``{"query": "...", "relevant": "<document id>"}``, or a list of ids; the query id is
              ``<file>:<line>`` unless the line has a ``query_id``;
            * ``installed:``: the one-line summaries of the installed distributions, for their documentation.

    Raises:
        EvaluationError: Nothing is there, or a record cannot be used; names file and line.
    """
    if location == INSTALLED:
        return _installed()
    path = Path(location)
    if path.is_dir():
        return _beir(path)
    readers: Mapping[str, Callable[[Path], QuerySet]] = {".json": _qasper, ".jsonl": _json_lines}
    if path.suffix not in readers or not path.is_file():
        raise EvaluationError(
            f"no query set at {location!r}: give a BEIR folder (queries.jsonl and qrels/test.tsv), a QASPER .json file, "
            f"a .jsonl file of queries, or {INSTALLED!r}"
        )
    return readers[path.suffix](path)


def _installed() -> QuerySet:
    from prime_pipeline.corpus.installed import summaries

    pairs = [(Query(f"summary:{doc_id}", summary), {doc_id: 1}) for doc_id, summary in summaries()]
    return _query_set("installed", iter(pairs), source=INSTALLED, known_item=True)


def _beir(folder: Path) -> QuerySet:
    qrels: dict[str, dict[str, int]] = {}
    judgements = folder / "qrels" / "test.tsv"
    for query_id, doc_id, grade in _parsed(judgements, _beir_judgement):
        if qrels.setdefault(query_id, {}).setdefault(doc_id, grade) != grade:
            raise EvaluationError(f"{judgements}: query {query_id!r} has two grades for {doc_id!r}: keep one")
    queries = list(_parsed(folder / "queries.jsonl", _beir_query))
    if lost := sorted(qrels.keys() - {query.query_id for query in queries}):
        raise EvaluationError(
            f"{judgements}: query {lost[0]!r} is judged but missing from queries.jsonl: add it there"
        )
    judged = ((query, qrels[query.query_id]) for query in queries if query.query_id in qrels)
    return _query_set(folder.resolve().name, judged, source=str(folder), known_item=False)


def _beir_judgement(line: str, line_number: int) -> tuple[str, str, int] | None:
    fields = line.split("\t")
    if line_number == 1 and fields[-1] == "score":
        return None
    try:
        query_id, doc_id, number = fields
        grade = int(number)
    except ValueError:
        raise _RecordError(
            f"expected query id, document id and a whole-number grade between tabs, found {line!r}"
        ) from None
    if abs(grade) > MAX_GRADE:
        raise _RecordError(f"grade {grade} is out of range: grades go up to {MAX_GRADE:,}")
    return _id(query_id), _id(doc_id), grade


def _beir_query(line: str, _line_number: int) -> Query:
    record = _json_object(line)
    return Query(_id(_text(record, "_id")), _text(record, "text"))


def _json_lines(path: Path) -> QuerySet:
    def parse(line: str, line_number: int) -> tuple[Query, dict[str, int]]:
        record = _json_object(line)
        query_id = _text(record, "query_id") if "query_id" in record else f"{path.stem}:{line_number}"
        relevant = record.get("relevant")
        doc_ids = [relevant] if isinstance(relevant, str) else relevant
        if not isinstance(doc_ids, list) or not doc_ids or not all(isinstance(d, str) and d for d in doc_ids):
            raise _RecordError('"relevant" must be a document id or a list of them')
        return Query(_id(query_id), _text(record, "query")), dict.fromkeys(map(_id, doc_ids), 1)

    return _query_set(path.stem, _parsed(path, parse), source=str(path), known_item=False)


def _qasper(path: Path) -> QuerySet:
    try:
        papers = _json_object(_read(path))
        pairs = [pair for paper_id, paper in papers.items() for pair in _qasper_questions(paper_id, paper)]
    except _RecordError as fault:
        raise EvaluationError(f"{path}: {fault}") from None
    return _query_set(path.stem, iter(pairs), source=str(path), known_item=True)


def _qasper_questions(paper_id: str, paper: Any) -> Iterator[tuple[Query, dict[str, int]]]:
    """The questions on a paper, from the official layout (a list of records) or the columns of the Hugging Face copy."""
    questions = paper.get("qas") if isinstance(paper, dict) else None
    if isinstance(questions, dict):
        questions = [
            dict(zip(questions, row, strict=False)) for row in zip(*questions.values(), strict=False)
        ]
    if not isinstance(questions, list) or not all(isinstance(question, dict) for question in questions):
        raise _RecordError(f'paper {paper_id!r} has no list of questions under "qas": is this a QASPER file?')
    for question in questions:
        try:
            query = Query(_id(_text(question, "question_id")), _text(question, "question"))
            yield query, {_id(paper_id): 1}
        except _RecordError as fault:
            raise _RecordError(f"paper {paper_id!r}: {fault}") from None


def _query_set(
    name: str, pairs: Iterator[tuple[Query, dict[str, int]]], *, source: str, known_item: bool
) -> QuerySet:
    """Put the pairs together; an id may come once, and one query is the least."""
    queries: list[Query] = []
    qrels: dict[str, dict[str, int]] = {}
    for query, grades in pairs:
        if query.query_id in qrels:
            raise EvaluationError(f"{source}: query id {query.query_id!r} occurs twice: rename one of them")
        queries.append(query)
        qrels[query.query_id] = grades
    if not queries:
        raise EvaluationError(f"{source} holds no judged query: nothing could be measured with it")
    return QuerySet(name, tuple(queries), qrels, known_item)


def _parsed(path: Path, parse: Callable[[str, int], _T | None]) -> Iterator[_T]:
    """What ``parse`` makes of each line that is not blank; a fault gets the file and the line."""
    for line_number, line in enumerate(_read(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            parsed = parse(line.rstrip("\r"), line_number)
        except _RecordError as fault:
            raise EvaluationError(f"{path}:{line_number}: {fault}") from None
        if parsed is not None:
            yield parsed


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise EvaluationError(f"cannot read {path}: {error.strerror}; a query set needs this file") from error
    except UnicodeDecodeError as error:
        raise EvaluationError(
            f"{path}: byte {error.start} is not UTF-8: convert the file to UTF-8"
        ) from error


def _json_object(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _RecordError(f"not valid JSON ({error})") from None
    if not isinstance(record, dict):
        raise _RecordError(f"expected a JSON object, found {type(record).__name__}")
    return record


def _text(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _RecordError(f'"{key}" must be a text that is not blank')
    return value


def _id(identifier: str) -> str:
    if fault := id_fault(identifier):
        raise _RecordError(f"id {identifier!r} {fault}: repair the id")
    return identifier
