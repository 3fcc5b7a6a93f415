"""What goes into the warehouse: documents, sections, metadata and measures, without running text."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_pipeline.indexes.builds import LEXICAL_FILE, METADATA_FILE, read_manifest
from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.records import section_id
from prime_pipeline.refresh.evaluation import EvaluationReport
from prime_pipeline.storage.documents import CatalogueEntry
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.metadata_file import MetadataFile
from prime_pipeline.storage.warehouse import Columns, publish_warehouse, warehouse_fingerprint

_TABLES_VERSION = 1

DOCUMENTS: Columns = {
    "doc_id": "VARCHAR",
    "title": "VARCHAR",
    "source_path": "VARCHAR",
    "version": "VARCHAR",
    "n_sections": "INTEGER",
    "failure": "VARCHAR",
}
SECTIONS: Columns = {
    "section_id": "VARCHAR",
    "doc_id": "VARCHAR",
    "ordinal": "INTEGER",
    "heading_path": "VARCHAR[]",
    "n_characters": "INTEGER",
    "start_line": "INTEGER",
    "end_line": "INTEGER",
}
METADATA: Columns = {"doc_id": "VARCHAR", "terms": "VARCHAR[]", "scores": "DOUBLE[]", "headings": "VARCHAR[]"}
MEASURES: Columns = {"system": "VARCHAR", "query_id": "VARCHAR", "measure": "VARCHAR", "value": "DOUBLE"}


@dataclass(frozen=True, slots=True)
class WarehouseOutcome:
    """What publishing the warehouse came to: rows by table (empty where nothing changed), and whether it was made."""

    rows: Mapping[str, int]
    changed: bool
    seconds: float


def refresh_warehouse(
    path: Path, build: Path, catalogue: Mapping[str, CatalogueEntry], report: EvaluationReport | None
) -> WarehouseOutcome:
    """Publish a snapshot of what is served, unless the published one says the same."""
    started = time.monotonic()
    wanted = fingerprint(
        {
            "version": _TABLES_VERSION,
            "build": read_manifest(build).build_id,
            "documents": list(_documents(catalogue)),
            "evaluation": report.fingerprint if report else None,
        }
    )
    if warehouse_fingerprint(path) == wanted:
        return WarehouseOutcome({}, changed=False, seconds=time.monotonic() - started)
    with (
        closing(LexicalIndex(build / LEXICAL_FILE)) as lexical,
        closing(MetadataFile(build / METADATA_FILE)) as metadata,
    ):
        tables = {
            "documents": (DOCUMENTS, _documents(catalogue)),
            "sections": (SECTIONS, _sections(lexical)),
            "metadata": (METADATA, _metadata(metadata)),
            "measures": (MEASURES, _measures(report)),
        }
        rows = publish_warehouse(path, tables, wanted)
    return WarehouseOutcome(rows, changed=True, seconds=time.monotonic() - started)


def _documents(catalogue: Mapping[str, CatalogueEntry]) -> Iterator[dict[str, Any]]:
    for entry in catalogue.values():
        yield {name: getattr(entry, name) for name in DOCUMENTS}


def _sections(lexical: LexicalIndex) -> Iterator[dict[str, Any]]:
    for section in lexical.iterate_sections():
        yield {
            "section_id": section_id(section.doc_id, section.ordinal),
            "doc_id": section.doc_id,
            "ordinal": section.ordinal,
            "heading_path": list(section.heading_path),
            "n_characters": len(section.text),
            "start_line": section.start_line,
            "end_line": section.end_line,
        }


def _metadata(metadata: MetadataFile) -> Iterator[dict[str, Any]]:
    for item in metadata.documents():
        yield {
            "doc_id": item.doc_id,
            "terms": [term for term, _ in item.terms],
            "scores": [score for _, score in item.terms],
            "headings": [heading for _, heading in item.headings],
        }


def _measures(report: EvaluationReport | None) -> Iterator[dict[str, Any]]:
    for system, measures in (report.systems if report else {}).items():
        for measure, values in measures.per_query.items():
            for query_id, value in values.items():
                yield {"system": system, "query_id": query_id, "measure": measure, "value": value}
