"""What goes into the warehouse: documents, sections, metadata and measures, without running text."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from prime_pipeline.indexes.builds import LEXICAL_FILE, METADATA_FILE, read_manifest
from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.records import DocumentOutcome, Spending, section_id
from prime_pipeline.refresh.evaluation import EvaluationReport
from prime_pipeline.storage.documents import CatalogueEntry
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.ledger import Ledger, LedgerRun
from prime_pipeline.storage.metadata_file import MetadataFile
from prime_pipeline.storage.warehouse import (
    Columns,
    DocumentRows,
    Rows,
    publish_warehouse,
    warehouse_fingerprint,
)

_TABLES_VERSION = 3

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
    "n_characters_rewritten": "INTEGER",
    "start_line": "INTEGER",
    "end_line": "INTEGER",
}
METADATA: Columns = {"doc_id": "VARCHAR", "terms": "VARCHAR[]", "scores": "DOUBLE[]", "headings": "VARCHAR[]"}
MEASURES: Columns = {
    "variant": "VARCHAR",
    "restructuring": "VARCHAR",
    "system": "VARCHAR",
    "query_id": "VARCHAR",
    "measure": "VARCHAR",
    "value": "DOUBLE",
}
RESTRUCTURINGS: Columns = {
    "section_id": "VARCHAR",
    "doc_id": "VARCHAR",
    "restructuring": "VARCHAR",
    "outcome": "VARCHAR",
    "reasons": "VARCHAR[]",
    "appended_sentences": "INTEGER",
}
RESTRUCTURING_RUNS: Columns = {
    "run_id": "VARCHAR",
    "started_at": "TIMESTAMP",
    "restructuring": "VARCHAR",
    "expected_calls": "BIGINT",
    "expected_prompt_tokens": "BIGINT",
    "expected_completion_tokens": "BIGINT",
}
SPENDING: Columns = {
    "run_id": "VARCHAR",
    "doc_id": "VARCHAR",
    "calls": "BIGINT",
    "cache_hits": "BIGINT",
    "truncated": "BIGINT",
    "prompt_tokens": "BIGINT",
    "completion_tokens": "BIGINT",
    "estimated": "BOOLEAN",
    "cost": "DOUBLE",
}
TEXT_DENSITY: Columns = {"doc_id": "VARCHAR", "text": "VARCHAR", "measure": "VARCHAR", "value": "DOUBLE"}
FIDELITY_AUDIT: Columns = {
    "section_id": "VARCHAR",
    "doc_id": "VARCHAR",
    "measure": "VARCHAR",
    "hits": "INTEGER",
    "n": "INTEGER",
}
CORPUS_PROPERTIES: Columns = {
    "property": "VARCHAR",
    "value": "DOUBLE",
    "low": "DOUBLE",
    "high": "DOUBLE",
    "n": "INTEGER",
    "meaning": "VARCHAR",
}
STUDY_TABLES: Mapping[str, Columns] = {
    "text_density": TEXT_DENSITY,
    "fidelity_audit": FIDELITY_AUDIT,
    "corpus_properties": CORPUS_PROPERTIES,
}
"""Tables whose rows come from studies of the texts; see ``studies/``."""
TABLES: Mapping[str, Columns] = {
    "documents": DOCUMENTS,
    "sections": SECTIONS,
    "metadata": METADATA,
    "measures": MEASURES,
    "restructurings": RESTRUCTURINGS,
    "restructuring_runs": RESTRUCTURING_RUNS,
    "spending": SPENDING,
    **STUDY_TABLES,
}
"""Columns of every table."""


@dataclass(frozen=True, slots=True)
class StudyRows:
    """What studies found, for the tables of :data:`STUDY_TABLES`.

    Attributes:
        fingerprints: Of the studies.
        rows: By table; a table without rows is empty.
    """

    fingerprints: Sequence[str] = ()
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Restructuring:
    """What the warehouse tells of restructuring.

    Attributes:
        label: How sections were rewritten, for people.
        version: Of the sealed restructured corpus.
        outcomes: Gives what became of every document's sections, in order.
        ledger: What runs spent.
    """

    label: str
    version: str
    outcomes: Callable[[], Iterable[DocumentOutcome]]
    ledger: Ledger

    @property
    def fingerprint(self) -> str:
        """Hash of what the tables say about restructuring."""
        runs = [[run.run_id, asdict(spent)] for run, spent in self._runs()]
        return fingerprint({"label": self.label, "version": self.version, "runs": runs})

    def _runs(self) -> list[tuple[LedgerRun, Spending]]:
        totals = self.ledger.totals()
        return [(run, totals.get(run.run_id, Spending())) for run in self.ledger.runs()]


@dataclass(frozen=True, slots=True)
class WarehouseOutcome:
    """What publishing the warehouse came to: rows by table (empty where nothing changed), and whether it was made."""

    rows: Mapping[str, int]
    changed: bool
    seconds: float


def refresh_warehouse(
    path: Path,
    build: Path,
    catalogue: Mapping[str, CatalogueEntry],
    reports: Sequence[EvaluationReport] = (),
    restructuring: Restructuring | None = None,
    studies: StudyRows | None = None,
) -> WarehouseOutcome:
    """Publish a snapshot of what is served, unless the published one says the same.

    Args:
        path: The DuckDB file.
        build: The build whose sections and metadata are told.
        catalogue: Of the raw documents.
        reports: Evaluations, one per variant.
        restructuring: What became of the sections, and what it cost; None in offline mode.
        studies: What studies found.
    """
    started = time.monotonic()
    studies = studies or StudyRows()
    wanted = fingerprint(
        {
            "version": _TABLES_VERSION,
            "build": read_manifest(build).build_id,
            "documents": list(_documents(catalogue)),
            "evaluations": [report.fingerprint for report in reports],
            "restructuring": restructuring and restructuring.fingerprint,
            "studies": list(studies.fingerprints),
        }
    )
    if warehouse_fingerprint(path) == wanted:
        return WarehouseOutcome({}, changed=False, seconds=time.monotonic() - started)
    with (
        closing(LexicalIndex(build / LEXICAL_FILE)) as lexical,
        closing(MetadataFile(build / METADATA_FILE)) as metadata,
    ):
        told: dict[str, Rows] = {
            "documents": _documents(catalogue),
            "sections": _sections(lexical),
            "metadata": _metadata(metadata),
            "measures": _measures(reports),
            "restructurings": _restructurings(restructuring),
            "restructuring_runs": _runs(restructuring),
            "spending": _spending(restructuring),
            **{name: iter(studies.rows.get(name, ())) for name in STUDY_TABLES},
        }
        tables = {name: (columns, told[name]) for name, columns in TABLES.items()}
        rows = publish_warehouse(path, tables, wanted)
    return WarehouseOutcome(rows, changed=True, seconds=time.monotonic() - started)


def _documents(catalogue: Mapping[str, CatalogueEntry]) -> Iterator[dict[str, Any]]:
    for entry in catalogue.values():
        yield {name: getattr(entry, name) for name in DOCUMENTS}


def _sections(lexical: LexicalIndex) -> DocumentRows:
    versions = {doc_id: f"{_TABLES_VERSION} {v}" for doc_id, v in lexical.stored_versions().items()}
    return DocumentRows(versions, lambda doc_ids: _section_rows(lexical, doc_ids))


def _section_rows(lexical: LexicalIndex, doc_ids: Collection[str]) -> Iterator[dict[str, Any]]:
    for section in lexical.iterate_sections(sorted(doc_ids)):
        yield {
            "section_id": section_id(section.doc_id, section.ordinal),
            "doc_id": section.doc_id,
            "ordinal": section.ordinal,
            "heading_path": list(section.heading_path),
            "n_characters": len(section.text),
            "n_characters_rewritten": None if section.rewritten is None else len(section.rewritten),
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


def _measures(reports: Sequence[EvaluationReport]) -> Iterator[dict[str, Any]]:
    for report in reports:
        origin = {"variant": report.variant, "restructuring": report.restructuring}
        for system, measures in report.systems.items():
            for measure, values in measures.per_query.items():
                for query_id, value in values.items():
                    yield {
                        **origin,
                        "system": system,
                        "query_id": query_id,
                        "measure": measure,
                        "value": value,
                    }


def _restructurings(restructuring: Restructuring | None) -> Iterator[dict[str, Any]]:
    for outcome in restructuring.outcomes() if restructuring else ():
        for section in outcome.sections:
            yield {
                "section_id": section_id(outcome.doc_id, section.ordinal),
                "doc_id": outcome.doc_id,
                "restructuring": restructuring.label if restructuring else "",
                "outcome": section.kind,
                "reasons": [finding.code for finding in section.findings],
                "appended_sentences": len(section.appended),
            }


def _runs(restructuring: Restructuring | None) -> Iterator[dict[str, Any]]:
    for run in restructuring.ledger.runs() if restructuring else ():
        yield {
            "run_id": run.run_id,
            "started_at": run.started_at,
            "restructuring": run.label,
            "expected_calls": run.expected_calls,
            "expected_prompt_tokens": run.expected_prompt_tokens,
            "expected_completion_tokens": run.expected_completion_tokens,
        }


def _spending(restructuring: Restructuring | None) -> Iterator[dict[str, Any]]:
    for line in restructuring.ledger.lines() if restructuring else ():
        yield {"run_id": line.run_id, "doc_id": line.doc_id, **asdict(line.spending), "cost": line.cost}
