"""Sentences: what ends one and what does not, that nothing is lost, and that hostile text costs linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.text.sentences import first_sentence, sentence_spans, sentences

PIECES = st.sampled_from(
    [
        "A",
        "b",
        "et al",
        "e.g",
        "3",
        "BIBREF1",
        ".",
        "...",
        "?",
        "!",
        "。",
        '"',
        "”",
        ")",
        "(",
        "[^1]",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\r\n",
        "\t",
        "* ",
        "1. ",
        "[[block:a]]",
        "The",
        "é",
        "\u3000",
        "\x1c",
    ]
)
TEXTS = st.text() | st.lists(PIECES, max_size=30).map("".join)


@given(TEXTS)
def test_spans_are_ordered_disjoint_trimmed_and_cover_all_but_blanks(text: str) -> None:
    end_before = 0
    outside = ""
    for start, end in sentence_spans(text):
        assert end_before <= start < end
        assert text[start:end] == text[start:end].strip()
        outside += text[end_before:start]
        end_before = end
    assert (outside + text[end_before:]).strip() == ""


@pytest.mark.parametrize(
    "parts",
    [
        ["We use BERT BIBREF12 .", "It is large ."],
        ["we use x .", "the model is small ."],
        ["It was shown BIBREF4.", "Previous studies disagree."],
        ["It is the rest.", "The last one fails."],
        ["We found this in 2019.", "It holds."],
        ["The value is 3.14.", "Version 1.2.3 is out."],
        ["See https://example.org/a.b?c=1.", "Then open foo.py."],
        ['He said "stop."', "She did (mostly.)", "“Fine.”", "**Bold.** ", "Plain."],
        ["Is it so?", "Yes!", "Good."],
        ["The answer is no.", "We stop."],
        ["This is due to Smith et al.", "We follow them."],
        ["Take option A.", "Then go on."],
        ["See below.[^1]", "More follows."],
        ["これは文です。", "次の文！", "三つ目？」", "終わり"],
        ["We wait...", "It ends…", "Done."],
        ["`foo` is one.", "`bar` is another."],
        ["They sell it.", "iPhone users buy."],
    ],
)
def test_ends(parts: list[str]) -> None:
    glue = "" if parts[0].endswith(("BIBREF4.", "the rest.", "。")) else " "
    assert sentences(glue.join(parts)) == [part.strip() for part in parts]
    assert first_sentence(glue.join(parts)) == parts[0].strip()


@pytest.mark.parametrize(
    "text",
    [
        "Smith et al. (2019) and Doe et al. BIBREF3 agree.",
        "Use a metric, e.g. BLEU, i.e. Papineni's, cf. Fig. 3, Eq. 2, Sec. IV and Tab. 5.",
        "Dr. Who met J. A. Smith and Prof. Y. Bengio vs. No. 5 of approx. 7.",
        "In the U.S. Senate, node.js and numpy.Array are known.",
        "Values 1, 2, ... , n and so on ... until the end.",
        '"Really?" he asked, and Yahoo! was there.',
        "1. The first step is A and B.",
        "It rises by .5 and a.b.c ends",
    ],
)
def test_does_not_end(text: str) -> None:
    assert sentences(text) == [text]


def test_blank_lines_list_items_and_placeholders_stand_apart() -> None:
    text = (
        "a title\n \nwrapped\nprose\n* one\n  goes on\n- two\n1. three\n[[block:a]]\nafter [[block:b]] it\n"
        "  [[other:zz]]\r\nend"
    )
    assert sentences(text) == [
        "a title",
        "wrapped\nprose",
        "* one\n  goes on",
        "- two",
        "1. three",
        "[[block:a]]",
        "after [[block:b]] it",
        "[[other:zz]]",
        "end",
    ]


@pytest.mark.parametrize(
    "unit", ["a.a.a.", "((((", " ", ".", ". ", "A. ", "a.Aa", '."', ".[^a", "1. ", "\n", "。"]
)
def test_a_megabyte_of_anything_takes_seconds_at_most(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    started_s = time.process_time()
    sentence_spans(text)
    assert time.process_time() - started_s < 10
