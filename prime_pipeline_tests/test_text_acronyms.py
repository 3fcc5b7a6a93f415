"""Acronyms and their long forms."""

from __future__ import annotations

from prime_pipeline.text.acronyms import acronyms, definitions, initials, is_spelled_out


def test_acronyms_without_plurals_and_dots() -> None:
    assert acronyms("CNNs and SI-RNN in the U.S., Q&A; Section IV, A cat") == [
        "CNN",
        "SI",
        "RNN",
        "US",
        "Q&A",
    ]


def test_a_letter_with_marks_is_a_name() -> None:
    assert acronyms("F#, C++ and C# 7; a C++11 compiler, G+ and #1") == ["F#", "C++", "C#"]


def test_definitions_are_the_words_with_the_initials() -> None:
    text = "We use a gated recurrent unit (GRU) and natural language inference (NLI)."
    assert definitions(text) == {"GRU": "gated recurrent unit", "NLI": "natural language inference"}


def test_spelled_out_needs_three_letters() -> None:
    letters = initials("A new gated-recurrent unit of reinforcement learning")
    assert is_spelled_out("GRU", letters)
    assert not is_spelled_out("RL", letters)


def test_no_long_form_goes_on_behind_a_mark() -> None:
    assert not is_spelled_out("DMR", initials("With documents, models run."))


def test_small_letters_are_an_acronym_behind_their_long_form() -> None:
    text = "The area under the precision-recall curve (auprc) is new (or so), and the rank (mrr) is not."
    assert acronyms(text) == ["auprc"]
