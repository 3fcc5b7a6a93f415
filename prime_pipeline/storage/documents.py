r"""The store of parsed documents: one JSON file each, and a catalogue that says what there is.

The file is durable before the catalogue names its version, so the catalogue never promises what is not there. Any
number of processes may write different documents at once. Half of a surrogate pair (from a file name that is not UTF-8,
say) cannot be stored: documents that hold one are refused, and in the catalogue it is written out as ``\udc80``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from prime_pipeline.errors import (
    DocumentChanged,
    DocumentError,
    SchemaMismatch,
    StoreCorrupt,
    StoreUnavailable,
)
from prime_pipeline.records import Document
from prime_pipeline.storage.atomic import GARBAGE_AGE_S, TEMPORARY_NAME, is_older, write_bytes
from prime_pipeline.storage.document_json import (
    SCHEMA_VERSION,
    decode_document,
    document_bytes,
    encode_document,
)
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.sqlite import Kinds, SharedDatabase, checked


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """What the store knows of one document without opening its file.

    Attributes:
        doc_id: The document.
        partition_key: Its name as a Dagster partition.
        source_path: The file (and record) it came from.
        source_fingerprint: Hash of what it was made from (the bytes that were parsed, say); None if it is to be made
            again.
        version: Content version of the stored document; None if it was never parsed.
        title: For display.
        n_sections: Sections worth a search row.
        failure: Why the source as it is now could not be parsed; None if it could. With a version, the last good
            text is still served.
    """

    doc_id: str
    partition_key: str
    source_path: str
    source_fingerprint: str | None
    version: str | None
    title: str
    n_sections: int
    failure: str | None


_CATALOGUE = "catalogue.sqlite"
_TEXT_OR_NONE = (str, type(None))
_KINDS: Kinds = (str, str, str, _TEXT_OR_NONE, _TEXT_OR_NONE, str, int, _TEXT_OR_NONE)
_FILE_NAME = re.compile(r"[0-9a-f]{40}\.json")
_COLUMNS = ", ".join(f.name for f in fields(CatalogueEntry))
_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    doc_id TEXT PRIMARY KEY, partition_key TEXT NOT NULL UNIQUE, source_path TEXT NOT NULL, source_fingerprint TEXT,
    version TEXT, title TEXT NOT NULL, n_sections INTEGER NOT NULL, failure TEXT
) WITHOUT ROWID;
"""


def document_file_name(doc_id: str) -> str:
    """The name of a document's file: a hash, so that no id can reach outside the folder."""
    return hashlib.sha256(doc_id.encode("utf-8", "surrogatepass")).hexdigest()[:40] + ".json"


def document_version(document: Document) -> str:
    """The content version: a hash of everything that is stored of a document."""
    return fingerprint(encode_document(document))


