"""The lexical index: SQLite FTS5 with one row per document and one per section, and posting lists to score them by.

The file holds everything a hit needs (raw and rewritten section texts, headings, line ranges), so that a reader of an
old build is not disturbed by what happens to the corpus. The FTS tables are contentless: what was indexed of a row is
computed again from its stored texts when the row is deleted, which is why a change of that computation must raise ``LEXICAL_VERSION``
(and why the file names the version of Unicode by which Python computed it).
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.errors import IndexCorrupt, IndexOutdated, StoreUnavailable
from prime_pipeline.indexes.postings import IndexedTexts, PostingLists, Tokenizer
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document
from prime_pipeline.storage.atomic import atomic_path
from prime_pipeline.storage.sqlite import errors_as, open_finished
from prime_pipeline.text.normal_form import lexical_form
from prime_pipeline.text.words import cjk_share, lexical_words

LEXICAL_VERSION = 5
REBUILD_SHARE = 0.2
"""A larger share of changed documents makes a fresh build; below, a copy of the build before is brought up to date."""
MAX_QUERY_WORDS = 1_000
"""Distinct words of a query beyond these are not looked up, which bounds what a hostile query can cost."""
CJK_WARNING_SHARE = 0.1
"""From this share of Chinese, Japanese or Korean letters on, the word-based index is warned about."""

LexicalSource = Literal["raw", "restructured", "both"]
"""Which text of a section BM25 sees; without restructuring there is only the raw one. Rewriting costs lexical matches."""

_FtsTable = Literal["documents_fts", "sections_fts"]

_Origin = tuple[int, str, str]
# secure_delete: in a copy, the texts that are taken out would otherwise stay readable between the others.
_PRAGMAS = (
    "journal_mode=OFF",
    "synchronous=OFF",
    "temp_store=MEMORY",
    "cache_size=-65536",
    "secure_delete=ON",
)
_SCHEMA = """
CREATE TABLE origin (lexical_version INTEGER NOT NULL, unicode_version TEXT NOT NULL, source TEXT NOT NULL);
CREATE TABLE documents (
    document_row INTEGER PRIMARY KEY, doc_id TEXT NOT NULL UNIQUE, version TEXT NOT NULL, title TEXT NOT NULL,
    source_path TEXT NOT NULL, properties TEXT NOT NULL
);
CREATE TABLE sections (
    section_row INTEGER PRIMARY KEY, document_row INTEGER NOT NULL, ordinal INTEGER NOT NULL, heading_path TEXT NOT NULL,
    text TEXT NOT NULL, body_start INTEGER NOT NULL, start_line INTEGER, end_line INTEGER, rewritten TEXT,
    UNIQUE (document_row, ordinal)
);
"""


_STORED_DOCUMENTS = "SELECT doc_id, title, source_path, properties FROM documents"
_STORED_SECTIONS = (
    "SELECT doc_id, ordinal, title, heading_path, text, body_start, source_path, start_line, end_line, rewritten"
    " FROM documents JOIN sections USING (document_row)"
)


class _Texts(NamedTuple):
    """The two tables that BM25 is computed over, while they are written."""

    documents: IndexedTexts
    sections: IndexedTexts


@dataclass(frozen=True, slots=True)
class LexicalBuild:
    """What building the index came to.

    Attributes:
        n_documents: Document rows.
        n_sections: Section rows.
        n_written: Documents written; the rest were taken over from the build before.
        n_removed: Documents of the build before that were taken out, changed ones included.
        cjk_share: Share of Chinese, Japanese and Korean letters, averaged over the documents written by their length.
    """

    n_documents: int
    n_sections: int
    n_written: int
    n_removed: int
    cjk_share: float

    @property
    def warning(self) -> str | None:
        """What a reader of the report should know, if anything."""
        if self.cjk_share < CJK_WARNING_SHARE:
            return None
        return (
            f"{self.cjk_share:.0%} of the letters are Chinese, Japanese or Korean: the lexical index splits words at "
            "blanks and punctuation and finds little in such text; rely on the vector arm"
        )


def build_lexical_index(
    target: Path,
    versions: Sequence[tuple[str, str]],
    load: Callable[[str, str], Document],
    *,
    source: LexicalSource = "raw",
    previous: Path | None = None,
    progress: Progress = silent,
) -> LexicalBuild:
    """Write the index of a set of documents, from the one before where little has changed.

    Fresh builds of the same documents are equal byte by byte. One that was brought up to date finds the same, with the
    same scores, but its rows have other numbers.

    Args:
        target: The file to write; appears when it is complete.
        versions: (document id, content version), in order of id.
        load: Gives the document of an id and version.
        source: Which text of rewritten sections is indexed.
        previous: A lexical index, if there is one. It has to be the file that was written (a build knows its hash), since
            damage is noticed only where it is in the way. One of another version or source is not used.
        progress: Told of every document written.

    Raises:
        StoreUnavailable: The disk is full, or the folder cannot be written.
    """
    kept = _kept_versions(previous, versions, source) if previous else None
    if previous is not None and kept is not None:
        try:
            with atomic_path(target) as temporary:
                shutil.copyfile(previous, temporary)
                return _bring_up_to_date(temporary, kept, versions, load, source, progress)
        except (sqlite3.DatabaseError, ValueError):  # damaged after all: it shows where rows are taken out
            pass
    with errors_as(target, StoreUnavailable), atomic_path(target) as temporary:
        return _bring_up_to_date(temporary, {}, versions, load, source, progress)


def _bring_up_to_date(
    path: Path,
    kept: Mapping[str, str],
    versions: Sequence[tuple[str, str]],
    load: Callable[[str, str], Document],
    source: LexicalSource,
    progress: Progress,
) -> LexicalBuild:
    """Make a file, empty or a copy of an earlier index, the index of these versions."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        if not kept:
            _create_tables(connection, source)
        texts = _Texts(*(IndexedTexts(connection, table, is_new=not kept) for table in get_args(_FtsTable)))
        n_removed = _remove_outdated(connection, texts, kept, source) if kept else 0
        to_write = [(doc_id, version) for doc_id, version in versions if doc_id not in kept]
        share = _write_documents(connection, texts, to_write, load, source, progress)
        for table in texts:
            table.finish(progress)
        connection.execute("COMMIT")
        n_documents, n_sections = _counts(connection)
    finally:
        connection.close()
    return LexicalBuild(n_documents, n_sections, len(to_write), n_removed, share)


