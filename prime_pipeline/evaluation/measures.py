"""Measures of a run against judgements: a thin layer over pytrec_eval that settles what it leaves to chance.

What a difference between two runs means is for the statistics to say, not for this module.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from prime_pipeline.errors import EvaluationError
from prime_pipeline.records import Qrels, Run

MAX_GRADE: Final = 1_000_000
"""Grades beyond it, up or down, are refused: pytrec_eval takes machine integers only."""

UNTYPED: Final = "untyped"
"""The type of queries that have none, in a :func:`breakdown`."""

CONVENTIONS: Final = (
    "Results are ranked by falling score, equal scores by ascending id, whatever the order of the input.",
    "A result is relevant if its grade is above 0; a result without a grade counts as not relevant.",
    "NDCG@k has linear gain, grade / log2(rank + 1); grades below 0 gain nothing.",
    "The ideal ranking of NDCG@k is that of all judged results, also of those that the run lacks.",
    "P@k divides by k, also where fewer than k results were found.",
    "R@k and MAP divide by the number of all relevant results; MRR and MAP look at the whole ranking.",
    "Means are over every judged query: one without results, or without a relevant result, counts as 0.",
    "Queries without judgements are ignored.",
)
"""What a report prints beside the numbers, one sentence each."""

MEASURE_FORMS: Final = "ndcg@k, p@k or r@k with k from 1 to 99,999, mrr, or map"
"""How names of measures look, for messages."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CUT: Final = re.compile(r"(ndcg|p|r)@([1-9]\d{0,4})", re.ASCII)
_TREC_CUT: Final = {"ndcg": "ndcg_cut", "p": "P", "r": "recall"}
_TREC_WHOLE: Final = {"mrr": "recip_rank", "map": "map"}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a run is worth.

    Attributes:
        per_query: Measure to query id to value from 0 to 1. Queries are in ascending order of their ids, the same for
            every measure, so that the values of two runs over the same judgements are paired.
        means: Measure to mean over all judged queries.
        n_queries: Judged queries.
        n_missing: Judged queries for which the run holds no result; they count as 0.
        n_unjudged: Queries of the run without judgements; they are ignored.
        n_without_relevant: Judged queries with no relevant document; they count as 0.
    """

    per_query: Mapping[str, Mapping[str, float]]
    means: Mapping[str, float]
    n_queries: int
    n_missing: int
    n_unjudged: int
    n_without_relevant: int


@dataclass(frozen=True, slots=True)
class TypeMean:
    """A measure over the queries of one type.

    Attributes:
        mean: Over these queries, from 0 to 1.
        n_queries: How many they are, at least 1.
    """

    mean: float
    n_queries: int


def evaluate(run: Run, qrels: Qrels, measures: Sequence[str] = ("ndcg@5", "mrr")) -> Evaluation:
    """Measure a run, with the conventions of trec_eval.

    :data:`CONVENTIONS` says which. What is ranked may be documents or sections; the ids in run and judgements tell.
    A query whose judgements are an empty mapping is not judged.

    Args:
        run: Query to document (or section) to score.
        qrels: Query to document (or section) to grade.
        measures: Of ``ndcg@k``, ``p@k``, ``r@k`` (k from 1), ``mrr``, ``map``.

    Raises:
        EvaluationError: A score is not finite, an id holds half of a surrogate pair or a NUL, a grade is beyond
            ``MAX_GRADE``, nothing is judged, or a measure is unknown.
    """
    trec_names = {measure: _trec_name(measure) for measure in measures}
    judged = {query: dict(grades) for query, grades in sorted(qrels.items()) if grades}
    if not judged:
        raise EvaluationError(
            "the judgements (qrels) are empty: nothing can be measured without a judged query"
        )
    _check(run, qrels)
    ranked = {query: _strictly_ranked(query, scores) for query, scores in run.items() if scores}
    found = _trec_eval({q: ranked[q] for q in judged if q in ranked}, judged, set(trec_names.values()))
    per_query = {
        measure: {query: found[query][name.replace(".", "_")] if query in found else 0.0 for query in judged}
        for measure, name in trec_names.items()
    }
    return Evaluation(
        per_query=per_query,
        means={measure: fmean(values.values()) for measure, values in per_query.items()},
        n_queries=len(judged),
        n_missing=len(judged.keys() - ranked.keys()),
        n_unjudged=len(run.keys() - judged.keys()),
        n_without_relevant=sum(all(grade <= 0 for grade in grades.values()) for grades in judged.values()),
    )


def is_measure(name: str) -> bool:
    """Whether :func:`evaluate` knows a measure of that name."""
    return name in _TREC_WHOLE or _CUT.fullmatch(name) is not None


def binarised(qrels: Qrels, at_least: int = 1) -> Qrels:
    """The judgements with grade 1 for every grade of ``at_least`` or more, and 0 for the others.

    The PRIME paper measures NFCorpus (grades 0 to 2) so, at 1 (Table 4).

    Raises:
        EvaluationError: ``at_least`` is below 1, which would make what is judged not relevant relevant.
    """
    if at_least < 1:
        raise EvaluationError(f"cannot binarise at grade {at_least}: 1 is the lowest grade that is relevant")
    return {
        query: {doc_id: int(grade >= at_least) for doc_id, grade in grades.items()}
        for query, grades in qrels.items()
    }


def breakdown(evaluation: Evaluation, types: Mapping[str, str]) -> Mapping[str, Mapping[str, TypeMean]]:
    """The means by type of query.

    Args:
        evaluation: What to break down.
        types: Query id to type; ids that were not judged are ignored.

    Returns:
        Type to measure to mean, types in alphabetical order. Judged queries without a type stand under
        :data:`UNTYPED`. A type without judged queries is left out.
    """
    groups: dict[str, list[str]] = {}
    for query in next(iter(evaluation.per_query.values()), {}):
        groups.setdefault(types.get(query, UNTYPED), []).append(query)
    return {
        name: {
            measure: TypeMean(fmean(values[query] for query in groups[name]), len(groups[name]))
            for measure, values in evaluation.per_query.items()
        }
        for name in sorted(groups)
    }


def ranking(query: str, scores: Mapping[str, float]) -> list[str]:
    """The ids of one query's results, best first: by falling score, equal scores by ascending id.

    Raises:
        EvaluationError: A score is not finite; ``query`` is for the message.
    """
    for doc_id, score in scores.items():
        if not math.isfinite(score):
            raise EvaluationError(
                f"the run scores document {doc_id!r} for query {query!r} with {score}: scores must be finite, repair "
                "the scorer that made it"
            )
    return sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))


def id_fault(identifier: str) -> str | None:
    """Why an id cannot be evaluated, or None: pytrec_eval cuts ids at a NUL, and a lone surrogate ends the process."""
    if "\0" in identifier:
        return "holds a NUL character"
    if _SURROGATE.search(identifier):
        return "holds half of a character (a lone surrogate)"
    return None


def _check(run: Run, qrels: Qrels) -> None:
    for kind, table in (("run", run), ("judgements (qrels)", qrels)):
        for query, row in table.items():
            for identifier in (query, *row):
                if fault := id_fault(identifier):
                    raise EvaluationError(f"the {kind}: id {identifier!r} {fault}: repair the id")
    for query, grades in qrels.items():
        for doc_id, grade in grades.items():
            if abs(grade) > MAX_GRADE:
                raise EvaluationError(
                    f"query {query!r} has grade {grade} for {doc_id!r}: grades go up to {MAX_GRADE:,}"
                )


def _trec_name(measure: str) -> str:
    if measure in _TREC_WHOLE:
        return _TREC_WHOLE[measure]
    if match := _CUT.fullmatch(measure):
        return f"{_TREC_CUT[match[1]]}.{match[2]}"
    raise EvaluationError(f"unknown measure {measure!r}: use {MEASURE_FORMS}")


def _strictly_ranked(query: str, scores: Mapping[str, float]) -> dict[str, float]:
    """Scores that fall by one from rank to rank.

    pytrec_eval breaks ties by descending id and compares in float32, where close scores become ties.
    """
    order = ranking(query, scores)
    return {doc_id: float(len(order) - at) for at, doc_id in enumerate(order)}


def _trec_eval(run: Run, qrels: Qrels, names: set[str]) -> Mapping[str, Mapping[str, float]]:
    import pytrec_eval

    # Grades below 0 gain nothing, and those from -2 down can end the process inside pytrec_eval 0.5.11 (segmentation
    # fault, seen on random judgements).
    gains = {query: {doc_id: max(0, grade) for doc_id, grade in row.items()} for query, row in qrels.items()}
    found: Mapping[str, Mapping[str, float]] = pytrec_eval.RelevanceEvaluator(gains, names).evaluate(run)
    return found
