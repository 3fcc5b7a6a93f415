"""Placeholders, length, end, echoes, chatter, language: what must be refused, and what must pass."""

from __future__ import annotations

import pytest

from prime_pipeline.text.protected import protect
from prime_pipeline_tests.gate_run import FAITHFUL, GATE, RAW, changed, codes


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("MTNet is a", "# MTNet\n\nMTNet is a", "heading_invented"),
        ("MTNet is a", "Sure! Here is the rewritten section.\n\nMTNet is a", "chatter"),
        ("MTNet is a", "Rewrite the section below; keep every number. MTNet is a", "prompt_echo"),
        ("MTNet is a", "So that a machine reads every fact in it at once, MTNet is a", "prompt_echo"),
        (
            "MTNet works",
            "This overview provides valuable insights for a broad audience. MTNet works",
            "filler",
        ),
        (", and `train.py` runs the code.", ", and `train.py` runs", "truncated"),
        (
            "MTNet works",
            "MTNet wird ohne einen Encoder verwendet, weil die Daten nicht da sind. MTNet works",
            "language",
        ),
        ("It lowers", "本文研究语音翻译的网络模型。It lowers", "language"),
    ],
)
def test_a_fault_is_refused_by_its_own_code(old: str, new: str, code: str) -> None:
    assert code in codes(changed(old, new))


def test_the_second_half_missing_is_found_with_its_sources() -> None:
    half = FAITHFUL[: FAITHFUL.index(" MTNet works")]
    truncated = [f for f in GATE.findings(protect(RAW), half) if f.code == "truncated"]
    assert truncated
    assert truncated[0].sources[-1].startswith("The learning rate")


def test_other_lengths() -> None:
    assert "empty" in codes("")
    assert "too_long" in codes(f"{FAITHFUL} {FAITHFUL} {FAITHFUL}")
    assert "repetition" in codes(f"{FAITHFUL} {FAITHFUL}")
    assert "too_short" in codes("MTNet is a network.", RAW + " " + RAW.replace("MTNet", "XNet"))


def test_echo_is_the_only_finding_of_the_raw_text() -> None:
    assert codes(RAW) == {"echo"}
    assert codes("  " + RAW.replace(". ", ".\n")) == {"echo"}


PLACED = "First comes text about models.\n\n```\na = 1\n```\n\nThen more text follows.\n\n$$\nx\n$$\n\nLast comes text."


@pytest.mark.parametrize(
    ("rewrite", "code"),
    [
        ("Text about models.\n\n[[block:a]]\n\nMore text, then the last.", "placeholder_missing"),
        ("Text about models.\n\n[[block:a]]\n[[block:a]]\n[[block:b]]\n\nLast text.", "placeholder_repeated"),
        ("Text about models.\n\n[[block:a]]\n[[block:b]]\n[[block:c]]\n\nLast text.", "placeholder_invented"),
        ("Text about models.\n\n[[block:b]]\n\n[[block:a]]\n\nLast text.", "placeholder_order"),
    ],
)
def test_placeholders(rewrite: str, code: str) -> None:
    assert code in codes(rewrite, PLACED)


def test_placeholders_that_all_come_back_pass() -> None:
    assert codes("Text about models.\n\n[[block:a]]\n\nMore.\n\n[[block:b]]\n\nLast text.", PLACED) == set()


def test_text_of_another_language_is_held_to_it() -> None:
    raw = "Das Modell wird mit den Daten trainiert, die wir haben, und es ist nicht sehr groß."
    assert "language" not in codes(
        "Das Modell ist nicht sehr groß und wird mit den Daten trainiert, die wir haben.", raw
    )
    assert "language" in codes("The model is not very large and is trained on the data that we have.", raw)


def test_letters_of_formulas_are_no_language() -> None:
    raw = "Every tweet $t_i$ ($i \\in [1, e]$) has a stance, which $i$ and $o$ index."
    assert "language" not in codes(
        "Each tweet $t_i$ ($i \\in [1, e]$) has a stance that $i$ and $o$ index.", raw
    )


def test_a_stock_phrase_of_the_raw_text_is_no_filler() -> None:
    raw = "It is important to note that all models overfit on small data."
    assert codes("It is important to note that models all overfit when data are small.", raw) == set()


@pytest.mark.parametrize(
    "markup",
    ["<script>f()</script>", '<img src="x">', "<img/onerror=f()", "<!-- c -->", "<b>", '<a href="x">'],
)
def test_markup_that_the_raw_text_lacks_is_invented(markup: str) -> None:
    assert "markup_invented" in codes(f"{FAITHFUL} It ends {markup} here.")
    assert "markup_invented" not in codes(
        f"{FAITHFUL} It ends {markup} here.", f"{RAW} Here it ends {markup}."
    )


