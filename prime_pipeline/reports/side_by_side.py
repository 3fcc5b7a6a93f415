"""Two reports side by side. Their means may be compared by eye; a difference gets an interval only query by query."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol, TypeVar, get_args

from prime_pipeline.reports import wording
from prime_pipeline.reports.content import Cell, Contrast, Measured, Panel, ReportContent, check
from prime_pipeline.reports.layout import (
    Datum,
    Key,
    Table,
    cell_datum,
    compact,
    number_datum,
    place,
    text_datum,
)
from prime_pipeline.reports.page import grouped, render, report_facts

Paired = Callable[[Mapping[str, float], Mapping[str, float]], Measured]
"""Per-query values of the left and of the right report over the same queries to the mean of right minus left."""

_ROUNDING: Final = 1e-12
"""Differences below this part of their terms are what rounding leaves."""
_TOLD: Final = ("data", "level", "questions")
"""Columns that a caption tells where they are the same throughout."""
_CONTRAST: Final = ("measure", "questions", "text")
_PANELS: Final = get_args(Panel)
_UNPAIRED: Final = (
    "Values with their own intervals; a row of one report only stands here, too. Differences are of means: the single "
    "values are not in the reports, so that nothing tells whether one could be chance."
)


class _Placed(Protocol):
    """What is matched: by its whole key, or by the key without the models that made it."""

    @property
    def key(self) -> Key: ...

    @property
    def place(self) -> Key: ...


_Some = TypeVar("_Some", bound=_Placed)


def compare(left: ReportContent, right: ReportContent, paired: Paired | None = None) -> str:
    """A page of HTML with the numbers of two reports side by side, matched by what they measure.

    Cells and costs are matched by their whole key first; what is left over, by its place in the tables where one of each
    report is there, and the row names the models that differ. All else is matched by its names.

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
    tables = tuple(compact(table, _TOLD) for table in _tables(left, right, paired))
    return render(
        "comparison.html",
        title=f"{left.title} and {right.title}",
        facts=["left and right", left.created, right.created],
        contents=[("reports", "Reports"), *((table.id, table.title) for table in tables)],
        sentences=_sentences(left, right),
        groups=grouped(tables),
    )


def _tables(left: ReportContent, right: ReportContent, paired: Paired | None) -> Iterator[Table]:
    matches, only_left, only_right = _matched(_named(left), _named(right))
    yield _cells(matches, paired)
    yield _unmatched("only-left", "Only in the left report", only_left)
    yield _unmatched("only-right", "Only in the right report", only_right)
    for table_id, group, title, names, numbers in (
        ("density", "Context quality", "Text density", _CONTRAST, _densities),
        ("evidence", "Context quality", "Evidence localisation", _CONTRAST, _localised),
        ("answers", "Context quality", "Answers", ("condition", "questions", "measure"), _answered),
        ("audit", "Fidelity", "Fidelity audit", ("panel", "dimension"), _audited),
    ):
        yield _beside(table_id, group, title, names, numbers(left), numbers(right))
    yield _costs(left, right)
    yield _changes("settings", "Changed settings", left.settings, right.settings)
    yield _changes("fingerprints", "Changed fingerprints", left.fingerprints, right.fingerprints)


def _sentences(left: ReportContent, right: ReportContent) -> Iterator[str]:
    for side, content in (("Left", left), ("Right", right)):
        yield f"{side}: {content.title}; {'; '.join(report_facts(content))}."
    if left.dataset != right.dataset:
        yield "The reports are of different data sets: cells of their own do not match."
    if left.restructurer != right.restructurer:
        yield (
            f"What made the restructured text differs: {left.restructurer or 'nothing'} on the left, "
            f"{right.restructurer or 'nothing'} on the right."
        )
    yield (
        "A difference of two means says nothing by itself: whether it could be chance is told only where the values of the "
        "single queries are in both reports, and then the difference has an interval."
    )


# --- cells ------------------------------------------------------------------------------------------------------


def _matched(
    lefts: Iterable[_Some], rights: Iterable[_Some]
) -> tuple[list[tuple[_Some, _Some]], list[_Some], list[_Some]]:
    """Pairs, then what only the left has, then what only the right has, each in the order of the tables."""
    ours, theirs = ({item.key: item for item in items} for items in (lefts, rights))
    pairs = [(ours[key], theirs[key]) for key in ours.keys() & theirs.keys()]
    left_over, right_over = (
        _by_place(items[key] for key in items if key not in others)
        for items, others in ((ours, theirs), (theirs, ours))
    )
    pairs += [
        (left_over[at].pop(), right_over[at].pop())
        for at in left_over.keys() & right_over.keys()
        if len(left_over[at]) == len(right_over[at]) == 1
    ]
    only_left, only_right = (
        sorted((item for items in over.values() for item in items), key=lambda item: place(item.key))
        for over in (left_over, right_over)
    )
    return sorted(pairs, key=lambda pair: place(pair[0].key)), only_left, only_right


