"""Queries with judgements, read from what users have: BEIR folders, QASPER files, lines of JSON, or the environment.

Only queries are read here; the documents of the same data sets are the corpus readers' business, and document ids are
theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prime_pipeline.corpus.source import INSTALLED
from prime_pipeline.datasets.qasper import qasper_queries
from prime_pipeline.datasets.reading import (
    JudgedQuery,
    RecordError,
    file_text,
    identifier,
    json_object,
    parsed_lines,
    text_field,
)
from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.answer_f1 import AnswerReference
from prime_pipeline.evaluation.measures import MAX_GRADE
from prime_pipeline.records import Qrels, Query


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries and what is relevant to them.

    Attributes:
        name: For reports: the folder's or file's name without suffix, or ``installed``.
        queries: In the order of the source; every one is judged.
        qrels: Document grades by query id; the keys are exactly the ids of ``queries``.
        known_item: Whether each query was written for one known document, which alone counts as relevant. Measured
            on the whole corpus, such queries are a stress test: other documents may answer them as well.
        types: Kind of question by query id, for breakdowns; only queries whose kind is known. In QASPER the
            :data:`AnswerType` that most annotators chose, the first annotator's where they are at odds.
        references: Right answers by query id, one for each annotator in the order of the source; only queries that
            have any.
    """

    name: str
    queries: tuple[Query, ...]
    qrels: Qrels
    known_item: bool
    types: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, tuple[AnswerReference, ...]] = field(default_factory=dict)

    @property
    def relevant_documents(self) -> frozenset[str]:
        """Ids of all documents that are relevant to some query."""
        return frozenset(
            doc_id for judged in self.qrels.values() for doc_id, grade in judged.items() if grade > 0
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


def load_query_set(location: str) -> QuerySet:
    """Read queries and judgements.

    Args:
        location: One of

            * a BEIR folder: ``queries.jsonl`` and ``qrels/test.tsv``; queries without judgements are left out;
            * a QASPER file (``.json``): every question with its reference answers, its paper being the one relevant
              document;
            * a ``.jsonl`` file of ``{"query": "...", "relevant": "<document id>"}``, or a list of ids; the query id is
              ``<file>:<line>`` unless the line has a ``query_id``, and a ``type`` names its kind of question;
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

    found = (JudgedQuery(Query(f"summary:{doc_id}", summary), {doc_id: 1}) for doc_id, summary in summaries())
    return _query_set("installed", found, source=INSTALLED, known_item=True)


def _beir(folder: Path) -> QuerySet:
    qrels: dict[str, dict[str, int]] = {}
    judgements = folder / "qrels" / "test.tsv"
    for query_id, doc_id, grade in parsed_lines(judgements, _beir_judgement):
        if qrels.setdefault(query_id, {}).setdefault(doc_id, grade) != grade:
            raise EvaluationError(f"{judgements}: query {query_id!r} has two grades for {doc_id!r}: keep one")
    queries = list(parsed_lines(folder / "queries.jsonl", _beir_query))
    if lost := sorted(qrels.keys() - {query.query_id for query in queries}):
        raise EvaluationError(
            f"{judgements}: query {lost[0]!r} is judged but missing from queries.jsonl: add it there"
        )
    judged = (JudgedQuery(query, qrels[query.query_id]) for query in queries if query.query_id in qrels)
    return _query_set(folder.resolve().name, judged, source=str(folder), known_item=False)


def _beir_judgement(line: str, line_number: int) -> tuple[str, str, int] | None:
    fields = line.split("\t")
    if line_number == 1 and fields[-1] == "score":
        return None
    try:
        query_id, doc_id, number = fields
        grade = int(number)
    except ValueError:
        raise RecordError(
            f"expected query id, document id and a whole-number grade between tabs, found {line!r}"
        ) from None
    if abs(grade) > MAX_GRADE:
        raise RecordError(f"grade {grade} is out of range: grades go up to {MAX_GRADE:,}")
    return identifier(query_id), identifier(doc_id), grade


def _beir_query(line: str, _line_number: int) -> Query:
    record = json_object(line)
    return Query(identifier(text_field(record, "_id")), text_field(record, "text"))


def _json_lines(path: Path) -> QuerySet:
    def parse(line: str, line_number: int) -> JudgedQuery:
        record = json_object(line)
        query_id = text_field(record, "query_id") if "query_id" in record else f"{path.stem}:{line_number}"
        relevant = record.get("relevant")
        doc_ids = [relevant] if isinstance(relevant, str) else relevant
        if not isinstance(doc_ids, list) or not doc_ids or not all(isinstance(d, str) and d for d in doc_ids):
            raise RecordError('"relevant" must be a document id or a list of them')
        query = Query(identifier(query_id), text_field(record, "query"))
        kind = text_field(record, "type") if "type" in record else ""
        return JudgedQuery(query, dict.fromkeys(map(identifier, doc_ids), 1), kind)

    return _query_set(path.stem, parsed_lines(path, parse), source=str(path), known_item=False)


def _qasper(path: Path) -> QuerySet:
    try:
        found = qasper_queries(file_text(path))
    except RecordError as fault:
        raise EvaluationError(f"{path}: {fault}") from None
    return _query_set(path.stem, found, source=str(path), known_item=True)


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
    )
