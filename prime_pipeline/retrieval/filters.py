"""Which documents a search may answer from: by path, tags and date, as the documents themselves say them.

Tags and dates are read from a document's properties: front matter of Markdown, ``metadata`` of BEIR records. Formats that
carry none have neither, and times of files do not count: a checkout gives all files the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from fnmatch import translate
from typing import Final

from prime_pipeline.errors import NoSuchDays
from prime_pipeline.indexes.lexical import StoredDocument
from prime_pipeline.text.normal_form import lexical_form

TAG_PROPERTIES: Final = ("tags", "tag", "keywords", "categories", "category")
"""Whose values, cut at commas, are a document's tags."""
DATE_PROPERTIES: Final = (
    "date",
    "published",
    "created",
    "updated",
    "modified",
    "lastmod",
    "last_modified",
    "last_updated",
)
"""The latest of whose values is a document's date."""

_GLOB: Final = re.compile(r"[*?\[]")
_DATE: Final = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)")


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    """What a document has to fulfil, all of it; nothing is asked by default.

    Attributes:
        path: Beginning of the path below the corpus root; with ``*``, ``?`` or ``[...]`` in it a pattern for the whole
            path, whose ``*`` also passes ``/``.
        tags: All of them must be among the document's; case does not count.
        since: The first day; a document without a date is left out.
        until: The last day, likewise.

    Raises:
        NoSuchDays: The last day lies before the first.
    """

    path: str = ""
    tags: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None

    def __post_init__(self) -> None:
        if self.since and self.until and self.since > self.until:
            raise NoSuchDays(self.since, self.until)

    def excluded(self, documents: Iterable[StoredDocument]) -> frozenset[str]:
        """Ids of the documents that do not fulfil it."""
        if self == DocumentFilter():
            return frozenset()
        has_path = _path_test(self.path)
        tags = {lexical_form(tag.strip()) for tag in self.tags}
        return frozenset(
            document.doc_id
            for document in documents
            if not (
                has_path(document.source_path)
                and tags <= tags_of(document.properties)
                and self._has_date(document.properties)
            )
        )

    def _has_date(self, properties: Mapping[str, str]) -> bool:
        if self.since is None and self.until is None:
            return True
        found = date_of(properties)
        return found is not None and (self.since or date.min) <= found <= (self.until or date.max)


def tags_of(properties: Mapping[str, str]) -> frozenset[str]:
    """A document's tags in the form in which they are compared."""
    tags = (tag.strip() for value in _values(properties, TAG_PROPERTIES) for tag in value.split(","))
    return frozenset(lexical_form(tag) for tag in tags if tag)


def date_of(properties: Mapping[str, str]) -> date | None:
    """A document's date: the latest of those that begin with year, month and day, such as 2024-05-31 or 2024/5/31."""
    values = _values(properties, DATE_PROPERTIES)
    return max((found for value in values for found in _dates(value)), default=None)


def _values(properties: Mapping[str, str], names: Collection[str]) -> Iterator[str]:
    """The values of properties with one of these names, however it is spelt: ``Last-Modified`` is ``last_modified``."""
    return (value for key, value in properties.items() if key.casefold().replace("-", "_") in names)


def _dates(text: str) -> Iterator[date]:
    if match := _DATE.match(text):
        with suppress(ValueError):  # there is no 31st of June
            yield date(*map(int, match.groups()))


def _path_test(path: str) -> Callable[[str], bool]:
    if not _GLOB.search(path):
        return lambda source_path: source_path.startswith(path)
    pattern = re.compile(translate(path))
    return lambda source_path: pattern.match(source_path) is not None
