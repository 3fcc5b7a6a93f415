"""Choosing by folds: whole clusters, no query has a say in its own choice, ties go to the simplest."""

from __future__ import annotations

import random

import pytest

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.cross_fit import cross_fit, folds

CLUSTERS = {f"q{i}": f"paper {i // 3}" for i in range(24)}


@pytest.mark.parametrize("n_folds", [2, 3, 8])
def test_folds_hold_whole_clusters_and_every_query_once(n_folds: int) -> None:
    split = folds(CLUSTERS, n_folds)
    assert sorted(q for fold in split for q in fold) == sorted(CLUSTERS)
    papers = [{CLUSTERS[q] for q in fold} for fold in split]
    assert sum(len(found) for found in papers) == 8
    assert max(map(len, papers)) - min(map(len, papers)) <= 1


def test_folds_do_not_depend_on_the_order_of_queries() -> None:
    shuffled = dict(random.Random(1).sample(list(CLUSTERS.items()), len(CLUSTERS)))
    assert folds(shuffled) == folds(CLUSTERS)


def test_a_fold_is_answered_by_the_best_on_the_others() -> None:
    first, second = folds(CLUSTERS)
    good_on_first = {q: 1.0 if q in first else 0.0 for q in CLUSTERS}
    good_on_second = {q: 1.0 if q in second else 0.0 for q in CLUSTERS}
    found = cross_fit({"a": good_on_first, "b": good_on_second}, CLUSTERS)
    assert found.chosen == (
        "b",
        "a",
    )  # each is chosen where it is bad: nobody saw the queries that are reported
    assert set(found.per_query.values()) == {0.0}


def test_one_candidate_is_itself() -> None:
    values = {q: i / 10 for i, q in enumerate(CLUSTERS)}
    assert cross_fit({"only": values}, CLUSTERS, n_folds=4).per_query == values


def test_of_equal_candidates_the_first_is_chosen() -> None:
    values = dict.fromkeys(CLUSTERS, 0.5)
    assert cross_fit({"simple": values, "complex": dict(values)}, CLUSTERS).chosen == ("simple", "simple")


def test_what_cannot_be_fitted_is_refused() -> None:
    values = dict.fromkeys(CLUSTERS, 0.5)
    with pytest.raises(EvaluationError, match="no candidate"):
        cross_fit({}, CLUSTERS)
    with pytest.raises(EvaluationError, match="candidate short"):
        cross_fit({"all": values, "short": {"q0": 1.0}}, CLUSTERS)
    with pytest.raises(EvaluationError, match="1 clusters"):
        cross_fit({"all": values}, dict.fromkeys(CLUSTERS, "one"))
