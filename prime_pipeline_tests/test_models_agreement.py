"""How far two embedders agree."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from prime_pipeline.models.agreement import (
    agreement_of,
    measure_agreement,
    sample_passages,
    sample_queries,
)
from prime_pipeline.models.location import resolve_model
from prime_pipeline.models.tokenizer import EncoderTokenizer
from prime_pipeline_tests.fakes import HashingEmbedder


def test_the_agreement_of_two_tables_by_hand() -> None:
    ours = np.array([[0.1, 0.2], [0.3, 0.4]], dtype=np.float32)
    theirs = np.array([[0.1, 0.3], [0.25, 0.9]], dtype=np.float32)  # two neighbours changed places
    # Spearman: 1 - 6 * (1 + 1) / (4 * 15) = 0.8
    assert astuple(agreement_of(ours, theirs)) == pytest.approx((0.8, 0.5))


def test_equal_embedders_agree_and_unlike_ones_do_not() -> None:
    same = measure_agreement(HashingEmbedder(), HashingEmbedder("other name"))
    assert astuple(same) == pytest.approx((1.0, 0.0))
    # With few dimensions chance similarities hide which words are shared.
    coarse = measure_agreement(HashingEmbedder(), HashingEmbedder(dimensions=2))
    assert coarse.rank_correlation < 0.9
    assert coarse.max_difference > 0.1


def test_the_sample_is_as_long_as_what_is_embedded() -> None:
    tokenizer = EncoderTokenizer(resolve_model("all-MiniLM-L6-v2"))
    passages, queries = tokenizer.count(sample_passages()), tokenizer.count(sample_queries())
    assert (len(passages), len(queries)) == (24, 28)
    assert all(80 <= n <= tokenizer.window for n in passages)
    assert all(5 <= n <= 25 for n in queries)
