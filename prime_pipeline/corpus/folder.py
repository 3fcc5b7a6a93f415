"""A folder of files to documents: which files count, and which reader reads them.

Hidden files and folders are skipped, and files with other suffixes are counted. A symbolic link to a file is
followed, out of the folder, too, and the document bears the link's name; links to folders are not followed. A file of more than 32 MiB (``MAX_FILE_BYTES``) fails, and like every failure it fails alone; only
JSON Lines files, read line by line, may be larger.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from prime_pipeline.corpus.beir import beir_entries, is_beir
from prime_pipeline.corpus.decoding import decoded, printable
from prime_pipeline.corpus.html import decoded_html, parse_html
from prime_pipeline.corpus.location import unreadable
from prime_pipeline.corpus.markdown import parse_markdown
from prime_pipeline.corpus.pdf import parse_pdf
from prime_pipeline.corpus.plain_text import parse_plain_text
from prime_pipeline.corpus.qasper import papers_in, qasper_entries
from prime_pipeline.corpus.restructured_text import parse_restructured_text
from prime_pipeline.corpus.source import SourceEntry, SourceFailure, SourceItem, bytes_fingerprint, unique
from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document

MAX_FILE_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Reader:
    """How files of one kind become text, and text a document of an id and a path."""

    media_type: str
    parse: Callable[[str, str, str], Document]
    decode: Callable[[bytes, str], str] = decoded


_MARKDOWN = _Reader("text/markdown", parse_markdown)
_HTML = _Reader("text/html", parse_html, decoded_html)
_PLAIN = _Reader("text/plain", parse_plain_text)
_READERS: Mapping[str, _Reader] = {
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".html": _HTML,
    ".htm": _HTML,
    ".xhtml": _HTML,
    ".rst": _Reader("text/x-rst", parse_restructured_text),
    ".txt": _PLAIN,
    ".text": _PLAIN,
}


class FolderCorpus:
    """All documents below a folder; a document's id is its path below the folder."""

    def __init__(self, path: Path, location: str) -> None:
        self.location = location
        self.ignored: Mapping[str, int] = {}
        self._path = path

    def entries(self) -> Iterator[SourceItem]:
        """Every document by path; ``ignored`` is complete when the iterator is exhausted."""
        return unique(self._entries())

    def _entries(self) -> Iterator[SourceItem]:
        ignored: Counter[str] = Counter()
        self.ignored = ignored
        for relative_path, error in sorted(_files(self._path), key=lambda found: found[0]):
            suffix = Path(relative_path).suffix.lower()
            try:
                if error:
                    raise error
                found = _read(self._path / relative_path, _checked_name(relative_path), suffix)
                if found is None:
                    ignored[suffix] += 1
                else:
                    yield from found
            except DocumentError as failure:
                yield SourceFailure(relative_path, failure.reason, relative_path)
            except OSError as failure:
                yield SourceFailure(relative_path, unreadable(failure), relative_path)


def _files(root: Path) -> Iterator[tuple[str, OSError | None]]:
    """Paths of all files below a folder, relative to it, and of the folders that cannot be listed."""
    errors: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=errors.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = Path(folder).relative_to(root)
        yield from (((inside / name).as_posix(), None) for name in names if not name.startswith("."))
    yield from ((Path(error.filename).relative_to(root).as_posix(), error) for error in errors)


def _checked_name(relative_path: str) -> str:
    if (shown := printable(relative_path)) != relative_path:
        raise DocumentError(shown, "its name is not valid UTF-8: rename it")
    return relative_path


def _read(path: Path, name: str, suffix: str) -> Iterator[SourceItem] | None:
    """What a file holds; None if it is of no supported kind."""
    if suffix == ".jsonl":
        _regular_size(path, name)
        return beir_entries(path, name, f"{name}#") if is_beir(path) else None
    if suffix == ".json":
        papers = papers_in(_bytes(path, name), name)
        return None if papers is None else qasper_entries(papers, name, f"{name}#")
    if suffix == ".pdf":
        data = _bytes(path, name)
        parse = partial(parse_pdf, data, name, name)
        return iter([SourceEntry(name, name, "application/pdf", bytes_fingerprint(data), parse)])
    if suffix in _READERS:
        return iter([_entry(_bytes(path, name), name, _READERS[suffix])])
    return None


def _entry(data: bytes, name: str, reader: _Reader) -> SourceEntry:
    text = reader.decode(data, name)
    if not text.strip():
        raise DocumentError(name, "holds nothing but blanks: fill it or remove it")
    return SourceEntry(
        name, name, reader.media_type, bytes_fingerprint(data), partial(reader.parse, text, name, name)
    )


def _bytes(path: Path, name: str) -> bytes:
    size_bytes = _regular_size(path, name)
    if size_bytes == 0:
        raise DocumentError(name, "is empty: fill it or remove it")
    if size_bytes > MAX_FILE_BYTES:
        reason = f"has {size_bytes / 2**20:.1f} MiB, more than the limit of {MAX_FILE_BYTES >> 20}: split it"
        raise DocumentError(name, reason)
    return path.read_bytes()


def _regular_size(path: Path, name: str) -> int:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise DocumentError(name, "is no regular file: a pipe or a device cannot be read")
    return status.st_size
