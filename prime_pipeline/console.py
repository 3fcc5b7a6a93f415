"""What commands show people: progress, tables, hits, errors. Programs get JSON instead, see ``cli``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
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

from prime_pipeline.errors import DocumentError
from prime_pipeline.progress import Progress as ProgressListener
from prime_pipeline.progress import silent
from prime_pipeline.records import Document, DocumentOutcome, SectionHit
from prime_pipeline.restructuring.diff import (
    VERDICTS,
    Piece,
    PieceKind,
    SectionDiff,
    outcome_counts,
    section_diffs,
    words_summary,
)
from prime_pipeline.retrieval.systems import SYSTEM_LABELS, System

if TYPE_CHECKING:
    from prime_pipeline.defs.runs import RefreshSummary
    from prime_pipeline.evaluation.statistics import Interval
    from prime_pipeline.refresh.pricing import Quote
    from prime_pipeline.refresh.sampling import Sample
    from prime_pipeline.restructuring.estimate import DocumentEstimate

_EXCERPT_CHARACTERS = 420
_MAX_LISTED = 20
# C0 and C1 controls but tab and line feed, what turns the direction of text, and half characters, which no terminal
# takes: none may come from a document.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_SIDE_BY_SIDE_WIDTH = 100
_PIECE_STYLES: dict[PieceKind, str] = {
    "kept": "",
    "cut": "red strike",
    "written": "green underline",
    "patched": "bold yellow",
}
# Where the output has no styles (a file, a pipe), the marks of wdiff; "++" is ours.
_PIECE_MARKS: dict[PieceKind, tuple[str, str]] = {
    "kept": ("", ""),
    "cut": ("[-", "-]"),
    "written": ("{+", "+}"),
    "patched": ("{++", "++}"),
}
_VERDICT_STYLES = {
    "accepted": "green",
    "repaired": "green",
    "patched": "yellow",
    "raw": "red",
    "deferred": "red",
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


def measures_table(
    title: str, systems: Mapping[str, Mapping[str, Interval]], columns: Sequence[str]
) -> Table:
    """Measures by system, each with its interval below it; the best of each column stands out."""
    table = Table(title=_title(title), title_justify="left")
    table.add_column("system")
    for column in columns:
        table.add_column(column.upper(), justify="right", no_wrap=True)
    best = {c: max((measured[c].value for measured in systems.values()), default=0.0) for c in columns}
    for system, measured in systems.items():
        name, comma, variant = system.partition(", ")
        table.add_row(
            Text(_shown(SYSTEM_LABELS.get(cast("System", name), name) + comma + variant)),
            *(_interval_cell(measured[c], is_best=measured[c].value == best[c]) for c in columns),
        )
    return table


def _interval_cell(interval: Interval, *, is_best: bool) -> Text:
    value = Text(f"{interval.value:.3f}", style="bold" if is_best else "")
    if interval.low is None or interval.high is None:
        return value
    return value + Text(f"\n{interval.low:.3f}–{interval.high:.3f}", style="dim")


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
    scan, published = summary.scan, summary.published
    counts: dict[str, Any] = {
        "added": len(scan.added),
        "updated": len(scan.changed),
        "removed": len(scan.removed),
        "unchanged": scan.unchanged,
        "failed": len(scan.failed),
        "embedded": sum(step.get("encoded", 0) for step in summary.steps.values()),
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
        counts_table("Refresh", {**counts, **_restructuring_counts(summary)}),
        *messages("failed:", [f"{source}: {reason}" for source, reason in scan.failed.items()]),
        *messages("note:", [f"{source}: {warning}" for source, warning in scan.warnings]),
        *(message(f"{name}:", note.removeprefix("* "), "dim") for name, note in notes.items()),
        *(message("check did not pass:", check) for check in summary.failed_checks),
    ]
    if summary.evaluations:
        title = f"{summary.n_queries} queries, {summary.evaluations[-1].queries}"
        parts.append(measures_table(title, measures_of(summary), ("ndcg@5", "mrr")))
    return Group(*parts)


def _restructuring_counts(summary: RefreshSummary) -> dict[str, str]:
    """What restructuring did and where it stands; nothing in offline mode."""
    step = summary.steps["restructuring"]
    if "strategy" not in step:
        return {}
    shares = {kind: step.get(f"{kind} share", 0.0) for kind in VERDICTS}
    counts = {
        "restructured": f"{step['restructured']:,} documents by {step['strategy']}",
        "outcomes": ", ".join(
            f"{round(share * step['sections']):,} {kind}" for kind, share in shares.items() if share
        ),
        "words saved": f"{step['words saved']:.1%}",
    }
    if step["calls"] or step["cache hits"]:
        tokens = step["prompt tokens"] + step["completion tokens"]
        cost = next((f", {value:,.4f} {name[5:]}" for name, value in step.items() if name[:5] == "cost "), "")
        counts["language model"] = (
            f"{step['calls']:,} calls, {step['cache hits']:,} from the cache, {tokens:,} tokens{cost}"
        )
    if step["put off documents"]:
        counts["put off"] = f"{step['put off documents']:,} documents, tried again by the next refresh"
        counts["because"] = str(step["put off because"])
    if note := summary.steps["restructured_corpus"].get("note"):
        counts["not published"] = str(note)
    return counts


def demo_view(summary: RefreshSummary, question: str, hits: Sequence[SectionHit], ui_command: str) -> Group:
    """What the demo built and found, and how to go on."""
    counts: dict[str, Any] = {name: summary.published[name] for name in ("documents", "sections", "vectors")}
    failed = {"failed": len(summary.scan.failed)} if summary.scan.failed else {}
    restructuring = _restructuring_counts(summary)
    parts = [counts_table("\nRestructured", restructuring)] if restructuring else []
    title = f"\n{summary.n_queries} known-item queries: one-line summaries that are not in the indexed text"
    return Group(
        counts_table("\nIndexed", {**counts, **failed}),
        *parts,
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


def measures_of(summary: RefreshSummary) -> dict[str, dict[str, Interval]]:
    """Measures by system with their intervals; empty where nothing was evaluated.

    Systems of the full track carry its name and how sections were rewritten, so that an extract is never taken for the
    paper's semantic restructuring.
    """
    return {
        name if report.variant == "offline" else f"{name}, full ({report.restructuring})": dict(
            measured.intervals
        )
        for report in summary.evaluations
        for name, measured in report.systems.items()
    }


def estimate_view(quote: Quote) -> RenderableType:
    """What restructuring would take: in all, for the largest documents, and how the sample went."""
    counted = quote.estimate
    if counted is None:
        return Text(f"No language model is set (llm.base_url): {quote.label} costs nothing.")
    seconds = quote.seconds
    totals: dict[str, Any] = {
        "sections": counted.n_sections,
        "kept raw by the router": counted.n_routed,
        "calls to pay": counted.n_calls,
        "answered already": f"{counted.n_cached:,} ({counted.cached_share:.0%})",
        "tokens to read": quote.prompt_tokens,
        "tokens to generate": f"{quote.completion_tokens:,} (expected)",
        "price": _money(quote.cost, quote),
        "time": "no call measured yet: try --sample 20" if seconds is None else _duration(seconds),
    }
    parts: list[RenderableType] = [counts_table(f"Restructuring by {quote.label}", totals)]
    if quote.sample:
        parts.append(_sample_table(quote.sample))
    elif counted.n_calls:
        parts.append(Text("Repairs are not counted; --sample N shows how many there are.", style="dim"))
    if counted.n_calls:
        parts.append(_documents_table(quote, counted.documents))
    return Group(*parts)


def _documents_table(quote: Quote, documents: Sequence[DocumentEstimate]) -> Table:
    table = Table(title=_title("\nLargest documents"), title_justify="left")
    table.add_column("document", overflow="fold")
    for column in ("calls", "cached", "tokens", "price"):
        table.add_column(column, justify="right")
    for document in documents[:_MAX_LISTED]:
        numbers = [f"{n:,}" for n in (document.n_calls, document.n_cached, document.tokens)]
        table.add_row(Text(_shown(document.doc_id)), *numbers, _money(quote.cost_of(document), quote))
    if len(documents) > _MAX_LISTED:
        rest = documents[_MAX_LISTED:]
        sums = [sum(d.n_calls for d in rest), sum(d.n_cached for d in rest), sum(d.tokens for d in rest)]
        table.add_row(Text(f"and {len(rest):,} more", style="dim"), *(f"{n:,}" for n in sums), "")
    return table


def _sample_table(sample: Sample) -> Table:
    spent = sample.spending
    title = (
        f"\nSample of {len(sample.sections)} sections: {spent.calls:,} calls, {spent.cache_hits:,} from the cache, "
        f"{spent.prompt_tokens + spent.completion_tokens:,} tokens"
    )
    table = Table(title=_title(title), title_justify="left")
    for column in ("section", "outcome", "reasons"):
        table.add_column(column, overflow="fold")
    for sampled in sample.sections:
        where = " › ".join([sampled.document.title, *sampled.section.heading_path])
        kind = sampled.outcome.kind
        shown = (f.detail if kind == "deferred" else f.code for f in sampled.outcome.findings)
        reasons = Text(_shown(", ".join(dict.fromkeys(shown))))
        table.add_row(Text(_shown(where)), Text(kind, style=_VERDICT_STYLES.get(kind, "")), reasons)
    return table


def _money(cost: float | None, quote: Quote) -> str:
    if cost is None or quote.prices is None:
        return "no price set (llm.prices)"
    return f"{cost:,.4f} {quote.prices.currency}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


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


def diff_view(document: Document, outcome: DocumentOutcome, ordinal: int | None) -> RenderableType:
    """What restructuring did to a document, section by section, and a line that sums up all of it.

    Columns stand side by side where the terminal is 100 wide or more. Without styles (in a pipe), changes stand between
    the marks of wdiff.

    Args:
        document: With the raw sections.
        outcome: What restructuring made of them.
        ordinal: The only section to show; None for all.

    Raises:
        DocumentError: There is no such section, or the outcome is of other sections.
    """
    diffs = section_diffs(document, outcome)
    shown = [diff for diff in diffs if ordinal in (None, diff.section.ordinal)]
    if not shown and ordinal is not None:
        known = ", ".join(str(diff.section.ordinal) for diff in diffs)
        raise DocumentError(document.source_path, f"there is no section {ordinal}: choose one of {known}")
    counts = ", ".join(f"{n:,} {kind}" for kind, n in outcome_counts(diffs).items())
    summary = f"{document.title}: {words_summary(diffs)}; sections: {counts or 'none'}"
    return Group(*map(_diff_panel, shown), Text(_shown(" ".join(summary.split())), style="bold"))


def _diff_panel(diff: SectionDiff) -> Panel:
    kind = diff.outcome.kind
    style = _VERDICT_STYLES.get(kind, "cyan")
    parts: list[RenderableType] = [Text(VERDICTS[kind], style="dim")]
    parts += [
        Text.assemble("• ", (_shown(code), "bold"), _shown(f": {detail}" if detail else ""))
        for code, detail in diff.reasons
    ]
    if served := diff.served:
        parts += ["", _Sides(("Raw", served[0]), ("Restructured", served[1]))]
    else:
        parts += ["", Text(_shown(diff.section.body), overflow="fold")]
    if refused := diff.refused:
        parts += ["", Text("The last rewrite: refused, never served", style="red")]
        parts += [_Sides(("Raw", refused[0]), ("Refused", refused[1]))]
    label = _shown(f"{diff.section.ordinal}. {diff.label}")
    title = Text.assemble((label, "not dim bold"), "  ", (kind, f"not dim {style}"))
    return Panel(Group(*parts), title=title, title_align="left", border_style="dim")


@dataclass(frozen=True, slots=True)
class _Sides:
    """Two named texts with their changes marked, laid out when the width is known."""

    left: tuple[str, Sequence[Piece]]
    right: tuple[str, Sequence[Piece]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        plain = console.color_system is None
        sides = [
            Group(Text(name, style="dim"), _marked(pieces, plain=plain))
            for name, pieces in (self.left, self.right)
        ]
        if console.width < _SIDE_BY_SIDE_WIDTH:
            yield Group(sides[0], "", sides[1])
            return
        columns = Table.grid(padding=(0, 3), expand=True)
        columns.add_column(ratio=1)
        columns.add_column(ratio=1)
        columns.add_row(*sides)
        yield columns


def _marked(pieces: Sequence[Piece], *, plain: bool) -> Text:
    text = Text(overflow="fold")
    for piece in pieces:
        before, after = _PIECE_MARKS[piece.kind] if plain else ("", "")
        text.append(before + _shown(piece.words) + after, style=_PIECE_STYLES[piece.kind])
        text.append(_shown(piece.blanks))
    return text


def _title(text: str) -> Text:
    """A table's title, which rich would otherwise wrap to the width of a narrow table."""
    return Text(text, style="table.title", no_wrap=True, overflow="ignore")


def _shown(text: str) -> str:
    """Text that cannot steer the terminal, whatever a document holds."""
    return _STEERING.sub("", text)
