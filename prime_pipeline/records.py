"""The nouns of the pipeline: frozen records that every stage speaks in.

Only plain data belongs here. A record never reads a file, never loads a model, and knows nothing of where it is
stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SectionKind = Literal["preamble", "section", "whole", "captions"]
TitleOrigin = Literal["front-matter", "heading", "dataset", "file-name"]


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading of a document, of any level.

    Attributes:
        level: 1 for H1 to 6 for H6.
        text: The heading's words without markup, blanks squeezed.
        line: 1-based line of the source on which it starts; None where the format has no lines (JSON).
    """

    level: int
    text: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A slice of a document's text, the unit that search returns.

    The texts of a document's sections, joined in order, are the document's text, character for character.

    Attributes:
        ordinal: Position in the document. 0 is the text before the first section (preamble), or the whole text of
            a document without section headings; the first headed section is 1 whether or not there is a preamble.
        kind: ``preamble``, ``section``, ``whole`` (a document without section headings) or ``captions``.
        heading: The section's own heading; empty for a preamble, the title for ``whole``.
        heading_path: Headings from the outermost (below the title) to the section's own, both included.
        text: The exact slice, heading line included.
        body_start: Offset into ``text`` behind front matter, title and the section's own heading.
        headings: Headings inside the slice in order, its own first.
        start_line: 1-based first line in the source; None where the format has no lines.
        end_line: 1-based last line, inclusive.
    """

    ordinal: int
    kind: SectionKind
    heading: str
    heading_path: tuple[str, ...]
    text: str
    body_start: int = 0
    headings: tuple[Heading, ...] = ()
    start_line: int | None = None
    end_line: int | None = None

    @property
    def body(self) -> str:
        """The text behind front matter, title and heading, without surrounding blanks."""
        return self.text[self.body_start :].strip()


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document.

    Attributes:
        doc_id: Comes from the path or the data set, never from the content; unique in a corpus.
        title: For display. See ``title_origin``.
        title_origin: ``file-name`` means that the document names no title of its own: such a title stays out of
            embedded text, prompts and cache keys, so that a renamed file costs nothing.
        sections: In order; their texts joined are the document's text.
        source_path: Path of the file relative to the corpus root, with forward slashes.
        media_type: ``text/markdown``, ``text/html``, ``text/x-rst``, ``text/plain``, ``application/pdf``,
            ``application/x-beir`` or ``application/x-qasper``.
        properties: What the source says about the document (front matter scalars, say), as text.
        warnings: Readings that an author may not have meant, one sentence each.
    """

    doc_id: str
    title: str
    title_origin: TitleOrigin
    sections: tuple[Section, ...]
    source_path: str
    media_type: str
    properties: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole text: the sections' texts joined."""
        return "".join(section.text for section in self.sections)

    @property
    def own_title(self) -> str:
        """The title if the document itself names one, else the empty string."""
        return "" if self.title_origin == "file-name" else self.title

    @property
    def content_sections(self) -> tuple[Section, ...]:
        """The sections worth a search row: all but a preamble that holds nothing behind title and front matter."""
        return tuple(s for s in self.sections if s.kind != "preamble" or s.body)


def section_id(doc_id: str, ordinal: int) -> str:
    """The id of a section: document id and ordinal, never its heading (headings repeat and change)."""
    return f"{doc_id}#{ordinal}"


@dataclass(frozen=True, slots=True)
class DocumentMetadata:
    """What metadata synthesis (MS) says about one document.

    Attributes:
        doc_id: The document.
        terms: The discriminative terms, best first, with their scores; ties are in alphabetical order.
        headings: The heading tree, flattened in document order, as (level, text).
        text: The metadata text that is embedded: one vector per document.
    """

    doc_id: str
    terms: tuple[tuple[str, float], ...]
    headings: tuple[tuple[int, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class SectionHit:
    """One section that answers a query.

    Attributes:
        rank: 1 for the best.
        score: Higher is better; comparable only within one query.
        doc_id: The document.
        section_id: Document id and ordinal, see :func:`section_id`.
        title: The document's title, for display.
        heading_path: From the outermost heading below the title to the section's own.
        text: The section's raw text.
        source_path: File below the corpus root.
        start_line: 1-based first line in that file; None where the format has no lines.
        end_line: 1-based last line, inclusive.
        stage1_rank: Rank of the document after stage 1 (1 is best).
        arm_ranks: Rank of the document in each arm of stage 1 that found it.
        signals: The scores of stage 2 that went into ``score``, by name.
    """

    rank: int
    score: float
    doc_id: str
    section_id: str
    title: str
    heading_path: tuple[str, ...]
    text: str
    source_path: str
    start_line: int | None
    end_line: int | None
    stage1_rank: int
    arm_ranks: Mapping[str, int]
    signals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Query:
    """A question with an id; what is relevant to it stands in the judgements (qrels)."""

    query_id: str
    text: str


Qrels = Mapping[str, Mapping[str, int]]
"""Judgements: query id to document (or section) id to grade; a grade above 0 is relevant."""

Run = Mapping[str, Mapping[str, float]]
"""A ranking: query id to document (or section) id to score; higher is better."""
