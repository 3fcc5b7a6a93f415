"""Systems side by side over one build."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prime_pipeline.indexes.vectors import ExactVectors, VectorSearch
from prime_pipeline.records import Query
from prime_pipeline.retrieval.comparison import run_system
from prime_pipeline.retrieval.retriever import Rankings, Retriever
from prime_pipeline.retrieval.systems import SYSTEM_LABELS, SYSTEMS, System, system_options, systems_of
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document

QUERIES = (Query("q1", "bread dough"), Query("q2", "engine"), Query("q3", "?"))


@pytest.fixture
def retriever(tmp_path: Path) -> Retriever:
    bench = Bench(tmp_path)
    bench.publish(
        make_document("a", "Bread: Dough of bread.", title="Baking"),
        make_document("b", "Engines: An engine.", title="Cars"),
        make_document("c", "Stars: A star.", title="Sky"),
    )
    return bench.retriever()


def no_vectors() -> VectorSearch:
    raise AssertionError("literal vectors are for paper_literal only")


@pytest.mark.parametrize("system", ["bm25", "stage1", "default"])
def test_a_system_ranks_every_query(retriever: Retriever, system: System) -> None:
    told: list[tuple[str, int, int | None]] = []
    run = run_system(system, retriever, QUERIES, no_vectors, lambda *report: told.append(report))
    options = system_options(system, retriever.options)
    assert run == {q.query_id: retriever.rank(q.text, options) for q in QUERIES}
    assert run["q1"].documents[0] == "a"
    assert run["q3"] == Rankings((), ())
    assert told == [(f"queries, {system}", n, 3) for n in (1, 2, 3)]


def test_bm25_finds_only_documents_that_share_a_word(retriever: Retriever) -> None:
    assert set(run_system("bm25", retriever, QUERIES, no_vectors)["q2"].documents) == {"b"}


def test_paper_literal_takes_the_literal_vectors(retriever: Retriever) -> None:
    only_c = ExactVectors(["c"], np.eye(1, 64, dtype=np.float32))
    assert set(run_system("paper_literal", retriever, QUERIES, lambda: only_c)["q2"].documents) == {"b", "c"}


def test_the_paper_s_stage_1_is_evaluated_over_raw_text_only() -> None:
    assert systems_of("offline", SYSTEMS) == list(SYSTEMS)
    assert systems_of("full", SYSTEMS) == ["bm25", "stage1", "default"]


@pytest.mark.parametrize(
    ("variant", "systems", "evaluated"),
    [
        ("offline", ("default", "paper_literal"), ["default", "paper_literal"]),
        ("full", ("stage1", "paper_literal", "bm25"), ["stage1", "bm25"]),
        ("full", ("paper_literal",), []),
        ("offline", (), []),
    ],
)
def test_systems_are_evaluated_in_the_order_given(
    variant: str, systems: tuple[System, ...], evaluated: list[System]
) -> None:
    assert systems_of(variant, systems) == evaluated


def test_every_system_has_a_label_of_its_own() -> None:
    assert list(SYSTEM_LABELS) == list(SYSTEMS)
    assert len(set(SYSTEM_LABELS.values())) == len(SYSTEMS)
