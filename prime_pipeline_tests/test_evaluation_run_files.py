"""Runs in files, worked by hand: what they are called, what they are worth, and how they compare."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.run_files import RUN_MEASURES, RunScores, score_runs
from prime_pipeline.evaluation.trec import write_qrels, write_run
from prime_pipeline.records import Qrels, Run

QRELS: Qrels = {"q1": {"a": 1}, "q2": {"b": 2, "a": 0}, "q3": {"c": 1}, "q4": {"d": 0}}
RUN: Run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"x": 2.0, "b": 1.0}, "q4": {"d": 1.0}, "q9": {"a": 1.0}}
IDS = [f"q{at}" for at in range(6)]
RIGHT: Qrels = {query: {"right": 1} for query in IDS}


def run_file(path: Path, run: Run, tag: str = "mine") -> Path:
    write_run(path, run, tag)
    return path


def qrels_file(folder: Path, qrels: Qrels = QRELS) -> Path:
    write_qrels(folder / "qrels.txt", qrels)
    return folder / "qrels.txt"


def first_in(n_queries: int) -> Run:
    """A run with the right result first in so many queries, and second in the others."""
    return {q: {"right": 2.0, "wrong": 3.0 if at >= n_queries else 1.0} for at, q in enumerate(IDS)}


def three_runs(folder: Path, *measures: str) -> RunScores:
    """A base that is never right at first, then one that always is, and one that is in half of the queries."""
    paths = [run_file(folder / f"{n}.run", first_in(n), f"first-{n}") for n in (0, 6, 3)]
    return score_runs(paths, qrels_file(folder, RIGHT), measures)


def odd(scores: RunScores) -> list[str]:
    """The warnings about files, without the one that the queries are few."""
    return [warning for warning in scores.warnings if not warning.startswith("intervals and p-values")]


# --- one run ------------------------------------------------------------------------------------------------------


def test_means_are_over_every_judged_query(tmp_path: Path) -> None:
    scores = score_runs(
        [run_file(tmp_path / "run", RUN)], qrels_file(tmp_path), ["mrr", "ndcg@5", "p@5", "r@5"]
    )
    (found,) = scores.runs
    assert found.name == "mine"
    assert found.evaluation.per_query["mrr"] == {"q1": 1.0, "q2": 0.5, "q3": 0.0, "q4": 0.0}
    assert found.evaluation.means == {
        "mrr": pytest.approx(1.5 / 4),
        "ndcg@5": pytest.approx((1 + 1 / math.log2(3)) / 4),
        "p@5": pytest.approx((1 / 5 + 1 / 5) / 4),
        "r@5": pytest.approx(2 / 4),
    }
    assert {name: interval.value for name, interval in found.intervals.items()} == found.evaluation.means
    assert {interval.n for interval in found.intervals.values()} == {4}
    assert (scores.comparisons, scores.p_adjusted, odd(scores)) == ({}, {}, [])


def test_queries_without_result_judgement_or_relevant_result_are_counted(tmp_path: Path) -> None:
    (found,) = score_runs([run_file(tmp_path / "run", RUN)], qrels_file(tmp_path)).runs
    evaluation = found.evaluation
    assert (evaluation.n_queries, evaluation.n_missing) == (4, 1)  # q3
    assert (evaluation.n_unjudged, evaluation.n_without_relevant) == (1, 1)  # q9, q4
    assert tuple(found.intervals) == RUN_MEASURES


def test_judgements_of_either_layout_score_alike(tmp_path: Path) -> None:
    path = run_file(tmp_path / "run", RUN)
    write_qrels(tmp_path / "test.tsv", QRELS, "beir")
    assert score_runs([path], tmp_path / "test.tsv") == score_runs([path], qrels_file(tmp_path))


def test_a_grade_counts_by_its_height_unless_told_otherwise(tmp_path: Path) -> None:
    qrels = qrels_file(tmp_path, {"q": {"a": 1, "b": 3}})
    path = run_file(tmp_path / "run", {"q": {"a": 2.0, "b": 1.0}})
    (graded,) = score_runs([path], qrels, ["ndcg@5"]).runs
    assert graded.evaluation.means["ndcg@5"] == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))
    (binary,) = score_runs([path], qrels, ["ndcg@5"], is_binary=True).runs
    assert binary.evaluation.means["ndcg@5"] == pytest.approx(1.0)


def test_queries_that_nest_in_documents_are_resampled_with_them(tmp_path: Path) -> None:
    path = run_file(tmp_path / "run", {"q1": {"a": 1.0}, "q2": {"x": 2.0, "a": 1.0}, "q3": {"b": 1.0}})
    for qrels, n_documents in (
        ({"q1": {"a": 1}, "q2": {"a": 2, "x": 0}, "q3": {"b": 1}}, 2),
        ({"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}, 1),
    ):
        (found,) = score_runs([path], qrels_file(tmp_path, qrels), ["mrr"], by_document=True).runs
        interval = found.intervals["mrr"]
        assert (interval.n, interval.n_clusters) == (3, n_documents)
        assert (interval.low is None) is (n_documents == 1)
        (flat,) = score_runs([path], qrels_file(tmp_path, qrels), ["mrr"]).runs
        assert (flat.intervals["mrr"].value, flat.intervals["mrr"].n_clusters) == (interval.value, 3)


def test_comparisons_flip_the_signs_of_whole_documents(tmp_path: Path) -> None:
    paths = [run_file(tmp_path / f"{n}.run", first_in(n), f"first-{n}") for n in (0, 6)]
    by_query = {query: {"right": 1, "other": 0} for query in IDS}
    scores = score_runs(paths, qrels_file(tmp_path, by_query), ["mrr"], by_document=True)
    (compared,) = scores.comparisons.values()
    assert (compared.n, compared.n_clusters, compared.p_value) == (6, 1, 1.0)


@pytest.mark.parametrize("judged", [{"a": 0}, {"a": 1, "b": 1}])
def test_queries_without_one_relevant_document_nest_in_none(tmp_path: Path, judged: dict[str, int]) -> None:
    path = run_file(tmp_path / "run", RUN)
    with pytest.raises(EvaluationError, match=r"query 'q1' has \d relevant documents: queries nest"):
        score_runs([path], qrels_file(tmp_path, {"q1": judged}), by_document=True)


def test_a_measure_named_twice_stands_once(tmp_path: Path) -> None:
    scores = score_runs(
        [run_file(tmp_path / "run", RUN)], qrels_file(tmp_path), ["p@1", "mrr", "p@1", "r@100"]
    )
    assert tuple(scores.runs[0].intervals) == ("p@1", "mrr", "r@100")
    assert scores.compared == "p@1"


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tags", [("one", "one"), ("one", "")])
def test_runs_are_named_by_their_files_where_tags_do_not_tell_them_apart(
    tmp_path: Path, tags: tuple[str, str]
) -> None:
    paths = [tmp_path / "first.run", tmp_path / "second.run"]
    for path, tag in zip(paths, tags, strict=True):
        path.write_text(f"q1 Q0 a 1 1.0 {tag}\n" if tag else "")  # without a line there is no tag
    assert [found.name for found in score_runs(paths, qrels_file(tmp_path)).runs] == list(map(str, paths))


def test_runs_are_named_by_their_tags_in_the_order_of_the_files(tmp_path: Path) -> None:
    assert [found.name for found in three_runs(tmp_path, "mrr").runs] == ["first-0", "first-6", "first-3"]


def test_one_file_given_twice_is_refused_however_it_is_named(tmp_path: Path) -> None:
    path = run_file(tmp_path / "a.run", RUN)
    (tmp_path / "link.run").symlink_to(path)
    (tmp_path / "below").mkdir()
    for again in (path, tmp_path / "below" / ".." / "a.run", tmp_path / "link.run"):
        with pytest.raises(EvaluationError, match="given twice: name each file once"):
            score_runs([path, again], qrels_file(tmp_path))


# --- comparisons --------------------------------------------------------------------------------------------------


def test_every_later_run_is_compared_with_the_first_by_the_first_measure(tmp_path: Path) -> None:
    scores = three_runs(tmp_path, "mrr", "ndcg@5")
    assert scores.compared == "mrr"
    # Six gains of one sign: 2 of 64 patterns of signs are as extreme. Three gains: 2 of 8.
    assert {pair: found.p_value for pair, found in scores.comparisons.items()} == {
        ("first-6", "first-0"): 2 / 64,
        ("first-3", "first-0"): 2 / 8,
    }
    assert [found.difference for found in scores.comparisons.values()] == [0.5, 0.25]
    # Holm: the least of two times 2, the other as it is.
    assert scores.p_adjusted == {("first-6", "first-0"): 2 * 2 / 64, ("first-3", "first-0"): 2 / 8}


def test_a_file_without_results_is_compared_as_one_that_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.run").touch()
    paths = [run_file(tmp_path / "full.run", first_in(6)), tmp_path / "empty.run"]
    scores = score_runs(paths, qrels_file(tmp_path, RIGHT), ["mrr"])
    assert scores.runs[1].evaluation.n_missing == 6
    (compared,) = scores.comparisons.values()
    assert compared.difference == -1.0


# --- faults -------------------------------------------------------------------------------------------------------


def test_what_is_odd_about_each_file_is_told(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.run").write_text(f"q1 Q0 a 1 1.0 {name}\nq1 Q0 b 2 2.0 other\n")
    scores = score_runs([tmp_path / "a.run", tmp_path / "b.run"], qrels_file(tmp_path))
    assert [warning.partition(":")[0] for warning in odd(scores)] == ["a.run", "a.run", "b.run", "b.run"]
    assert "the ranks contradict the scores" in odd(scores)[0]
    assert "2 tags" in odd(scores)[1]


def test_faults_of_files_and_measures_are_named(tmp_path: Path) -> None:
    path, qrels = run_file(tmp_path / "a.run", RUN), qrels_file(tmp_path)
    with pytest.raises(EvaluationError, match=r"unknown measure 'precision': use ndcg@k"):
        score_runs([path], qrels, ["precision"])
    with pytest.raises(EvaluationError, match=r"cannot read .*absent\.run"):
        score_runs([path, tmp_path / "absent.run"], qrels)
    with pytest.raises(EvaluationError, match=r"a\.run:1: expected 4 fields"):
        score_runs([path], path)


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ({"q1": {"a#0001": 1.0}, "q2": {"b#0002": 1.0}}, "nothing that it ranks is judged"),
        ({"Q1": {"a": 1.0}}, "none of its queries is judged"),
    ],
)
def test_a_run_of_other_ids_is_told_apart_from_one_that_finds_nothing(
    tmp_path: Path, run: Run, told: str
) -> None:
    scores = score_runs([run_file(tmp_path / "run", run)], qrels_file(tmp_path))
    (warning,) = odd(scores)
    assert told in warning
    wrong = score_runs([run_file(tmp_path / "wrong", {"q2": {"a": 1.0}})], qrels_file(tmp_path))
    assert (wrong.runs[0].evaluation.means["mrr"], odd(wrong)) == (0.0, [])


def test_a_file_without_results_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    scores = score_runs([tmp_path / "empty"], qrels_file(tmp_path))
    assert any("the file holds no result" in warning for warning in scores.warnings)


def test_intervals_of_few_queries_are_told_to_be_too_narrow(tmp_path: Path) -> None:
    run, qrels = run_file(tmp_path / "run", RUN), qrels_file(tmp_path)
    (few,) = score_runs([run], qrels).warnings
    assert few.startswith("intervals and p-values are from 4 queries only")
    many = {f"q{at}": {"a": 1} for at in range(20)}
    write_qrels(tmp_path / "many.txt", many)
    enough = run_file(tmp_path / "enough", {query: {"a": 1.0} for query in many})
    assert score_runs([enough], tmp_path / "many.txt").warnings == ()
