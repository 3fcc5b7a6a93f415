"""QASPER's questions with their reference answers and evidence, from the official JSON or the rows of the hub's copy.

The papers themselves are the corpus reader's business; this module keeps its ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prime_pipeline.datasets.reading import (
    JudgedQuery,
    RecordError,
    identifier,
    json_value,
    text_field,
)
from prime_pipeline.evaluation.answer_f1 import UNANSWERABLE, AnswerReference
from prime_pipeline.records import Query


def qasper_queries(text: str) -> list[JudgedQuery]:
    """The questions of a QASPER file, each with its paper as the one relevant document, in the file's order.

    Papers are an object by id (official) or a list of records with an ``id`` (the hub's copy written as JSON); the
    tables inside may be lists of records or columns. A question's type is the one that most of its annotators chose,
    and the first annotator's of these where they are at odds: unlike the official evaluator's, which is that of the
    reference nearest to the prediction, it is the same for every system.

    Args:
        text: Of the file.

    Raises:
        RecordError: It is no QASPER file, or an annotation holds no answer; names paper and question.
    """
    return [judged for paper_id, paper in _papers(text) for judged in _questions(paper_id, paper)]


def paper_queries(paper: Mapping[str, Any]) -> list[JudgedQuery]:
    """The questions about one paper of the hub's copy, which has an ``id``; see :func:`qasper_queries`.

    Raises:
        RecordError: It is no such paper; names paper and question.
    """
    return list(_questions(text_field(paper, "id"), paper))


def _papers(text: str) -> list[tuple[str, Any]]:
    papers = json_value(text)
    if isinstance(papers, list) and all(isinstance(paper, dict) for paper in papers):
        return [(text_field(paper, "id"), paper) for paper in papers]
    if not isinstance(papers, dict):
        raise RecordError(f"expected QASPER papers by id, found {type(papers).__name__}")
    return list(papers.items())


def _questions(paper_id: str, paper: Any) -> Iterator[JudgedQuery]:
    table = paper.get("qas") if isinstance(paper, dict) else None
    try:
        for row in _rows(table, 'list of questions under "qas": is this a QASPER file?'):
            query = Query(identifier(text_field(row, "question_id")), text_field(row, "question"))
            references = _references(query.query_id, row.get("answers") or [])
            yield JudgedQuery(query, {identifier(paper_id): 1}, _prevailing_type(references), references)
    except RecordError as fault:
        raise RecordError(f"paper {paper_id!r}: {fault}") from None


def _references(query_id: str, table: Any) -> tuple[AnswerReference, ...]:
    """One reference for each annotator."""
    try:
        rows = _rows(table, 'list of annotations under "answers"')
        return tuple(_reference(row.get("answer")) for row in rows)
    except RecordError as fault:
        raise RecordError(f"question {query_id!r}: {fault}") from None


def _reference(answer: Any) -> AnswerReference:
    """The reference by the first field that applies, in the order of the official evaluator."""
    match answer:
        case {"unanswerable": True}:
            return AnswerReference(UNANSWERABLE, "none")
        case {"extractive_spans": [_, *_] as spans}:
            return AnswerReference(", ".join(_texts(spans)), "extractive", _evidence(answer))
        case {"free_form_answer": str() as text} if text:
            return AnswerReference(text, "abstractive", _evidence(answer))
        case {"yes_no": bool() as is_so}:
            return AnswerReference("Yes" if is_so else "No", "boolean", _evidence(answer))
    raise RecordError("an annotation holds no answer: remove it, or give it one")


def _evidence(answer: Mapping[str, Any]) -> tuple[str, ...]:
    return _texts(answer.get("evidence") or [])


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise RecordError("spans and evidence must be lists of texts")
    return tuple(values)


def _prevailing_type(references: Sequence[AnswerReference]) -> str:
    counts = Counter(reference.type for reference in references)
    return max(counts, key=counts.__getitem__, default="")  # the first of several, as a counter keeps order


def _rows(table: Any, expected: str) -> list[dict[str, Any]]:
    """The records of a table that may be given as columns of one length."""
    if isinstance(table, dict) and all(isinstance(column, list) for column in table.values()):
        if len(set(map(len, table.values()))) > 1:
            raise RecordError(f"the columns {', '.join(table)} differ in length: the copy is damaged")
        table = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    if not isinstance(table, list) or not all(isinstance(row, dict) for row in table):
        raise RecordError(f"no {expected}")
    return table