def _create_tables(connection: sqlite3.Connection, source: LexicalSource) -> None:
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)
    connection.execute("INSERT INTO origin VALUES (?, ?, ?)", _expected_origin(source))


def _kept_versions(
    previous: Path, versions: Sequence[tuple[str, str]], source: LexicalSource
) -> dict[str, str] | None:
    """Documents of the build before that can stay, or None where a fresh build is better."""
    try:
        connection = open_finished(previous, IndexCorrupt)
    except IndexCorrupt:
        return None
    try:
        if _origin(connection) != _expected_origin(source):
            return None
        before = dict(connection.execute("SELECT doc_id, version FROM documents"))
    except sqlite3.DatabaseError:
        return None
    finally:
        connection.close()
    wanted = dict(versions)
    kept = {doc_id: version for doc_id, version in before.items() if wanted.get(doc_id) == version}
    n_changes = len(before.keys() | wanted.keys()) - len(kept)
    return kept if kept and n_changes <= REBUILD_SHARE * len(before) else None


def _expected_origin(source: LexicalSource) -> _Origin:
    return LEXICAL_VERSION, unicodedata.unidata_version, source


def _origin(connection: sqlite3.Connection) -> _Origin:
    found = connection.execute("SELECT * FROM origin").fetchone() or (0,)
    return (*found, "", "")[:3]


def _remove_outdated(
    connection: sqlite3.Connection, texts: _Texts, kept: Mapping[str, str], source: LexicalSource
) -> int:
    rows = connection.execute("SELECT document_row, doc_id, title FROM documents").fetchall()
    outdated = [(row, title) for row, doc_id, title in rows if doc_id not in kept]
    for document_row, title in outdated:
        sections = connection.execute(
            "SELECT section_row, heading_path, text, body_start, rewritten FROM sections WHERE document_row = ?"
            " ORDER BY ordinal",
            (document_row,),
        ).fetchall()
        bodies = [_indexed_body(text[start:], rewritten, source) for _, _, text, start, rewritten in sections]
        headings = [json.loads(path) for _, path, *_ in sections]
        texts.documents.remove(document_row, _document_text(title, headings, bodies))
        for (section_row, *_), heading_path, body in zip(sections, headings, bodies, strict=True):
            texts.sections.remove(section_row, _section_text(title, heading_path, body))
        connection.execute("DELETE FROM sections WHERE document_row = ?", (document_row,))
        connection.execute("DELETE FROM documents WHERE document_row = ?", (document_row,))
    return len(outdated)


