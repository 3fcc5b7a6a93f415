"""From ranked section ids to what a generator reads, under the conditions that the PRIME paper compares (section 4.1).

How sections were found, and what becomes of the passages, is for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from prime_pipeline.errors import EvaluationError
from prime_pipeline.records import Document, Section, section_id


class Condition(StrEnum):
    """Which text sections are retrieved by, and which text of them is read.

    Attributes:
        RAW_TO_RAW: Retrieved by the raw text, read raw: the baseline.
        RAW_TO_RESTRUCTURED: Retrieved by the raw text; of the same sections the restructured text is read. What it
            gains over the baseline is the worth of restructuring as reading matter.
        FULL_TO_FULL: Retrieved by the restructured text and read restructured, as the full mode serves it.
    """

    RAW_TO_RAW = "raw-to-raw"
    RAW_TO_RESTRUCTURED = "raw-to-restructured"
    FULL_TO_FULL = "full-to-full"

    @property
    def retrieves_restructured(self) -> bool:
        """Whether the index must be one of the full mode."""
        return self is Condition.FULL_TO_FULL

    @property
    def reads_restructured(self) -> bool:
        """Whether the generator reads the restructured text."""
        return self is not Condition.RAW_TO_RAW


@dataclass(frozen=True, slots=True)
class Passage:
    """A section as a generator reads it.

    Attributes:
        section_id: See :func:`prime_pipeline.records.section_id`.
        title: The document's own; empty where it names none.
        heading_path: From the outermost heading to the section's own.
        text: The body, raw or restructured.
    """

    section_id: str
    title: str
    heading_path: tuple[str, ...]
    text: str


Sections = Mapping[str, tuple[Document, Section]]
"""Section id to the section, and the document that it is from."""


def sections_by_id(documents: Iterable[Document]) -> dict[str, tuple[Document, Section]]:
    """The sections that search may return. For the restructured text, the documents must hold the rewritten bodies."""
    return {
        section_id(document.doc_id, section.ordinal): (document, section)
        for document in documents
        for section in document.content_sections
    }


def passages(section_ids: Sequence[str], sections: Sections, condition: Condition) -> tuple[Passage, ...]:
    """What is read of the sections that were found, in the order given.

    A section that restructuring left as it was is read raw under every condition.

    Args:
        section_ids: Best first, as many as shall be read (the paper reads five).
        sections: All that may have been found.
        condition: Decides the text that is read; that the ids come from the right index is for the caller to see to.

    Raises:
        EvaluationError: An id is not among the sections.
    """
    return tuple(_passage(found, sections, condition) for found in section_ids)


def _passage(found: str, sections: Sections, condition: Condition) -> Passage:
    if found not in sections:
        raise EvaluationError(
            f"section {found!r} was retrieved, but is not among the documents to read: index and documents are of "
            "different states, refresh and retrieve again"
        )
    document, section = sections[found]
    is_rewritten = condition.reads_restructured and section.rewritten is not None
    text = (section.rewritten or "") if is_rewritten else section.body
    return Passage(found, document.own_title, section.heading_path, text)
