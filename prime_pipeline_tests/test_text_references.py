"""Citation marks and references."""

from __future__ import annotations

import pytest

from prime_pipeline.text.references import is_road_map, references, without_references


@pytest.mark.parametrize(
    "text",
    [
        "see BIBREF12",
        "see ouchi-tsuboi:2016:EMNLP2016",
        "see [3, 5-7]",
        "see (Smith et al., 2019; Lee and Kim, 2018)",
        "see Table 3",
        "see Tables 1 , 2 , 3",
        "see Fig 7, 8 and 9",
        "see Section SECREF4",
    ],
)
def test_references_hold_no_numbers(text: str) -> None:
    bare = without_references(text)
    assert bare.split() == ["see"]
    assert len(bare) == len(text)


def test_numbers_beside_references_stay() -> None:
    assert "74,000" in without_references("(sections 21-22, 74,000 words)")
    assert references("Table 3 has 5 rows") == ["Table 3"]


def test_road_maps() -> None:
    assert is_road_map("The rest of this paper is organized as follows.")
    assert is_road_map("The statistics are shown in Table 3.")
    assert not is_road_map("The table holds 5 rows.")


def test_parentheses_end_a_reference() -> None:
    assert references("(Figure FIGREF8), 4 tasks; (Table 3), 4 tasks; Eqs. (2) and (3)") == [
        "Figure FIGREF8",
        "Table 3",
        "Eqs. (2) and (3)",
    ]
    assert references("Eqs. (3, 4) and 5; Section 3 and SECREF4") == [
        "Eqs. (3, 4) and 5",
        "Section 3",
        "SECREF4",
    ]
    assert references("In Figure FIGREF8, 4 tasks are shown.") == ["Figure FIGREF8"]


def test_parts_of_the_paper_and_hopes_are_road_maps() -> None:
    assert is_road_map("The paper is organized in two parts.")
    assert is_road_map("Following, the second part of the paper presents baselines.")
    assert is_road_map("We conclude with a discussion.")
    assert is_road_map("We are hoping that this will help.")
    assert not is_road_map("The second part of the data is new, and we conclude the model helps.")
