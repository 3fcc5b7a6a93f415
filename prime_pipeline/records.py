"""The nouns of the pipeline: frozen records that every stage speaks in.

Only plain data belongs here. A record never reads a file, never loads a model, and knows nothing of where it is
stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
        rewritten: The body as restructuring left it; None where the raw body stands.
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
    rewritten: str | None = None

    @property
    def body(self) -> str:
        """The text behind front matter, title and heading, without surrounding blanks."""
        return self.text[self.body_start :].strip()

    @property
    def restructured_text(self) -> str:
        """The text with the rewritten body in the place of the raw one, blanks around it kept; else the text."""
        if self.rewritten is None:
            return self.text
        before, after = self.text[: self.body_start], self.text[self.body_start :]
        blank = before + after[: len(after) - len(after.lstrip())]
        return blank + self.rewritten + after[len(after.rstrip()) :]


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
        properties: What the source says about the document (scalars and lists of front matter, say), as text; the items of a
            list with commas between them.
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
    def restructured(self) -> Document:
        """The document with every rewritten body in the place of the raw one; headings and lines are the raw ones."""
        sections = tuple(
            replace(section, text=section.restructured_text, rewritten=None) for section in self.sections
        )
        return replace(self, sections=sections)

    @property
    def content_sections(self) -> tuple[Section, ...]:
        """The sections worth a search row: all but a preamble that holds nothing behind title and front matter."""
        return tuple(s for s in self.sections if s.kind != "preamble" or s.body)


def section_id(doc_id: str, ordinal: int) -> str:
    """The id of a section: document id and ordinal, never its heading (headings repeat and change)."""
    return f"{doc_id}#{ordinal}"


def document_of(identifier: str) -> str:
    """The document id that a :func:`section_id` begins with."""
    return identifier.rpartition("#")[0]


OutcomeKind = Literal["accepted", "repaired", "patched", "unchanged", "routed", "raw", "deferred"]
"""What became of a section in restructuring.

``accepted``: the first rewrite passed the gate; ``repaired``: the second, which was told what was missing; ``patched``:
raw sentences were appended to one; ``unchanged``: the rewriting left the text as it was; ``routed``: never asked for,
since rewriting is known to harm such text; ``raw``: no rewrite passed, or the endpoint refuses the section; ``deferred``:
raw for the time being, since the endpoint failed or the budget was spent: the next run tries again.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a rewrite cannot stand as it is, or why a section was not rewritten at all.

    Attributes:
        code: The reason, one of a fixed list, such as ``number_missing``.
        detail: What exactly, for people and for the model that repairs it.
        sources: Sentences of the raw text that hold what is missing; appending them heals it. Empty where nothing
            can be appended.
    """

    code: str
    detail: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spending:
    """What language model calls came to.

    Attributes:
        calls: Answered now, and paid.
        cache_hits: Answers (and refusals) that were known already.
        truncated: Paid calls whose answer was cut off.
        prompt_tokens: Read in the paid calls.
        completion_tokens: Generated in them.
        estimated: Whether some of the tokens were counted here, because the endpoint did not say.
    """

    calls: int = 0
    cache_hits: int = 0
    truncated: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.calls + other.calls,
            self.cache_hits + other.cache_hits,
            self.truncated + other.truncated,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class SectionOutcome:
    """What restructuring made of one section.

    Attributes:
        ordinal: The section.
        kind: See :data:`OutcomeKind`.
        rewritten: The accepted body; None where the raw body stands.
        findings: Why it was repaired, patched, routed, refused or deferred; empty for ``accepted``.
        appended: Raw sentences that the patch appended.
        refused: The last rewrite that was refused, for people to look at; None if there was none. It is never served.
        spending: What it cost, in this run.
    """

    ordinal: int
    kind: OutcomeKind
    rewritten: str | None = None
    findings: tuple[Finding, ...] = ()
    appended: tuple[str, ...] = ()
    refused: str | None = None
    spending: Spending = Spending()


@dataclass(frozen=True, slots=True)
class DocumentOutcome:
    """What restructuring made of one document.

    Attributes:
        doc_id: The document.
        sections: One outcome for each section with content, in order.
    """

    doc_id: str
    sections: tuple[SectionOutcome, ...]

    @property
    def is_complete(self) -> bool:
        """Whether no section was put off."""
        return all(section.kind != "deferred" for section in self.sections)

    @property
    def spending(self) -> Spending:
        """Of all sections."""
        return sum((section.spending for section in self.sections), Spending())

    def applied_to(self, document: Document) -> Document:
        """The document with the rewritten bodies beside the raw ones."""
        rewritten = {outcome.ordinal: outcome.rewritten for outcome in self.sections}
        sections = tuple(replace(s, rewritten=rewritten.get(s.ordinal)) for s in document.sections)
        return replace(document, sections=sections)


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
class CutShort:
    """How far the scoring of sections came within its limit of time.

    Attributes:
        n_scored: Sections that were scored; the others are among no hits.
        n_sections: Sections that would have been scored without a limit.
        time_limit_ms: The limit.
    """

    n_scored: int
    n_sections: int
    time_limit_ms: int


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
        restructured: The section's text after restructuring; None where the raw text stands.
        source_path: File below the corpus root.
        start_line: 1-based first line in that file; None where the format has no lines.
        end_line: 1-based last line, inclusive.
        stage1_rank: Rank of the document after stage 1 (1 is best).
        arm_ranks: Rank of the document in each arm of stage 1 that found it.
        signals: The scores of stage 2 that went into ``score``, by name.
        cut_short: How far scoring came where its limit of time ended it; None where it did not.
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
    restructured: str | None = None
    cut_short: CutShort | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A question with an id; what is relevant to it stands in the judgements (qrels)."""

    query_id: str
    text: str


Qrels = Mapping[str, Mapping[str, int]]
"""Judgements: query id to document (or section) id to grade; a grade above 0 is relevant."""

Run = Mapping[str, Mapping[str, float]]
"""A ranking: query id to document (or section) id to score; higher is better."""
