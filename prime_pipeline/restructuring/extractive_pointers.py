"""Sentences that say nothing but where something stands, or thank nobody in particular: road maps, pure pointers.

Whether one may go is for the caller to say, who knows what else it holds.
"""

from __future__ import annotations

import re
from typing import Final

from prime_pipeline.restructuring.extractive_facts import REFERENCE

_MAX_WORDS: Final = 30
_MAX_CHARACTERS: Final = 400
_MAX_POINTER_WORDS: Final = 16

_ADVERBS: Final = (
    r"(?:(?:will|now|first|then|next|also|briefly|finally|further|shortly|are|is|going|to|can)\s+){0,3}"
)
_TELL: Final = (
    r"(?:describe|present|discuss|introduce|review|outline|explain|detail|provide|give|report|summari[sz]e|show|"
    r"conclude|survey|elaborate|cover|list|evaluate|analy[sz]e|compare|contain|examine|explore|draw|offer|talk|"
    r"illustrate|depict|display)"
)
_TOLD: Final = (
    r"(?:described|presented|discussed|introduced|reviewed|outlined|explained|detailed|provided|given|reported|"
    r"summari[sz]ed|shown|found|listed|covered|illustrated|depicted|displayed|seen|followed|elaborated)"
)
_PLACE: Final = (
    r"(?:(?:the\s+)?(?:this|next|following|subsequent|later|remaining|future|last|previous)\s+"
    r"(?:sub-?)?(?:sections?|chapters?|paragraphs?|subsections?)|(?:the\s+)?(?:appendix|appendices|supplementary\s+material)"
    rf"|the\s+following|(?:the\s+)?{REFERENCE})"
)
_WORK: Final = (
    r"(?:this|the|our)\s+(?:paper|article|work|report|document|thesis|section|chapter|study|manuscript)"
)

_ROAD_MAP: Final = re.compile(
    rf"""(?:
    (?:the\ )?(?:rest|remainder|remaining\ \w+|structure|organi[sz]ation|outline)\ of\ {_WORK}\b.*
      \b(?:organi[sz]ed|structured|as\ follows|proceeds|arranged|divided)\b.*
    | {_WORK}\s(?:is|has\ been)\s(?:organi[sz]ed|structured|arranged|laid\ out)\b.*
    | (?:(?:and|then|next|finally|lastly)\s?,?\s)?in\s{_PLACE}\s?,?\s(?:we|i)\s{_ADVERBS}{_TELL}\b.*
    | (?:(?:and|then|next|finally|lastly)\s?,?\s)?in\s{_PLACE}\s?,?\s.*\b(?:is|are|be)\s{_TOLD}
    | (?:(?:and|then|next|finally|lastly)\s?,?\s)?(?:this|the\s(?:next|following|present))\s(?:sub-?)?(?:section|subsection|chapter)s?
      \s{_ADVERBS}{_TELL}s?\b.*
    | (?:(?:and|then|next|finally|lastly)\s?,?\s)?(?:sub)?section\s\S+\s{_ADVERBS}{_TELL}s\b.*
    | (?:then\s|finally\s?,\s|next\s?,\s)?we\s{_ADVERBS}{_TELL}\b.*(?:\bin\s{_PLACE}|\({REFERENCE}\s?\))
    | (?:it|this|that)\sis\sfollowed\sby\s.*\bin\s{_PLACE}
    )\s*\.""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_POINTER: Final = re.compile(
    rf"""(?:
    (?:please\ )?(?:see|refer\ to|consult)\s(?:also\s)?{_PLACE}(?:\sfor\s(?:an?\s|the\s)?(?:more\s|further\s|additional\s|extra\s|some\s)?
      (?:details?|information|examples?|overview|discussion))?
    | (?:(?:some|more|further|additional)\s)?(?:details?|examples?|information)\s.*\b(?:is|are|be)\s{_TOLD}\sin\s{_PLACE}
    | (?:\S+\s){{1,14}}(?:is|are|can\sbe|will\sbe)\s(?:as\s)?{_TOLD}\s(?:in|by|at|later\sin|in\sdetail\sin)\s{_PLACE}
    | {REFERENCE}\s(?:also\s)?{_TELL}s?\s\S+(?:\s\S+){{0,9}}
    | we\swould\slike\sto\sthank\b.*\breviewers?\b.* | we\sthank\b.*\breviewers?\b.*
    | due\sto\s(?:space|page)\s(?:limitations?|limits?|constraints?)\s?,\s.*
    )\s*\.""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_SAYS_MORE: Final = re.compile(
    r"\b(?:which|that|where|who|whose|because|since|as|called|termed|denotes?|defined|known|i\.e|e\.g|used|using|achieves?|"
    r"outperforms?|improves?)\b|[:;]",
    re.IGNORECASE,
)
_CLAIMS: Final = re.compile(
    r"\b(?:from which|observe|(?:find|see|shows?) that|because|since|so that)\b", re.IGNORECASE
)
PLAIN_FIRST_WORDS: Final = frozenset(
    """
    section subsection figure table appendix finally lastly next then details detailed examples brief briefly additional
    additionally results experiments sample samples statistics statistic model information supplementary overview main
    overall summary instructions values conclusions implementation
    """.split()  # noqa: SIM905
)
"""Words that are no names when a capital starts them at the start of a sentence."""


def is_pointer(sentence: str) -> bool:
    """Whether the sentence is nothing but a road map or a pointer; one that explains or claims something is none."""
    n_words = len(sentence.split())
    if n_words > _MAX_WORDS or len(sentence) > _MAX_CHARACTERS or not sentence.endswith("."):
        return False
    if _ROAD_MAP.fullmatch(sentence):
        return not _CLAIMS.search(sentence)
    return (
        n_words <= _MAX_POINTER_WORDS
        and bool(_POINTER.fullmatch(sentence))
        and not _SAYS_MORE.search(sentence)
    )
