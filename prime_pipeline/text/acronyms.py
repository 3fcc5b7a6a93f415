"""Acronyms: which a text uses, which it defines, and whether one is spelled out somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_ACRONYM: Final = re.compile(
    r"(?<![^\W_])(?:(?:[A-Z]\.){2,6}|[A-Z](?:&[A-Z])+|[A-Z](?:#|\+\+)|[a-z]{0,2}[A-Z][A-Z0-9]*[A-Z][A-Z0-9]*)(?:['’]?s)?(?![^\W_])"
)
_ROMAN: Final = re.compile(r"[IVX]+")
_IN_PARENTHESES: Final = re.compile(r"[ -]\(((?:[A-Z][\w&-]{0,20}?[A-Z]\w{0,20}|[A-Z]{2,20})s?)\)")
_WORDS_BEFORE: Final = re.compile(r"(?:[^\W_][\w'’]*[ -]){0,8}[^\W_][\w'’]*\Z")
_SMALL_IN_PARENTHESES: Final = re.compile(r"[ -]\(([a-z]{3,8})\)")
_REACH: Final = 150
"""Characters before an acronym in parentheses in which its long form stands."""
_PART: Final = re.compile(r"[^\W_]+")
_WORD_OR_MARK: Final = re.compile(r"[^\W_]+(?:['’][^\W\d_]{1,3}\b)?|[.,;:!?()]")
_SMALL: Final = frozenset({"of", "the", "and", "for", "in", "on", "to", "a", "an", "with", "by"})


def acronyms(text: str) -> list[str]:
    """Acronyms in order and with repetitions, without plural and dots: ``CNNs`` is CNN, ``U.S.`` is US, ``Q&A`` stays.

    Names of a letter and marks (``C++``, ``F#``) count. Compounds give their parts (``SI-RNN`` is SI and RNN). Roman
    numerals are none. In small letters it is one only in parentheses behind its long form.
    """
    return [acronym for acronym, _ in acronym_offsets(text)]


def acronym_offsets(text: str) -> list[tuple[str, int]]:
    """:func:`acronyms`, each with the offset of its first character."""
    found = ((acronym_form(match[0]), match.start()) for match in _ACRONYM.finditer(text))
    large = [(name, start) for name, start in found if not _ROMAN.fullmatch(name) and len(name) > 1]
    return sorted([*large, *_small_acronyms(text)], key=lambda pair: pair[1])


def acronym_form(token: str) -> str:
    """The singular of an acronym, without dots."""
    return re.sub(r"['’]?s\Z", "", token.replace(".", ""))


def definitions(text: str) -> dict[str, str]:
    """Acronyms with the words that stand before them in ``long form (LF)``, lower-cased; the first one counts."""
    found: dict[str, str] = {}
    for match in _IN_PARENTHESES.finditer(text):
        acronym = acronym_form(match[1])
        if long_form := _long_form(text, match.start(), acronym):
            found.setdefault(acronym, long_form)
    return found


def _small_acronyms(text: str) -> Iterator[tuple[str, int]]:
    """Words in parentheses without capitals that abbreviate what stands before: ``mean reciprocal rank (mrr)``."""
    for match in _SMALL_IN_PARENTHESES.finditer(text):
        if _long_form(text, match.start(), match[1].upper()):
            yield match[1], match.start(1)


def _long_form(text: str, end: int, acronym: str) -> str:
    """The words up to an offset that an acronym abbreviates, in lower case; empty if there are none."""
    before = _WORDS_BEFORE.search(text, max(0, end - _REACH), end)
    words = [word.lower() for word in _PART.findall(before[0])] if before else []
    starts = (start for start in range(len(words) - 1, -1, -1) if abbreviates(acronym, words[start:]))
    return " ".join(words[start:]) if (start := next(starts, None)) is not None else ""


def abbreviates(acronym: str, words: Sequence[str]) -> bool:
    """Whether the capitals of an acronym are the initials of the words, small words left out or not."""
    letters = "".join(c for c in acronym if c.isupper()).lower()
    initials = "".join(word[0] for word in words).lower()
    large = "".join(word[0] for word in words if word not in _SMALL).lower()
    return len(letters) > 1 and letters in {initials, large} and words[0] not in _SMALL


def initials(text: str) -> tuple[str, str]:
    """The first letters of words, in lower case and in order: of all words, and without the small ones.

    Blanks stand for the marks between the words: no long form goes on behind one.
    """
    words = [found[0].lower() for found in _WORD_OR_MARK.finditer(text)]
    letters = [word[0] if word[0].isalnum() else " " for word in words]
    large = (letter for word, letter in zip(words, letters, strict=True) if word not in _SMALL)
    return "".join(letters), "".join(large)


def is_spelled_out(acronym: str, first_letters: tuple[str, str]) -> bool:
    """Whether consecutive words have the acronym's letters as initials; never for fewer than three letters.

    Two words with two given initials stand in every longer text.

    Args:
        acronym: As :func:`acronyms` gives it.
        first_letters: What :func:`initials` gives for a text.
    """
    letters = "".join(c for c in acronym if c.isalpha()).lower()
    return len(letters) > 2 and any(letters in every for every in first_letters)