def _write_documents(
    connection: sqlite3.Connection,
    texts: _Texts,
    versions: Sequence[tuple[str, str]],
    load: Callable[[str, str], Document],
    source: LexicalSource,
    progress: Progress,
) -> float:
    """Write documents; returns the share of CJK letters in them."""
    n_cjk, n_characters = 0.0, 0
    for position, (doc_id, version) in enumerate(versions, start=1):
        document = load(doc_id, version)
        text = document.text
        _write_document(connection, texts, document, version, source)
        n_cjk += cjk_share(text) * len(text)
        n_characters += len(text)
        progress("lexical index", position, len(versions))
    return n_cjk / n_characters if n_characters else 0.0


def _write_document(
    connection: sqlite3.Connection, texts: _Texts, document: Document, version: str, source: LexicalSource
) -> None:
    sections = document.content_sections
    document_row = _inserted(
        connection,
        "INSERT INTO documents (doc_id, version, title, source_path, properties) VALUES (?, ?, ?, ?, ?)",
        (
            document.doc_id,
            version,
            document.title,
            document.source_path,
            json.dumps(dict(document.properties), sort_keys=True),
        ),
    )
    bodies = [_indexed_body(s.text[s.body_start :], s.rewritten, source) for s in sections]
    headings = [section.heading_path for section in sections]
    texts.documents.add(document_row, _document_text(document.title, headings, bodies))
    for section, body in zip(sections, bodies, strict=True):
        section_row = _inserted(
            connection,
            "INSERT INTO sections (document_row, ordinal, heading_path, text, body_start, start_line, end_line,"
            " rewritten) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                document_row,
                section.ordinal,
                json.dumps(section.heading_path),
                section.text,
                section.body_start,
                section.start_line,
                section.end_line,
                section.rewritten,
            ),
        )
        texts.sections.add(section_row, _section_text(document.title, section.heading_path, body))


def _inserted(connection: sqlite3.Connection, statement: str, values: tuple[str | int | None, ...]) -> int:
    """The number of the row that a statement inserts."""
    return connection.execute(statement, values).lastrowid or 0


def _indexed_body(body: str, rewritten: str | None, source: LexicalSource) -> str:
    if rewritten is None or source == "raw":
        return body
    return rewritten if source == "restructured" else f"{body}\n{rewritten}"


def _section_text(title: str, heading_path: Iterable[str], body: str) -> str:
    return lexical_form("\n".join([title, *heading_path, body]))


def _document_text(title: str, heading_paths: Sequence[Sequence[str]], bodies: Sequence[str]) -> str:
    own_headings = (path[-1] if path else "" for path in heading_paths)
    parts = [part for pair in zip(own_headings, bodies, strict=True) for part in pair]
    return lexical_form("\n".join([title, *parts]))


def _counts(connection: sqlite3.Connection) -> tuple[int, int]:
    n_documents = connection.execute("SELECT count(*) FROM documents").fetchone()[0]
    n_sections = connection.execute("SELECT count(*) FROM sections").fetchone()[0]
    return n_documents, n_sections


