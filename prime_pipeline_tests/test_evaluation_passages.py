"""What is read under each condition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.passages import Condition, Passage, passages, sections_by_id
from prime_pipeline.records import Document, Section
from prime_pipeline_tests.documents import make_document


def rewritten(document: Document, bodies: dict[int, str]) -> Document:
    return replace(
        document, sections=tuple(replace(s, rewritten=bodies.get(s.ordinal)) for s in document.sections)
    )


SECTIONS = sections_by_id(
    [
        rewritten(make_document("a", "Intro: Raw words.", "Data: Raw numbers."), {1: "Dense words."}),
        replace(make_document("b", "Raw text."), title_origin="file-name"),
    ]
)
RAW = Passage("a#1", "Title", ("Intro",), "Raw words.")


@pytest.mark.parametrize(
    ("condition", "text", "retrieves_restructured"),
    [
        (Condition.RAW_TO_RAW, "Raw words.", False),
        (Condition.RAW_TO_RESTRUCTURED, "Dense words.", False),
        (Condition.FULL_TO_FULL, "Dense words.", True),
    ],
)
def test_a_condition_decides_the_text(condition: Condition, text: str, retrieves_restructured: bool) -> None:
    found = passages(["a#2", "a#1"], SECTIONS, condition)
    assert found == (Passage("a#2", "Title", ("Data",), "Raw numbers."), replace(RAW, text=text))
    assert condition.retrieves_restructured == retrieves_restructured


def test_conditions_are_named_as_in_reports() -> None:
    assert [str(condition) for condition in Condition] == [
        "raw-to-raw",
        "raw-to-restructured",
        "full-to-full",
    ]


def test_a_title_made_of_a_file_name_is_not_read() -> None:
    assert passages(["b#1"], SECTIONS, Condition.RAW_TO_RAW)[0].title == ""


def test_a_body_that_restructuring_emptied_is_read_empty() -> None:
    emptied = sections_by_id([rewritten(make_document("a", "Intro: Raw words."), {1: ""})])
    assert passages(["a#1"], emptied, Condition.FULL_TO_FULL) == (replace(RAW, text=""),)


def test_a_preamble_without_text_is_no_section_to_find() -> None:
    title_only = Section(0, "preamble", "", (), "# Title\n\n", body_start=9)
    document = make_document("a", "Intro: Raw words.")
    found = sections_by_id([replace(document, sections=(title_only, *document.sections))])
    assert found.keys() == {"a#1"}


def test_an_unknown_section_is_named() -> None:
    with pytest.raises(EvaluationError, match="section 'a#9' was retrieved, but is not among"):
        passages(["a#1", "a#9"], SECTIONS, Condition.RAW_TO_RAW)
