"""Where gold evidence stands: in the raw text of a document, in its restructured text, in both or in neither.

What was lost is counted by the fidelity audit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from prime_pipeline.records import Section
from prime_pipeline.text.normal_form import lexical_form

_NAME: Final = r"[A-Z][\w'’-]{0,40}"
_SOURCE: Final = rf"{_NAME}(?:(?:,?\s(?:and|&)\s|,\s){_NAME}){{0,4}}(?:\set\sal\.?)?,?\s(?:19|20)\d\d[a-z]?"
_MARKS: Final = r"BIBREF\d+(?:(?:\s?[,;]\s?|\s)(?:and\s)?BIBREF\d+)*+"
_CITATION: Final = re.compile(
    rf"""
    [(\[]\s?{_MARKS}\s?[)\]] | {_MARKS}
    | (?<!\w)\[\d{{1,3}}(?:\s?[,;–-]\s?\d{{1,3}}){{0,20}}\](?!\()
    | \((?:(?:see|e\.g\.|cf\.),?\ )?{_SOURCE}(?:;\s{_SOURCE}){{0,20}}\)
    """,
    re.VERBOSE,
)
_QUOTES: Final = str.maketrans(dict.fromkeys("“”„‟«»\"`´‘’‚‛'", ""))
_BLANK_AT_MARK: Final = re.compile(r" (?=[,.;:!?)\]}])|(?<=[(\[{]) ")

Form = Callable[[str], str]
"""What is compared instead of the text itself."""


def verbatim_form(text: str) -> str:
    """The text, without the blanks around it."""
    return text.strip()


def normalised_form(text: str) -> str:
    """The text without what restructuring may change at no loss.

    In this order: citation marks vanish with their brackets (``BIBREF3 , BIBREF4``, ``[12, 13]``, ``(Smith et al., 2019;
    Lee, 2020)``, not ``array[3]``); compatibility-composed and case-folded; quotation marks and apostrophes of every kind
    vanish; runs of white space become one blank, and none stands before a closing mark (``, . ; : ! ? ) ] }``) or behind
    an opening bracket.
    """
    text = lexical_form(_CITATION.sub(" ", text)).translate(_QUOTES)
    return _BLANK_AT_MARK.sub("", " ".join(text.split()))


@dataclass(frozen=True, slots=True)
class SpanFate:
    """What became of one gold span.

    Attributes:
        ordinal: The section it is counted at: the first whose raw body holds it, else the first whose restructured body
            does; None if none does.
        in_raw: Whether a raw body holds it.
        in_restructured: Whether a restructured body holds it.
    """

    ordinal: int | None
    in_raw: bool
    in_restructured: bool


def span_fates(sections: Sequence[Section], spans: Sequence[str], form: Form) -> Iterator[SpanFate]:
    """The fate of each distinct span among sections, in order; blank spans are left out.

    A span is held where its form is a substring of the body's form. It may be kept by another section than the one it
    is counted at.

    Args:
        sections: Those in which the spans may stand.
        spans: Gold evidence, each within one section.
        form: Of bodies and spans alike.
    """
    raw = {section.ordinal: form(section.body) for section in sections}
    restructured = {section.ordinal: form(served_body(section)) for section in sections}
    for span in dict.fromkeys(filter(None, map(form, spans))):
        homes = [ordinal for ordinal, body in raw.items() if span in body]
        kept = [ordinal for ordinal, body in restructured.items() if span in body]
        yield SpanFate(next(iter(homes + kept), None), bool(homes), bool(kept))


def served_body(section: Section) -> str:
    """The restructured body where there is one, else the raw one."""
    return section.body if section.rewritten is None else section.rewritten


def is_rewritten(section: Section) -> bool:
    """Whether restructuring changed the body."""
    return served_body(section) != section.body