def _by_place(items: Iterable[_Some]) -> Mapping[Key, list[_Some]]:
    places = defaultdict(list)
    for item in items:
        places[item.place].append(item)
    return places


def _named(content: ReportContent) -> Iterator[Cell]:
    """The cells, each with the name of its data set."""
    return (replace(cell, dataset=cell.dataset or content.dataset) for cell in content.cells)


def _cells(matches: Iterable[tuple[Cell, Cell]], paired: Paired | None) -> Table:
    rows = tuple(
        (
            *_names(left),
            cell_datum(left),
            cell_datum(right),
            _difference(left, right, paired),
            text_datum(_models((left.restructurer, right.restructurer), (left.reranker, right.reranker))),
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
    return _unpaired(left.result, right.result, wording.signed, _why_unpaired(left, right))


def _unpaired(left: Measured, right: Measured, form: wording.Format, reason: str = "unpaired") -> Datum:
    value = right.value - left.value
    if abs(value) <= _ROUNDING * max(abs(left.value), abs(right.value)):
        value = 0.0
    return number_datum(Measured(value, reason=reason), form)


def _why_unpaired(left: Cell, right: Cell) -> str:
    if left.per_query and right.per_query and left.per_query.keys() != right.per_query.keys():
        return "unpaired, the queries differ"
    return "unpaired"


def _models(*pairs: tuple[str, str]) -> str:
    return "; ".join(f"{old or 'none'} → {new or 'none'}" for old, new in pairs if old != new)


def _unmatched(table_id: str, title: str, cells: Sequence[Cell]) -> Table:
    rows = tuple((*_names(cell), cell_datum(cell)) for cell in cells)
    columns = ("data", "level", "questions", "representation", "pipeline", "measure", "value")
    return Table(table_id, "Cells", title, "Cells without a counterpart.", columns, rows, empty="None.")


# --- contrasts, answers, audit ----------------------------------------------------------------------------------


class _Number(NamedTuple):
    """A number of a report, and how it and a difference of two are worded."""

    measured: Measured
    form: wording.Format
    difference_form: wording.Format


_Numbers = Mapping[Key, _Number]
"""By the names that its row has in a table."""


def _numbers(found: Iterable[tuple[Key, _Number]]) -> _Numbers:
    """A name that comes again is numbered, so that no row is lost."""
    seen: Counter[Key] = Counter()
    numbers = {}
    for key, number in found:
        seen[key] += 1
        *others, last = key
        numbers[(*others, f"{last} ({seen[key]})" if seen[key] > 1 else last)] = number
    return numbers


def _densities(content: ReportContent) -> _Numbers:
    return _contrasted(content.density)


def _localised(content: ReportContent) -> _Numbers:
    return _contrasted(content.evidence)


def _contrasted(contrasts: Iterable[Contrast]) -> _Numbers:
    return _numbers(
        ((wording.measure_label(contrast.measure), contrast.question_type or "all", text), number)
        for contrast in contrasts
        for text, number in _texts(contrast)
    )


def _texts(contrast: Contrast) -> Iterator[tuple[str, _Number]]:
    for text, measured in (("raw", contrast.raw), ("restructured", contrast.restructured)):
        yield text, _Number(measured, wording.score, wording.signed)
    if contrast.relative is not None:
        yield "change", _Number(contrast.relative, wording.signed_percent, wording.points)


def _answered(content: ReportContent) -> _Numbers:
    return _numbers(
        ((row.condition, row.question_type or "all", measure), _Number(found, wording.fine, wording.signed))
        for row in content.answers
        for measure, found in (("Answer-F1", row.f1), ("Evidence-F1", row.evidence_f1))
        if found is not None
    )


def _audited(content: ReportContent) -> _Numbers:
    return _numbers(
        ((row.panel, row.dimension), _Number(row.share, wording.percent, wording.points))
        for row in sorted(content.audit, key=lambda row: row.panel)
    )


def _beside(
    table_id: str, group: str, title: str, names: Sequence[str], left: _Numbers, right: _Numbers
) -> Table:
    rows = tuple(
        (*map(text_datum, key), *_sides(left.get(key), right.get(key))) for key in _in_groups(left, right)
    )
    columns = (*names, "left", "right", "right − left", "n")
    return Table(table_id, group, title, _UNPAIRED, columns, rows, empty="Neither report has any.")


def _in_groups(left: _Numbers, right: _Numbers) -> list[Key]:
    """The keys of both, those of one measure, condition or panel together, in the order in which they first come."""
    keys = dict.fromkeys((*left, *right))
    groups = list(dict.fromkeys((*_PANELS, *(key[0] for key in keys))))
    return sorted(keys, key=lambda key: groups.index(key[0]))


def _sides(left: _Number | None, right: _Number | None) -> Iterator[Datum]:
    """Both numbers, their difference, and what they are over."""
    for number in (left, right):
        yield Datum("") if number is None else number_datum(number.measured, number.form)
    if left is not None and right is not None:
        yield _unpaired(left.measured, right.measured, left.difference_form)
    else:
        yield _only(is_left=right is None)
    counts = [number.measured.n for number in (left, right) if number and number.measured.n is not None]
    told = " → ".join(dict.fromkeys(wording.count(n) for n in counts if n is not None))
    yield Datum(told, order=max(filter(None, counts), default=None), kind="number")


def _only(*, is_left: bool) -> Datum:
    return Datum(f"only in the {'left' if is_left else 'right'} report", kind="absent")


# --- costs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Amount:
    """One cost of one system."""

    representation: str
    pipeline: str
    cost: str
    restructurer: str
    reranker: str
    value: float

    @property
    def key(self) -> Key:
        return (*self.place, self.restructurer, self.reranker)

    @property
    def place(self) -> Key:
        return (self.representation, self.pipeline, self.cost)


def _costs(left: ReportContent, right: ReportContent) -> Table:
    pairs, only_left, only_right = _matched(_amounts(left), _amounts(right))
    rows = [(ours.key, _amount_row(ours, ours, theirs)) for ours, theirs in pairs]
    rows += [(amount.key, _amount_row(amount, amount, None)) for amount in only_left]
    rows += [(amount.key, _amount_row(amount, None, amount)) for amount in only_right]
    caption = (
        "Counts, which have no intervals. Below each difference stands what the right is of the left. A row of one report "
        "only stands here, too."
    )
    columns = ("representation", "pipeline", "cost", "left", "right", "right − left", "models that differ")
    ordered = tuple(row for _, row in sorted(rows, key=lambda row: _cost_place(row[0])))
    return Table("cost", "Cost", "Cost", caption, columns, ordered, empty="Neither report has any.")


def _amounts(content: ReportContent) -> Iterator[_Amount]:
    for system in content.costs:
        for cost, value in system.amounts.items():
            yield _Amount(
                system.representation, system.pipeline, cost, system.restructurer, system.reranker, value
            )


def _cost_place(key: Key) -> tuple[object, ...]:
    representation, pipeline, cost, *models = key
    known = list(wording.COSTS)
    of_cost = known.index(cost) if cost in known else len(known)
    return place((representation, models[0], pipeline, models[1])), of_cost, cost


def _amount_row(some: _Amount, left: _Amount | None, right: _Amount | None) -> tuple[Datum, ...]:
    """The row of both, or of the only one; ``some`` names it."""
    if left is not None and right is not None:
        way = wording.amount(some.cost, right.value - left.value)
        sign = "+" if right.value > left.value else ""
        beside = wording.ratio(right.value, left.value)
        change = Datum(f"{sign}{way}", beside, right.value - left.value, "number")
        models = _models((left.restructurer, right.restructurer), (left.reranker, right.reranker))
    else:
        change, models = _only(is_left=right is None), ""
    return (
        text_datum(wording.representation_label(some.representation, some.restructurer)),
        text_datum(wording.pipeline_label(some.pipeline, some.reranker)),
        text_datum(wording.COSTS.get(some.cost, some.cost)),
        *(
            Datum("")
            if amount is None
            else Datum(wording.amount(some.cost, amount.value), order=amount.value, kind="number")
            for amount in (left, right)
        ),
        change,
        text_datum(models),
    )


# --- settings ---------------------------------------------------------------------------------------------------


def _changes(table_id: str, title: str, left: Mapping[str, str], right: Mapping[str, str]) -> Table:
    rows = tuple(
        tuple(map(text_datum, (key, left.get(key, "not set"), right.get(key, "not set"))))
        for key in sorted(left.keys() | right.keys())
        if left.get(key) != right.get(key)
    )
    caption = "What one report has otherwise than the other; all else is equal."
    return Table(table_id, "Settings", title, caption, ("name", "left", "right"), rows, empty="None.")
