"""Words for each purpose, checked against SQLite's tokenizer and Unicode's categories."""

from __future__ import annotations

import sqlite3
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.text.normal_form import lexical_form
from prime_pipeline.text.words import cjk_share, lexical_words, literal_words, term_words

# Letters, numbers, separators and Latin marks on which unicode61 and the categories agree.
ALPHABET = "abzABZ09ßéÉñØøΣςЖж漢字かカ한½²Ⅷ\ue000 \t\n.,;:!?'’\"-_/()[]{}<>*+^~$€\u0301\u0308"


def tokens_of_fts5(text: str) -> set[str]:
    with sqlite3.connect(":memory:") as db:
        db.execute("create virtual table f using fts5(a, tokenize='unicode61 remove_diacritics 0')")
        db.execute("create virtual table v using fts5vocab(f, 'row')")
        db.execute("insert into f values (?)", (text,))
        return {term for (term,) in db.execute("select term from v")}


@given(st.text(st.sampled_from(ALPHABET), max_size=30))
def test_lexical_words_are_the_tokens_of_fts5(text: str) -> None:
    words = lexical_words(text)
    assert set(words) == tokens_of_fts5(lexical_form(text))
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("what's C++'s near-miss rate (NEAR/3)?", ["what", "s", "c", "near", "miss", "rate", "3"]),
        ("title:secret -draft", ["title", "secret", "draft"]),
        ("snake_case AND Snake", ["snake", "case", "and"]),
        ("it´s", ["it", "s"]),  # the acute turns into a blank and a mark, and no word starts with a mark
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("?!", []),
    ],
)
def test_lexical_words_of_queries(query: str, words: list[str]) -> None:
    assert lexical_words(query) == words


def test_every_mark_continues_a_word_and_starts_none() -> None:
    marks = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"]
    assert len(marks) > 2000
    assert [m for m in marks if term_words(f"ж{m}ж") != [unicodedata.normalize("NFC", f"ж{m}ж")]] == []
    assert [m for m in marks if term_words(m)] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("State-of-the-art BM25, don't!", ["state-of-the-art", "bm25", "don't"]),
        ("Don’t re‐use co\u00adoperation", ["don't", "re-use", "cooperation"]),
        ("[the RFC](https://example.org/a_b?q=1#x) and www.example.org/y.", ["the", "rfc", "and"]),
        ("WWW.EXAMPLE.ORG/É naïve", ["naïve"]),
        ("-dash- 'quote' snake_case", ["dash", "quote", "snake", "case"]),
        ("Cafe\u0301 Straße", ["café", "straße"]),
        ("a -- b, c--d", ["a", "b", "c", "d"]),
    ],
)
def test_term_words(text: str, words: list[str]) -> None:
    assert term_words(text) == words


@given(st.text(st.characters(max_codepoint=127)))
def test_term_words_take_ascii_text_like_any_other(text: str) -> None:
    assert term_words(f"{text} é") == [*term_words(text), "é"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("State-of-the-art (BM25) scored 12.5 %.", ["stateoftheart", "bm25", "scored", "125"]),
        ("“Café” – naïve £5 snake_case", ["café", "naïve", "5", "snakecase"]),
        (" — ", []),
    ],
)
def test_literal_words(text: str, words: list[str]) -> None:
    assert literal_words(text) == words


@given(st.text())
def test_literal_words_hold_no_punctuation_and_lose_nothing_else(text: str) -> None:
    kept = [c for c in text.lower() if unicodedata.category(c)[0] not in "PS" and not c.isspace()]
    assert "".join(literal_words(text)) == "".join(kept)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("plain English", 0.0),
        ("naïve", 0.0),
        ("12 34, €", 0.0),
        ("", 0.0),
        ("漢字かなカナ한국", 1.0),
        ("ab漢字", 0.5),
        ("Жж𠀀x", 0.25),
    ],
)
def test_cjk_share(text: str, share: float) -> None:
    assert cjk_share(text) == share


def test_cjk_share_knows_every_letter_of_the_four_scripts_by_its_name() -> None:
    scripts = (
        "CJK UNIFIED",
        "CJK COMPATIBILITY IDEOGRAPH",
        "HIRAGANA",
        "KATAKANA",
        "HANGUL",
        "HALFWIDTH KATAKANA",
    )
    letters = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isalpha()]
    named = {c for c in letters if unicodedata.name(c, "").startswith((*scripts, "HALFWIDTH HANGUL"))}
    assert {c for c in named if cjk_share(c) != 1.0} == set()
    others = ("LATIN", "GREEK", "CYRILLIC", "ARABIC", "HEBREW", "DEVANAGARI", "THAI", "YI SYLLABLE")
    assert [c for c in letters if unicodedata.name(c, "").startswith(others) and cjk_share(c)] == []
