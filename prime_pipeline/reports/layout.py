"""Rows of words ready to be shown: what a table is made of, whatever it is about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from prime_pipeline.reports import wording
from prime_pipeline.reports.content import PIPELINES, REPRESENTATIONS, Cell, Measured
from prime_pipeline.reports.published import Published

MEASURES: Final = ("ndcg@5", "p@5", "r@5", "p@1", "r@1", "mrr", "map")
"""Measures in the order of the tables; others follow in alphabetical order."""
Key = tuple[str, ...]
_PLACES: Final = {name: at for at, name in enumerate((*REPRESENTATIONS, *PIPELINES, *MEASURES))}


@dataclass(frozen=True, slots=True)
class Datum:
    """One field of a table.

    Attributes:
        text: The value, worded; empty where there is none.
        detail: Below it, smaller: the interval, or the place in the paper.
        order: What the column sorts by; None puts it last, whichever way.
        kind: ``absent`` is a system that could not be measured; ``text`` then says why.
    """

    text: str
    detail: str = ""
    order: float | str | None = None
    kind: Literal["text", "number", "published", "absent"] = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report.

    Attributes:
        id: Unique in the report; the key of :attr:`ReportContent.commands`.
        group: Heading under which tables stand together.
        columns: Their headings.
        rows: Each with as many fields as there are columns; none where nothing was measured.
        folded: Whether it is hidden until asked for.
        empty: What stands in its place where there are no rows.
    """

    id: str
    group: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Datum, ...], ...]
    folded: bool = False
    empty: str = "Nothing was measured for this table."

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each column holds: that of its first field with a text, ``text`` if there is none."""
        columns = ([row[at] for row in self.rows] for at in range(len(self.columns)))
        return tuple(_kind(column) for column in columns)


def _kind(column: Sequence[Datum]) -> str:
    kinds = [datum.kind for datum in column if datum.text and datum.kind != "absent"]
    return kinds[0] if kinds else "text"


def compact(table: Table, told: Collection[str] = ()) -> Table:
    """The table without the columns that tell nothing.

    Args:
        table: With any columns.
        told: Columns that the caption tells instead where all of several rows have the same; ``all`` goes without saying.

    Returns:
        Without the columns that are empty in every row, and without those of ``told`` that do not vary.
    """
    columns = {at: {row[at].text for row in table.rows} for at in range(len(table.columns))}
    same = (
        {
            at: found
            for at, (found, *others) in columns.items()
            if found and not others and table.columns[at] in told and len(table.rows) > 1
        }
        if table.rows
        else {}
    )
    kept = [at for at, found in columns.items() if at not in same and found != {""}]
    throughout = "; ".join(f"{table.columns[at]} {text}" for at, text in same.items() if text != "all")
    return replace(
        table,
        columns=tuple(table.columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in table.rows),
        caption=f"{table.caption} Throughout: {throughout}." if throughout else table.caption,
    )


def text_datum(text: str) -> Datum:
    """A name."""
    return Datum(text, order=text)


def number_datum(measured: Measured | None, form: wording.Format = wording.score) -> Datum:
    """A number, its interval below it."""
    if measured is None:
        return Datum("")
    return Datum(form(measured.value), wording.interval(measured, form), measured.value, "number")


def plain_datum(value: float | None, form: wording.Format) -> Datum:
    """A count or a p-value: a number that has no interval."""
    return Datum("") if value is None else Datum(form(value), order=value, kind="number")


def n_datum(n: int | None, n_clusters: int | None) -> Datum:
    """A number of values, and below it that of the documents which they nest in."""
    if n is None:
        return Datum("")
    nests = n_clusters is not None and n_clusters != n
    detail = wording.plural(n_clusters or 0, "document") if nests else ""
    return Datum(wording.count(n), detail, n, "number")


def published_datum(found: Published | None) -> Datum:
    """A number of the paper, its place below it."""
    return Datum("") if found is None else Datum(found.text, found.place, found.value, "published")


def cell_datum(cell: Cell | None) -> Datum:
    """The result of a cell, or why there is none; empty where nobody asked for one."""
    if cell is None:
        return Datum("")
    if cell.result is None:
        return Datum(f"unavailable: {cell.reason or 'no reason was given'}", kind="absent")
    return number_datum(cell.result)


def matrix(
    cells: Iterable[Cell],
    row_of: Callable[[Cell], Key],
    column_of: Callable[[Cell], Key],
    row_label: Callable[[Key], Sequence[str]],
    column_label: Callable[[Key], str],
    beside: Callable[[Key, Key], Published | None] | None = None,
) -> tuple[list[str], tuple[tuple[Datum, ...], ...]]:
    """Cells laid out in rows and columns; a column for which numbers are published is followed by them."""
    placed = {(row_of(cell), column_of(cell)): cell for cell in cells}
    rows, columns = (sorted({key[side] for key in placed}, key=place) for side in (0, 1))
    headings: list[str] = []
    body: list[list[Datum]] = [[text_datum(label) for label in row_label(row)] for row in rows]
    for column in columns:
        headings.append(column_label(column))
        found = [beside(row, column) if beside else None for row in rows]
        for fields, row, number in zip(body, rows, found, strict=True):
            fields.append(cell_datum(placed.get((row, column))))
            fields.extend([published_datum(number)] if any(found) else [])
        headings.extend([f"{headings[-1]}, published"] if any(found) else [])
    return headings, tuple(map(tuple, body))


def place(key: Key) -> tuple[tuple[int, str], ...]:
    """Sorts keys by the places of their known parts; the others follow in alphabetical order."""
    return tuple((_PLACES.get(part, len(_PLACES)), part) for part in key)
