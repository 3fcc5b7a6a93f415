"""Sentences of English technical prose, by rule: where one ends, and nothing about what it says.

A full stop ends a sentence unless the word before it (an abbreviation, an initial, a list number) or the text behind
it (a lower-case letter, a comma) says otherwise. Where the rules are in doubt, two sentences stay together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from prime_pipeline.text.protected import PLACEHOLDER_LINE
from prime_pipeline.text.stop_words import STOP_WORDS

_LIST_ITEM: Final = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S")
# Possessive throughout, and no match starts inside a row of stops: each character is looked at a few times at most.
_STOP: Final = re.compile(
    r"""
    (?P<cjk>[。！？｡]++[」』）】〉》”’"')\]]*+)
    | (?<![.!?…])(?P<mark>[.!?…]++)
      [”’"')\]}»*_]*+ (?:\[\^[^\]\s]{1,20}\])*+ (?:[ ][)\]}]++)*+   # closing marks, footnotes, marks set apart
      (?=\s|\Z|(?P<glued>[A-Z][a-z]*+[\s,]))
    """,
    re.VERBOSE,
)
_WORD_BEFORE: Final = re.compile(r"[^\s()\[\]{}\"“”‘’]*+\Z")
_NEXT: Final = re.compile(r"""\s*+[("'“‘\[{*_«]*+(?P<word>[^\W\d_]*+[-'’\w]*+)(?P<after>.?)""", re.DOTALL)
_ENUMERATOR: Final = re.compile(r"\s*\(?(?:\d{1,3}|[A-Za-z])")
_INITIALS: Final = re.compile(r"(?:[A-Za-z]\.)*[A-Za-z]")
_REFERENCE: Final = re.compile(r"[A-Z]+(?:REF|FORM)\d+")
_LOWER_WORD_OR_MATH: Final = re.compile(r"[a-z]{3,}|.*\$")
_LOOK_BACK_CHARACTERS: Final = 40

_NEVER_LAST: Final = frozenset(
    ["e.g", "i.e", "eg", "ie", "cf", "vs", "viz", "dr", "mr", "mrs", "ms", "prof", "st"]
)
"""What is always followed by something; compared in lower case, without the last stop."""
_SELDOM_LAST: Final = frozenset(
    """
    al app approx appx ca ch chap chaps co cor corp def dept ed eds eq eqn eqns eqs esp est etc ex fig figs inc incl jr
    lem ltd p par para pp prop ref refs resp sec secs sect sr supp tab thm univ vol vols wrt
    jan feb mar apr jun jul aug sep sept oct nov dec
    """.split()  # noqa: SIM905 (one word a line reads worse)
)
"""Abbreviations that end a sentence only if a capitalised stop word follows (``et al. We``)."""
_NUMBER_SIGNS: Final = frozenset({"no", "nos"})


def sentences(text: str) -> list[str]:
    """The sentences of a text, without the blanks around them. See :func:`sentence_spans`."""
    return [text[start:end] for start, end in sentence_spans(text)]


def first_sentence(text: str) -> str:
    """The first of the :func:`sentences`, without looking at the others; empty where there is none."""
    start, end = next(_spans(text), (0, 0))
    return text[start:end]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """The sentences as half-open spans of characters, in order.

    Spans are disjoint, neither start nor end with a blank, and cover every character that is no blank. A blank line
    ends a sentence, a list item starts one, and a line that is only a placeholder is one. The time is linear in the
    length of the text.
    """
    return list(_spans(text))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    spans = (span for block in _blocks(text) for span in _spans_of_block(text, *block))
    trimmed = (_trimmed(text, *span) for span in spans)
    return ((start, end) for start, end in trimmed if start < end)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Runs of lines that no sentence leaves."""
    start = line_start = 0
    for line in text.split("\n"):
        line_end = line_start + len(line)
        alone = not line.strip() or PLACEHOLDER_LINE.fullmatch(line)
        if alone or _LIST_ITEM.match(line):
            yield start, line_start
            start = line_start
        if alone:
            yield start, line_end
            start = line_end
        line_start = line_end + 1
    yield start, len(text)


def _spans_of_block(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for stop in _STOP.finditer(text, start, end):
        if stop["cjk"] or _ends_sentence(text, start, stop, end):
            yield start, stop.end()
            start = stop.end()
    yield start, end


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    span = text[start:end]
    return end - len(span.lstrip()), start + len(span.rstrip())


def _ends_sentence(text: str, start: int, stop: re.Match[str], end: int) -> bool:
    following = _NEXT.match(text, stop.end(), end)
    if following is None or not (following["word"] or following["after"]):
        return True  # nothing but blanks and marks follow in this block
    if _ENUMERATOR.fullmatch(text, start, stop.start()):
        return False
    look_back = text[max(start, stop.start() - _LOOK_BACK_CHARACTERS) : stop.start()]
    before = look_back.rstrip()
    found = _WORD_BEFORE.search(before)
    word_before = found[0] if found else ""
    set_apart = stop["mark"] == "." and before != look_back
    if (
        stop["mark"] == "."
        and (verdict := _after_abbreviation(word_before, following, set_apart=set_apart)) is not None
    ):
        return verdict
    if stop["glued"]:
        return _ends_glued(word_before, following)
    return not _goes_on(following, lower_case_too=not set_apart)


def _after_abbreviation(word: str, following: re.Match[str], *, set_apart: bool) -> bool | None:
    """Whether the stop of an abbreviation or an initial ends the sentence; None if the word is neither.

    A letter with a stop set apart is no initial but a variable (``we use x .``).
    """
    key = word.lower().lstrip("*_")
    if key in _NEVER_LAST:
        return False
    if key in _NUMBER_SIGNS:
        return not following["word"][:1].isdigit()
    if key in _SELDOM_LAST or (_INITIALS.fullmatch(word) and not set_apart):
        return _starts_with_stop_word(following)
    return None


def _ends_glued(word_before: str, following: re.Match[str]) -> bool:
    """A blank is missing (``BIBREF4.Previous studies``, ``the rest.The last``), or this is a name with a dot."""
    if _REFERENCE.fullmatch(word_before):
        return True
    return bool(_LOWER_WORD_OR_MATH.fullmatch(word_before)) and _starts_with_stop_word(following)


def _starts_with_stop_word(following: re.Match[str]) -> bool:
    word = following["word"]
    # An initial (``J. A. Smith``) is no article.
    return word[:1].isupper() and word.lower() in STOP_WORDS and following["after"] != "."


def _goes_on(following: re.Match[str], *, lower_case_too: bool) -> bool:
    """Whether the text behind a stop belongs to the same sentence.

    In tokenised text, whose stops are set apart, lower case says nothing; a word like ``eBay`` never does.
    """
    word = following["word"]
    if not word:
        return following["after"] in ",;:)]}"
    return lower_case_too and word[0].islower() and word == word.lower()
