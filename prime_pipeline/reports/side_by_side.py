"""Two reports side by side. Their means may be compared by eye; a difference gets an interval only query by query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from prime_pipeline.reports import wording
from prime_pipeline.reports.content import Cell, Measured, ReportContent, check
from prime_pipeline.reports.layout import Datum, Table, cell_datum, number_datum, place, text_datum
from prime_pipeline.reports.page import grouped, render

Paired = Callable[[Mapping[str, float], Mapping[str, float]], Measured]
"""Per-query values of the left and of the right report over the same queries to the mean of right minus left."""
Match = tuple[Cell, Cell]


def compare(left: ReportContent, right: ReportContent, paired: Paired | None = None) -> str:
    """A page of HTML with the cells of two reports side by side, matched by what they measure.

    Cells are matched by their whole key first; what is left over, by its place in the tables where one cell of each
    report is there, and the row names the models that differ.

    Args:
        left: The report that values are compared with.
        right: The one whose difference is shown: right minus left.
        paired: Called for cells whose per-query values are in both reports and over the same queries. Without it, or
            without those values, no difference gets an interval.

    Raises:
        ReportError: See :func:`~prime_pipeline.reports.content.check`.
    """
    for content in (left, right):
        check(content)
    matches = list(_matches(left, right))
    tables = (
        _cells(matches, paired),
        _unmatched("only-left", "Only in the left report", left, [match[0] for match in matches]),
        _unmatched("only-right", "Only in the right report", right, [match[1] for match in matches]),
        _changes("settings", "Changed settings", left.settings, right.settings),
        _changes("fingerprints", "Changed fingerprints", left.fingerprints, right.fingerprints),
    )
    return render(
        "comparison.html",
        title=f"{left.title} and {right.title}",
        facts=["left and right", left.created, right.created],
        contents=[("reports", "Reports"), *((table.id, table.title) for table in tables)],
        sentences=_sentences(left, right),
        groups=grouped(tables),
    )


def _sentences(left: ReportContent, right: ReportContent) -> list[str]:
    named = [
        f"{side}: {c.title}, {c.dataset}, {c.created}." for side, c in (("Left", left), ("Right", right))
    ]
    other_data = (
        []
        if left.dataset == right.dataset
        else ["The reports are of different data sets: cells of their own do not match."]
    )
    rule = (
        "A difference of two means says nothing by itself: whether it could be chance is told only where the values of the "
        "single queries are in both reports, and then the difference has an interval."
    )
    return [*named, *other_data, rule]


def _matches(left: ReportContent, right: ReportContent) -> Iterator[Match]:
    """Pairs of cells, in the order of the tables."""
    lefts, rights = ({cell.key: cell for cell in _named(content)} for content in (left, right))
    exact = [(lefts[key], rights[key]) for key in lefts.keys() & rights.keys()]
    left_over, right_over = (
        _by_place(cells[key] for key in cells if key not in others)
        for cells, others in ((lefts, rights), (rights, lefts))
    )
    loose = [
        (left_over[at][0], right_over[at][0])
        for at in left_over.keys() & right_over.keys()
        if len(left_over[at]) == len(right_over[at]) == 1
    ]
    yield from sorted(exact + loose, key=lambda match: place(match[0].key))


def _named(content: ReportContent) -> Iterator[Cell]:
    """The cells, each with the name of its data set."""
    return (replace(cell, dataset=cell.dataset or content.dataset) for cell in content.cells)


def _by_place(cells: Iterable[Cell]) -> Mapping[tuple[str, ...], list[Cell]]:
    places = defaultdict(list)
    for cell in cells:
        places[cell.place].append(cell)
    return places


def _cells(matches: Iterable[Match], paired: Paired | None) -> Table:
    rows = tuple(
        (
            *_names(left),
            cell_datum(left),
            cell_datum(right),
            _difference(left, right, paired),
            text_datum(_models(left, right)),
        )
        for left, right in matches
    )
    columns = (
        "data",
        "level",
        "questions",
        "representation",
        "pipeline",
        "measure",
        "left",
        "right",
        "right − left",
    )
    caption = "Values with their own intervals. A difference without an interval is a difference of means, not a finding."
    return Table("cells", "Cells", "Cells in both reports", caption, (*columns, "models that differ"), rows)


def _names(cell: Cell) -> tuple[Datum, ...]:
    return (
        text_datum(cell.dataset),
        text_datum(cell.level),
        text_datum(cell.question_type or "all"),
        text_datum(wording.representation_label(cell.representation, cell.restructurer)),
        text_datum(wording.pipeline_label(cell.pipeline, cell.reranker)),
        text_datum(wording.measure_label(cell.measure)),
    )


def _difference(left: Cell, right: Cell, paired: Paired | None) -> Datum:
    if left.result is None or right.result is None:
        return Datum("")
    if paired and left.per_query and left.per_query.keys() == right.per_query.keys():
        return number_datum(paired(left.per_query, right.per_query), wording.signed)
    unpaired = Measured(right.result.value - left.result.value, reason=_unpaired(left, right))
    return number_datum(unpaired, wording.signed)


def _unpaired(left: Cell, right: Cell) -> str:
    if left.per_query and right.per_query and left.per_query.keys() != right.per_query.keys():
        return "unpaired, the queries differ"
    return "unpaired"


def _models(left: Cell, right: Cell) -> str:
    pairs = ((left.restructurer, right.restructurer), (left.reranker, right.reranker))
    return "; ".join(f"{old or 'none'} → {new or 'none'}" for old, new in pairs if old != new)


def _unmatched(table_id: str, title: str, content: ReportContent, matched: list[Cell]) -> Table:
    keys = {cell.key for cell in matched}
    cells = sorted((c for c in _named(content) if c.key not in keys), key=lambda c: place(c.key))
    rows = tuple((*_names(cell), cell_datum(cell)) for cell in cells)
    columns = ("data", "level", "questions", "representation", "pipeline", "measure", "value")
    return Table(table_id, "Cells", title, "Cells without a counterpart.", columns, rows, empty="None.")


def _changes(table_id: str, title: str, left: Mapping[str, str], right: Mapping[str, str]) -> Table:
    rows = tuple(
        tuple(map(text_datum, (key, left.get(key, "not set"), right.get(key, "not set"))))
        for key in sorted(left.keys() | right.keys())
        if left.get(key) != right.get(key)
    )
    caption = "What one report has otherwise than the other; all else is equal."
    return Table(table_id, "Settings", title, caption, ("name", "left", "right"), rows, empty="None.")
