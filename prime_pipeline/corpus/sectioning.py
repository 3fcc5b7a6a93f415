"""The cut of a text into sections, the same for every format. Readers say where headings stand; no parsing here.

Section level: H2; without any H2 the shallowest other level that occurs at least twice; without that one ``whole``
section. A heading shallower than the section level (other than the title) starts a section, too; if nothing but
blanks follows until the deeper section heading below it, its lines go into that next section, so that ``# B``
directly above ``## Results`` gives one section *Results* with the path (*B*, *Results*).

Title: the one that the source declares (front matter), else the only H1 if it stands before the first section
heading, else the file name. That H1 starts no section, and neither does the first of several that repeats the
declared title.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, zip_longest
from pathlib import PurePosixPath

from prime_pipeline.records import Document, Heading, Section, TitleOrigin

_NO_LEVEL = 0  # shallower than every heading: nothing starts a section


@dataclass(frozen=True, slots=True)
class PlacedHeading:
    """A heading that may start a section.

    Attributes:
        level: 1 for H1 to 6 for H6.
        text: The words without markup.
        start: 0-based line of the text on which it starts.
        end: 0-based line behind it; a heading with its underline spans several lines.
        source_line: 1-based line of the file (HTML is read to another text); None if unknown.
    """

    level: int
    text: str
    start: int
    end: int
    source_line: int | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """What a reader found in one text.

    Attributes:
        text: With LF line ends.
        headings: In order of their lines, those inside quotes or lists left out.
        front_matter_end: 0-based line behind the front matter; 0 without any.
        declared_title: Title from front matter or the like; empty without any.
        n_source_lines: Lines of the file; None where sections cannot be traced to lines.
        properties: What the source says about the document.
        warnings: Readings that an author may not have meant, one sentence each.
    """

    text: str
    headings: Sequence[PlacedHeading] = ()
    front_matter_end: int = 0
    declared_title: str = ""
    n_source_lines: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a section starts: at ``first``, its own heading or the outermost of the parents merged into it."""

    first: PlacedHeading
    own: PlacedHeading
    path: tuple[str, ...]


class _Lines:
    """A text by 0-based line numbers."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offsets = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
        self.offsets[-1] = len(text)  # the last line has no line end
        self.end = len(self.offsets) - 1

    def between(self, start: int, end: int) -> str:
        return self.text[self.offsets[start] : self.offsets[end]]

    def are_blank(self, start: int, end: int) -> bool:
        return start <= end and not self.between(start, end).strip()

    def n_characters(self, start: int, end: int) -> int:
        return self.offsets[end] - self.offsets[start]


def sectioned(outline: Outline, doc_id: str, source_path: str, media_type: str) -> Document:
    """The document that an outline describes; its sections joined are ``outline.text``, character for character."""
    title_heading = _title_heading(outline)
    title, origin = _title(outline, title_heading, source_path)
    lines = _Lines(outline.text)
    starts = _starts(lines, [h for h in outline.headings if h is not title_heading])
    lead = _lead(lines, outline, title_heading, starts, title)
    return Document(
        doc_id=doc_id,
        title=title,
        title_origin=origin,
        sections=(*lead, *_headed(lines, outline, starts)),
        source_path=source_path,
        media_type=media_type,
        properties=dict(outline.properties),
        warnings=tuple(outline.warnings),
    )


def without_lines(document: Document, title: str) -> Document:
    """A document whose text is no file of its own, such as a cell of a table: under another title, and without lines."""
    sections = tuple(
        replace(
            section,
            heading=title if section.kind == "whole" else section.heading,
            headings=tuple(replace(heading, line=None) for heading in section.headings),
            start_line=None,
            end_line=None,
        )
        for section in document.sections
    )
    return replace(document, title=title, sections=sections)


def n_lines(text: str) -> int:
    """Lines of a text with LF line ends; a last line without line end counts."""
    return text.count("\n") + (not text.endswith("\n"))


def readable_stem(path: str) -> str:
    """A file's name as words: ``docs/0235-collections_conventions.md`` gives ``0235 collections conventions``."""
    stem = PurePosixPath(path).stem
    return " ".join(re.split(r"[-_\s]+", stem)).strip() or stem


