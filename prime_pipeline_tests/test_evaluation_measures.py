"""Measures: worked by hand, and against a second implementation on random runs with ties."""

from __future__ import annotations

import math

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.measures import (
    CONVENTIONS,
    UNTYPED,
    TypeMean,
    binarised,
    breakdown,
    evaluate,
    ranking,
)
from prime_pipeline.records import Qrels

MEASURES = ("ndcg@2", "ndcg@5", "p@2", "p@5", "r@2", "r@5", "mrr", "map")
DOC_IDS = st.sampled_from(["d1", "d10", "d2", "é", "D", "d1#0", "x y"])
# Some scores that float32 cannot tell apart.
SCORES = st.sampled_from([0.0, 1.0, 1.0 + 1e-12, -3.5, 0.9, 0.9 + 1e-9, 1e300])
RUNS = st.dictionaries(st.sampled_from("abcd"), st.dictionaries(DOC_IDS, SCORES))
QRELS = st.dictionaries(
    st.sampled_from("abce"), st.dictionaries(DOC_IDS, st.integers(-2, 3), min_size=1), min_size=1
)
THEIRS = {
    "ndcg@2": ir_measures.nDCG @ 2,
    "ndcg@5": ir_measures.nDCG @ 5,
    "p@2": ir_measures.P @ 2,
    "p@5": ir_measures.P @ 5,
    "r@2": ir_measures.R @ 2,
    "r@5": ir_measures.R @ 5,
    "mrr": ir_measures.RR,
    "map": ir_measures.AP,
}


def test_a_graded_ranking_worked_by_hand() -> None:
    # Ranking: n (0), a (1), b (2); c (1) is not found.
    result = evaluate(
        {"q": {"a": 2.0, "b": 1.0, "n": 3.0}}, {"q": {"a": 1, "b": 2, "c": 1, "n": 0}}, MEASURES
    )
    ideal_2 = 2 / math.log2(2) + 1 / math.log2(3)
    ideal_5 = ideal_2 + 1 / math.log2(4)
    assert result.means == pytest.approx(
        {
            "ndcg@2": (1 / math.log2(3)) / ideal_2,
            "ndcg@5": (1 / math.log2(3) + 2 / math.log2(4)) / ideal_5,
            "p@2": 1 / 2,
            "p@5": 2 / 5,
            "r@2": 1 / 3,
            "r@5": 2 / 3,
            "mrr": 1 / 2,
            "map": (1 / 2 + 2 / 3) / 3,
        }
    )


def test_ties_rank_by_ascending_id() -> None:
    run = {"q": {"d2": 1.0, "d1": 1.0}}
    assert evaluate(run, {"q": {"d1": 1}}, ["mrr"]).means == {"mrr": 1.0}
    assert evaluate(run, {"q": {"d2": 1}}, ["mrr"]).means == {"mrr": 0.5}


def test_scores_that_differ_beyond_float32_are_no_ties() -> None:
    assert evaluate({"q": {"d1": 0.9, "d2": 0.9 + 1e-9}}, {"q": {"d2": 1}}, ["mrr"]).means == {"mrr": 1.0}


def test_every_judged_query_counts_and_no_other() -> None:
    run = {"found": {"d": 1.0}, "empty": {}, "unjudged": {"d": 1.0}, "hopeless": {"d": 1.0}}
    qrels = {"missing": {"d": 1}, "found": {"d": 1}, "empty": {"d": 1}, "hopeless": {"d": 0}, "blank": {}}
    result = evaluate(run, qrels, ["ndcg@5", "mrr"])
    assert result.per_query["mrr"] == {"empty": 0.0, "found": 1.0, "hopeless": 0.0, "missing": 0.0}
    assert list(result.per_query["ndcg@5"]) == ["empty", "found", "hopeless", "missing"]
    assert result.means == {"ndcg@5": 0.25, "mrr": 0.25}
    assert (result.n_queries, result.n_missing, result.n_unjudged, result.n_without_relevant) == (4, 2, 1, 1)


