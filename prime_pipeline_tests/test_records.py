"""Rewritten bodies beside raw ones: what is joined, what is replaced."""

from __future__ import annotations

from dataclasses import replace

from prime_pipeline.records import DocumentOutcome, Section, SectionOutcome, Spending
from prime_pipeline_tests.documents import make_document

RAW = make_document("a", "First: One two three.\n\n", "Second: Four five six.")


def test_a_rewritten_body_takes_the_place_of_the_raw_one_and_of_nothing_else() -> None:
    outcome = DocumentOutcome("a", (SectionOutcome(1, "accepted", "1, 2, 3."), SectionOutcome(2, "raw")))
    document = outcome.applied_to(RAW)
    assert document.text == RAW.text
    assert document.restructured.text == "## First\n1, 2, 3.\n\n## Second\nFour five six."
    assert [s.headings for s in document.restructured.sections] == [s.headings for s in RAW.sections]


def test_blanks_around_a_body_stay() -> None:
    section = Section(1, "section", "H", ("H",), "## H\n\n  body \n\n", body_start=5, rewritten="new")
    assert section.restructured_text == "## H\n\n  new \n\n"


def test_a_raw_document_is_its_own_restructured_one() -> None:
    assert RAW.restructured == RAW
    assert replace(RAW, sections=()).restructured.sections == ()


def test_what_is_put_off_keeps_a_document_incomplete() -> None:
    assert DocumentOutcome("a", (SectionOutcome(1, "raw"), SectionOutcome(2, "routed"))).is_complete
    assert not DocumentOutcome(
        "a", (SectionOutcome(1, "accepted", "x"), SectionOutcome(2, "deferred"))
    ).is_complete


def test_spending_adds_up() -> None:
    sections = (
        SectionOutcome(1, "accepted", "x", spending=Spending(1, 0, 0, 100, 50, estimated=True)),
        SectionOutcome(2, "accepted", "y", spending=Spending(2, 3, 1, 10, 5)),
    )
    assert DocumentOutcome("a", sections).spending == Spending(3, 3, 1, 110, 55, estimated=True)
    assert DocumentOutcome("a", ()).spending == Spending()
