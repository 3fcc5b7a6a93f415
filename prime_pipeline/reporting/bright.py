"""The reports on BRIGHT's tasks as one: a cell for each task, and the macro-average over the structured ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from prime_pipeline.baselines.representations import CONTROLS
from prime_pipeline.corpus.bright import BRIGHT_STRUCTURED_TASKS
from prime_pipeline.evaluation.families import Family
from prime_pipeline.evaluation.macro_average import (
    PerDataset,
    macro_average,
    macro_differences,
)
from prime_pipeline.reports.content import Cell, Comparison, ReportContent, SystemCost
from prime_pipeline.studies.experiment import BASELINES, COMPARED
from prime_pipeline.studies.findings import measured

_QUERY: Final = "query_"
_CONVENTION: Final = (
    "Means over BRIGHT's structured tasks give every task the same weight; queries are resampled within their tasks, and "
    "intervals are 95 % percentile intervals of 10,000 resamples. Relative changes are averaged over tasks, as in the PRIME "
    "paper."
)

System = tuple[str, str, str, str]
"""Representation, pipeline, restructurer and reranker."""


def bright_report(reports: Mapping[str, ReportContent]) -> ReportContent:
    """One report on several tasks; what is told of the corpus, its text and its cost by section stays in their own.

    Costs are added up over the tasks, those of a query are averaged.

    Args:
        reports: Task to the report on its experiment; at least one.
    """
    first = next(iter(reports.values()))
    structured = [task for task in BRIGHT_STRUCTURED_TASKS if task in reports]
    return ReportContent(
        title="Retrieval report: BRIGHT",
        dataset="bright",
        created="; ".join(f"{task}: {content.created}" for task, content in reports.items()),
        n_documents=sum(content.n_documents or 0 for content in reports.values()),
        restructurer=first.restructurer,
        cells=(
            *(cell for task, content in reports.items() for cell in _cells(task, content)),
            *_means(reports, structured),
        ),
        comparisons=(
            *_compared_means(reports, structured),
            *(c for task, content in reports.items() for c in _comparisons(task, content)),
        ),
        costs=tuple(_costs(list(reports.values()))),
        settings={
            name: value
            for name, value in first.settings.items()
            if all(content.settings.get(name) == value for content in reports.values())
        },
        fingerprints={
            f"{task}: {name}": value
            for task, content in reports.items()
            for name, value in content.fingerprints.items()
        },
        conventions=(
            *dict.fromkeys(sentence for content in reports.values() for sentence in content.conventions),
            _CONVENTION,
        ),
        notes=tuple(_notes(reports, structured)),
        commands={"table-3": "prime reproduce bright"},
    )


def _cells(task: str, content: ReportContent) -> Iterator[Cell]:
    return (
        replace(cell, dataset=f"bright/{task}")
        for cell in content.cells_of(content.dataset)
        if cell.level == "document"
    )


def _comparisons(task: str, content: ReportContent) -> Iterator[Comparison]:
    return (replace(found, dataset=f"bright/{task}") for found in content.comparisons)


def _mean_of(tasks: Sequence[str]) -> str:
    return f"bright/mean of {len(tasks)} structured tasks"


def _measured(
    reports: Mapping[str, ReportContent], tasks: Sequence[str], measure: str
) -> dict[System, PerDataset]:
    """Values by query of the systems that were measured on every task, in the order of the first."""
    found: dict[System, dict[str, Mapping[str, float]]] = defaultdict(dict)
    for task in tasks:
        for cell in _cells(task, reports[task]):
            if cell.measure == measure and cell.per_query and not cell.question_type:
                system = (cell.representation, cell.pipeline, cell.restructurer, cell.reranker)
                found[system][task] = cell.per_query
    return {system: of_tasks for system, of_tasks in found.items() if len(of_tasks) == len(tasks)}


def _means(reports: Mapping[str, ReportContent], tasks: Sequence[str]) -> Iterator[Cell]:
    for (representation, pipeline, restructurer, reranker), values in _measured(
        reports, tasks, COMPARED
    ).items():
        yield Cell(
            representation,
            pipeline,
            COMPARED,
            measured(macro_average(values)),
            dataset=_mean_of(tasks),
            restructurer=restructurer,
            reranker=reranker,
        )


def _compared_means(reports: Mapping[str, ReportContent], tasks: Sequence[str]) -> Iterator[Comparison]:
    """Every representation against both baselines in the same pipeline, one family."""
    systems = _measured(reports, tasks, COMPARED)
    bases = {system[:2]: system for system in systems if system[0] in BASELINES}
    pairs = [
        (system, bases[base, system[1]])
        for base in BASELINES
        for system in systems
        if (base, system[1]) in bases and system[0] != base and system[0] not in CONTROLS
        if (system[0], base) != BASELINES
    ]
    if not pairs:
        return
    names = {system: ", ".join(system) for system in systems}
    compared = {names[system]: systems[system] for pair in pairs for system in pair}
    found = macro_differences(compared, [(names[left], names[right]) for left, right in pairs])
    family = Family("means over BRIGHT", tuple(found))
    adjusted = family.holm({pair: each.p_value for pair, each in found.items()})
    for (left, right), (pair, each) in zip(pairs, found.items(), strict=True):
        yield Comparison(
            family=family.name,
            measure=COMPARED,
            pipeline=left[1],
            left=left[0],
            right=right[0],
            difference=measured(each.difference),
            relative=None if each.relative is None else measured(each.relative),
            p_value=each.p_value,
            p_adjusted=adjusted[pair],
            dataset=_mean_of(tasks),
            restructurer=left[2],
            reranker=left[3],
        )


def _costs(reports: Sequence[ReportContent]) -> Iterator[SystemCost]:
    """Those of the systems that every report has."""
    found: dict[tuple[str, ...], list[SystemCost]] = defaultdict(list)
    for content in reports:
        for cost in content.costs:
            found[cost.key].append(cost)
    for costs in found.values():
        if len(costs) == len(reports):
            names = [name for name in costs[0].amounts if all(name in cost.amounts for cost in costs)]
            amounts = {name: [cost.amounts[name] for cost in costs] for name in names}
            totals = {n: fmean(a) if n.startswith(_QUERY) else sum(a) for n, a in amounts.items()}
            yield replace(costs[0], amounts=totals)


def _notes(reports: Mapping[str, ReportContent], structured: Sequence[str]) -> Iterator[str]:
    missing = [task for task in BRIGHT_STRUCTURED_TASKS if task not in reports]
    apart = [task for task in reports if task not in BRIGHT_STRUCTURED_TASKS]
    if structured:
        yield f"Mean over {len(structured)} of {len(BRIGHT_STRUCTURED_TASKS)} structured tasks: {', '.join(structured)}."
    if missing:
        yield f"Structured tasks whose files are not there: {', '.join(missing)}. The mean is not comparable with the paper's."
    if apart:
        yield f"Reported apart, and in no mean: {', '.join(apart)}."
    for task, content in reports.items():
        yield from (f"{task}: {note}" for note in content.notes)
