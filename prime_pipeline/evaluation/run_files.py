"""Runs in TREC files, wherever they come from, scored by judgements in a file and compared with the first of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.families import Family
from prime_pipeline.evaluation.measures import Evaluation, binarised, evaluate
from prime_pipeline.evaluation.statistics import (
    Interval,
    Pair,
    PairedDifference,
    are_few,
    mean_intervals,
    paired_differences,
)
from prime_pipeline.evaluation.trec import TrecRun, read_qrels, read_run
from prime_pipeline.records import Qrels

RUN_MEASURES: Final = ("ndcg@5", "ndcg@10", "p@5", "r@5", "mrr", "map")


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """One run.

    Attributes:
        name: Its tag; its file's path where tags are empty or repeat.
        evaluation: Its measures.
        intervals: Means with intervals, by measure; queries are resampled.
    """

    name: str
    evaluation: Evaluation
    intervals: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class RunScores:
    """What runs are worth.

    Attributes:
        runs: In the order of their files.
        compared: The measure of the comparisons.
        comparisons: Each later run against the first.
        p_adjusted: By Holm's method over the comparisons.
        warnings: What is odd about the files, though they can be scored.
    """

    runs: tuple[ScoredRun, ...]
    compared: str
    comparisons: Mapping[Pair, PairedDifference]
    p_adjusted: Mapping[Pair, float]
    warnings: tuple[str, ...]


def score_runs(
    paths: Sequence[Path],
    qrels_path: Path,
    measures: Sequence[str] = RUN_MEASURES,
    *,
    is_binary: bool = False,
    by_document: bool = False,
) -> RunScores:
    """Score runs over the same judgements, and compare each with the first one by the first measure.

    Args:
        paths: Of the runs, at least one; see :func:`~prime_pipeline.evaluation.trec.read_run`.
        qrels_path: Of the judgements, in TREC's or BEIR's layout.
        measures: See :func:`~prime_pipeline.evaluation.measures.evaluate`; at least one.
        is_binary: Count every grade above 0 as 1.
        by_document: Queries nest in documents, each in its one relevant one: documents are resampled, not queries.

    Raises:
        EvaluationError: A file cannot be read, a measure is unknown, one file is given twice, or a query has no or several
            relevant documents with ``by_document``.
    """
    if len(set(map(Path.resolve, paths))) < len(paths):
        raise EvaluationError("a run is given twice: name each file once")
    read = [read_run(path) for path in paths]
    graded = read_qrels(qrels_path)
    qrels = binarised(graded) if is_binary else graded
    clusters = _clusters(qrels) if by_document else None
    tags = [run.tag for run in read]
    names = tags if all(tags) and len(set(tags)) == len(tags) else [str(path) for path in paths]
    measures = tuple(dict.fromkeys(measures))
    found = [evaluate(run.run, qrels, measures) for run in read]
    runs = tuple(
        ScoredRun(name, evaluation, mean_intervals(evaluation.per_query, clusters))
        for name, evaluation in zip(names, found, strict=True)
    )
    family = Family("runs", tuple((run.name, runs[0].name) for run in runs[1:]))
    values = {run.name: run.evaluation.per_query[measures[0]] for run in runs}
    comparisons = paired_differences(values, family.comparisons, clusters)
    return RunScores(
        runs,
        measures[0],
        comparisons,
        family.holm({pair: compared.p_value for pair, compared in comparisons.items()}),
        (
            *(warning for run in read for warning in run.warnings),
            *_foreign(names, read, qrels),
            *_few(runs[0].intervals[measures[0]], by_document=by_document),
        ),
    )


def _few(interval: Interval, *, by_document: bool) -> Iterator[str]:
    """A warning where intervals rest on so little that they are too narrow, down to no width at all."""
    if are_few(interval.n_clusters):
        what = "documents" if by_document else "queries"
        yield f"intervals and p-values are from {interval.n_clusters} {what} only: the intervals are narrower than they should be."


def _foreign(names: Sequence[str], runs: Sequence[TrecRun], qrels: Qrels) -> Iterator[str]:
    """A warning for every run that ranks nothing that is judged for the same query: the zeros would look like a result."""
    for name, run in zip(names, runs, strict=True):
        shared = run.run.keys() & {query for query, judged in qrels.items() if judged}
        if shared and not any(run.run[query].keys() & qrels[query].keys() for query in shared):
            query = min(shared)
            yield (
                f"{name}: nothing that it ranks is judged, so that every measure is 0. It ranks "
                f"{next(iter(run.run[query]), 'nothing')!r} where the judgements have {next(iter(qrels[query]), 'nothing')!r}: "
                "are these documents and those sections?"
            )
        elif not run.run:
            yield f"{name}: the file holds no result, so that every measure is 0."
        elif not shared:
            yield f"{name}: none of its queries is judged, so that every measure is 0: do the ids of queries agree?"


def _clusters(qrels: Qrels) -> dict[str, str]:
    clusters = {}
    for query_id, judged in qrels.items():
        relevant = [doc_id for doc_id, grade in judged.items() if grade > 0]
        if len(relevant) != 1:
            raise EvaluationError(
                f"query {query_id!r} has {len(relevant)} relevant documents: queries nest in documents only where each has one"
            )
        clusters[query_id] = relevant[0]
    return clusters
