"""What extraction leaves between the sentences of a text and is none: stray headings, garbled formulas, listings.

Formulas that are still marked as such (``$x$``) are no business of this module: they are facts, letter by letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, groupby
from typing import Final

_HEADING_PATH: Final = re.compile(
    r"(?:(?<=[.!?])|^)[ \t]*[^\W_][^\n.!?]{0,200}? ::: [^\n.!?]{1,200}$", re.MULTILINE
)
_SMALL: Final = r"(?:an?|and|as|by|for|from|in|of|on|or|the|to|vs|with|without)"
_LAST_HEADING: Final = re.compile(rf"(?:[.!?]|FORM\d{{1,4}})\s*(?P<title>[A-Z][\w-]*(?: (?:[A-Z][\w-]*|{_SMALL})){{0,11}})\s*\Z")  # fmt: skip
_REACH: Final = 200
"""Characters at the end of a text in which its last heading is sought."""
_GAP: Final = r"(?:(?![.!?][\s\[A-Z])[^\n]){0,70}?"
_LISTING: Final = re.compile(rf"\[[!htbpH]{{1,5}}\](?:{_GAP}(?:INLINE|DISPLAY)FORM\d{{1,4}}){{5,400}}")
"""A float with its placement (``[t!]``) and lost formulas close to each other: an algorithm, or what is left of it."""
_TOKEN: Final = re.compile(r"\S+")
_WORD: Final = re.compile(r"\W*+[^\W\d_]{3,}+(?:[-'’/][^\W\d_]++)*+\W*+|\W*+[A-Z]+(?:REF|FORM)\d+\W*+")
_LENGTH: Final = re.compile(r"^[ \t]*[\d.]+(?:em|ex|pt|[cm]m|in)[ \t]*$", re.MULTILINE)
"""A line that is nothing but a length of TeX's, left of a command."""
_INDICES: Final = re.compile(r"[^\W\d_]{1,3}['’”]?,[a-z]['’”]?(?![a-z])")
"""Two indices of one symbol that lost their place below it: ``gv,j`` was g with the indices v and j."""


def without_non_prose(text: str) -> str:
    """The text with blanks, as many as characters, for what is no sentence."""
    kept = list(text)
    for start, end in chain(_headings(text), _debris(text), _formulas(text)):
        kept[start:end] = " " * (end - start)
    return "".join(kept)


def last_heading(text: str) -> str:
    """The heading of the next section where an extraction appended it to this one; else the empty string.

    It has no sentence end, and is a path of headings (``Overview ::: Lessons``) or has all its longer words large.
    """
    end = len(text.rstrip())
    return next((text[start:stop].strip() for start, stop in _headings(text) if stop >= end), "")


def _headings(text: str) -> Iterator[tuple[int, int]]:
    yield from (found.span() for found in _HEADING_PATH.finditer(text))
    if last := _LAST_HEADING.search(text, max(0, len(text) - _REACH)):
        yield last.span("title")


def _debris(text: str) -> Iterator[tuple[int, int]]:
    return (found.span() for pattern in (_LISTING, _LENGTH) for found in pattern.finditer(text))


def _formulas(text: str) -> Iterator[tuple[int, int]]:
    """Runs without any word of three letters in which symbols have their indices beside them."""
    for is_word, tokens in groupby(_TOKEN.finditer(text), lambda token: bool(_WORD.fullmatch(token[0]))):
        if is_word:
            continue
        run = list(tokens)
        start, end = run[0].start(), run[-1].end()
        if len(_INDICES.findall(text, start, end)) > 1 and not re.search(r"[$\\`]", text[start:end]):
            yield start, end
