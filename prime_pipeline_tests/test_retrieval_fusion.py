"""Reciprocal rank fusion: the arithmetic on the page, and what must not matter to it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.retrieval.fusion import reciprocal_rank_fusion

RANKINGS = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=5)


def test_scores_are_sums_of_reciprocal_ranks() -> None:
    fused = reciprocal_rank_fusion([["a", "b"], ["b", "c"]])
    assert [item for item, _ in fused] == ["b", "a", "c"]
    assert dict(fused) == pytest.approx({"b": 1 / 62 + 1 / 61, "a": 1 / 61, "c": 1 / 62})


def test_k_flattens_the_ranks() -> None:
    assert reciprocal_rank_fusion([["a"]], k=1) == [("a", 0.5)]


def test_nothing_fuses_to_nothing() -> None:
    assert reciprocal_rank_fusion([]) == []
    assert reciprocal_rank_fusion([[], []]) == []


def test_ties_are_in_order_of_id() -> None:
    assert [item for item, _ in reciprocal_rank_fusion([["b", "c"], ["a", "d"]])] == ["a", "b", "c", "d"]


@given(RANKINGS, st.randoms())
def test_the_order_of_rankings_does_not_change_a_bit(
    rankings: list[list[str]], source: random.Random
) -> None:
    shuffled = list(rankings)
    source.shuffle(shuffled)
    assert reciprocal_rank_fusion(shuffled) == reciprocal_rank_fusion(rankings)


@given(RANKINGS)
def test_agrees_with_a_plain_second_implementation(rankings: list[list[str]]) -> None:
    items = {item for ranking in rankings for item in ranking}
    expected = {
        item: sum(1 / (61 + ranking.index(item)) for ranking in rankings if item in ranking) for item in items
    }
    fused = reciprocal_rank_fusion(rankings)
    assert dict(fused) == pytest.approx(expected)
    assert fused == sorted(fused, key=lambda pair: (-pair[1], pair[0]))
