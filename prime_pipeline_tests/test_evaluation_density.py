"""Text density on texts that can be worked by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.evaluation.density import MEASURES, Density, ReferenceIdf, by_measure, density

CORPUS = ["the parser reads the grammar", "the parser", "the lexer"]


def test_idf_is_the_smoothed_one_of_the_raw_corpus() -> None:
    idf = ReferenceIdf(CORPUS)
    assert idf("the") == pytest.approx(math.log(4 / 4) + 1)
    assert idf("parser") == pytest.approx(math.log(4 / 3) + 1)
    assert idf("unheard") == pytest.approx(math.log(4 / 1) + 1)


def test_a_worked_example() -> None:
    idf = ReferenceIdf(CORPUS)
    found = density("the parser reads", idf)
    assert found is not None
    mean_idf = (1 + (math.log(4 / 3) + 1) + (math.log(4 / 2) + 1)) / 3
    assert found.n_tokens == 3
    assert found.stop_word_ratio == pytest.approx(1 / 3)
    assert found.mean_idf == pytest.approx(mean_idf)
    assert found.semantic_density == pytest.approx((2 / 3) * mean_idf / (1 / 3))


def test_technical_terms_are_rarer_than_three_quarters_of_the_tokens() -> None:
    # Nine tokens: four of "the", two of "parser", and three rare ones, among which three quarters are reached.
    rare_everywhere = ReferenceIdf(CORPUS)
    assert not any(map(rare_everywhere.is_technical, ["the", "parser", "reads"]))
    assert rare_everywhere.is_technical("unheard")
    idf = ReferenceIdf(["the parser " * 4 + "grammar", "the parser " * 4, "the parser of the lexer"])
    assert idf.technical_above == pytest.approx(1.0)
    assert [word for word in ["the", "parser", "grammar", "lexer", "of", "42"] if idf.is_technical(word)] == [
        "grammar",
        "lexer",
    ]
    found = density("the grammar of 42 lexer", idf)
    assert found is not None
    assert found.technical_term_density == pytest.approx(40.0)


def test_what_is_not_defined_is_none() -> None:
    idf = ReferenceIdf(CORPUS)
    assert density(" ... ", idf) is None
    without = density("parser grammar", idf)
    assert without is not None
    assert without.semantic_density is None
    with pytest.raises(ValueError, match="needs a document with words"):
        ReferenceIdf(["", "..."])


def test_the_published_changes_agree_with_the_reading_of_semantic_density() -> None:
    # Stop-word ratio -36.3 %, mean IDF +19.7 %, semantic density +127.3 % (PRIME paper, table 5 A).
    s = 0.366
    before, after = (1 - s) / s, 1.197 * (1 - 0.637 * s) / (0.637 * s)
    assert after / before == pytest.approx(2.273, abs=0.002)


def test_by_measure_leaves_out_what_is_not_defined() -> None:
    table = by_measure({"b": Density(2, 0.0, 50.0, 1.5, None), "a": Density(2, 0.5, 50.0, 1.5, 1.5)})
    assert tuple(table) == MEASURES
    assert list(table["mean_idf"]) == ["a", "b"]
    assert table["semantic_density"] == {"a": 1.5}


@given(st.lists(st.text(max_size=60), min_size=1, max_size=6), st.text(max_size=80))
def test_ranges(texts: list[str], text: str) -> None:
    idf = ReferenceIdf([*texts, "a word"])
    found = density(text, idf)
    if found is not None:
        assert 0 <= found.stop_word_ratio <= 1
        assert 0 <= found.technical_term_density <= 100 * (1 - found.stop_word_ratio) + 1e-9
        assert found.mean_idf >= 1
        assert found.semantic_density is None or math.isfinite(found.semantic_density)
