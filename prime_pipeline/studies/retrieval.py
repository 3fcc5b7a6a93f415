"""What the systems are worth: cells of the report, broken down by type of question, and paired comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.evaluation.measures import CONVENTIONS
from prime_pipeline.evaluation.statistics import PerQuery, mean_intervals
from prime_pipeline.refresh.evaluation import EvaluationReport, SystemMeasures
from prime_pipeline.reports.content import EXTRACTIVE, Cell, Comparison
from prime_pipeline.studies.findings import (
    Findings,
    comparisons,
    few_clusters_note,
    measured,
    measured_cells,
    part,
)

COMPARED: Final = "ndcg@5"
"""The measure of comparisons; declared once, as all of them are one family."""
PLACES: Final[Mapping[str, tuple[str, str]]] = {
    "bm25": ("no vectors", "bm25"),
    "paper_literal": ("prime-offline", "hybrid"),
    "stage1": ("default", "hybrid-sections"),
    "default": ("default", "hybrid-sections+rerank"),
}
"""Where a system stands in the tables: its representation and its pipeline."""
_PAIRS: Final = (
    ("default", "bm25"),
    ("default", "stage1"),
    ("default", "paper_literal"),
    ("stage1", "bm25"),
    ("stage1", "paper_literal"),
)

_LABELS: Final = {
    "bm25": "BM25",
    "paper_literal": "the paper's stage 1",
    "stage1": "our stage 1",
    "default": "our default",
}

Name = tuple[str, str]
"""A variant of the index, and a system over it."""


def retrieval_findings(reports: Sequence[EvaluationReport], query_set: QuerySet, reranker: str) -> Findings:
    """Cells and comparisons of evaluations.

    Args:
        reports: At most one for each variant, over that query set.
        query_set: For the types of questions, and the documents that they nest in.
        reranker: Name of what scores sections.
    """
    systems: dict[Name, SystemMeasures] = {
        (report.variant, system): found
        for report in reports
        for system, found in report.systems.items()
        if system in PLACES
    }
    restructurers = {report.variant: restructurer_of(report.restructuring) for report in reports}
    cells = [
        cell
        for (variant, system), found in systems.items()
        for cell in _cells(system, found, query_set, restructurers[variant], reranker)
    ]
    per_query = {name: found.per_query[COMPARED] for name, found in systems.items()}
    return Findings(
        part(
            cells=tuple(cells),
            comparisons=tuple(_comparisons(per_query, query_set, restructurers)),
            known_item=query_set.known_item,
            conventions=(*CONVENTIONS, resampling_convention(query_set)),
            notes=few_clusters_note("Retrieval", len(set((query_set.clusters or {}).values()))),
        )
    )


def restructurer_of(label: str) -> str:
    """Who rewrote, as a report names it: :data:`~prime_pipeline.reports.content.EXTRACTIVE`, or the language model."""
    return EXTRACTIVE if label.startswith(EXTRACTIVE) else label.removeprefix("llm:")


def unmeasured(system: str, restructurer: str, reranker: str) -> Cell:
    """A cell of a system, for a measure and a result to be put in."""
    representation, pipeline = PLACES[system]
    return Cell(
        representation,
        pipeline,
        measure="",
        result=None,
        restructurer=restructurer,
        reranker=reranker if pipeline.endswith("rerank") else "",
    )


def _cells(
    system: str, found: SystemMeasures, query_set: QuerySet, restructurer: str, reranker: str
) -> Iterator[Cell]:
    bare = unmeasured(system, restructurer, reranker)
    yield from measured_cells(bare, found.intervals, found.per_query)
    for kind in sorted(set(query_set.types.values())):
        values = {m: _of_kind(per_query, query_set, kind) for m, per_query in found.per_query.items()}
        for measure, interval in mean_intervals(values, query_set.clusters).items():
            yield replace(bare, measure=measure, result=measured(interval), question_type=kind)


def _of_kind(per_query: PerQuery, query_set: QuerySet, kind: str) -> dict[str, float]:
    return {query_id: value for query_id, value in per_query.items() if query_set.types.get(query_id) == kind}


def _comparisons(
    per_query: Mapping[Name, PerQuery], query_set: QuerySet, restructurers: Mapping[str, str]
) -> list[Comparison]:
    """All pairs of one family: systems over one text, then each system over the restructured and the raw text."""
    pairs = [
        ((variant, left), (variant, right))
        for variant in restructurers
        for left, right in _PAIRS
        if {(variant, left), (variant, right)} <= per_query.keys()
    ]
    pairs += [
        ((variant, system), ("offline", system))
        for variant, system in per_query
        if variant != "offline" and ("offline", system) in per_query
    ]
    labels = {name: _label(name, restructurers) for name in per_query}
    by_label = {labels[name]: values for name, values in per_query.items()}
    named = [(labels[left], labels[right]) for left, right in pairs]
    return comparisons("systems", COMPARED, named, by_label, query_set.clusters)


def _label(name: Name, restructurers: Mapping[str, str]) -> str:
    variant, system = name
    made_by = f" ({restructurers[variant]})" if restructurers[variant] else ""
    return f"{_LABELS[system]}{made_by}"


def resampling_convention(query_set: QuerySet) -> str:
    """How intervals and p-values are made, for reports."""
    what = "queries" if query_set.clusters is None else "documents, which queries nest in,"
    return (
        f"Intervals are 95 % BCa bootstrap intervals of 10,000 resamples; {what} are resampled. p-values are of a paired "
        "sign-flip permutation test."
    )