class DocumentStore:
    """Parsed documents of one corpus.

    Args:
        folder: Where the files and ``catalogue.sqlite`` lie.

    Raises:
        SchemaMismatch, StoreCorrupt, StoreUnavailable: See
            :class:`~prime_pipeline.storage.sqlite.SharedDatabase`; methods may raise the last two.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._catalogue_path = folder / _CATALOGUE
        self._catalogue = SharedDatabase(self._catalogue_path, _SCHEMA, 1)

    def catalogue(self) -> dict[str, CatalogueEntry]:
        """All entries by document id, in order of id."""
        with self._catalogue.reading() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM documents ORDER BY doc_id").fetchall()  # noqa: S608
        return {row[0]: self._entry(row) for row in rows}

    def put(self, document: Document, partition_key: str, source_fingerprint: str | None) -> CatalogueEntry:
        """Store a document; returns once it is durable. Without a source fingerprint it will be made again.

        Raises:
            DocumentError: The document holds half of a surrogate pair.
        """
        version = document_version(document)
        try:
            data = document_bytes(document, version)
        except UnicodeEncodeError as error:
            source = _storable(document.source_path)
            raise DocumentError(
                source, f"{error.object[error.start]!r} is half of a character: repair the text"
            ) from error
        write_bytes(self.path(document.doc_id), data)
        entry = CatalogueEntry(
            doc_id=document.doc_id,
            partition_key=partition_key,
            source_path=document.source_path,
            source_fingerprint=source_fingerprint,
            version=version,
            title=document.title,
            n_sections=len(document.content_sections),
            failure=None,
        )
        self._upsert(entry)
        return entry

    def put_failure(self, doc_id: str, partition_key: str, source_path: str, reason: str) -> CatalogueEntry:
        """Note that a source cannot be parsed. A version stored earlier stays and is served on."""
        before = self.catalogue_entry(doc_id)
        entry = CatalogueEntry(
            doc_id=doc_id,
            partition_key=partition_key,
            source_path=source_path,
            source_fingerprint=before.source_fingerprint if before else None,
            version=before.version if before else None,
            title=before.title if before else doc_id,
            n_sections=before.n_sections if before else 0,
            failure=reason,
        )
        self._upsert(entry)
        return entry

    def failures(self) -> dict[str, str]:
        """Reason by source for everything that cannot be parsed now, in order of document id."""
        return {e.source_path: e.failure for e in self.catalogue().values() if e.failure}

    def catalogue_entry(self, doc_id: str) -> CatalogueEntry | None:
        """The entry of one document, if there is one."""
        with self._catalogue.reading() as connection:
            query = f"SELECT {_COLUMNS} FROM documents WHERE doc_id = ?"  # noqa: S608
            row = connection.execute(query, (_storable(doc_id),)).fetchone()
        return self._entry(row) if row else None

    def remove(self, doc_ids: Iterable[str]) -> None:
        """Forget documents: first in the catalogue, then their files."""
        gone = list(doc_ids)
        with self._catalogue.writing() as connection:
            connection.executemany(
                "DELETE FROM documents WHERE doc_id = ?", [(_storable(doc_id),) for doc_id in gone]
            )
        for doc_id in gone:
            path = self.path(doc_id)
            path.unlink(missing_ok=True)
            for leftover in path.parent.glob(f".{path.name[:40]}.*.tmp"):  # of a run that was killed
                leftover.unlink(missing_ok=True)

    def load(self, doc_id: str, version: str) -> Document:
        """One stored document. If its file cannot be used, the next scan parses the document again.

        Raises:
            DocumentChanged: The file is gone or holds another version than the catalogue said.
            StoreCorrupt: The file does not hold what was written.
            SchemaMismatch: Another version of this program wrote the file.
            StoreUnavailable: The file cannot be read now.
        """
        try:
            document = _read_document(self.path(doc_id), version)
        except (FileNotFoundError, NotADirectoryError):
            self._forget_source(doc_id)
            raise DocumentChanged(doc_id) from None
        except (StoreCorrupt, SchemaMismatch):
            self._forget_source(doc_id)
            raise
        if document is None or document.doc_id != doc_id:
            entry = self.catalogue_entry(doc_id)
            if entry and entry.version == version:  # not replaced: the file is the wrong one
                self._forget_source(doc_id)
            raise DocumentChanged(doc_id)
        return document

    def forget_damaged(self, versions: Iterable[tuple[str, str]]) -> list[str]:
        """Have the next scan parse again all of these documents (id, version) whose files cannot be used.

        Reads every one. Returns the ids of those that could not be loaded, in the order given.
        """
        damaged = []
        for doc_id, version in versions:
            try:
                self.load(doc_id, version)
            except (DocumentChanged, StoreCorrupt, SchemaMismatch):
                damaged.append(doc_id)
        return damaged

    def load_all(self, versions: Iterable[tuple[str, str]]) -> Iterator[Document]:
        """Stream documents given as (document id, version), one in memory at a time.

        Raises:
            DocumentChanged, StoreCorrupt, SchemaMismatch, StoreUnavailable: See :meth:`load`. Where one document is
                damaged, those after it are checked too, so that the next scan parses all of them again.
        """
        remaining = iter(versions)
        for doc_id, version in remaining:
            try:
                document = self.load(doc_id, version)
            except (DocumentChanged, StoreCorrupt, SchemaMismatch):
                self.forget_damaged(remaining)
                raise
            yield document

    def load_entries(self, entries: Iterable[CatalogueEntry]) -> Iterator[Document]:
        """Stream the documents of catalogue entries, those that were never parsed left out; raises as :meth:`load_all`."""
        return self.load_all((entry.doc_id, entry.version) for entry in entries if entry.version is not None)

    def stored_files(self) -> frozenset[str]:
        """Names of the document files that are there, for telling whether a catalogued one is gone."""
        return frozenset(path.name for path in self._own_files() if path.suffix == ".json")

    def collect_garbage(self) -> int:
        """Remove files of documents that are not catalogued, and temporary files of killed runs; returns how many.

        Files of the last hour stay: another process may be about to catalogue them. Only names that this store gives
        are looked at, since a user may keep files of his own in the folder.
        """
        old = [path for path in self._own_files() if is_older(path, GARBAGE_AGE_S)]
        kept = {self.path(doc_id).name for doc_id in self.catalogue()}
        stale = [path for path in old if path.name not in kept]
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)

    def path(self, doc_id: str) -> Path:
        """Where a document's file lies: named by a hash, so that no id can reach outside the folder."""
        name = self.file_name(doc_id)
        return self._folder / name[:2] / name

    def file_name(self, doc_id: str) -> str:
        """The name of a document's file, as in :meth:`stored_files`."""
        return document_file_name(doc_id)

    def compact(self) -> None:
        """See :meth:`SharedDatabase.compact`."""
        self._catalogue.compact()

    def close(self) -> None:
        """Close the catalogue."""
        self._catalogue.close()

    def _entry(self, row: tuple[Any, ...]) -> CatalogueEntry:
        return CatalogueEntry(*checked(self._catalogue_path, row, _KINDS))

    def _own_files(self) -> Iterator[Path]:
        """Document files and their temporary files: ``ab/ab….json`` and ``ab/.ab….json.….tmp``."""
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            temporary = TEMPORARY_NAME.fullmatch(path.name)
            name = f"{temporary['target']}.json" if temporary else path.name
            if _FILE_NAME.fullmatch(name) and name.startswith(path.parent.name):
                yield path

    def _forget_source(self, doc_id: str) -> None:
        """Have the next scan parse the document again, whatever its source looks like."""
        forget = "UPDATE documents SET source_fingerprint = NULL WHERE doc_id = ?"
        with self._catalogue.writing() as connection:
            connection.execute(forget, (_storable(doc_id),))

    def _upsert(self, entry: CatalogueEntry) -> None:
        marks = ", ".join("?" * len(fields(CatalogueEntry)))
        values = [_storable(value) if isinstance(value, str) else value for value in astuple(entry)]
        with self._catalogue.writing() as connection:
            connection.execute(f"INSERT OR REPLACE INTO documents ({_COLUMNS}) VALUES ({marks})", values)  # noqa: S608


def _read_document(path: Path, version: str) -> Document | None:
    """The document in a file; None if it is another version of it than was asked for."""
    try:
        payload = json.loads(path.read_bytes())
        if payload["schema_version"] != SCHEMA_VERSION:
            raise SchemaMismatch(path, payload["schema_version"], SCHEMA_VERSION)
        document = decode_document(payload["document"])
        if payload["version"] != document_version(document):
            raise StoreCorrupt(path, "its content does not have the hash that was written with it")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreCorrupt(path, str(error)) from error
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise StoreUnavailable(path, error.strerror or str(error)) from error
    return document if payload["version"] == version else None


def _storable(text: str) -> str:
    """Text that SQLite takes: lone halves of surrogate pairs written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
