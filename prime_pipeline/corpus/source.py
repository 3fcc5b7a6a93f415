"""What a corpus is to the rest of the program: entries with fingerprints, parsed on demand, one at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from prime_pipeline.corpus.decoding import printable, without_byte_order_mark
from prime_pipeline.errors import DuplicateDocumentId
from prime_pipeline.records import Document

PARSER_VERSION: Final = "2"
"""Raise it when a reader changes what it makes of the same bytes: every document is then parsed anew."""

INSTALLED: Final = "installed:"
"""The location that stands for the documentation of the installed distributions."""


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One document as it lies in the corpus, read but not parsed.

    Attributes:
        doc_id: Unique among the entries of one corpus.
        source_path: File relative to the corpus root, with forward slashes.
        media_type: See :class:`~prime_pipeline.records.Document`.
        fingerprint: SHA-256 (hex) of the file's bytes without a UTF-8 byte order mark, or of the canonical JSON of
            those fields of a record that the document is made of.
        parse: Makes the document out of what was read; raises DocumentError.
        position: Where a record stands in its file, as it is written behind the path: ``:17`` or ``#id``.
    """

    doc_id: str
    source_path: str
    media_type: str
    fingerprint: str
    parse: Callable[[], Document]
    position: str = ""


@dataclass(frozen=True, slots=True)
class SourceFailure:
    """A file or record that is no document, and why.

    Path and reason can always be printed and stored: half of a surrogate pair in them is written out.

    Attributes:
        source_path: The file, or ``file:line`` for a record of a JSON Lines file, or ``file#id`` for a JSON record.
        reason: What is wrong and what to do, without the path.
        doc_id: The id that the document would have; None if unknown, if it belongs to another entry, or if
            it is not valid UTF-8, so that no document can have it.
    """

    source_path: str
    reason: str
    doc_id: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "source_path", printable(self.source_path))
        object.__setattr__(self, "reason", printable(self.reason))
        if self.doc_id is not None and printable(self.doc_id) != self.doc_id:
            object.__setattr__(self, "doc_id", None)


SourceItem = SourceEntry | SourceFailure


class CorpusSource(Protocol):
    """A corpus that can be read again and again.

    Attributes:
        location: As the user names it.
        ignored: After an iteration, how many files were passed over, by suffix (``""``: without one).
    """

    location: str
    ignored: Mapping[str, int]

    def entries(self) -> Iterator[SourceItem]:
        """Everything in the corpus by path and position; each id at most once, later ones as failures."""
        ...


def bytes_fingerprint(data: bytes) -> str:
    """SHA-256 (hex) of a file's bytes without a UTF-8 byte order mark, so that copies with and without are equal."""
    return hashlib.sha256(without_byte_order_mark(data)).hexdigest()


def unique(items: Iterator[SourceItem]) -> Iterator[SourceItem]:
    """The items, with every entry whose id was seen before, or is not valid UTF-8, turned into a failure."""
    owners: dict[str, str] = {}
    for item in items:
        if isinstance(item, SourceEntry):
            place = item.source_path + item.position
            if printable(item.doc_id + place) != item.doc_id + place:
                yield SourceFailure(place, "its name or id is not valid UTF-8: rename it", None)
                continue
            if owner := owners.get(item.doc_id):
                yield SourceFailure(place, DuplicateDocumentId(place, item.doc_id, owner).reason, None)
                continue
            owners[item.doc_id] = place
        yield item
