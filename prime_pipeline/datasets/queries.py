"""Queries with judgements, read from what users have: data sets, lines of JSON, tables, or the environment.

Only queries are read here; the documents of the same data sets are the corpus readers' business, and document ids are
theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from prime_pipeline.corpus.bright import BRIGHT, bright_location
from prime_pipeline.corpus.qasper import PARQUET, qasper_parts
from prime_pipeline.corpus.source import INSTALLED
from prime_pipeline.datasets.bright import EXAMPLES, bright_query
from prime_pipeline.datasets.qasper import paper_queries, qasper_queries
from prime_pipeline.datasets.reading import (
    JudgedQuery,
    RecordError,
    file_text,
    grade_of,
    identifier,
    json_object,
    parsed_lines,
    parsed_rows,
    relevant_place,
    text_field,
)
from prime_pipeline.datasets.tables import TABLE_SUFFIXES, table_queries
from prime_pipeline.errors import DataFileUnavailable, EvaluationError
from prime_pipeline.evaluation.answer_f1 import AnswerReference
from prime_pipeline.records import Qrels, Query
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.parquet import parquet_parts

_BEIR_SPLITS: Final = ("test", "dev")


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries and what is relevant to them.

    Attributes:
        name: For reports: the folder's or file's name without suffix, ``bright/<task>``, or ``installed``. That of a BEIR
            folder bears the split behind it if it is not the test split: ``msmarco/dev``.
        queries: In the order of the source; every one is judged.
        qrels: Document grades by query id; the keys are exactly the ids of ``queries``.
        known_item: Whether each query was written for one known document, which alone counts as relevant. Measured
            on the whole corpus, such queries are a stress test: other documents may answer them as well.
        types: Kind of question by query id, for breakdowns; only queries whose kind is known. In QASPER the
            :data:`AnswerType` that most annotators chose, the first annotator's where they are at odds.
        references: Right answers by query id, one for each annotator in the order of the source; only queries that
            have any.
        excluded: Documents by query id that leave its ranking before the cut, being no fair results; only queries that
            exclude any.
        section_references: Relevant sections by query id, as (document id, section as written: its ordinal number or
            its heading); only queries that name any. See :func:`~prime_pipeline.datasets.sections.section_judgements`.
    """

    name: str
    queries: tuple[Query, ...]
    qrels: Qrels
    known_item: bool
    types: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, tuple[AnswerReference, ...]] = field(default_factory=dict)
    excluded: Mapping[str, frozenset[str]] = field(default_factory=dict)
    section_references: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    @property
    def relevant_documents(self) -> frozenset[str]:
        """Ids of all documents that are relevant to some query."""
        return frozenset(
            doc_id for judged in self.qrels.values() for doc_id, grade in judged.items() if grade > 0
        )

    @property
    def fingerprint(self) -> str:
        """Hash of all that measures depend on: name, queries, judgements, and what leaves the rankings."""
        return fingerprint(
            {
                "query_set": [self.name, self.known_item],
                "queries": [[query.query_id, query.text] for query in self.queries],
                "qrels": {query_id: dict(judged) for query_id, judged in self.qrels.items()},
                "excluded": {query_id: sorted(doc_ids) for query_id, doc_ids in self.excluded.items()},
            }
        )

    @property
    def clusters(self) -> Mapping[str, str] | None:
        """Query id to the one document that it was asked about, where queries nest in documents; else None.

        Questions about one document are not independent, so that intervals resample documents instead of queries.
        """
        if not self.known_item or any(len(judged) != 1 for judged in self.qrels.values()):
            return None
        return {query_id: next(iter(judged)) for query_id, judged in self.qrels.items()}

    @property
    def gold_evidence(self) -> Mapping[str, tuple[str, ...]]:
        """The evidence of all annotators by query id, each paragraph once, in order; only queries that have any."""
        found = {
            query_id: tuple(dict.fromkeys(span for reference in references for span in reference.evidence))
            for query_id, references in self.references.items()
        }
        return {query_id: spans for query_id, spans in found.items() if spans}