@pytest.mark.parametrize(
    "text", ["in <5 ms", "if a < b", "if a <b and c> d", "for a<b = 3", "<https://x.org>"]
)
def test_signs_of_comparison_are_no_markup(text: str) -> None:
    assert "markup_invented" not in codes(f"{FAITHFUL} It ends {text} here.")


def test_a_token_in_angle_brackets_stays() -> None:
    raw = "Rare words become <unk> in the vocabulary of the model."
    assert codes("In the vocabulary of the model, rare words become <unk>.", raw) == set()


@pytest.mark.parametrize(
    "sentence",
    [
        "The text came back as it was.",
        "This was missing before.",
        "It is now complete.",
        "The negation was put back.",
        "Now it says what the text says.",
        "Nothing is missing.",
        "All findings are fixed.",
        "The name was missing.",
        "The rewrite does not say it at all.",
        "It ends in the middle of a sentence.",
        "The end is missing, from 'The code' on.",
        "The placeholders are not in their order.",
        "This was not in the raw text.",
        "They were in each other's place.",
        "It was the other way round.",
        "number_missing: 12.5 (in '12.5%').",
        "132 words for 90.",
        "It was said 2 times.",
        "A heading: 'Results'.",
    ],
)
def test_a_sentence_about_the_text_is_chatter(sentence: str) -> None:
    assert "chatter" in codes(f"{FAITHFUL} {sentence}")


@pytest.mark.parametrize(
    ("raw", "rewrite"),
    [
        (
            "We looked at the logs of all users. In many of them the end is missing, so we drop these.",
            "Of all users' logs, those of which the end is missing, which are many, are dropped.",
        ),
        (
            "The labels of the corpus were restored by hand, and the names of all speakers were removed.",
            "The corpus has labels restored by hand; the names of all speakers were removed.",
        ),
    ],
)
def test_a_text_about_missing_and_restored_things_is_rewritten(raw: str, rewrite: str) -> None:
    assert "chatter" not in codes(rewrite, raw)


@pytest.mark.parametrize(
    "head",
    ["Page cache\nEviction\n", "Page cache\n\nEviction\n\n", "Page cache > Eviction\n\n", "**Eviction:**\n"],
)
def test_title_and_heading_in_front_are_no_body(head: str) -> None:
    assert codes(head + FAITHFUL, context="Page cache\nEviction") == {"heading_invented"}


def test_a_line_of_the_raw_text_that_equals_its_heading_stays() -> None:
    head = "Eviction\n\n"
    assert codes(head + FAITHFUL, head + RAW, context="Page cache\nEviction") == set()


def test_a_last_sentence_that_was_merged_is_no_lost_end() -> None:
    raw = (
        "Attributions are made for the first 50 words of the generated summary, as later ones repeat themselves. "
        "This means that for each text we obtain 50 different saliency maps, each one supposed to represent the "
        "relevance of the input for a specific generated word in the summary."
    )
    rewrite = (
        "Attributions cover the first 50 words of the generated summary, as later ones repeat themselves, so each "
        "text has 50 saliency maps, one per word."
    )
    assert codes(rewrite, raw) == set()


HEADED = RAW + "An Overview of MTNet ::: Design Decisions"


def test_the_heading_of_the_next_section_is_no_end() -> None:
    assert codes(FAITHFUL, HEADED) == set()
    assert codes(FAITHFUL + "An Overview of MTNet ::: Design Decisions", HEADED) == set()
    assert "truncated" in codes(changed(", and `train.py` runs the code.", ", and `train.py` runs"), HEADED)


def test_a_road_map_at_the_end_need_not_come_back() -> None:
    raw = (
        f"{RAW} The article is organized in two parts. Following, the second part of the article presents an overview of "
        "baseline systems and the approaches employed by participants. We conclude with a discussion of ethical remarks."
    )
    assert codes(FAITHFUL, raw) == set()


def test_a_quotation_may_be_in_another_language() -> None:
    raw = "We align pairs.Es befindet sich gar keine junge Dame an Bord.There is no young lady on board. It works."
    rewrite = "Pairs are aligned.\nEs befindet sich gar keine junge Dame an Bord.\nThere is no young lady on board. It works."
    assert "language" not in codes(rewrite, raw)
    assert "language" in codes(rewrite.replace("gar keine junge Dame", "nicht eine Frau"), raw)
