"""The documentation of installed distributions as a corpus: real text that every machine has, without a download.

A distribution's one-line summary serves as the query that should find it, so it is cut out of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import Distribution, distributions

from prime_pipeline.corpus.decoding import checked
from prime_pipeline.corpus.markdown import parse_markdown
from prime_pipeline.corpus.plain_text import parse_plain_text
from prime_pipeline.corpus.restructured_text import parse_restructured_text
from prime_pipeline.corpus.sectioning import without_lines
from prime_pipeline.corpus.source import INSTALLED, SourceEntry, SourceFailure, SourceItem, unique
from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document
from prime_pipeline.storage.fingerprint import fingerprint

_MIN_CHARACTERS = 200
_MIN_SUMMARY_WORDS = 3

_Parse = Callable[[str, str, str], Document]
_PARSERS: Mapping[str, tuple[str, _Parse]] = {
    "text/markdown": ("text/markdown", parse_markdown),
    "text/plain": ("text/plain", parse_plain_text),
    "text/x-rst": ("text/x-rst", parse_restructured_text),
}


@dataclass(frozen=True, slots=True)
class _Description:
    doc_id: str
    version: str
    summary: str
    content_type: str
    text: str

    @property
    def source_path(self) -> str:
        return f"{self.doc_id}-{self.version}.dist-info/METADATA"


class InstalledCorpus:
    """The long descriptions of the distributions that the running Python sees."""

    location = INSTALLED

    def __init__(self) -> None:
        self.ignored: Mapping[str, int] = {}

    def entries(self) -> Iterator[SourceItem]:
        """Every description of at least 200 characters (without the summary) by distribution name."""
        return unique(_entry(description) for description in _descriptions())


def summaries() -> list[tuple[str, str]]:
    """Document id and summary of the same distributions, sorted by id.

    Left out are summaries of fewer than three words and those that several distributions share.
    """
    found = [(d.doc_id, d.summary) for d in _descriptions() if _is_query(d.summary)]
    counts = Counter(summary.casefold() for _, summary in found)
    return [(doc_id, summary) for doc_id, summary in found if counts[summary.casefold()] == 1]


def _descriptions() -> Iterator[_Description]:
    first: dict[str, Distribution] = {}
    for distribution in distributions():
        if name := distribution.metadata["Name"]:
            first.setdefault(re.sub(r"[-_.]+", "-", name).lower(), distribution)
    for doc_id in sorted(first):
        description = _description(doc_id, first[doc_id])
        if len(description.text.strip()) >= _MIN_CHARACTERS:
            yield description


def _description(doc_id: str, distribution: Distribution) -> _Description:
    metadata = distribution.metadata.json
    summary = " ".join(str(metadata.get("summary", "")).split())
    content_type = str(metadata.get("description_content_type", "")).split(";")[0].strip().lower()
    text = str(metadata.get("description", ""))
    return _Description(doc_id, distribution.version, summary, content_type, _without(summary, text))


def _is_query(summary: str) -> bool:
    return len(summary.split()) >= _MIN_SUMMARY_WORDS


def _without(summary: str, text: str) -> str:
    """The text without any occurrence of the summary, however it is broken into lines or capitalised."""
    if not _is_query(summary):
        return text
    words = r"\s+".join(re.escape(word) for word in summary.rstrip(".!").split())
    return re.sub(rf"(?<!\w){words}(?!\w)[.!]?", "", text, flags=re.IGNORECASE)


def _entry(description: _Description) -> SourceItem:
    d = description
    media_type, parse = _PARSERS.get(d.content_type, _PARSERS["text/x-rst"])
    try:
        text = checked(d.text, d.source_path)
    except DocumentError as error:
        return SourceFailure(d.source_path, error.reason, d.doc_id)
    digest = fingerprint([d.version, d.summary, media_type, text])
    parsed = partial(_document, parse, text, d.doc_id, d.source_path)
    return SourceEntry(d.doc_id, d.source_path, media_type, digest, parsed)


def _document(parse: _Parse, text: str, doc_id: str, source_path: str) -> Document:
    """The document without lines (its text is only a part of METADATA) and titled by its heading or its name."""
    document = parse(text, doc_id, source_path)
    if document.title_origin == "file-name":
        document = replace(document, title=doc_id, title_origin="dataset")
    return without_lines(document, document.title)
