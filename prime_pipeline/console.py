"""What commands show people: progress, tables, hits, errors. Programs get JSON instead, see ``cli``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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

if TYPE_CHECKING:
    from prime_pipeline.defs.runs import RefreshSummary

_EXCERPT_CHARACTERS = 420
_MAX_LISTED = 20
# C0 and C1 controls but tab and line feed, and what turns the direction of text: none may come from a document.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

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
    """One line with a coloured label; the text is shown as it is, whatever it holds."""
    return Text.assemble(
        (label, style), " ", _shown(" ".join(text.splitlines())), no_wrap=True, overflow="ignore"
    )


def messages(label: str, texts: Sequence[str], style: str = "yellow") -> Iterator[Text]:
    """A line each for the first of many texts, and one that says how many more there are."""
    yield from (message(label, text, style) for text in texts[:_MAX_LISTED])
    if len(texts) > _MAX_LISTED:
        yield message(label, f"and {len(texts) - _MAX_LISTED:,} more, see --json or the Dagster UI", style)


def refresh_view(summary: RefreshSummary) -> Group:
    """What a refresh did: counts, failures, notes, checks and measures."""
    scan, published = summary.scan, summary.steps["offline/published_index"]
    counts: dict[str, Any] = {
        "added": len(scan.added),
        "updated": len(scan.changed),
        "removed": len(scan.removed),
        "unchanged": scan.unchanged,
        "failed": len(scan.failed),
        "embedded": summary.steps["offline/vector_index"].get("encoded", 0),
    }
    moved = (
        summary.steps["offline/document_metadata"].get("changed_texts", 0)
        - len(scan.added)
        - len(scan.changed)
    )
    if moved > 0:
        counts["moved terms"] = f"{moved:,} unchanged documents, whose terms depend on the whole corpus"
    counts |= {
        name: published[name] for name in ("documents", "sections", "vectors", "served") if name in published
    }
    notes = {name: str(step["notes"]) for name, step in summary.steps.items() if "notes" in step}
    parts: list[Any] = [
        counts_table("Refresh", counts),
        *messages("failed:", [f"{source}: {reason}" for source, reason in scan.failed.items()]),
        *messages("note:", [f"{source}: {warning}" for source, warning in scan.warnings]),
        *(message(f"{name}:", note.removeprefix("* "), "dim") for name, note in notes.items()),
        *(message("check did not pass:", check) for check in summary.failed_checks),
    ]
    if summary.evaluation:
        title = f"{summary.evaluation.n_queries} queries, {summary.evaluation.queries}"
        parts.append(measures_table(title, measures_of(summary), ("ndcg@5", "mrr")))
    return Group(*parts)


def demo_view(summary: RefreshSummary, question: str, hits: Sequence[SectionHit], ui_command: str) -> Group:
    """What the demo built and found, and how to go on."""
    published = summary.steps["offline/published_index"]
    counts = {name: published[name] for name in ("documents", "sections", "vectors")}
    failed = {"failed": len(summary.scan.failed)} if summary.scan.failed else {}
    n_queries = summary.evaluation.n_queries if summary.evaluation else 0
    title = f"\n{n_queries} known-item queries: the packages' one-line summaries, which are not in the indexed text"
    return Group(
        counts_table("\nIndexed", {**counts, **failed}),
        measures_table(title, measures_of(summary), ("ndcg@5", "mrr")),
        Text(f"\n{question}", style="bold"),
        hits_view(hits),
        Text.assemble("Look at it in the Dagster UI:  ", (_shown(ui_command), "bold")),
        Text.assemble(
            "Index a folder of your own:    ",
            ("prime refresh --corpus DIR", "bold"),
            ", then ",
            ('prime search "…"', "bold"),
        ),
    )


def measures_of(summary: RefreshSummary) -> dict[str, dict[str, float]]:
    """Mean by measure and system; empty where nothing was evaluated."""
    systems = summary.evaluation.systems if summary.evaluation else {}
    return {name: dict(measured.means) for name, measured in systems.items()}


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
    """File and lines of a hit, ``file:first-last``; with the document's id where a file holds several."""
    lines = "" if hit.start_line is None else f":{hit.start_line}-{hit.end_line}"
    return f"{hit.source_path}{lines}" + ("" if hit.doc_id == hit.source_path else f" ({hit.doc_id})")


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
    return _STEERING.sub("", text)
