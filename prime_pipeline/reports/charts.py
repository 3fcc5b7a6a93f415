"""What the figures of a report show: which numbers, in which panel. How they are drawn is decided in ``figures``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from prime_pipeline.reports import published, wording
from prime_pipeline.reports.claims import is_change_told, is_told_apart
from prime_pipeline.reports.content import EXTRACTIVE, Comparison, Contrast, Measured, ReportContent
from prime_pipeline.reports.layout import place
from prime_pipeline.reports.published import Published
from prime_pipeline.reports.tables import bright_comparisons, main_cells, system_label

MAX_MARKS: Final = 36
"""A figure with more rows cannot be read; it shows the first ones and says so."""
_NOT_TOLD_APART: Final = "where no difference can be told: the interval reaches zero or is missing, or the adjusted p is not below 0.05"
_NO_CHANGE_TOLD: Final = (
    "where no change can be told: the interval reaches zero or is missing, or rests on too few documents"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """One number of a figure.

    Attributes:
        label: Names the row.
        result: None is not drawn.
        published: Drawn beside it.
        panel: In which it stands.
        is_hollow: Whether it is a difference that cannot be told.
    """

    label: str
    result: Measured | None
    published: float | None = None
    panel: str = ""
    is_hollow: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A dot-and-whisker plot.

    Attributes:
        title: For people who cannot see it, too.
        axis: What the horizontal axis measures.
        marks: In order; rows with the same label are one row across the panels.
        is_change: Numbers are differences: a line marks zero.
        is_share: Numbers are shown in percent.
        n_left_out: Marks beyond :data:`MAX_MARKS` rows.
        hollow: When dots are hollow, for the caption; empty where none may be.
    """

    title: str
    axis: str
    marks: tuple[Mark, ...]
    is_change: bool = False
    is_share: bool = False
    n_left_out: int = 0
    hollow: str = ""

    @property
    def has_published(self) -> bool:
        """Whether a published number is drawn."""
        return any(mark.published is not None for mark in self.marks)


def report_charts(content: ReportContent) -> Mapping[str, Chart]:
    """The figures of a report, by the id of the table that they belong to; none where there is nothing to draw."""
    charts = {
        "table-2": _table_2(content),
        "table-3": _table_3(content),
        "table-5a": _contrasts("Change of text density", content.density, published.DENSITY),
        "table-5b": _contrasts("Change of evidence localisation", content.evidence, published.EVIDENCE),
        "answers": _answers(content),
        "table-6": _audit(content),
        "comparisons": _comparisons(content),
    }
    return {table_id: chart for table_id, chart in charts.items() if chart.marks}


def _chart(
    title: str,
    axis: str,
    marks: Iterable[Mark],
    *,
    is_change: bool = False,
    is_share: bool = False,
    hollow: str = "",
) -> Chart:
    found = [mark for mark in marks if mark.result is not None]
    labels = list(dict.fromkeys(mark.label for mark in found))[:MAX_MARKS]
    shown = tuple(mark for mark in found if mark.label in labels)
    return Chart(title, axis, shown, is_change, is_share, len(found) - len(shown), hollow)


def _table_2(content: ReportContent) -> Chart:
    cells = sorted(
        (c for c in main_cells(content) if c.measure == "ndcg@5"),
        key=lambda c: (place((c.pipeline, c.reranker)), place((c.representation, c.restructurer))),
    )
    marks = (
        Mark(
            wording.representation_label(c.representation, c.restructurer),
            c.result,
            None
            if c.restructurer == EXTRACTIVE
            else _value(published.TABLE_2.get((c.representation, c.pipeline))),
            wording.pipeline_label(c.pipeline, c.reranker),
        )
        for c in cells
    )
    return _chart("NDCG@5 by representation and pipeline", "NDCG@5", marks)


def _table_3(content: ReportContent) -> Chart:
    tasks = {c.dataset.partition("/")[2]: c for c in bright_comparisons(content)}
    marks = (
        Mark(task, c.relative, _value(published.TABLE_3.get(task)), is_hollow=not is_told_apart(c))
        for task, c in tasks.items()
    )
    return _chart(
        "Change of NDCG@5 on BRIGHT",
        "relative change of NDCG@5",
        marks,
        is_change=True,
        is_share=True,
        hollow=_NOT_TOLD_APART,
    )


def _contrasts(title: str, contrasts: Sequence[Contrast], numbers: Mapping[str, Published]) -> Chart:
    marks = (
        Mark(
            ", ".join(filter(None, (wording.measure_label(c.measure), c.question_type))),
            c.relative,
            _value(numbers.get(c.measure)) if c.follows_paper else None,
            is_hollow=not is_change_told(c),
        )
        for c in contrasts
    )
    axis = "relative change, raw to restructured"
    return _chart(title, axis, marks, is_change=True, is_share=True, hollow=_NO_CHANGE_TOLD)


def _answers(content: ReportContent) -> Chart:
    rows = [row for row in content.answers if not row.question_type]
    marks = (Mark(row.condition, row.f1, _value(published.ANSWERS.get(row.condition))) for row in rows)
    return _chart("Answer-F1 by condition", "Answer-F1", marks)


def _audit(content: ReportContent) -> Chart:
    rows = sorted(content.audit, key=lambda row: row.panel)
    marks = (Mark(row.dimension, row.share, _value(published.AUDIT.get(row.dimension))) for row in rows)
    return _chart("Fidelity audit", "share", marks, is_share=True)


def _comparisons(content: ReportContent) -> Chart:
    marks = (
        Mark(_comparison_label(content, c), c.difference, is_hollow=not is_told_apart(c))
        for c in content.comparisons
    )
    axis = "difference, left minus right"
    return _chart("Paired differences", axis, marks, is_change=True, hollow=_NOT_TOLD_APART)


def _comparison_label(content: ReportContent, comparison: Comparison) -> str:
    sides = f"{system_label(comparison, comparison.left)} − {system_label(comparison, comparison.right)}"
    pipeline = wording.pipeline_label(comparison.pipeline, comparison.reranker)
    data = comparison.dataset if comparison.dataset not in {"", content.dataset} else ""
    level = comparison.level if comparison.level != "document" else ""
    details = filter(None, (data, pipeline, wording.measure_label(comparison.measure), level))
    return f"{sides} ({', '.join(details)})"


def _value(found: Published | None) -> float | None:
    return None if found is None else found.value
