"""What several commands show: progress, tables, messages, hits. Text of documents cannot steer the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from prime_pipeline.progress import Progress as ProgressListener
from prime_pipeline.progress import silent
from prime_pipeline.records import SectionHit
from prime_pipeline.retrieval.systems import SYSTEM_LABELS

if TYPE_CHECKING:
    from prime_pipeline.evaluation.statistics import Interval
    from prime_pipeline.indexes.lexical import StoredSection


_EXCERPT_CHARACTERS = 420
MAX_LISTED = 20
# C0 and C1 controls but tab and line feed, what turns the direction of text, and half characters, which no terminal
# takes: none may come from a document.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@contextmanager
def progress_on(console: Console, *, enabled: bool) -> Iterator[ProgressListener]:
    """A listener that draws a line per activity, with the remaining time at the rate of the last half minute."""
    if not (
        enabled and console.is_interactive
    ):  # into a file, rich would write the last state and a blank line
        yield silent
        return
    columns = (
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description:<24}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console, speed_estimate_period=30.0) as display:
        tasks: dict[str, TaskID] = {}

        def report(activity: str, done: int, total: int | None) -> None:
            if activity not in tasks:
                tasks[activity] = display.add_task(activity, total=total)
            display.update(tasks[activity], completed=done, total=total)

        yield report
        for task in tasks.values():  # an activity of unknown length has ended when everything has
            if display.tasks[task].total is None:
                display.update(task, total=display.tasks[task].completed)


def counts_table(title: str, counts: Mapping[str, Any]) -> Table:
    """Numbers and short texts by name."""
    table = Table(
        title=title_text(title), title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0)
    )
    for name, value in counts.items():
        table.add_row(
            Text(printable(name)), Text(printable(f"{value:,}" if isinstance(value, int) else str(value)))
        )
    return table


def measures_table(
    title: str, systems: Mapping[str, Mapping[str, Interval]], columns: Sequence[str]
) -> Table:
    """Measures by system, each with its interval below it; the best of each column stands out."""
    table = Table(title=title_text(title), title_justify="left")
    table.add_column("system")
    for column in columns:
        table.add_column(column.upper(), justify="right", no_wrap=True)
    best = {c: max((measured[c].value for measured in systems.values()), default=0.0) for c in columns}
    for system, measured in systems.items():
        name, comma, variant = system.partition(", ")
        table.add_row(
            Text(printable(SYSTEM_LABELS.get(name, name) + comma + variant)),
            *(_interval_cell(measured[c], is_best=measured[c].value == best[c]) for c in columns),
        )
    return table


def _interval_cell(interval: Interval, *, is_best: bool) -> Text:
    return interval_text(
        f"{interval.value:.3f}", interval.low, interval.high, "{:.3f}".format, "bold" if is_best else ""
    )


def interval_text(
    value: str, low: float | None, high: float | None, form: Callable[[float], str], style: str = ""
) -> Text:
    """A value, and below it, quieter, its interval if it has one."""
    shown_value = Text(value, style=style)
    return (
        shown_value
        if low is None or high is None
        else shown_value + Text(f"\n[{form(low)}, {form(high)}]", style="dim")
    )


def message(label: str, text: str, style: str = "yellow") -> Text:
    """One line with a coloured label; the text is shown as it is, whatever it holds."""
    return Text.assemble(
        (label, style), " ", printable(" ".join(text.splitlines())), no_wrap=True, overflow="ignore"
    )


def messages(label: str, texts: Sequence[str], style: str = "yellow") -> Iterator[Text]:
    """A line each for the first of many texts, and one that says how many more there are."""
    yield from (message(label, text, style) for text in texts[:MAX_LISTED])
    if len(texts) > MAX_LISTED:
        yield message(label, f"and {len(texts) - MAX_LISTED:,} more, see --json or the Dagster UI", style)


def hits_view(hits: Sequence[SectionHit]) -> Group:
    """Hits as panels: where they stand, what they say, what found them."""
    return Group(*(_hit_panel(hit) for hit in hits))


def cut_short_notes(hits: Sequence[SectionHit]) -> Iterator[Text]:
    """How far scoring came, where a limit of time ended it; nothing otherwise."""
    if not hits or (cut := hits[0].cut_short) is None:
        return
    came = f"{cut.n_scored:,} of {cut.n_sections:,} sections were scored within {cut.time_limit_ms:,} ms"
    remedy = "; prime warm fills the cache ahead" if "late_interaction" in hits[0].signals else ""
    yield message("note:", came + remedy)


def _hit_panel(hit: SectionHit) -> Panel:
    where = " › ".join([hit.title, *hit.heading_path])
    arms = ", ".join(f"{arm} #{rank}" for arm, rank in hit.arm_ranks.items())
    footer = f"{source_of(hit)}   score {hit.score:.3f}   found by {arms}"
    return Panel(
        Group(Text(printable(excerpt(hit.text))), Text(printable(footer), style="dim")),
        title=Text(printable(f"{hit.rank}. {where}"), style="bold"),
        title_align="left",
        border_style="dim",
    )


def source_of(hit: SectionHit | StoredSection) -> str:
    """File and lines of a hit or section, ``file:first-last``; with the document's id where a file holds several."""
    lines = "" if hit.start_line is None else f":{hit.start_line}-{hit.end_line}"
    return f"{hit.source_path}{lines}" + ("" if hit.doc_id == hit.source_path else f" ({hit.doc_id})")


def excerpt(text: str) -> str:
    """The beginning of a section, blank lines left out, cut between words where there is a blank near the end."""
    joined = "\n".join(line.rstrip() for line in text.splitlines() if line.strip())
    if len(joined) <= _EXCERPT_CHARACTERS:
        return joined
    blank = max(joined.rfind(mark, _EXCERPT_CHARACTERS - 60, _EXCERPT_CHARACTERS + 1) for mark in " \n")
    return joined[: blank if blank > 0 else _EXCERPT_CHARACTERS].rstrip() + " …"


def title_text(text: str) -> Text:
    """A table's title, which rich would otherwise wrap to the width of a narrow table."""
    return Text(text, style="table.title", no_wrap=True, overflow="ignore")


def printable(text: str) -> str:
    """Text that cannot steer the terminal, whatever a document holds."""
    return _STEERING.sub("", text)
