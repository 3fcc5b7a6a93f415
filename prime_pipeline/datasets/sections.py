"""Sections that a user names as relevant, resolved to section ids."""

from __future__ import annotations

from collections.abc import Iterable

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.errors import EvaluationError
from prime_pipeline.records import Document, Qrels, section_id

_N_SHOWN = 10


def section_judgements(query_set: QuerySet, documents: Iterable[Document]) -> Qrels:
    """The sections that ``query_set.section_references`` mean, each with grade 1; only queries that name any.

    A section is named by its ordinal number or else by its heading, whatever the case and the blanks of that. Where
    document and section joined by ``#`` are the id of a document, that document is meant, and no section.

    Args:
        query_set: As it was loaded.
        documents: Of the corpus; others than those referred to make no difference.

    Raises:
        EvaluationError: There is no such document or section, or several have the heading; names query and section.
    """
    named = {place for places in query_set.section_references.values() for place in places}
    wanted = {doc_id for doc_id, _ in named} | {"#".join(place) for place in named}
    known = {document.doc_id: document for document in documents if document.doc_id in wanted}
    found: dict[str, dict[str, int]] = {}
    for query_id, places in query_set.section_references.items():
        for doc_id, section in places:
            if f"{doc_id}#{section}" in known:
                continue
            ordinal = _ordinal(known.get(doc_id), doc_id, section, query_id)
            found.setdefault(query_id, {})[section_id(doc_id, ordinal)] = 1
    return found


def _ordinal(document: Document | None, doc_id: str, section: str, query_id: str) -> int:
    where = f"query {query_id!r} names section {section!r} of {doc_id!r}"
    if document is None:
        raise EvaluationError(f"{where}, and the corpus has no such document: correct the path")
    by_ordinal = [s for s in document.content_sections if str(s.ordinal) == section.strip()]
    by_heading = [s for s in document.content_sections if _key(s.heading) == _key(section)]
    found = by_ordinal or by_heading
    if len(found) == 1:
        return found[0].ordinal
    shown = ", ".join(f"{s.ordinal} {s.heading!r}" for s in (found or document.content_sections)[:_N_SHOWN])
    fault = "several sections have this heading: name one by its number" if found else "there is none"
    raise EvaluationError(f"{where}, and {fault} ({shown})")


def _key(heading: str) -> str:
    return " ".join(heading.split()).casefold()
