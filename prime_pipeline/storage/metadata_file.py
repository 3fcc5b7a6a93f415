"""Synthesised metadata as one read-only SQLite file: a row per document, and the document frequency of every term.

Beside what a retriever needs it holds what was counted of each document, so that the next build need not read documents that
have not changed.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prime_pipeline.errors import IndexCorrupt, StoreUnavailable
from prime_pipeline.records import DocumentMetadata
from prime_pipeline.storage.atomic import atomic_path
from prime_pipeline.storage.sqlite import errors_as, open_finished

_SCHEMA = """
CREATE TABLE corpus (n_documents INTEGER NOT NULL);
CREATE TABLE documents (doc_id TEXT PRIMARY KEY, terms TEXT NOT NULL, headings TEXT NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE terms (term TEXT PRIMARY KEY, document_frequency INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE counts (doc_id TEXT NOT NULL, counts_key TEXT NOT NULL, text_key TEXT NOT NULL, n_words INTEGER NOT NULL, n_entries INTEGER NOT NULL);
CREATE TABLE entries (name TEXT NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL);
"""
_PART_BYTES = 64 * 2**20  # SQLite holds values of at most a billion bytes


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """What was counted of one document.

    Attributes:
        doc_id: The document.
        counts_key: Hash of all that the counts depend on: the document's version, and how words are cut.
        text_key: Hash of all that its metadata text was composed of.
        n_words: All its words, repeated ones each time.
        n_entries: Its distinct words.
    """

    doc_id: str
    counts_key: str
    text_key: str
    n_words: int
    n_entries: int


@dataclass(frozen=True, slots=True)
class CorpusCounts:
    """What was counted of all documents.

    Attributes:
        documents: In order of id.
        entries: Columns by name, see :class:`prime_pipeline.metadata.terms.TermStatistics`: the entries of the first
            document, then those of the second, and so on.
    """

    documents: tuple[DocumentCounts, ...] = ()
    entries: Mapping[str, bytes] = field(default_factory=dict)


def write_metadata(
    path: Path,
    metadata: Iterable[DocumentMetadata],
    document_frequencies: Mapping[str, int],
    counts: CorpusCounts | None = None,
) -> None:
    """Write the file atomically. Documents and terms are stored in order of id, so equal input gives equal bytes.

    Args:
        path: The file.
        metadata: Of every document.
        document_frequencies: By term.
        counts: What was counted of the documents; may be left out.

    Raises:
        StoreUnavailable: The disk is full, or the folder cannot be written.
    """
    rows = [(m.doc_id, json.dumps(m.terms), json.dumps(m.headings), m.text) for m in metadata]
    with errors_as(path, StoreUnavailable), atomic_path(path) as temporary:
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN; {_SCHEMA}")
            connection.execute("INSERT INTO corpus VALUES (?)", (len(rows),))
            connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?)", sorted(rows))
            connection.executemany("INSERT INTO terms VALUES (?, ?)", sorted(document_frequencies.items()))
            if counts is not None:
                _write_counts(connection, counts)
            connection.execute("COMMIT")
        finally:
            connection.close()


def _write_counts(connection: sqlite3.Connection, counts: CorpusCounts) -> None:
    rows = ((c.doc_id, c.counts_key, c.text_key, c.n_words, c.n_entries) for c in counts.documents)
    connection.executemany("INSERT INTO counts VALUES (?, ?, ?, ?, ?)", rows)
    for name, data in sorted(counts.entries.items()):
        parts = (memoryview(data)[start : start + _PART_BYTES] for start in range(0, len(data), _PART_BYTES))
        for number, part in enumerate(parts):
            connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (name, number, part))


class MetadataFile:
    """Reads what :func:`write_metadata` wrote. Safe for several threads.

    Attributes:
        n_documents: Documents in the file.

    Raises:
        IndexCorrupt: The file is missing or damaged; methods may raise it too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection = open_finished(path, IndexCorrupt)
        self.n_documents: int = self._rows("SELECT n_documents FROM corpus")[0][0]

    def documents(self) -> Iterator[DocumentMetadata]:
        """All documents' metadata in order of id."""
        return map(
            _metadata, self._rows("SELECT doc_id, terms, headings, text FROM documents ORDER BY doc_id")
        )

    def document(self, doc_id: str) -> DocumentMetadata | None:
        """One document's metadata; None if it is not in the file."""
        rows = self._rows(
            "SELECT doc_id, terms, headings, text FROM documents WHERE doc_id = CAST(? AS TEXT)", _key(doc_id)
        )
        return _metadata(rows[0]) if rows else None

    def texts(self) -> dict[str, str]:
        """The metadata texts by document id, in order."""
        return dict(self._rows("SELECT doc_id, text FROM documents ORDER BY doc_id"))

    def doc_ids(self) -> list[str]:
        """Ids of all documents, in order."""
        return [row[0] for row in self._rows("SELECT doc_id FROM documents ORDER BY doc_id")]

    def terms(self) -> list[str]:
        """All terms, in order."""
        return [row[0] for row in self._rows("SELECT term FROM terms ORDER BY term")]

    def counts(self) -> CorpusCounts:
        """What was counted of the documents; empty where that was left out."""
        documents = tuple(DocumentCounts(*row) for row in self._rows("SELECT * FROM counts ORDER BY rowid"))
        parts: dict[str, list[bytes]] = {}
        for name, data in self._rows("SELECT name, data FROM entries ORDER BY rowid"):
            parts.setdefault(name, []).append(data)
        return CorpusCounts(documents, {name: b"".join(of_one) for name, of_one in parts.items()})

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """In how many documents each term occurs; 0 for unknown ones."""
        found = dict.fromkeys(terms, 0)
        for term in found:
            query = "SELECT document_frequency FROM terms WHERE term = CAST(? AS TEXT)"
            for row in self._rows(query, _key(term)):
                found[term] = row[0]
        return found

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _rows(self, query: str, *parameters: bytes) -> list[tuple[Any, ...]]:
        with self._lock, errors_as(self._path, IndexCorrupt):
            return self._connection.execute(query, parameters).fetchall()


def _key(text: str) -> bytes:
    """As bytes, because sqlite3 refuses a string with half of a surrogate pair, and who asks may give anything."""
    return text.encode("utf-8", "surrogatepass")


def _metadata(row: tuple[Any, ...]) -> DocumentMetadata:
    doc_id, terms, headings, text = row
    return DocumentMetadata(
        doc_id=doc_id,
        terms=tuple((term, score) for term, score in json.loads(terms)),
        headings=tuple((level, heading) for level, heading in json.loads(headings)),
        text=text,
    )