def test_mrr_and_map_see_the_whole_ranking() -> None:
    run = {"q": {f"d{i:04}": -float(i) for i in range(2000)}}
    assert evaluate(run, {"q": {"d1999": 1}}, ["mrr", "map"]).means == pytest.approx(
        {"mrr": 1 / 2000, "map": 1 / 2000}
    )


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_refuses_scores_that_are_not_finite(score: float) -> None:
    with pytest.raises(EvaluationError, match=r"'d7' for query 'q9'.*finite"):
        evaluate({"q9": {"d7": score}}, {"q": {"d": 1}})


@pytest.mark.parametrize("qrels", [{}, {"q": {}}])
def test_refuses_empty_judgements(qrels: Qrels) -> None:
    with pytest.raises(EvaluationError, match="empty"):
        evaluate({"q": {"d": 1.0}}, qrels)


@pytest.mark.parametrize(
    "measure", ["ndcg", "ndcg@0", "ndcg@100000", "ndcg@٣", "recall@5", "mrr@10", "p@-1", ""]
)
def test_refuses_unknown_measures(measure: str) -> None:
    with pytest.raises(EvaluationError, match="unknown measure"):
        evaluate({}, {"q": {"d": 1}}, [measure])


def plain(measure: str, scores: dict[str, float], grades: dict[str, int]) -> float:
    """The definitions, straight from the textbook."""
    ranked = [max(0, grades.get(d, 0)) for d in sorted(scores, key=lambda d: (-scores[d], d))]
    ideal = sorted((max(0, grade) for grade in grades.values()), reverse=True)
    hits = [rank for rank, grade in enumerate(ranked, 1) if grade > 0]
    n_relevant = sum(grade > 0 for grade in ideal)
    if not hits:
        return 0.0
    if measure == "mrr":
        return 1 / hits[0]
    if measure == "map":
        return sum(i / rank for i, rank in enumerate(hits, 1)) / n_relevant
    name, k = measure.split("@")
    found = sum(rank <= int(k) for rank in hits)
    if name == "ndcg":
        dcg, best = (sum(g / math.log2(r + 1) for r, g in enumerate(x[: int(k)], 1)) for x in (ranked, ideal))
        return dcg / best
    return found / (int(k) if name == "p" else n_relevant)


@given(RUNS, QRELS)
def test_agrees_with_the_textbook(run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]) -> None:
    result = evaluate(run, qrels, MEASURES)
    for measure in MEASURES:
        expected = {q: plain(measure, run.get(q, {}), grades) for q, grades in qrels.items()}
        assert result.per_query[measure] == pytest.approx(expected)
        assert result.means[measure] == pytest.approx(sum(expected.values()) / len(qrels))


@given(RUNS, QRELS)
def test_agrees_with_ir_measures_once_ties_are_broken(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]
) -> None:
    untied = {
        query: {doc_id: -float(rank) for rank, doc_id in enumerate(ranking(query, scores))}
        for query, scores in run.items()
    }
    # Grades below 0 are as good as 0, but can end the process inside ir_measures: it stands on pytrec_eval as well.
    gains = {query: {doc_id: max(0, grade) for doc_id, grade in row.items()} for query, row in qrels.items()}
    expected = ir_measures.calc_aggregate(list(THEIRS.values()), gains, untied)
    result = evaluate(run, qrels, MEASURES)
    assert result.means == pytest.approx(
        {measure: expected[theirs] for measure, theirs in THEIRS.items()}, abs=1e-6
    )


@given(RUNS, QRELS)
def test_the_order_of_the_input_makes_no_difference(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]
) -> None:
    turned_run = {query: dict(reversed(scores.items())) for query, scores in reversed(run.items())}
    turned_qrels = {query: dict(reversed(grades.items())) for query, grades in reversed(qrels.items())}
    assert evaluate(turned_run, turned_qrels, MEASURES) == evaluate(run, qrels, MEASURES)


@pytest.mark.parametrize("wrong", ["a\ud800", "\udfffb", "a\0b"])
def test_refuses_ids_that_pytrec_eval_cannot_hold(wrong: str) -> None:
    right = {"q": {"d": 1}}
    for run, qrels in (
        ({wrong: {"d": 1.0}}, right),
        ({"q": {wrong: 1.0}}, right),
        ({}, {wrong: {"d": 1}}),
        ({}, {"q": {wrong: 1}}),
    ):
        with pytest.raises(EvaluationError, match="repair the id"):
            evaluate(run, qrels)


