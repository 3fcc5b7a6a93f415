"""QASPER papers (JSON v0.3, also with the columns of the Hugging Face copy, or that copy's parquet) to documents.

A paper's abstract is the preamble; every entry of ``full_text`` is a section, nested names (``A ::: B``) included;
captions of figures and tables make one last section. Questions are no part of a document: datasets read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from prime_pipeline.corpus.decoding import checked, decoded
from prime_pipeline.corpus.location import unreadable
from prime_pipeline.corpus.source import SourceEntry, SourceFailure, SourceItem, unique
from prime_pipeline.errors import CorpusError, DataFileDamaged, DataFileUnavailable, DocumentError
from prime_pipeline.records import Document, Heading, Section, SectionKind, TitleOrigin
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.parquet import parquet_parts, parquet_records

PARQUET: Final = ".parquet"
"""Suffix of the hub's copy."""

_MEDIA_TYPE = "application/x-qasper"
_SEPARATOR = " ::: "
_CAPTIONS = "Figures and tables"
_FIELDS = ("title", "abstract", "full_text", "figures_and_tables")
_NO_PAPERS = "holds no QASPER papers: expected {}"


class QasperCorpus:
    """Papers in a JSON file, a parquet file, or a folder with the parts of the test split.

    Raises:
        CorpusError: Parts are missing in the folder.
    """

    def __init__(self, path: Path, location: str) -> None:
        self.location = location
        self.ignored: Mapping[str, int] = {}
        self._path = path
        self._tables = _tables(path)

    def entries(self) -> Iterator[SourceItem]:
        """Every paper in the order of the files; one that is malformed fails alone."""
        if self._tables:
            return unique(entry for table in self._tables for entry in _table_entries(table))
        name = self._path.name
        try:
            papers = papers_in(self._path.read_bytes(), name)
        except OSError as error:
            return iter([SourceFailure(name, unreadable(error), None)])
        except DocumentError as error:
            return iter([SourceFailure(name, error.reason, None)])
        if papers is None:
            return iter([SourceFailure(name, _NO_PAPERS.format('{"id": {"title": ..., ...}, ...}'), None)])
        return unique(qasper_entries(papers, name))


def qasper_parts(folder: Path) -> list[Path]:
    """The parts of the test split in a folder, ``test-00000-of-00001.parquet`` and so on; none if there are none.

    Raises:
        DataFileUnavailable: Parts are missing, or the folder cannot be listed.
    """
    return parquet_parts(folder, "test")


def _tables(path: Path) -> list[Path]:
    """The parquet files at a path; none if it is a JSON file."""
    if not path.is_dir():
        return [path] if path.suffix.lower() == PARQUET else []
    try:
        return qasper_parts(path)
    except DataFileUnavailable as error:
        raise CorpusError(f"corpus {path}: {error}") from error


def _table_entries(path: Path) -> Iterator[SourceItem]:
    try:
        for row, paper in enumerate(parquet_records(path), start=1):
            if "full_text" not in paper:
                yield SourceFailure(path.name, _NO_PAPERS.format("columns id, title, full_text, ..."), None)
                return
            if not isinstance(paper.get("id"), str) or not paper["id"].strip():
                yield SourceFailure(f"{path.name}:{row}", "has no id: give it one", None)
                continue
            yield from _entries([(paper["id"], paper)], path.name)
    except (DataFileDamaged, DataFileUnavailable) as error:
        yield SourceFailure(path.name, error.reason, None)


def papers_in(data: bytes, source_path: str) -> dict[str, Any] | None:
    """The papers of a JSON file by id; None if it is JSON of another kind.

    Raises:
        DocumentError: It is no JSON.
    """
    try:
        content = json.loads(decoded(data, source_path))
    except (ValueError, RecursionError) as error:
        raise DocumentError(source_path, f"is no JSON ({error}): repair the file") from error
    if isinstance(content, list) and all(
        isinstance(p, dict) and isinstance(p.get("id"), str) for p in content
    ):
        content = {paper["id"]: paper for paper in content}
    if not isinstance(content, dict):
        return None
    return content if any(isinstance(p, dict) and "full_text" in p for p in content.values()) else None


