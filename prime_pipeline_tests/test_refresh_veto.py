"""Comparing a build with the served one: what is compared, and when a drop is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.records import Query
from prime_pipeline.refresh.veto import (
    compared,
    comparison_fingerprint,
    read_veto,
    values_of,
    write_veto,
)
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document

QUERIES = QuerySet(
    "mine",
    (Query("q1", "dough of bread"), Query("q2", "engine fuel")),
    {"q1": {"a": 1}, "q2": {"b": 1}},
    known_item=False,
)


def test_the_default_system_is_measured_query_by_query(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.publish(
        make_document("a", "Bread: Dough of the bread.", title="Baking"),
        make_document("b", "Engines: An engine burns the fuel.", title="Cars"),
    )
    with bench.retriever() as retriever:
        assert values_of(retriever, QUERIES) == {"q1": 1.0, "q2": 1.0}


def test_a_drop_is_told_with_both_values_and_its_interval(tmp_path: Path) -> None:
    candidate, served = (
        {"q1": 0.0, "q2": 1.0, "q3": 0.5, "q4": 1.0},
        dict.fromkeys(["q1", "q2", "q3", "q4"], 1.0),
    )
    found = compared("f", "new", "old", QUERIES, candidate, served)
    assert (found.n_queries, found.candidate, found.served, found.difference) == (4, 0.625, 1.0, -0.375)
    assert found.low is not None
    assert found.high is not None
    assert found.low < -0.375 < found.high
    sentence = found.sentence(0.1)
    for part in ("0.6250", "old 1.0000", "-0.3750", "95% interval", "4 queries of mine", "a drop of 0.1"):
        assert part in sentence
    write_veto(tmp_path / "veto.json", found)
    assert read_veto(tmp_path / "veto.json") == found
    (tmp_path / "veto.json").write_text("[]")
    assert read_veto(tmp_path / "veto.json") is None


@pytest.mark.parametrize(("allowed", "is_drop"), [(0.0, True), (0.249, True), (0.25, False), (1.0, False)])
def test_as_much_as_is_allowed_is_no_drop(allowed: float, is_drop: bool) -> None:
    found = compared("f", "new", "old", QUERIES, {"q1": 0.5, "q2": 1.0}, {"q1": 1.0, "q2": 1.0})
    assert found.drops_by_more_than(allowed) is is_drop


def test_finding_more_is_no_drop_and_one_query_has_no_interval() -> None:
    found = compared("f", "new", "old", QUERIES, {"q1": 0.7}, {"q1": 0.5})
    assert not found.drops_by_more_than(0.0)
    assert "no interval from a single query" in found.sentence(0.0)


def test_other_builds_and_other_queries_are_another_comparison() -> None:
    other = QuerySet("mine", QUERIES.queries, {"q1": {"b": 1}}, known_item=False)
    known = {
        comparison_fingerprint("a", "b", QUERIES),
        comparison_fingerprint("a", "c", QUERIES),
        comparison_fingerprint("b", "a", QUERIES),
        comparison_fingerprint("a", "b", other),
    }
    assert len(known) == 4
