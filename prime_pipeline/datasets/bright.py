"""BRIGHT's queries with what is relevant to them and what must not be ranked for them, from rows of ``examples``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from prime_pipeline.corpus.bright import BrightForm
from prime_pipeline.datasets.reading import JudgedQuery, RecordError, identifier, text_field
from prime_pipeline.records import Query

EXAMPLES: Final = "examples"
"""The folder of the queries."""

_GOLD: Final[Mapping[BrightForm, str]] = {"documents": "gold_ids", "long_documents": "gold_ids_long"}
_NONE: Final = "N/A"


def bright_query(record: Mapping[str, Any], form: BrightForm) -> JudgedQuery:
    """The query of a row; what is relevant has grade 1.

    Args:
        record: Of ``examples``.
        form: Passages or whole pages, which have columns of their own.

    Raises:
        RecordError: A field is missing, nothing is relevant, or something is relevant and excluded at once.
    """
    query = Query(identifier(text_field(record, "id")), text_field(record, "query"))
    gold, excluded = _doc_ids(record, _GOLD[form]), frozenset(_doc_ids(record, "excluded_ids"))
    if not gold:
        raise RecordError(f'query {query.query_id!r}: "{_GOLD[form]}" names no document')
    if both := sorted(excluded.intersection(gold)):
        raise RecordError(f"query {query.query_id!r}: document {both[0]!r} is relevant and excluded at once")
    return JudgedQuery(query, dict.fromkeys(gold, 1), excluded=excluded)


def _doc_ids(record: Mapping[str, Any], key: str) -> list[str]:
    """The ids in a column, without the mark for none."""
    values = record.get(key)
    if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
        raise RecordError(f'"{key}" must be a list of document ids, or of "{_NONE}" alone')
    return [identifier(value) for value in values if value != _NONE]