def _title_heading(outline: Outline) -> PlacedHeading | None:
    first_level = [h for h in outline.headings if h.level == 1]
    if not first_level or (len(first_level) > 1 and first_level[0].text != outline.declared_title):
        return None
    title, *_ = first_level
    others = [h for h in outline.headings if h is not title]
    level = _section_level(others)
    first_section = next((h.start for h in others if h.level <= level), None)
    return title if first_section is None or title.start < first_section else None


def _section_level(headings: Sequence[PlacedHeading]) -> int:
    counts = Counter(h.level for h in headings)
    if counts[2]:
        return 2
    return min((level for level, count in counts.items() if count > 1), default=_NO_LEVEL)


def _title(outline: Outline, heading: PlacedHeading | None, path: str) -> tuple[str, TitleOrigin]:
    if outline.declared_title:
        return outline.declared_title, "front-matter"
    if heading and heading.text:
        return heading.text, "heading"
    return readable_stem(path), "file-name"


def _starts(lines: _Lines, headings: Sequence[PlacedHeading]) -> list[_Start]:
    level = _section_level(headings)
    own = [h for h in headings if h.level <= level]
    starts: list[_Start] = []
    parents: list[PlacedHeading] = []
    first: PlacedHeading | None = None
    for heading, after in zip_longest(own, own[1:]):
        parents = [*(p for p in parents if p.level < heading.level), heading]
        first = first or heading
        if after and after.level > heading.level and lines.are_blank(heading.end, after.start):
            continue  # the next section takes this heading's lines along
        starts.append(_Start(first, heading, tuple(p.text for p in parents)))
        first = None
    return starts


def _lead(
    lines: _Lines, outline: Outline, title_heading: PlacedHeading | None, starts: list[_Start], title: str
) -> list[Section]:
    """The text before the first section, or all of a text without sections; none if that is empty."""
    end = starts[0].first.start if starts else lines.end
    if not lines.between(0, end):
        return []
    body_line = min(outline.front_matter_end, end)
    if title_heading and lines.are_blank(body_line, title_heading.start):
        body_line = title_heading.end
    section = Section(
        ordinal=0,
        kind="preamble" if starts else "whole",
        heading="" if starts else title,
        heading_path=(),
        text=lines.between(0, end),
        body_start=lines.n_characters(0, body_line),
        headings=_inside(outline, 0, end),
    )
    return [_with_lines(section, outline, 1, starts[0] if starts else None)]


def _headed(lines: _Lines, outline: Outline, starts: list[_Start]) -> Iterator[Section]:
    for ordinal, (start, after) in enumerate(zip_longest(starts, starts[1:]), 1):
        end = after.first.start if after else lines.end
        section = Section(
            ordinal=ordinal,
            kind="section",
            heading=start.own.text,
            heading_path=start.path,
            text=lines.between(start.first.start, end),
            body_start=lines.n_characters(start.first.start, start.own.end),
            headings=_inside(outline, start.first.start, end),
        )
        yield _with_lines(section, outline, start.first.source_line, after)


def _inside(outline: Outline, start: int, end: int) -> tuple[Heading, ...]:
    """The headings of a slice; bisected, since a text of nothing but headings would take quadratic time."""
    low = bisect_left(outline.headings, start, key=lambda h: h.start)
    high = bisect_left(outline.headings, end, lo=low, key=lambda h: h.start)
    return tuple(Heading(h.level, h.text, h.source_line) for h in outline.headings[low:high])


def _with_lines(section: Section, outline: Outline, start: int | None, after: _Start | None) -> Section:
    """The section with its lines in the source: up to where the next one starts, or to the last line."""
    end = after.first.source_line if after else (outline.n_source_lines or 0) + 1
    if outline.n_source_lines is None or start is None or end is None:
        return section
    return replace(section, start_line=start, end_line=max(start, end - 1))
