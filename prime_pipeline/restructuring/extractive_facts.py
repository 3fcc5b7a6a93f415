"""What a cut may never lose: the numbers, names, acronyms and defined terms of a text, and the words that turn its sense.

References (``Figure 3``) and citation marks point elsewhere and are no facts. Nothing here decides what is cut.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from prime_pipeline.text.protected import inline_spans
from prime_pipeline.text.stop_words import STOP_WORDS

_LABEL: Final = r"(?i:fig(?:ure)?s?|tab(?:le)?s?|(?:sub-?)?sec(?:tion)?s?|app(?:endix|endices)?|chapters?|algorithms?)\b\.?|§+"
_LABEL_NUMBER: Final = r"(?-i:(?:FIG|TAB|SEC)REF\d+|\d+(?:\.\d+)*[a-z]?\b|[IVX]+\b|[A-Z](?:\.\d+)?\b)"
REFERENCE: Final = (
    rf"(?:(?:{_LABEL})\s*{_LABEL_NUMBER}|(?:FIG|TAB|SEC)REF\d+)"
    rf"(?:\s*(?:,\s*and|,|and|or|&|to|[-–])\s*(?:(?:{_LABEL})\s*{_LABEL_NUMBER}|(?:FIG|TAB|SEC)REF\d+|\d+(?:\.\d+)*\b))*+"
)
"""A pattern: one or several figures, tables or sections of the same document, by label and number."""

_NUMERIC_MARK: Final = r"\[[1-9]\d{0,2}(?:\s?[,;–-]\s?[1-9]\d{0,2})*\]"
_SOURCE: Final = r"[A-Z][\w'’-]+(?:,? (?:and|&) [A-Z][\w'’-]+| et al\.?),? (?:19|20)\d\d[a-z]?"
_BETWEEN: Final = r"\s*(?:[,;]\s*)?(?:(?:and|&)\s+)?"
_MARK: Final = rf"(?:BIBREF\d+|{_NUMERIC_MARK})"
CITATION: Final = (
    rf"(?:\(\s*(?:(?:see(?: also)?|e\.g\.|cf\.)\s*,?\s*)?"
    rf"(?:{_MARK}(?:{_BETWEEN}{_MARK})*+|{_SOURCE}(?:\s*;\s*{_SOURCE})*+)\s*\)|{_MARK}(?:{_BETWEEN}{_MARK})*+)"
)
"""A pattern: citation marks in a row, or in parentheses: ``BIBREF3 , BIBREF4``, ``[12]``, ``(Smith et al., 2019)``."""

_POINTERS: Final = re.compile(rf"{CITATION}|{REFERENCE}|\b[A-Z]{{3,}}REF\d+")
_HIDDEN: Final = re.compile(r"[\ue000-\uf8ff]")
_TOKEN: Final = re.compile(r"[\ue000-\uf8ff]|[^\W_][\w.,'’&/+-]*+")
_NUMBER_WORDS: Final = frozenset(
    "two three four five six seven eight nine ten eleven twelve twenty hundred thousand million billion half".split()  # noqa: SIM905
)
_TURNING: Final = re.compile(
    r"""\b(?:not|no|nor|never|none|neither|nothing|without|cannot|hardly|rarely|few|fewer|less|least|more|most|than|
    only|if|unless|whether|otherwise|until|when|however|but|although|though|whereas|while|unlike|despite|instead|yet|
    nevertheless|nonetheless|except|because|therefore|thus|hence|should|must|may|might|could|all|each|every|any|some|
    both|always|often|sometimes|better|worse|best|worst|higher|lower|larger|smaller)\b|n['’]t\b""",
    re.IGNORECASE | re.VERBOSE,
)
_VERBATIM: Final = re.compile(
    r"""https?://[^\s<>()]*[^\s<>().,;:!?]|\]\([^()\s]*\)|<[^<>\n]{1,200}>|"[^"\n]{1,300}"|“[^”\n]{1,300}”
    |(?<![*\w])\*{1,2}[^\s*][^*\n]{0,80}\*{1,2}(?![*\w])""",
    re.VERBOSE,
)
_FIRST_HIDDEN: Final = 0xE000
_N_HIDDEN: Final = 6400


def facts(text: str) -> Counter[str]:
    """How often each number, name, acronym, symbol and hidden passage occurs; a capitalised stop word is none."""
    bare = _POINTERS.sub(" ", text)
    tokens = (token.rstrip(".,'’-/&+") for token in _TOKEN.findall(bare))
    return Counter(token for token in tokens if _is_fact(token))


def turning_words(text: str) -> Counter[str]:
    """How often each word of negation, condition, contrast, cause, quantity or comparison occurs."""
    return Counter(word.lower() for word in _TURNING.findall(text))


def without_pointers(text: str) -> str:
    """The text without citation marks and references, for comparing what sentences say."""
    return _POINTERS.sub(" ", text)


def hide(text: str) -> tuple[str, dict[str, str]] | None:
    """The text with inline code, math, links, quotations and emphasis each behind one private-use character.

    Returns:
        The text and the passages by character, the same character for the same passage; None if the text itself
        holds such characters or more passages than there are.
    """
    if _HIDDEN.search(text):
        return None
    characters: dict[str, str] = {}

    def character(passage: str) -> str:
        return characters.setdefault(passage, chr(_FIRST_HIDDEN + len(characters) % _N_HIDDEN))

    parts, done = [], 0
    for span in inline_spans(text):
        start = text.index(span, done)
        parts += [text[done:start], character(span)]
        done = start + len(span)
    hidden = _VERBATIM.sub(lambda found: character(found[0]), "".join([*parts, text[done:]]))
    passages = {character: passage for passage, character in characters.items()}
    return (hidden, passages) if len(passages) == len(characters) else None


def reveal(text: str, passages: dict[str, str]) -> str:
    """The inverse of :func:`hide`; a passage may hold others."""
    return _HIDDEN.sub(lambda found: reveal(passages[found[0]], passages), text)


def _is_fact(token: str) -> bool:
    if token.lower() in _NUMBER_WORDS or any(c.isdigit() or "\ue000" <= c <= "\uf8ff" for c in token):
        return True
    return token != token.lower() and not (token == token.capitalize() and token.lower() in STOP_WORDS)
