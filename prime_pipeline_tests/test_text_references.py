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
