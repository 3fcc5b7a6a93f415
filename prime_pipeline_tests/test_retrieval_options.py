"""Derived options change what they say and nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.systems import system_options

OPTIONS = RetrievalOptions(arm_depth=7, rrf_k=3, scorer="cross_encoder")


def test_paper_literal_has_the_two_arms_of_the_paper() -> None:
    assert OPTIONS.paper_literal() == replace(OPTIONS, arms=("document_bm25", "metadata_vector"))


def test_without_reranking_there_is_no_scorer() -> None:
    assert OPTIONS.without_reranking() == replace(OPTIONS, scorer="none")


def test_systems_differ_from_the_configured_options_as_their_names_say() -> None:
    assert system_options("bm25", OPTIONS) == replace(OPTIONS, arms=("document_bm25",), scorer="none")
    assert system_options("paper_literal", OPTIONS) == OPTIONS.paper_literal().without_reranking()
    assert system_options("stage1", OPTIONS) == replace(OPTIONS, scorer="none")
    assert system_options("default", OPTIONS) == OPTIONS


def test_a_ranking_depends_on_neither_top_k_nor_the_limit_of_time() -> None:
    assert replace(OPTIONS, top_k=9, time_limit_ms=500).determinants == OPTIONS.determinants
    assert replace(OPTIONS, rerank_budget=9).determinants != OPTIONS.determinants
    assert OPTIONS.determinants.keys() == {f.name for f in fields(OPTIONS)} - {"top_k", "time_limit_ms"}
