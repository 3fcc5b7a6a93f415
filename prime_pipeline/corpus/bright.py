"""BRIGHT (the hub's xlangai/BRIGHT in parquet) to documents: the passages of one task, or the whole pages they are from.

A document's text is read as Markdown, which pages keep some structure of. Queries are no documents: datasets read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from prime_pipeline.corpus.decoding import checked
from prime_pipeline.corpus.markdown import parse_markdown
from prime_pipeline.corpus.sectioning import without_lines
from prime_pipeline.corpus.source import SourceEntry, SourceFailure, SourceItem, unique
from prime_pipeline.errors import CorpusError, DataFileDamaged, DataFileUnavailable, DocumentError
from prime_pipeline.records import Document
from prime_pipeline.storage.fingerprint import text_fingerprint
from prime_pipeline.storage.parquet import parquet_parts, parquet_records

BRIGHT: Final = "bright:"
"""What a location of a BRIGHT task begins with."""

BRIGHT_STRUCTURED_TASKS: Final = (
    "biology",
    "earth_science",
    "economics",
    "psychology",
    "robotics",
    "stackoverflow",
    "sustainable_living",
    "pony",
)
"""The tasks whose documents are parts of pages; these alone have whole pages, too."""

BRIGHT_TASKS: Final = (
    *BRIGHT_STRUCTURED_TASKS,
    "leetcode",
    "aops",
    "theoremqa_theorems",
    "theoremqa_questions",
)
"""All tasks, by the names of their files."""

BrightForm = Literal["documents", "long_documents"]
"""Passages, or whole pages; also the folder that holds them."""

_LONG: Final = "/long"
_MEDIA_TYPE: Final = "text/markdown"


@dataclass(frozen=True, slots=True)
class BrightLocation:
    """Where a task lies, written ``bright:<folder>#<task>``, with ``/long`` behind it for whole pages.

    Attributes:
        folder: With the hub's layout: ``documents``, ``long_documents`` and ``examples`` below it.
        task: One of ``BRIGHT_TASKS``.
        form: Which documents.
    """

    folder: str
    task: str
    form: BrightForm = "documents"

    def __str__(self) -> str:
        return f"{BRIGHT}{self.folder}#{self.task}{_LONG if self.form == 'long_documents' else ''}"

    @property
    def name(self) -> str:
        """The task as reports name it: ``bright/<task>``."""
        return f"bright/{self.task}{_LONG if self.form == 'long_documents' else ''}"


def bright_location(location: str) -> BrightLocation:
    """The parts of a location that begins with ``BRIGHT``; the last ``#`` ends the folder.

    Raises:
        ValueError: It names no folder, no known task, or whole pages of a task that has none.
    """
    folder, mark, task = location.removeprefix(BRIGHT).rpartition("#")
    form: BrightForm = "long_documents" if task.endswith(_LONG) else "documents"
    task = task.removesuffix(_LONG)
    if not mark or not folder:
        raise ValueError(f"write {BRIGHT}<folder>#<task>, such as {BRIGHT}data/bright#biology")
    if task not in BRIGHT_TASKS:
        raise ValueError(f"BRIGHT has no task {task!r}: choose one of {', '.join(BRIGHT_TASKS)}")
    if form == "long_documents" and task not in BRIGHT_STRUCTURED_TASKS:
        raise ValueError(f"BRIGHT has no whole pages for {task}: leave {_LONG} out")
    return BrightLocation(folder, task, form)


class BrightCorpus:
    """The documents of one task, with the ids that they have there.

    Args:
        folder: With the hub's layout.
        task: One of ``BRIGHT_TASKS``.
        form: Passages or whole pages.

    Raises:
        CorpusError: The files of the task are not there, or some of them are missing.
    """

    def __init__(self, folder: Path, task: str, form: BrightForm = "documents") -> None:
        self.location = str(BrightLocation(str(folder), task, form))
        self.ignored: Mapping[str, int] = {}
        self._form = form
        try:
            self._tables = parquet_parts(folder / form, task)
        except DataFileUnavailable as error:
            raise CorpusError(f"corpus {self.location}: {error}") from error
        if not self._tables:
            raise CorpusError(
                f"corpus {self.location} is not there: expected {folder / form / task}-00000-of-00001.parquet, or so"
            )

    def entries(self) -> Iterator[SourceItem]:
        """Every document in the order of the files; one that is malformed, or whose id was seen before, fails alone."""
        return unique(entry for table in self._tables for entry in self._table_entries(table))

    def _table_entries(self, path: Path) -> Iterator[SourceItem]:
        name = f"{self._form}/{path.name}"
        try:
            for row, record in enumerate(parquet_records(path), start=1):
                yield _entry(record, row, name)
        except (DataFileDamaged, DataFileUnavailable) as error:
            yield SourceFailure(name, error.reason, None)


def _entry(record: Mapping[str, Any], row: int, source_path: str) -> SourceItem:
    doc_id = record.get("id")
    if not isinstance(doc_id, str) or not doc_id.strip():
        return SourceFailure(f"{source_path}:{row}", "has no id: give it one", None)
    position = f"#{doc_id}"
    try:
        checked(doc_id, source_path)
        text = _text(record, source_path)
    except DocumentError as error:
        return SourceFailure(source_path + position, error.reason, doc_id)
    digest = text_fingerprint(text)
    parse = partial(_document, text, doc_id, source_path)
    return SourceEntry(doc_id, source_path, _MEDIA_TYPE, digest, parse, position)


def _text(record: Mapping[str, Any], source_path: str) -> str:
    content = record.get("content")
    if not isinstance(content, str):
        raise DocumentError(source_path, "has no content: expected columns id and content, both of text")
    if not content.strip():
        raise DocumentError(source_path, "its content is blank: fill it or remove it")
    return checked(content, source_path)


def _document(text: str, doc_id: str, source_path: str) -> Document:
    """The document without lines (a cell of a table has none), titled by its heading or its id.

    Warnings to authors are left out: a data set is to be taken as it is.
    """
    document = parse_markdown(text, doc_id, source_path)
    title = doc_id if document.title_origin == "file-name" else document.title
    return replace(without_lines(document, title), warnings=())