@pytest.mark.parametrize("grade", [1_000_001, -1_000_001, 10**20])
def test_refuses_grades_out_of_range(grade: int) -> None:
    with pytest.raises(EvaluationError, match="grades go up to 1,000,000"):
        evaluate({}, {"q": {"d": grade}})
    assert evaluate({"q": {"d": 1.0}}, {"q": {"d": 1_000_000}}).means["ndcg@5"] == 1.0


def test_sections_are_measured_like_documents() -> None:
    run = {"q": {"guide.md#10": 1.0, "guide.md#2": 1.0, "other.md#1": 3.0}}
    result = evaluate(run, {"q": {"guide.md#10": 1}}, ["mrr", "p@2", "r@2", "ndcg@5"])
    # Ids are compared as text, so #10 stands before #2.
    assert result.means == pytest.approx({"mrr": 1 / 2, "p@2": 1 / 2, "r@2": 1.0, "ndcg@5": 1 / math.log2(3)})


def test_grades_below_0_gain_nothing() -> None:
    # Ranking: a (-2), b (1), c (-1). The ideal ranking has b first, and a negative grade is as good as none.
    run, qrels = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"a": -2, "b": 1, "c": -1}}
    expected = {"ndcg@5": 1 / math.log2(3), "p@2": 1 / 2, "r@2": 1.0, "mrr": 1 / 2, "map": 1 / 2}
    assert evaluate(run, qrels, list(expected)).means == pytest.approx(expected)


def test_binary_gains_beside_graded_ones() -> None:
    qrels = {"q": {"a": 1, "b": 2, "c": 0, "d": -1}, "none": {}}
    assert binarised(qrels) == {"q": {"a": 1, "b": 1, "c": 0, "d": 0}, "none": {}}
    assert binarised(qrels, at_least=2) == {"q": {"a": 0, "b": 1, "c": 0, "d": 0}, "none": {}}
    run = {"q": {"a": 2.0, "b": 1.0}}
    assert evaluate(run, qrels, ["ndcg@2"]).means["ndcg@2"] == pytest.approx(
        (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    )
    assert evaluate(run, binarised(qrels), ["ndcg@2"]).means == {"ndcg@2": 1.0}
    assert evaluate(run, binarised(qrels, 2), ["mrr"]).means == {"mrr": 0.5}


@pytest.mark.parametrize("at_least", [0, -1])
def test_what_is_not_relevant_stays_so(at_least: int) -> None:
    with pytest.raises(EvaluationError, match="1 is the lowest grade"):
        binarised({"q": {"d": 0}}, at_least)


def test_a_breakdown_by_type() -> None:
    run = {"q1": {"d": 1.0}, "q2": {"e": 2.0, "d": 1.0}, "q3": {"d": 1.0}}
    qrels = {query: {"d": 1} for query in ("q1", "q2", "q3", "q4")}
    types = {"q4": "yes/no", "q2": "span", "q1": "span", "unjudged": "other"}
    found = breakdown(evaluate(run, qrels, ["mrr", "p@2"]), types)
    assert found == {
        "span": {"mrr": TypeMean(0.75, 2), "p@2": TypeMean(0.5, 2)},
        UNTYPED: {"mrr": TypeMean(1.0, 1), "p@2": TypeMean(0.5, 1)},
        "yes/no": {"mrr": TypeMean(0.0, 1), "p@2": TypeMean(0.0, 1)},
    }
    assert list(found) == ["span", UNTYPED, "yes/no"]


@given(RUNS, QRELS, st.dictionaries(st.sampled_from("abce"), st.sampled_from(["x", "y"])))
def test_the_types_make_up_the_whole(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]], types: dict[str, str]
) -> None:
    whole = evaluate(run, qrels, MEASURES)
    parts = breakdown(whole, types)
    for measure in MEASURES:
        means = [part[measure] for part in parts.values()]
        assert sum(mean.n_queries for mean in means) == whole.n_queries
        weighted = sum(mean.mean * mean.n_queries for mean in means) / whole.n_queries
        assert weighted == pytest.approx(whole.means[measure])


def test_conventions_are_sentences() -> None:
    assert all(line[0].isupper() and line.endswith(".") and "\n" not in line for line in CONVENTIONS)
