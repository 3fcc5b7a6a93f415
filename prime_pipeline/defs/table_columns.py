"""Columns of the tables that assets are, as the UI shows them, and what they are made of."""

from collections.abc import Mapping
from typing import Final

import dagster as dg

from prime_pipeline.defs.describing import column_lineage, columns
from prime_pipeline.defs.documents import RAW_DOCUMENTS, RESTRUCTURED_DOCUMENTS
from prime_pipeline.refresh.warehouse import TABLES

_SECTIONS: Final = {
    "ordinal": "INTEGER",
    "kind": "TEXT",
    "heading": "TEXT",
    "heading_path": "TEXT[]",
    "text": "TEXT",
    "start_line": "INTEGER",
    "end_line": "INTEGER",
}
_DOCUMENTS: Final = {
    "doc_id": "TEXT",
    "title": "TEXT",
    "source_path": "TEXT",
    "media_type": "TEXT",
    "properties": "JSON",
}
DOCUMENT_COLUMNS: Final = columns({"documents": _DOCUMENTS, "sections": _SECTIONS})
RESTRUCTURED_COLUMNS: Final = columns(
    {"documents": _DOCUMENTS, "sections": {**_SECTIONS, "rewritten": "TEXT"}}
)
SEAL_COLUMNS: Final = columns({"documents": {"doc_id": "TEXT", "version": "TEXT"}})
METADATA_TABLES: Final = {
    "documents": {"doc_id": "TEXT", "terms": "TEXT", "headings": "TEXT", "text": "TEXT"},
    "terms": {"term": "TEXT", "document_frequency": "INTEGER"},
}
LEXICAL_TABLES: Final = {
    "documents": {
        "document_row": "INTEGER",
        "doc_id": "TEXT",
        "version": "TEXT",
        "title": "TEXT",
        "source_path": "TEXT",
        "properties": "TEXT",
    },
    "sections": {
        "section_row": "INTEGER",
        "document_row": "INTEGER",
        "ordinal": "INTEGER",
        "heading_path": "TEXT",
        "text": "TEXT",
        "body_start": "INTEGER",
        "start_line": "INTEGER",
        "end_line": "INTEGER",
        "rewritten": "TEXT",
    },
}
METADATA_COLUMNS: Final = columns(METADATA_TABLES)
LEXICAL_COLUMNS: Final = columns(LEXICAL_TABLES)
WAREHOUSE_COLUMNS: Final = columns(TABLES)


def metadata_lineage(variant: str) -> Mapping[str, dg.TableColumnLineage]:
    """What the columns of a variant's metadata are made of."""
    read = [(RAW_DOCUMENTS, "documents.title"), (_texts(variant), _standing_text(variant))]
    headings = [(RAW_DOCUMENTS, "sections.heading")]
    return column_lineage(
        {
            "documents.doc_id": [(RAW_DOCUMENTS, "documents.doc_id")],
            "documents.terms": [read[1]],
            "documents.headings": headings,
            "documents.text": [*read, *headings],
            "terms.document_frequency": [read[1]],
        }
    )


def lexical_lineage(variant: str) -> Mapping[str, dg.TableColumnLineage]:
    """What the columns of a variant's lexical index are made of."""
    of_documents = {f"documents.{name}": f"documents.{name}" for name in ("doc_id", "title", "source_path")}
    of_sections = {
        f"sections.{name}": f"sections.{name}"
        for name in ("ordinal", "heading_path", "text", "start_line", "end_line")
    }
    made_of = {
        column: [(RAW_DOCUMENTS, origin)] for column, origin in {**of_documents, **of_sections}.items()
    }
    if variant == "full":
        made_of["sections.rewritten"] = [(RESTRUCTURED_DOCUMENTS, "sections.rewritten")]
    return column_lineage(made_of)


def _texts(variant: str) -> dg.AssetKey:
    return RESTRUCTURED_DOCUMENTS if variant == "full" else RAW_DOCUMENTS


def _standing_text(variant: str) -> str:
    return "sections.rewritten" if variant == "full" else "sections.text"
