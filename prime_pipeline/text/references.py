"""Pointers of a scholarly text: citation marks, and references to its own sections, figures, tables and equations.

They are no facts: who shortens a text may drop them. Inventing one is another matter, hence :func:`references`.
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = r"[A-Z][\w'’.-]{0,40}"
_AUTHORS: Final = rf"{_NAME}(?:,?\ (?:and|&|et\ al\.?,?|{_NAME})){{0,8}}"
_YEAR: Final = r"(?:19|20)\d\d[a-z]?"
_CITATION: Final = re.compile(
    rf"""
    \(?\[?(?:BIBREF\d+(?:\s?[,;]?\s?(?:and\ )?)?)++\]?\)?
    | (?<![^\W_])[a-z][\w-]{{1,60}}:(?:19|20)\d\d(?::\w{{1,40}})?
    | \[\d{{1,3}}(?:\s?[,;–-]\s?\d{{1,3}}){{0,20}}\](?!\()
    | \((?:(?:see|e\.g\.,?|cf\.?)\ )?(?:{_AUTHORS},?\ {_YEAR}(?:;\ )?){{1,12}}\)
    | (?<=[\w.])\ \({_YEAR}(?:[,;]\ ?{_YEAR}){{0,5}}\)
    """,
    re.VERBOSE,
)
_KIND: Final = r"(?:[Ss]ections?|[Ss]ecs?\.?|[Ff]igures?|[Ff]igs?\.?|[Tt]ables?|[Ee]quations?|[Ee]qs?\.?|[Aa]ppendi(?:x|ces)|[Aa]lgorithm|[Cc]hapters?)"
_REF: Final = r"[A-Z]*REF\d+"
_NUMBER: Final = r"(?:\d{1,2}(?:\.\d{1,2}){0,3}|[IVX]{1,5}|[A-Z](?:\.\d{1,2})?)[a-d]?(?![\w%]|[.,]\d)"
_LINK: Final = r"(?:\s?,\s?(?:and )?| and | & |–|-| to )"


def _labels(label: str) -> str:
    """A pattern of one label or several, each or all of them in parentheses."""
    one = rf"(?:\({label}(?:{_LINK}{label}){{0,12}}\)|{label})"
    return rf"{one}(?:{_LINK}{one}){{0,12}}"


_INTERNAL: Final = re.compile(
    rf"\b{_KIND}[ ~]?(?:{_labels(_REF)}|{_labels(_NUMBER)})"
    r"|\b(?:SEC|FIG|TAB|EQ|FOOT)REF\d+"
)
_SYMBOL: Final = re.compile(r"\b(?:INLINE|DISPLAY)FORM\d+")
_ENUMERATOR: Final = re.compile(r"(?:(?<=\s)|\A|(?<=[,;:.]))\((?:\d{1,2}|[a-hA-H]|i{1,3}|iv|vi{0,3}|ix)\)(?=\s)|^\s*\d{1,3}[.)](?=\s)", re.MULTILINE)  # fmt: skip
_ROAD_MAP: Final = re.compile(
    r"(?:rest|remainder) of (?:this|the) (?:paper|article|section|chapter|work)|organi[sz]ed as follows"
    r"|\b(?:paper|article|section|chapter|thesis) is (?:organi[sz]ed|structured|divided)\b"
    r"|\b(?:first|second|third|last|final|next|following|other) part of (?:this|the) (?:paper|article|section|chapter|thesis)\b"
    r"|\bwe conclude (?:with|by|(?:the|this|our) (?:paper|article|section|chapter|thesis))\b|\bwe (?:\w+ly |also )?(?:hope|are hoping)\b"
    r"|\b(?:this|the (?:following|next|previous)) (?:sub)?section (?:describes|presents|discusses|introduces|explains|gives)"
    r"|\bin (?:this|the (?:following|next)) (?:sub)?section,? (?:we|the)\b"
    r"|\b(?:shown|listed|presented|given|reported|summari[sz]ed|illustrated|depicted|found) in (?:the )?(?:table|fig|figure|appendix|section)\b"
    r"|^(?:the )?(?:table|fig|figure|appendix|section)s?[. ]+\S+ (?:shows?|lists?|presents?|gives?|reports?|summari[sz]es?|illustrates?|depicts?)\b",
    re.IGNORECASE,
)


def references(text: str) -> list[str]:
    """References inside a document (``Table 3``, ``SECREF4``), verbatim, in order."""
    return _INTERNAL.findall(text)


def symbols(text: str) -> list[str]:
    """What stands for a formula that an extraction lost (``INLINEFORM3``), in order."""
    return _SYMBOL.findall(text)


def without_pointers(text: str) -> str:
    """The text with blanks, as many as characters, for references inside the document, list numbers, lost formulas."""
    for pattern in (_INTERNAL, _SYMBOL, _ENUMERATOR):
        text = pattern.sub(_blank, text)
    return text


def without_references(text: str) -> str:
    """:func:`without_pointers`, and blanks for citation marks too."""
    return without_pointers(_CITATION.sub(_blank, text))


def is_road_map(sentence: str) -> bool:
    """Whether a sentence tells of the document (what stands where, what a section will do) or what its authors hope."""
    return bool(_ROAD_MAP.search(sentence))


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])