def qasper_entries(papers: Mapping[str, Any], source_path: str, id_prefix: str = "") -> Iterator[SourceItem]:
    """The papers in order; ``id_prefix`` is put in front of each id."""
    return _entries(papers.items(), source_path, id_prefix)


def _entries(
    papers: Iterable[tuple[str, Any]], source_path: str, id_prefix: str = ""
) -> Iterator[SourceItem]:
    for paper_id, paper in papers:
        doc_id, position = id_prefix + paper_id, f"#{paper_id}"
        try:
            checked(doc_id, source_path)
            content = {name: paper.get(name) for name in _FIELDS}
            document = _document(content, doc_id, source_path)
            digest = fingerprint(content)
        except DocumentError as error:
            yield SourceFailure(source_path + position, error.reason, doc_id)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = f"is no QASPER paper ({type(error).__name__}: {error}): compare it with the format v0.3"
            yield SourceFailure(source_path + position, reason, doc_id)
        else:
            yield SourceEntry(doc_id, source_path, _MEDIA_TYPE, digest, partial(_same, document), position)


def _same(document: Document) -> Document:
    return document


def _document(paper: Mapping[str, Any], doc_id: str, source_path: str) -> Document:
    own_title = " ".join(checked(paper["title"] or "", source_path).split())
    sections = [*_abstract(checked(paper["abstract"] or "", source_path))]
    for ordinal, (name, paragraphs) in enumerate(_full_text(paper["full_text"] or []), 1):
        path = tuple(part for part in (checked(name or "", source_path)).split(_SEPARATOR) if part.strip())
        sections.append(_section(ordinal, path, [checked(p, source_path) for p in paragraphs]))
    captions = [
        checked(c, source_path) for c in _captions(paper["figures_and_tables"] or []) if c and c.strip()
    ]
    if captions:
        sections.append(_section(_next_ordinal(sections), (_CAPTIONS,), captions, "captions"))
    if not any(section.body for section in sections):
        raise DocumentError(source_path, "holds neither abstract nor paragraphs: remove the record")
    origin: TitleOrigin = "dataset" if own_title else "file-name"
    return Document(doc_id, own_title or doc_id, origin, tuple(sections), source_path, _MEDIA_TYPE)


def _next_ordinal(sections: list[Section]) -> int:
    return sections[-1].ordinal + 1 if sections else 1


def _full_text(full_text: Any) -> Iterator[tuple[str | None, list[str]]]:
    """Name and paragraphs of every section, out of either layout."""
    if isinstance(full_text, dict):
        yield from zip(full_text["section_name"], full_text["paragraphs"], strict=True)
    else:
        yield from ((section["section_name"], section["paragraphs"]) for section in full_text)


def _captions(figures_and_tables: Any) -> list[str | None]:
    if isinstance(figures_and_tables, dict):
        return list(figures_and_tables["caption"])
    return [figure["caption"] for figure in figures_and_tables]


def _abstract(abstract: str) -> Iterator[Section]:
    if abstract.strip():
        yield Section(0, "preamble", "", (), f"{abstract.strip()}\n\n")


def _section(
    ordinal: int, path: tuple[str, ...], paragraphs: list[str], kind: SectionKind = "section"
) -> Section:
    """A section as Markdown: a heading of level 2 or, nested, deeper; paragraphs with blank lines between."""
    heading = " ".join(path[-1].split()) if path else ""
    level = min(6, 1 + len(path))
    head = f"{'#' * level} {heading}\n\n" if path else ""
    body = "".join(f"{paragraph}\n\n" for paragraph in paragraphs)
    headings = (Heading(level, heading),) if path else ()
    names = tuple(" ".join(part.split()) for part in path)
    return Section(ordinal, kind, heading, names, head + body, len(head), headings)
