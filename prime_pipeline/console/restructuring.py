"""What commands about restructuring show: the price before, the texts after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document, DocumentOutcome
from prime_pipeline.restructuring.diff import (
    VERDICTS,
    Piece,
    PieceKind,
    SectionDiff,
    outcome_counts,
    section_diffs,
    words_summary,
)

if TYPE_CHECKING:
    from prime_pipeline.refresh.pricing import Quote
    from prime_pipeline.refresh.sampling import Sample
    from prime_pipeline.restructuring.estimate import DocumentEstimate

from prime_pipeline.console.parts import MAX_LISTED, counts_table, printable, title_text

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
    table = Table(title=title_text("\nLargest documents"), title_justify="left")
    table.add_column("document", overflow="fold")
    for column in ("calls", "cached", "tokens", "price"):
        table.add_column(column, justify="right")
    for document in documents[:MAX_LISTED]:
        numbers = [f"{n:,}" for n in (document.n_calls, document.n_cached, document.tokens)]
        table.add_row(Text(printable(document.doc_id)), *numbers, _money(quote.cost_of(document), quote))
    if len(documents) > MAX_LISTED:
        rest = documents[MAX_LISTED:]
        sums = [sum(d.n_calls for d in rest), sum(d.n_cached for d in rest), sum(d.tokens for d in rest)]
        table.add_row(Text(f"and {len(rest):,} more", style="dim"), *(f"{n:,}" for n in sums), "")
    return table


def _sample_table(sample: Sample) -> Table:
    spent = sample.spending
    title = (
        f"\nSample of {len(sample.sections)} sections: {spent.calls:,} calls, {spent.cache_hits:,} from the cache, "
        f"{spent.prompt_tokens + spent.completion_tokens:,} tokens"
    )
    table = Table(title=title_text(title), title_justify="left")
    for column in ("section", "outcome", "reasons"):
        table.add_column(column, overflow="fold")
    for sampled in sample.sections:
        where = " › ".join([sampled.document.title, *sampled.section.heading_path])
        kind = sampled.outcome.kind
        shown = (f.detail if kind == "deferred" else f.code for f in sampled.outcome.findings)
        reasons = Text(printable(", ".join(dict.fromkeys(shown))))
        table.add_row(Text(printable(where)), Text(kind, style=_VERDICT_STYLES.get(kind, "")), reasons)
    return table


def _money(cost: float | None, quote: Quote) -> str:
    if cost is None or quote.prices is None:
        return "no price set (llm.prices)"
    return f"{cost:,.4f} {quote.prices.currency}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


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
    return Group(*map(_diff_panel, shown), Text(printable(" ".join(summary.split())), style="bold"))


def _diff_panel(diff: SectionDiff) -> Panel:
    kind = diff.outcome.kind
    style = _VERDICT_STYLES.get(kind, "cyan")
    parts: list[RenderableType] = [Text(VERDICTS[kind], style="dim")]
    parts += [
        Text.assemble("• ", (printable(code), "bold"), printable(f": {detail}" if detail else ""))
        for code, detail in diff.reasons
    ]
    if served := diff.served:
        parts += ["", _Sides(("Raw", served[0]), ("Restructured", served[1]))]
    else:
        parts += ["", Text(printable(diff.section.body), overflow="fold")]
    if refused := diff.refused:
        parts += ["", Text("The last rewrite: refused, never served", style="red")]
        parts += [_Sides(("Raw", refused[0]), ("Refused", refused[1]))]
    label = printable(f"{diff.section.ordinal}. {diff.label}")
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
        text.append(before + printable(piece.words) + after, style=_PIECE_STYLES[piece.kind])
        text.append(printable(piece.blanks))
    return text
