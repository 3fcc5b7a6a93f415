"""Diffs of raw and rewritten text: every letter stays, what changed is marked, and long texts take no longer than they may."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.errors import DocumentError
from prime_pipeline.records import DocumentOutcome, Finding, OutcomeKind, Section, SectionOutcome
from prime_pipeline.restructuring.diff import (
    VERDICTS,
    Piece,
    SectionDiff,
    diff,
    outcome_counts,
    section_diffs,
    words_summary,
)
from prime_pipeline_tests.documents import make_document


def joined(pieces: list[Piece], kind: str | None = None) -> str:
    return "".join(piece.text for piece in pieces if kind in (None, piece.kind))


def kinds(pieces: list[Piece]) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text) for piece in pieces]


PROSE = st.lists(
    st.sampled_from(["the", "a", "cat", "sat", "on", "mat", "12.5", ",", ".\n\n", "-", "`x`", "猫", "é"]),
    max_size=40,
).map(" ".join)
TEXT = st.text(max_size=60) | PROSE


@given(TEXT, TEXT, st.lists(TEXT, max_size=3).map(tuple))
def test_the_pieces_of_a_side_are_its_text(raw: str, rewritten: str, appended: tuple[str, ...]) -> None:
    with_patch = "\n\n".join((rewritten, *appended))
    left, right = diff(raw, with_patch, appended)
    assert (joined(left), joined(right)) == (raw, with_patch)
    assert {piece.kind for piece in left} <= {"kept", "cut"}
    assert {piece.kind for piece in right} <= {"kept", "written", "patched"}
    assert all(piece.words + piece.blanks == piece.text != "" for piece in left + right)


@given(TEXT, TEXT)
def test_what_is_kept_is_the_same_on_both_sides_but_for_blanks(raw: str, rewritten: str) -> None:
    left, right = diff(raw, rewritten)
    assert "".join(joined(left, "kept").split()) == "".join(joined(right, "kept").split())


@given(TEXT)
def test_equal_texts_are_one_piece(text: str) -> None:
    side = [Piece("kept", text)] if text else []
    assert diff(text, text) == (side, side)


def test_changed_words_are_marked_with_the_blanks_behind_them() -> None:
    left, right = diff("In fact, Pony divides by zero.", "Pony divides integers by zero.")
    assert kinds(left) == [("cut", "In fact, "), ("kept", "Pony divides by zero.")]
    assert kinds(right) == [("kept", "Pony divides "), ("written", "integers "), ("kept", "by zero.")]


@pytest.mark.parametrize(
    ("before", "after"), [("12.5", "15.2"), ("10,000", "10,001"), ("state-of-the-art", "state-of-the-arts")]
)
def test_a_number_or_a_compound_changes_as_a_whole(before: str, after: str) -> None:
    left, right = diff(f"It took {before} s.", f"It took {after} s.")
    assert joined(left, "cut").strip() == before
    assert joined(right, "written").strip() == after


def test_a_mark_changes_without_the_word_before_it() -> None:
    left, right = diff("It is zero, always", "It is zero. always")
    assert (joined(left, "cut"), joined(right, "written")) == (", ", ". ")


def test_blanks_alone_are_no_change() -> None:
    left, right = diff("one\ntwo  three", " one two\n\nthree\n")
    assert joined(left, "cut") + joined(right, "written").strip() == ""


def test_text_without_blanks_changes_by_the_character() -> None:
    left, right = diff("我喜欢红茶和咖啡", "我喜欢绿茶和咖啡")
    assert (joined(left, "cut"), joined(right, "written")) == ("红", "绿")


def test_a_stop_word_alone_between_replaced_words_counts_as_replaced() -> None:
    left, right = diff("cats chase of mice daily", "dogs hunt of rats nightly")
    assert [piece.kind for piece in left] == ["cut"]
    assert [piece.kind for piece in right] == ["written"]


@pytest.mark.parametrize("island", ["zinc", "of the in"])
def test_a_word_with_content_or_several_stop_words_stay_kept(island: str) -> None:
    left, right = diff(f"cats chase {island} mice daily", f"dogs hunt {island} rats nightly")
    assert joined(left, "kept").strip() == joined(right, "kept").strip() == island


def test_a_stop_word_beside_a_mere_cut_stays_kept() -> None:
    left, _ = diff("Rust is quite truly the best", "Rust the best")
    assert kinds(left) == [("kept", "Rust "), ("cut", "is quite truly "), ("kept", "the best")]


SENTENCES = ("It costs 5 euros.", "Nobody must touch it.")
RAW = f"Well then. {SENTENCES[0]} {SENTENCES[1]} You see."


@pytest.mark.parametrize("order", [SENTENCES, SENTENCES[::-1]])
@pytest.mark.parametrize("blank", ["\n\n", " "])
def test_appended_sentences_are_patched_in_the_rewrite_and_kept_in_the_raw_text(
    order: tuple[str, ...], blank: str
) -> None:
    tail = blank.join(order)
    left, right = diff(RAW, f"See.{blank}{tail}\n", SENTENCES)
    assert kinds(right)[-1] == ("patched", f"{tail}\n")
    assert " ".join(SENTENCES) in joined(left, "kept")
    assert joined(left, "cut").startswith("Well then")


@pytest.mark.parametrize("rewritten", [f"{SENTENCES[0]} See.", "See.", ""])
def test_only_sentences_at_the_end_count_as_appended(rewritten: str) -> None:
    _, right = diff(RAW, rewritten, SENTENCES)
    assert joined(right, "patched") == ""


def long_text(n_words: int, n_different: int) -> list[str]:
    source = random.Random(7)
    return [f"w{min(int(source.paretovariate(0.7)), n_different)}" for _ in range(n_words)]


@pytest.mark.parametrize("n_different", [30, 20_000], ids=["few-words", "prose"])
def test_long_texts_are_aligned_in_time(n_different: int) -> None:
    words = long_text(20_000, n_different)
    source = random.Random(8)
    rewritten = [word for word in words if source.random() < 0.9]
    started = time.process_time()
    left, right = diff(" ".join(words), " ".join(rewritten))
    assert time.process_time() - started < 2
    assert (joined(left), joined(right)) == (" ".join(words), " ".join(rewritten))
    assert len(joined(left, "kept").split()) > 0.85 * len(words)


@pytest.mark.parametrize("n_different", [1, 2, 30, 20_000])
def test_long_texts_that_have_little_in_common_take_no_longer(n_different: int) -> None:
    words = long_text(20_000, n_different)
    other = random.Random(9).sample(words, len(words))
    started = time.process_time()
    left, _ = diff(" ".join(words), " ".join(["new", *other, "end"]))
    assert time.process_time() - started < 2
    assert joined(left) == " ".join(words)


def test_a_moved_word_does_not_lead_the_alignment_of_a_long_text_astray() -> None:
    words = [f"{word} n{i}" for i, word in enumerate(long_text(12_000, 50))]
    moved = [words[-1], *words[:-1]]
    left, right = diff(" ".join(words), " ".join(moved))
    assert joined(left, "cut").split() == joined(right, "written").split() == words[-1].split()


# --- sections ---------------------------------------------------------------------------------------------------


DOCUMENT = make_document("bread", "Dough: one two three four", "Rest: five six")


def outcomes(*sections: SectionOutcome) -> DocumentOutcome:
    return DocumentOutcome("bread", sections)


def test_a_section_stands_with_its_outcome_in_the_order_of_the_document() -> None:
    second, first = SectionOutcome(2, "raw", refused="five"), SectionOutcome(1, "accepted", "one two four")
    diffs = section_diffs(DOCUMENT, outcomes(second, first))
    assert [(d.section.heading, d.outcome) for d in diffs] == [("Dough", first), ("Rest", second)]
    assert diffs[0].served == diff("one two three four", "one two four")
    assert diffs[0].refused is None
    assert diffs[1].served is None
    assert diffs[1].refused == diff("five six", "five")
    assert [d.n_words for d in diffs] == [(4, 3), (2, 2)]


def test_appended_sentences_reach_the_diff() -> None:
    (one,) = section_diffs(
        make_document("bread", "One. Two."),
        outcomes(SectionOutcome(1, "patched", "Only. Two.", appended=("Two.",))),
    )
    assert one.served is not None
    assert kinds(one.served[1])[-1] == ("patched", "Two.")


def test_an_empty_preamble_is_left_out() -> None:
    preamble = Section(0, "preamble", "", (), "# Bread\n\n", body_start=9)
    document = replace(DOCUMENT, sections=(preamble, *DOCUMENT.sections))
    kinds_of = [SectionOutcome(ordinal, "unchanged") for ordinal in (0, 1, 2)]
    assert [d.section.ordinal for d in section_diffs(document, outcomes(*kinds_of))] == [1, 2]


@pytest.mark.parametrize(
    "outcome",
    [
        outcomes(SectionOutcome(1, "raw")),
        outcomes(*(SectionOutcome(ordinal, "raw") for ordinal in (1, 2, 3))),
        DocumentOutcome("cake", (SectionOutcome(1, "raw"), SectionOutcome(2, "raw"))),
    ],
    ids=["too-few", "too-many", "other-document"],
)
def test_the_outcome_of_other_sections_is_refused(outcome: DocumentOutcome) -> None:
    with pytest.raises(DocumentError, match=r"^bread\.md: .*restructure it again$"):
        section_diffs(DOCUMENT, outcome)


def test_labels_are_headings_or_else_the_kind() -> None:
    section, unchanged = DOCUMENT.sections[0], SectionOutcome(1, "unchanged")
    deep = replace(section, heading_path=("Baking", "Dough"))
    whole = replace(section, heading_path=(), heading="Bread", kind="whole")
    preamble = replace(section, heading_path=(), heading="", kind="preamble")
    labels = [SectionDiff(s, unchanged).label for s in (deep, whole, preamble)]
    assert labels == ["Baking › Dough", "Bread", "Preamble"]


def test_reasons_are_codes_in_words_with_their_detail() -> None:
    findings = (Finding("number_missing", "12.5 is gone"), Finding("too_long", ""))
    diffed = SectionDiff(DOCUMENT.sections[0], SectionOutcome(1, "raw", findings=findings))
    assert diffed.reasons == [("number missing", "12.5 is gone"), ("too long", "")]


@pytest.mark.parametrize(
    ("rewritten", "phrase"),
    [
        ("one two three", "6 → 5 words, 17% saved"),
        ("one two three four five", "6 → 7 words, 17% longer"),
        ("four three two one", "6 words"),
        (None, "6 words"),
    ],
)
def test_words_are_summed_up(rewritten: str | None, phrase: str) -> None:
    outcome = outcomes(SectionOutcome(1, "accepted", rewritten), SectionOutcome(2, "raw"))
    assert words_summary(section_diffs(DOCUMENT, outcome)) == phrase


def test_nothing_is_summed_up_too() -> None:
    assert words_summary([]) == "0 words"
    empty = SectionDiff(make_document("bread", "").sections[0], SectionOutcome(1, "accepted", "a"))
    assert words_summary([empty]) == "0 → 1 words"


def test_outcomes_are_counted_from_served_to_not() -> None:
    given_kinds: list[OutcomeKind] = ["raw", "accepted", "raw", "deferred"]
    diffs = [SectionDiff(DOCUMENT.sections[0], SectionOutcome(1, kind)) for kind in given_kinds]
    assert list(outcome_counts(diffs).items()) == [("accepted", 1), ("raw", 2), ("deferred", 1)]


def test_every_outcome_has_a_verdict() -> None:
    assert set(VERDICTS) == set(get_args(OutcomeKind))