@dataclass(frozen=True, slots=True)
class SectionScores:
    """BM25 scores of the sections that match a query.

    Attributes:
        positions: Positions in :attr:`LexicalIndex.sections`, ascending, int64.
        scores: Their scores, float64; higher is better, always above 0.
    """

    positions: NDArray[np.int64]
    scores: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SectionTable:
    """All sections of an index as parallel arrays, ordered by document id and then ordinal.

    Attributes:
        rows: Row in the SQLite table, int64.
        documents: Position of the section's document in :attr:`LexicalIndex.doc_ids`, int64.
        ordinals: The sections' ordinals, int64.
    """

    rows: NDArray[np.int64]
    documents: NDArray[np.int64]
    ordinals: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What the index keeps of one document beside its sections.

    Attributes:
        doc_id: The document.
        title: For display.
        source_path: File below the corpus root.
        properties: What the source says about the document, see :class:`~prime_pipeline.records.Document`.
    """

    doc_id: str
    title: str
    source_path: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredSection:
    """What the index keeps of one section, to show it and to score it.

    Attributes:
        doc_id: The document.
        ordinal: Its place in the document.
        title: The document's title, for display.
        heading_path: Headings below the title.
        text: Raw text.
        body_start: Offset of the text behind title and heading.
        source_path: File below the corpus root.
        start_line: 1-based, or None.
        end_line: 1-based, inclusive, or None.
        rewritten: The body as restructuring left it; None where the raw body stands.
    """

    doc_id: str
    ordinal: int
    title: str
    heading_path: tuple[str, ...]
    text: str
    body_start: int
    source_path: str
    start_line: int | None
    end_line: int | None
    rewritten: str | None = None

    @property
    def restructured(self) -> str | None:
        """The heading line and the rewritten body; None where the raw body stands."""
        if self.rewritten is None:
            return None
        return "\n\n".join(filter(None, [self.text[: self.body_start].strip(), self.rewritten]))


def _stored_document(row: tuple[Any, ...]) -> StoredDocument:
    doc_id, title, source_path, properties = row
    return StoredDocument(doc_id, title, source_path, json.loads(properties))


def _stored_section(row: tuple[Any, ...]) -> StoredSection:
    doc_id, ordinal, title, heading_path, *rest = row
    return StoredSection(doc_id, ordinal, title, tuple(json.loads(heading_path)), *rest)


class LexicalIndex:
    """A finished lexical index, opened for reading. Safe for several threads.

    Attributes:
        doc_ids: Ids of all documents, sorted.
        sections: All sections, in order of document and ordinal.

    Raises:
        IndexCorrupt: The file is missing, damaged, or no lexical index; methods may raise it too.
        IndexOutdated: Another version of this program wrote the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection = open_finished(path, IndexCorrupt)
        with errors_as(path, IndexCorrupt):
            if (found := _origin(self._connection)[0]) != LEXICAL_VERSION:
                raise IndexOutdated(path, found, LEXICAL_VERSION)
        documents = self._rows("SELECT document_row, doc_id FROM documents ORDER BY doc_id")
        sections = self._rows("SELECT section_row, document_row, ordinal FROM sections")
        self.doc_ids: list[str] = [doc_id for _, doc_id in documents]
        self._document_of_row = _inverse([row for row, _ in documents])
        table = np.array(sections, dtype=np.int64).reshape(-1, 3)
        owners = self._document_of_row[table[:, 1]]
        order = np.lexsort((table[:, 2], owners))
        self.sections = SectionTable(table[order, 0], owners[order], table[order, 2])
        self._n_sections = np.bincount(self.sections.documents, minlength=len(self.doc_ids))
        self._section_of_row = _inverse(self.sections.rows)
        self._tokenizer = Tokenizer()
        with self._damage():
            self._postings = {
                "documents_fts": PostingLists(self._rows, "documents_fts", len(self.doc_ids)),
                "sections_fts": PostingLists(self._rows, "sections_fts", len(self.sections.rows)),
            }

    def search_documents(self, query: str, depth: int) -> list[tuple[str, float]]:
        """The best ``depth`` documents by BM25 over their whole text; ties by id, higher is better."""
        positions, scores = self._bm25("documents_fts", query)
        order = np.lexsort((positions, -scores))[:depth]
        return [(self.doc_ids[positions[i]], float(scores[i])) for i in order]

    def score_sections(self, query: str) -> SectionScores:
        """BM25 of every section that shares a word with the query."""
        return SectionScores(*self._bm25("sections_fts", query))

    def document_frequency(self, word: str) -> int:
        """In how many documents a query's word occurs, as queries find it (by stem); see :func:`lexical_words`."""
        ((n_rows,),) = self._rows(
            "SELECT count(*) FROM documents_fts WHERE documents_fts MATCH ?", match_expression([word])
        )
        return int(n_rows)

    def words_in(self, words: Iterable[str], section: StoredSection) -> list[str]:
        """Those of a query's words that occur in a section, title and headings included, as queries find them."""
        query = "SELECT section_row FROM sections JOIN documents USING (document_row) WHERE doc_id = ? AND ordinal = ?"
        ((row,),) = self._rows(query, section.doc_id, section.ordinal)
        occurs = "SELECT 1 FROM sections_fts WHERE rowid = ? AND sections_fts MATCH ?"
        return [word for word in words if self._rows(occurs, row, match_expression([word]))]

    def stored_section(self, position: int) -> StoredSection:
        """The section at a position of :attr:`sections`."""
        (row,) = self._rows(f"{_STORED_SECTIONS} WHERE section_row = ?", int(self.sections.rows[position]))
        return _stored_section(row)

    def document(self, doc_id: str) -> StoredDocument | None:
        """A document by its id, whatever text is given for one; None if it is not indexed."""
        at = bisect_left(self.doc_ids, doc_id)  # not by SQL, which refuses half of a surrogate pair
        if self.doc_ids[at : at + 1] != [doc_id]:
            return None
        (row,) = self._rows(f"{_STORED_DOCUMENTS} WHERE doc_id = ?", doc_id)
        return _stored_document(row)

    def n_sections(self, doc_id: str) -> int:
        """How many sections a document has that is indexed."""
        return int(self._n_sections[bisect_left(self.doc_ids, doc_id)])

    def documents(self) -> list[StoredDocument]:
        """All documents, in order of id."""
        return [_stored_document(row) for row in self._rows(f"{_STORED_DOCUMENTS} ORDER BY doc_id")]

    def stored_versions(self) -> dict[str, str]:
        """Content version by document id."""
        return dict(self._rows("SELECT doc_id, version FROM documents ORDER BY doc_id"))

    def iterate_sections(self, doc_ids: Iterable[str] | None = None) -> Iterator[StoredSection]:
        """All sections in order, or those of some documents; read one document at a time."""
        wanted = self.doc_ids if doc_ids is None else doc_ids
        of_one = f"{_STORED_SECTIONS} WHERE doc_id = ? ORDER BY ordinal"
        return (_stored_section(row) for doc_id in wanted for row in self._rows(of_one, doc_id))

    def close(self) -> None:
        """Close the file."""
        self._tokenizer.close()
        with self._lock:
            self._connection.close()

    def _bm25(self, table: _FtsTable, query: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Positions of the rows that hold a word of the query, ascending, and their BM25, summed in the order of the words."""
        position_of_row = self._document_of_row if table == "documents_fts" else self._section_of_row
        total: NDArray[np.float64] = np.zeros(len(position_of_row))
        for word in _words(query):
            with self._damage():
                rows, scores = self._bm25_of_word(table, word)
                total[position_of_row[rows]] += scores
        found = np.flatnonzero(total)  # no word that occurs is worth 0
        return found, total[found]

    def _bm25_of_word(self, table: _FtsTable, word: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        tokens = self._tokenizer.tokens(word)
        if len(tokens) == 1:
            return self._postings[table].bm25(tokens[0])
        # A phrase: where its tokens stand is known to FTS5 only.
        statement = f"SELECT rowid, -bm25({table}) FROM {table} WHERE {table} MATCH ?"  # noqa: S608
        matches = np.array(self._rows(statement, match_expression([word])), dtype=np.float64).reshape(-1, 2)
        return matches[:, 0].astype(np.int64), matches[:, 1]

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Tell arrays that cannot be what was written from faults of the caller."""
        try:
            yield
        except (ValueError, TypeError, LookupError) as error:
            raise IndexCorrupt(self._path, f"posting lists: {error}") from error

    def _rows(self, query: str, *parameters: str | int) -> list[tuple[Any, ...]]:
        with self._lock, errors_as(self._path, IndexCorrupt):
            return self._connection.execute(query, parameters).fetchall()


def _words(query: str) -> list[str]:
    return lexical_words(query)[:MAX_QUERY_WORDS]


def match_expression(words: Iterable[str]) -> str:
    """The FTS5 expression for any of some words, each quoted, so that nothing is read as syntax."""
    return " OR ".join(f'"{word}"' for word in words)


def _inverse(rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Position by row number; -1 where there is no such row."""
    rows = np.asarray(rows, dtype=np.int64)
    inverse = np.full(int(rows.max()) + 1 if rows.size else 1, -1, dtype=np.int64)
    inverse[rows] = np.arange(rows.size)
    return inverse
