"""The store of restructured documents, one per strategy: their texts, and what became of each section.

Texts lie in a :class:`~prime_pipeline.storage.documents.DocumentStore`, whose source fingerprint is here the version of
the raw document. Outcomes are written before the text they belong to is catalogued: after a crash in between the
document is still pending, and both are written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from prime_pipeline.errors import StoreCorrupt
from prime_pipeline.records import Document, DocumentOutcome, Finding, SectionOutcome
from prime_pipeline.storage.documents import CatalogueEntry, DocumentStore
from prime_pipeline.storage.sqlite import SharedDatabase

_SCHEMA = """
CREATE TABLE IF NOT EXISTS outcomes (
    doc_id TEXT PRIMARY KEY, n_words_raw INTEGER NOT NULL, n_words INTEGER NOT NULL, sections TEXT NOT NULL
) WITHOUT ROWID;
"""


class RestructuredStore:
    """Restructured documents of one corpus by one strategy.

    Args:
        folder: Of the strategy.

    Attributes:
        documents: The documents, with rewritten bodies beside the raw ones.

    Raises:
        SchemaMismatch, StoreCorrupt, StoreUnavailable: See
            :class:`~prime_pipeline.storage.sqlite.SharedDatabase`; methods may raise the last two.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "outcomes.sqlite"
        self.documents = DocumentStore(folder)
        self._outcomes = SharedDatabase(self._path, _SCHEMA, 1)

    def put(self, raw: CatalogueEntry, document: Document, outcome: DocumentOutcome) -> CatalogueEntry:
        """Store what became of a document; one with deferred sections stays pending.

        Args:
            raw: The catalogue entry of the raw document.
            document: The raw document, in that version.
            outcome: What became of it.
        """
        sections = json.dumps([_encoded(section) for section in outcome.sections])
        restructured = outcome.applied_to(document)
        row = (document.doc_id, *_word_counts(restructured), sections)
        with self._outcomes.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?)", row)
        return self.documents.put(
            restructured, raw.partition_key, raw.version if outcome.is_complete else None
        )

    def pending(self, raw: Iterable[CatalogueEntry]) -> list[CatalogueEntry]:
        """The raw documents that are not restructured in their version, completely, in the order given."""
        done, files = self.documents.catalogue(), self.documents.stored_files()
        return [
            entry
            for entry in raw
            if entry.version is not None
            and (
                entry.doc_id not in done
                or done[entry.doc_id].source_fingerprint != entry.version
                or self.documents.path(entry.doc_id).name not in files
            )
        ]

    def keep_only(self, doc_ids: Iterable[str]) -> list[str]:
        """Forget all other documents; returns their ids, sorted."""
        gone = sorted(self.documents.catalogue().keys() - set(doc_ids))
        self.documents.remove(gone)
        with self._outcomes.writing() as connection:
            connection.executemany("DELETE FROM outcomes WHERE doc_id = ?", [(doc_id,) for doc_id in gone])
        return gone

    def load(self, entry: CatalogueEntry) -> tuple[Document, DocumentOutcome] | None:
        """A document of :attr:`documents` and what became of its sections, rewritten bodies included.

        Raises:
            DocumentChanged, StoreCorrupt, SchemaMismatch, StoreUnavailable: The document cannot be loaded.
        """
        outcome = self.outcome(entry.doc_id)
        if entry.version is None or outcome is None:
            return None
        document = self.documents.load(entry.doc_id, entry.version)
        rewritten = {section.ordinal: section.rewritten for section in document.sections}
        sections = tuple(replace(s, rewritten=rewritten.get(s.ordinal)) for s in outcome.sections)
        return document, replace(outcome, sections=sections)

    def outcome(self, doc_id: str) -> DocumentOutcome | None:
        """What became of a document, if it was restructured, without the rewritten bodies and what they cost."""
        with self._outcomes.reading() as connection:
            row = connection.execute(
                "SELECT doc_id, sections FROM outcomes WHERE doc_id = ?", (doc_id,)
            ).fetchone()
        return self._decoded(*row) if row else None

    def outcomes(self) -> Iterator[DocumentOutcome]:
        """What became of all documents, in order of id, likewise."""
        with self._outcomes.reading() as connection:
            rows = connection.execute("SELECT doc_id, sections FROM outcomes ORDER BY doc_id").fetchall()
        return (self._decoded(*row) for row in rows)

    def word_counts(self) -> tuple[int, int]:
        """Words of all bodies before and after restructuring."""
        with self._outcomes.reading() as connection:
            row = connection.execute(
                "SELECT coalesce(sum(n_words_raw), 0), coalesce(sum(n_words), 0) FROM outcomes"
            ).fetchone()
        return int(row[0]), int(row[1])

    def compact(self) -> None:
        """See :meth:`SharedDatabase.compact`."""
        self.documents.compact()
        self._outcomes.compact()

    def close(self) -> None:
        """Close the databases."""
        self.documents.close()
        self._outcomes.close()

    def _decoded(self, doc_id: str, sections: str) -> DocumentOutcome:
        try:
            return DocumentOutcome(doc_id, tuple(_decoded(section) for section in json.loads(sections)))
        except (ValueError, KeyError, TypeError) as error:
            raise StoreCorrupt(self._path, str(error)) from error


def _word_counts(document: Document) -> tuple[int, int]:
    before = [len(section.body.split()) for section in document.sections]
    after = [
        n if section.rewritten is None else len(section.rewritten.split())
        for n, section in zip(before, document.sections, strict=True)
    ]
    return sum(before), sum(after)


def _encoded(outcome: SectionOutcome) -> dict[str, Any]:
    """Without the rewritten text, which the document holds, and the spending, which the ledger holds."""
    fields = asdict(outcome)
    del fields["rewritten"], fields["spending"]
    return fields


def _decoded(fields: dict[str, Any]) -> SectionOutcome:
    findings = tuple(Finding(f["code"], f["detail"], tuple(f["sources"])) for f in fields.pop("findings"))
    return SectionOutcome(findings=findings, appended=tuple(fields.pop("appended")), **fields)
