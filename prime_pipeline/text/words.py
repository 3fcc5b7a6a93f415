"""From text to words, one function per purpose; what the words are worth is for others to say."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain, groupby
from typing import Final

from prime_pipeline.text.normal_form import lexical_form

_URL: Final = re.compile(r"""\b(?:(?:https?|ftp)://|www\.)[^\s<>()\[\]{}"'`]+""", re.IGNORECASE)
_ASCII_TERM: Final = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")
_PLAIN: Final = {"’": "'", "‐": "-", "‑": "-", "\u00ad": "", "_": " "}
_CJK: Final = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u318f\u31a0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001aff0-\U0001b16f\U00020000-\U000323af]"
)


def lexical_words(text: str) -> list[str]:
    """The distinct words of a query as SQLite's FTS5 tokenizer ``unicode61`` cuts them, in order of occurrence.

    Words are cut from the lexical form. A word starts with a letter, a number or a private-use character (general
    categories L*, N*, Co) and goes on with these and with combining marks (M*). FTS5 itself ends a token at most
    marks outside of Latin; a quoted word then is a phrase of its parts there, which finds the same rows.
    """
    words = _word_pattern(joiners="").findall(lexical_form(text).replace("_", " "))
    return list(dict.fromkeys(words))


def term_words(text: str) -> list[str]:
    """The words of running text, lower-cased, in order, for discriminative terms and the IDF of query words.

    URLs are left out. Letters and digits with inner hyphens or apostrophes stay together (``state-of-the-art``,
    ``don't``); typographic apostrophes and hyphens become the ASCII ones, and soft hyphens vanish.
    """
    text = _URL.sub(" ", text) if "://" in text or "www." in text.lower() else text
    if text.isascii():
        return _ASCII_TERM.findall(text.lower())
    text = unicodedata.normalize("NFC", text.lower())
    for fancy, plain in _PLAIN.items():  # several times faster than str.translate here
        text = text.replace(fancy, plain)
    return _word_pattern(joiners="'-").findall(text)


def literal_words(text: str) -> list[str]:
    """Words as the PRIME paper has them (section 3.3): lower-cased, punctuation deleted, cut at white space.

    Punctuation is every character of the general categories P* and S*. It is deleted, not replaced, so that
    ``state-of-the-art`` becomes one word without hyphens.
    """
    return text.lower().translate(_punctuation_deleted()).split()


def cjk_share(text: str) -> float:
    """The share of letters that are Han, Hiragana, Katakana or Hangul, from 0 to 1; 0 for a text without letters."""
    if text.isascii():
        return 0.0
    letters = "".join(filter(str.isalpha, text))
    return len(_CJK.findall(letters)) / len(letters) if letters else 0.0


@cache
def _word_pattern(joiners: str) -> re.Pattern[str]:
    r"""Words of text without underscores: ``\w`` is L* and N* then; marks have no class of their own in ``re``."""
    start = r"[\w\ue000-\uf8ff\U000f0000-\U0010fffd]"
    word = f"{start}[{start[1:-1]}{''.join(_mark_ranges())}]*"
    return re.compile(f"{word}(?:[{joiners}]{word})*" if joiners else word)


def _mark_ranges() -> Iterator[str]:
    """The combining marks (M*) as ranges of a character class; outside these two spans there are none."""
    spans = chain(range(0x300, 0x1F000), range(0xE0100, 0xE01F0))
    marks = [code for code in spans if unicodedata.category(chr(code))[0] == "M"]
    for _, run in groupby(enumerate(marks), key=lambda pair: pair[1] - pair[0]):
        codes = [code for _, code in run]
        yield f"{chr(codes[0])}-{chr(codes[-1])}"


class _PunctuationDeleted(dict[int, int | None]):
    """A table for ``str.translate`` that learns each character when it first meets it."""

    def __missing__(self, code: int) -> int | None:
        kept = None if unicodedata.category(chr(code))[0] in "PS" else code
        self[code] = kept
        return kept


@cache
def _punctuation_deleted() -> _PunctuationDeleted:
    return _PunctuationDeleted()
