"""Evaluating a build: measures, and when they are computed again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.indexes.vectors import VectorSearch
from prime_pipeline.records import Query
from prime_pipeline.refresh.evaluation import (
    MEASURES,
    EvaluationReport,
    evaluate_build,
    paper_literal_vectors,
    read_report,
    read_runs,
)
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.systems import System
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document

CORPUS = [
    make_document("a", "Bread: Dough of the bread.", "Ovens: Heat the oven.", title="Baking"),
    make_document("b", "Engines: An engine burns the fuel.", title="Cars"),
    make_document("c", "Stars: A star shines.", title="Sky"),
]
QUERIES = QuerySet(
    "mine",
    (Query("q1", "dough of bread"), Query("q2", "engine fuel"), Query("q3", "zebra")),
    {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"gone": 1}},
    known_item=False,
)
SYSTEMS: tuple[System, ...] = ("bm25", "paper_literal", "stage1", "default")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "home")
    bench.publish(*CORPUS)
    return bench


def evaluated(
    bench: Bench,
    queries: QuerySet = QUERIES,
    systems: Sequence[System] = SYSTEMS,
    options: RetrievalOptions | None = None,
) -> EvaluationReport:
    def vectors() -> VectorSearch:
        return paper_literal_vectors(CORPUS, bench.embedder, bench.embeddings)

    with bench.retriever(options) as retriever:
        return evaluate_build(retriever, queries, systems, vectors, bench.home)


def test_a_report_measures_every_system_over_every_judged_query(bench: Bench) -> None:
    report = evaluated(bench)
    assert tuple(report.systems) == SYSTEMS
    assert (report.n_queries, report.queries, report.known_item, report.changed) == (3, "mine", False, True)
    assert report.build_id == bench.builds.live_id
    for measured in report.systems.values():
        assert set(measured.means) == set(measured.per_query) == set(MEASURES)
        assert measured.per_query["mrr"] == {"q1": 1.0, "q2": 1.0, "q3": 0.0}
        assert measured.means["mrr"] == pytest.approx(2 / 3)


def test_a_report_is_read_back_as_it_was_written(bench: Bench) -> None:
    report = evaluated(bench)
    assert read_report(bench.home.measures("offline")) == replace(report, changed=False)


def test_rankings_are_kept_beside_the_measures(bench: Bench) -> None:
    report = evaluated(bench)
    runs = read_runs(bench.home.rankings("offline"), report.fingerprint)
    assert runs is not None
    assert set(runs.documents) == set(runs.sections) == set(SYSTEMS)
    assert runs.documents["bm25"] == {"q1": ["a"], "q2": ["b"], "q3": []}
    assert runs.sections["default"]["q1"][0] == "a#1"
    assert read_runs(bench.home.rankings("offline"), "another") is None


def test_what_a_query_excludes_is_not_ranked_for_it(bench: Bench) -> None:
    asked = (Query("q1", "dough oven engine"), Query("q2", "dough oven engine"))
    qrels = {"q1": {"b": 1}, "q2": {"b": 1}}
    excluding = replace(QUERIES, queries=asked, qrels=qrels, excluded={"q1": frozenset({"a", "gone"})})
    report = evaluated(bench, excluding)
    runs = read_runs(bench.home.rankings("offline"), report.fingerprint)
    assert runs is not None
    for name in SYSTEMS:
        found, untouched = runs.documents[name]["q1"], runs.documents[name]["q2"]
        assert found == [doc_id for doc_id in untouched if doc_id != "a"]
        assert "a" in untouched
        sections = runs.sections[name]
        assert sections["q1"] == [s for s in sections["q2"] if s not in {"a#1", "a#2"}]
    assert runs.documents["bm25"] == {"q1": ["b"], "q2": ["a", "b"]}
    assert len(runs.sections["default"]["q2"]) > len(runs.sections["default"]["q1"]) > 0
    assert report.systems["bm25"].per_query["mrr"] == {"q1": 1.0, "q2": 0.5}


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"fingerprint": 1}'])
def test_lost_rankings_are_made_again(bench: Bench, damage: str) -> None:
    report = evaluated(bench)
    bench.home.rankings("offline").write_text(damage)
    assert evaluated(bench).changed
    assert read_runs(bench.home.rankings("offline"), report.fingerprint) is not None


def test_questions_about_one_document_are_resampled_together(bench: Bench) -> None:
    nested = replace(QUERIES, qrels={"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"b": 1}}, known_item=True)
    interval = evaluated(bench, nested).systems["bm25"].intervals["mrr"]
    assert (interval.n, interval.n_clusters) == (3, 2)
    interval = evaluated(bench).systems["bm25"].intervals["mrr"]
    assert (interval.n, interval.n_clusters) == (3, 3)


def test_an_equal_evaluation_is_not_run_again(bench: Bench) -> None:
    report = evaluated(bench)
    written = bench.home.measures("offline").read_bytes()
    assert evaluated(bench) == replace(report, changed=False)
    assert bench.home.measures("offline").read_bytes() == written


def test_whatever_determines_the_measures_makes_another_evaluation(bench: Bench) -> None:
    reworded = (Query("q1", "oven"), *QUERIES.queries[1:])
    judged = {**QUERIES.qrels, "q1": {"c": 1}}
    reports = [
        evaluated(bench),
        evaluated(bench, replace(QUERIES, queries=reworded)),
        evaluated(bench, replace(QUERIES, qrels=judged)),
        evaluated(bench, replace(QUERIES, name="renamed")),
        evaluated(bench, replace(QUERIES, excluded={"q1": frozenset({"c"})})),
        evaluated(bench, systems=("bm25",)),
        evaluated(bench, options=RetrievalOptions(scorer="none")),
        evaluated(bench, options=RetrievalOptions(rrf_k=1)),
    ]
    bench.publish(make_document("d", "New: a new document"))
    reports.append(evaluated(bench))
    assert all(report.changed for report in reports)
    assert len({report.fingerprint for report in reports}) == len(reports)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "3", '"x"', "{}", '{"systems": []}', '{"systems": {"a": {"x": 1}}}']
)
def test_a_report_that_cannot_be_read_is_made_again(bench: Bench, content: str) -> None:
    bench.home.measures("offline").parent.mkdir(parents=True)
    bench.home.measures("offline").write_text(content)
    assert read_report(bench.home.measures("offline")) is None
    assert evaluated(bench).changed


def test_a_report_of_another_version_is_made_again(bench: Bench) -> None:
    evaluated(bench)
    fields = json.loads(bench.home.measures("offline").read_text())
    bench.home.measures("offline").write_text(json.dumps(fields | {"unknown": 1}))
    assert read_report(bench.home.measures("offline")) is None


def test_literal_vectors_stand_for_title_raw_terms_and_headings(bench: Bench) -> None:
    bench.embedder.texts_encoded.clear()
    found = paper_literal_vectors(reversed(CORPUS), bench.embedder, bench.embeddings)
    assert list(found.doc_ids) == ["a", "b", "c"]
    texts = {text.splitlines()[0]: text.splitlines() for text in bench.embedder.texts_encoded}
    assert texts["Baking"][2:] == ["Bread", "Ovens"]
    assert "the" in texts["Baking"][1].split()
    assert np.linalg.norm(found.vectors, axis=1) == pytest.approx(1)
    bench.embedder.texts_encoded.clear()
    again = paper_literal_vectors(CORPUS, bench.embedder, bench.embeddings)
    assert np.array_equal(again.vectors, found.vectors)
    assert bench.embedder.texts_encoded == []
