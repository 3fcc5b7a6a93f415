"""The heading tree and the headings that tell documents apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.metadata.heading_tree import distinctive_headings, heading_tree, indented
from prime_pipeline.records import Document, Heading, Section, TitleOrigin


def document(*headings: tuple[int, str], title: str = "T", origin: TitleOrigin = "heading") -> Document:
    section = Section(
        0, "preamble", "", (), "", headings=tuple(Heading(level, text) for level, text in headings)
    )
    captions = Section(1, "captions", "Figures", ("Figures",), "", headings=(Heading(2, "Figures"),))
    return Document("d", title, origin, (section, captions), "d.md", "text/markdown")


def test_leaves_out_the_title_once_the_captions_and_empty_headings() -> None:
    tree = heading_tree(document((1, "t"), (2, "One"), (3, "Deep"), (2, " "), (1, "T")))
    assert tree == ((2, "One"), (3, "Deep"), (1, "T"))


def test_an_h2_named_like_the_title_and_an_h1_named_like_the_file_stay() -> None:
    assert heading_tree(document((2, "T"))) == ((2, "T"),)
    assert heading_tree(document((1, "T"), origin="file-name")) == ((1, "T"),)


def test_indents_below_the_shallowest_level() -> None:
    assert indented(((3, "Deep"), (2, "One"), (4, "Deeper"))) == "  Deep\nOne\n    Deeper"
    assert indented(()) == ""


def test_a_heading_of_many_documents_is_not_distinctive() -> None:
    trees = [
        ((2, "Introduction"), (2, f"Only {chr(65 + i)}"), (2, "Pair" if i < 2 else "Rest")) for i in range(20)
    ]
    found = distinctive_headings(trees)
    assert found[0] == ("Only A",)  # "Pair" stands in 2 of 20: more than one, and more than 5 %
    assert distinctive_headings(trees, share=0.1)[0] == ("Only A", "Pair")


def test_numbers_and_case_make_no_difference() -> None:
    trees = [
        ((2, "3.1 Related  Work"), (2, "2. Wind")),
        ((2, "RELATED WORK"),),
        ((2, "IV. related work"), (2, "7")),
    ]
    assert distinctive_headings(trees) == [("Wind",), (), ()]


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("A.2 Proofs", "Proofs"),
        ("1) Setup", "Setup"),
        ("3D printing", "3D printing"),
        ("I am", "I am"),
        ("C++ 1.2 notes", "C++ 1.2 notes"),
        ("2.10. Ends", "Ends"),
    ],
)
def test_only_a_section_number_is_stripped(heading: str, text: str) -> None:
    assert distinctive_headings([((2, heading),)]) == [(text,)]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 6), st.sampled_from("ABCD")), max_size=5).map(tuple), max_size=5
    )
)
def test_every_distinctive_heading_is_one_of_its_own_and_no_other_document(
    trees: list[tuple[tuple[int, str], ...]],
) -> None:
    for i, headings in enumerate(distinctive_headings(trees)):
        others = {text for j, tree in enumerate(trees) if j != i for _, text in tree}
        assert set(headings) == {text for _, text in trees[i]} - others
        assert len(headings) == len(set(headings))
