"""The lead: how far it goes, and what is no prose."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.metadata.lead import lead, prose
from prime_pipeline.records import Section


def section(ordinal: int, body: str, heading: str = "H") -> Section:
    head = f"## {heading}\n" if ordinal else ""
    return Section(
        ordinal, "section" if ordinal else "preamble", heading, (), head + body, body_start=len(head)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Before.\n\n```sh\n# no heading\nrm -r x\n```\nAfter.", "Before.\nAfter."),
        ("Before.\n~~~\nnever closed\n\nstill code", "Before."),
        ("````md\n```\ninner\n```\n````\nAfter.", "After."),
        ("```inline``` code stays", "```inline``` code stays"),
        ("Text\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\nmore", "Text\nmore"),
        ('See [the guide](https://x.org/a_b "t"), [ref][1].\n\n[1]: https://y.org', "See the guide, ref."),
        ("![logo](a.png) Fast [![badge](b.svg)](https://ci) tool", "Fast tool"),
        ("<p align=center>Hello <b>you</b></p><!-- not\nthis --> end", "Hello you end"),
        ("Title\n=====\n\n### Sub\n\nBody", "Title\nBody"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("", ""),
    ],
)
def test_prose(text: str, expected: str) -> None:
    assert prose(text) == expected


@pytest.mark.parametrize("opening", ["<!--", "[", "![", "[a](", "<a ", "```\n", " \n", "| "])
def test_takes_linear_time_for_markup_that_never_closes(opening: str) -> None:
    start = time.perf_counter()
    prose(opening * 20_000)
    assert time.perf_counter() - start < 5  # quadratic time would be minutes


def test_goes_on_until_it_is_long_enough() -> None:
    sections = [section(0, "one two three"), section(1, "four five"), section(2, "six seven")]
    assert lead(sections, min_words=3, max_characters=100) == "one two three"
    assert lead(sections, min_words=4, max_characters=100) == "one two three\nfour five"
    assert lead(sections, min_words=40, max_characters=100) == "one two three\nfour five\nsix seven"
    assert lead(sections, min_words=40, max_characters=5) == "one t"


def test_passes_by_code_and_captions() -> None:
    captions = Section(1, "captions", "Figures", (), "Figure 1", body_start=0)
    assert lead([section(0, "```\ncode\n```\n"), captions, section(2, "Prose.")], 40, 100) == "Prose."


@given(st.text(st.sampled_from("a`~#|<>![]()-= \n\t"), max_size=60))
def test_prose_adds_no_words_and_is_stripped(text: str) -> None:
    result = prose(text)
    assert result == result.strip()
    assert result.count("a") <= text.count("a")
    assert "\n\n" not in result
