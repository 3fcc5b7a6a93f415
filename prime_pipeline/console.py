"""What commands show people: progress, tables, hits, errors. Programs get JSON instead, see ``cli``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

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

_EXCERPT_CHARACTERS = 420
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

SYSTEM_LABELS = {
    "bm25": "BM25 over documents",
    "paper_literal": "stage 1 as the paper has it",
    "stage1": "our stage 1",
    "default": "our default, with section scoring",
}


@contextmanager
def progress_on(console: Console, *, enabled: bool) -> Iterator[ProgressListener]:
    """A listener that draws a line per activity, with the remaining time at the rate of the last half minute."""
    if not enabled:
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
        title=_title(title), title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0)
    )
    for name, value in counts.items():
        table.add_row(
            Text(_shown(name)), Text(_shown(f"{value:,}" if isinstance(value, int) else str(value)))
        )
    return table


def measures_table(title: str, systems: Mapping[str, Mapping[str, float]], columns: Sequence[str]) -> Table:
    """Measures by system; the best of each column stands out."""
    table = Table(title=_title(title), title_justify="left")
    table.add_column("system")
    for column in columns:
        table.add_column(column.upper(), justify="right")
    best = {c: max((measured[c] for measured in systems.values()), default=0.0) for c in columns}
    for system, measured in systems.items():
        cells = [Text(f"{measured[c]:.3f}", style="bold" if measured[c] == best[c] else "") for c in columns]
        table.add_row(Text(SYSTEM_LABELS.get(system, system)), *cells)
    return table


def message(label: str, text: str, style: str = "yellow") -> Text:
    """A line with a coloured label; the text is shown as it is, whatever it holds."""
    return Text.assemble((label, style), " ", _shown(text), no_wrap=True, overflow="ignore")


def hits_view(hits: Sequence[SectionHit]) -> Group:
    """Hits as panels: where they stand, what they say, what found them."""
    return Group(*(_hit_panel(hit) for hit in hits))


def _hit_panel(hit: SectionHit) -> Panel:
    where = " › ".join([hit.title, *hit.heading_path])
    arms = ", ".join(f"{arm} #{rank}" for arm, rank in hit.arm_ranks.items())
    footer = f"{source_of(hit)}   score {hit.score:.3f}   found by {arms}"
    return Panel(
        Group(Text(_shown(excerpt(hit.text))), Text(_shown(footer), style="dim")),
        title=Text(_shown(f"{hit.rank}. {where}"), style="bold"),
        title_align="left",
        border_style="dim",
    )


def source_of(hit: SectionHit) -> str:
    """File and lines of a hit, ``file:first-last``."""
    if hit.start_line is None:
        return hit.source_path
    return f"{hit.source_path}:{hit.start_line}-{hit.end_line}"


def excerpt(text: str) -> str:
    """The beginning of a section, blank lines left out, cut between words where there is a blank near the end."""
    joined = "\n".join(line.rstrip() for line in text.splitlines() if line.strip())
    if len(joined) <= _EXCERPT_CHARACTERS:
        return joined
    blank = max(joined.rfind(mark, _EXCERPT_CHARACTERS - 60, _EXCERPT_CHARACTERS + 1) for mark in " \n")
    return joined[: blank if blank > 0 else _EXCERPT_CHARACTERS].rstrip() + " …"


def _title(text: str) -> Text:
    """A table's title, which rich would otherwise wrap to the width of a narrow table."""
    return Text(text, style="table.title", no_wrap=True, overflow="ignore")


def _shown(text: str) -> str:
    """Text that cannot steer the terminal, whatever a document holds."""
    return _CONTROL_CHARACTERS.sub("", text)