def load_query_set(location: str, doc_ids: Container[str] = frozenset()) -> QuerySet:
    """Read queries and judgements.

    Args:
        location: One of

            * a BEIR folder: ``queries.jsonl`` and ``qrels/test.tsv``, else ``qrels/dev.tsv``, else the one file of another
              split that is there; queries without judgements are left out;
            * a QASPER file (``.json``, ``.parquet``) or a folder with ``test-*.parquet``: every question with its reference
              answers, its paper being the one relevant document;
            * ``bright:<folder>#<task>``, with ``/long`` behind it for whole pages: the examples of a task of BRIGHT;
            * a ``.jsonl`` file of ``{"query": "...", "relevant": "<document id>"}``, or a list of ids; the query id is
              ``<file>:<line>`` unless the line has a ``query_id``, and a ``type`` names its kind of question;
            * a ``.csv`` or ``.tsv`` file with the header ``query,relevant`` and, if wanted, ``query_id``, ``type``, ``grade``;
              several relevant documents are several lines;
            * ``installed:``: the one-line summaries of the installed distributions, for their documentation.

            In the ``.jsonl``, ``.csv`` and ``.tsv`` files a relevant section is ``<document id>#<its number or heading>``.
        doc_ids: Those of the corpus, if known: an id that holds a ``#`` itself is then not taken for a section.

    Raises:
        EvaluationError: Nothing is there, or a record cannot be used; names file and line.
    """
    if location == INSTALLED:
        return _installed()
    if location.startswith(BRIGHT):
        return _bright(location)
    path = Path(location)
    if path.is_dir():
        papers = [] if (path / "queries.jsonl").is_file() else _parts(path, qasper_parts)
        return _qasper_tables(papers, path.resolve().name, location) if papers else _beir(path)
    readers: Mapping[str, Callable[[Path], QuerySet]] = {
        ".json": _qasper,
        PARQUET: lambda path: _qasper_tables([path], path.stem, location),
        ".jsonl": lambda path: _json_lines(path, doc_ids),
        **dict.fromkeys(TABLE_SUFFIXES, lambda path: _table(path, doc_ids)),
    }
    if path.suffix.lower() not in readers or not path.is_file():
        raise EvaluationError(
            f"no query set at {location!r}: give a BEIR folder (queries.jsonl and qrels/test.tsv or dev.tsv), a QASPER .json or "
            f".parquet file, {BRIGHT}<folder>#<task>, a .jsonl, .csv or .tsv file of queries, or {INSTALLED!r}"
        )
    return readers[path.suffix.lower()](path)


def _installed() -> QuerySet:
    from prime_pipeline.corpus.installed import summaries

    found = (JudgedQuery(Query(f"summary:{doc_id}", summary), {doc_id: 1}) for doc_id, summary in summaries())
    return _query_set("installed", found, source=INSTALLED, known_item=True)


def _beir(folder: Path) -> QuerySet:
    qrels: dict[str, dict[str, int]] = {}
    judgements = _beir_judgements(folder / "qrels")
    for query_id, doc_id, grade in parsed_lines(judgements, _beir_judgement):
        if qrels.setdefault(query_id, {}).setdefault(doc_id, grade) != grade:
            raise EvaluationError(f"{judgements}: query {query_id!r} has two grades for {doc_id!r}: keep one")
    queries = list(parsed_lines(folder / "queries.jsonl", _beir_query))
    if lost := sorted(qrels.keys() - {query.query_id for query in queries}):
        raise EvaluationError(
            f"{judgements}: query {lost[0]!r} is judged but missing from queries.jsonl: add it there"
        )
    judged = (JudgedQuery(query, qrels[query.query_id]) for query in queries if query.query_id in qrels)
    split = "" if judgements.stem == _BEIR_SPLITS[0] else f"/{judgements.stem}"
    return _query_set(f"{folder.resolve().name}{split}", judged, source=str(folder), known_item=False)


def _beir_judgements(folder: Path) -> Path:
    """The judgements of the split that is measured: test, else dev, else the only one."""
    try:
        found = sorted(p.stem for p in folder.iterdir() if p.suffix == ".tsv" and not p.name.startswith("."))
    except OSError:  # told by whoever reads the file
        found = []
    split = next((split for split in _BEIR_SPLITS if split in found), None)
    if split is None and len(found) > 1:
        names = ", ".join(f"{name}.tsv" for name in found)
        raise EvaluationError(
            f"{folder} holds judgements of several splits ({names}), but neither test.tsv nor dev.tsv: keep the one to "
            "measure with there, and move the others elsewhere"
        )
    return folder / f"{split or next(iter(found), _BEIR_SPLITS[0])}.tsv"


