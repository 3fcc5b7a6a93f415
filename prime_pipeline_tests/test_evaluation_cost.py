"""Costs, counted and compared."""

from __future__ import annotations

import pytest

from prime_pipeline.evaluation.cost import (
    QUANTITIES,
    Cost,
    EmbeddedTokens,
    break_even_queries,
    embedded_tokens,
    ratios,
    restructuring_tokens,
)


class Words:
    """Counts words, and reads four of them."""

    window = 4

    def count(self, texts: list[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def test_both_counts_of_embedded_tokens() -> None:
    assert embedded_tokens(["one two", "one two three four five six"], Words()) == EmbeddedTokens(2, 8, 6)
    assert embedded_tokens([], Words()) == EmbeddedTokens(0, 0, 0)
    assert embedded_tokens(iter(["a b c d e"] * 600), Words()) == EmbeddedTokens(600, 3000, 2400)


def test_ratios_say_nothing_of_what_is_not_known() -> None:
    ours = Cost("ours", embedded_tokens=10, vectors=5, llm_tokens=7, money=0.0)
    baseline = Cost("chunks", embedded_tokens=458, vectors=112, llm_tokens=0, index_bytes=9)
    found = ratios(ours, baseline)
    assert tuple(found) == QUANTITIES
    assert found["embedded_tokens"] == pytest.approx(1 / 45.8)
    assert found["vectors"] == pytest.approx(1 / 22.4)
    assert [found[name] for name in ("llm_tokens", "index_bytes", "money")] == [None, None, None]


def test_the_paper_s_break_even() -> None:
    assert break_even_queries(56_000 * 416) == pytest.approx(12_096, abs=1)
    assert break_even_queries(0) == 0
    for wrong in ((1.0, 0.0), (-1.0, 5.0)):
        with pytest.raises(ValueError, match="reranking must take tokens"):
            break_even_queries(*wrong)


def test_the_cost_model_of_rewriting() -> None:
    assert restructuring_tokens([100, 300], per_token=1, per_section=50, output_share=0.5) == 400 + 100 + 200
