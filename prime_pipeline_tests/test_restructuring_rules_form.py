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