def _beir_judgement(line: str, line_number: int) -> tuple[str, str, int] | None:
    fields = line.split("\t")
    if line_number == 1 and fields[-1] == "score":
        return None
    if len(fields) != 3:
        raise RecordError(
            f"expected query id, document id and a whole-number grade between tabs, found {line!r}"
        )
    query_id, doc_id, grade = fields
    return identifier(query_id), identifier(doc_id), grade_of(grade)


def _beir_query(line: str, _line_number: int) -> Query:
    record = json_object(line)
    return Query(identifier(text_field(record, "_id")), text_field(record, "text"))


def _json_lines(path: Path, doc_ids: Container[str]) -> QuerySet:
    def parse(line: str, line_number: int) -> JudgedQuery:
        record = json_object(line)
        query_id = text_field(record, "query_id") if "query_id" in record else f"{path.stem}:{line_number}"
        relevant = record.get("relevant")
        texts = [relevant] if isinstance(relevant, str) else relevant
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t for t in texts):
            raise RecordError('"relevant" must be a document id or a list of them')
        query = Query(identifier(query_id), text_field(record, "query"))
        kind = text_field(record, "type") if "type" in record else ""
        places = list(dict.fromkeys(relevant_place(text, doc_ids) for text in texts))
        grades = dict.fromkeys((doc_id for doc_id, _ in places), 1)
        return JudgedQuery(query, grades, kind, sections=tuple(place for place in places if place[1]))

    return _query_set(path.stem, parsed_lines(path, parse), source=str(path), known_item=False)


def _qasper(path: Path) -> QuerySet:
    try:
        found = qasper_queries(file_text(path))
    except RecordError as fault:
        raise EvaluationError(f"{path}: {fault}") from None
    return _query_set(path.stem, found, source=str(path), known_item=True)


def _qasper_tables(paths: Iterable[Path], name: str, source: str) -> QuerySet:
    found = (judged for path in paths for paper in parsed_rows(path, paper_queries) for judged in paper)
    return _query_set(name, found, source=source, known_item=True)


def _bright(location: str) -> QuerySet:
    try:
        found = bright_location(location)
    except ValueError as error:
        raise EvaluationError(f"no query set at {location!r}: {error}") from error
    folder = Path(found.folder) / EXAMPLES
    paths = _parts(folder, lambda folder: parquet_parts(folder, found.task))
    if not paths:
        raise EvaluationError(
            f"no query set at {location!r}: expected {folder / found.task}-00000-of-00001.parquet, or so"
        )
    rows = (query for path in paths for query in parsed_rows(path, lambda row: bright_query(row, found.form)))
    return _query_set(found.name, rows, source=location, known_item=False)


def _parts(folder: Path, parts: Callable[[Path], list[Path]]) -> list[Path]:
    try:
        return parts(folder)
    except DataFileUnavailable as error:
        raise EvaluationError(f"{error}; a query set needs it") from error


def _table(path: Path, doc_ids: Container[str]) -> QuerySet:
    return _query_set(path.stem, table_queries(path, doc_ids), source=str(path), known_item=False)


def _query_set(name: str, found: Iterable[JudgedQuery], *, source: str, known_item: bool) -> QuerySet:
    """Put the queries together; an id may come once, and one query is the least."""
    by_id: dict[str, JudgedQuery] = {}
    for judged in found:
        query_id = judged.query.query_id
        if query_id in by_id:
            raise EvaluationError(f"{source}: query id {query_id!r} occurs twice: rename one of them")
        by_id[query_id] = judged
    if not by_id:
        raise EvaluationError(f"{source} holds no judged query: nothing could be measured with it")
    return QuerySet(
        name,
        tuple(judged.query for judged in by_id.values()),
        {query_id: judged.grades for query_id, judged in by_id.items()},
        known_item,
        {query_id: judged.type for query_id, judged in by_id.items() if judged.type},
        {query_id: tuple(judged.references) for query_id, judged in by_id.items() if judged.references},
        {query_id: judged.excluded for query_id, judged in by_id.items() if judged.excluded},
        {query_id: tuple(judged.sections) for query_id, judged in by_id.items() if judged.sections},
    )
