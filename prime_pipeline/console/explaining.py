"""What commands about single queries show: why sections were found, and what stands ready for the next query."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from prime_pipeline.console.parts import (
    counts_table,
    cut_short_notes,
    message,
    printable,
    source_of,
    title_text,
)
from prime_pipeline.reports import wording

if TYPE_CHECKING:
    from prime_pipeline.reporting.explaining import Verdict
    from prime_pipeline.retrieval.explanation import Explanation, HitExplanation, QueryWord
    from prime_pipeline.retrieval.warming import Warmed

_MAX_WORDS = 12
_MAX_FINDINGS = 5
_BAR_CELLS = 16
_HEADROOM = 1.25
"""How much larger a limit is advised than the values take: a tenth is freed when it is passed, and estimates err."""
_NAMES = {
    "document_bm25": "document BM25",
    "section_bm25": "section BM25",
    "metadata_vector": "metadata vector",
    "late_interaction": "late interaction",
    "cross_encoder": "cross-encoder",
    "stage1": "fused (stage 1)",
}
_VERDICT_STYLES = {"accepted": "green", "repaired": "green", "patched": "yellow", "deferred": "red"}


def explanation_view(explanation: Explanation, verdicts: Sequence[Verdict]) -> Group:
    """How a query was answered: its words, then every hit with what led to it. Fits 80 columns.

    Args:
        explanation: Of the query.
        verdicts: What restructuring decided about each hit.
    """
    hits = [explained.hit for explained in explanation.hits]
    parts: list[RenderableType] = [_words_table(explanation), ""] if explanation.words else []
    for explained, verdict in zip(explanation.hits, verdicts, strict=True):
        parts.append(_panel(explained, explanation.words, verdict))
    return Group(*parts, *cut_short_notes(hits), *([] if hits else [Text("nothing found")]))


def _words_table(explanation: Explanation) -> Table:
    """The rarest words of the query, words in no document first."""
    shown = _rarest_first(explanation.words)[:_MAX_WORDS]
    title = title_text("Words of the query, as the lexical index finds them")
    table = Table(title=title, title_justify="left", box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("word", overflow="fold", max_width=30)
    for column in ("documents", "IDF"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    highest = shown[0].idf
    for word in shown:
        rarity = Text("━" * round(_BAR_CELLS * word.idf / highest), style="cyan")
        table.add_row(
            Text(printable(word.word), style="bold"),
            f"{word.n_documents:,} of {explanation.n_documents:,}",
            f"{word.idf:.2f}",
            rarity if word.n_documents else Text("in no document", style="red"),
        )
    if left := len(explanation.words) - len(shown):
        table.add_row(Text(f"and {left:,} that are no rarer", style="dim"))
    return table


def _panel(explained: HitExplanation, words: Sequence[QueryWord], verdict: Verdict) -> Panel:
    hit = explained.hit
    where = " › ".join([hit.title, *hit.heading_path])
    return Panel(
        Group(
            Text(printable(source_of(hit)), style="cyan", overflow="fold"),
            "",
            Columns([_document_table(explained), _section_table(explained)], padding=(1, 4)),
            "",
            _facts(explained, words, verdict),
        ),
        title=Text(printable(f"{hit.rank}. {where}"), style="not dim bold"),
        title_align="left",
        border_style="dim",
    )


def _document_table(explained: HitExplanation) -> Table:
    """Stage 1: where each arm has the document."""
    table = _numbers_table("stage 1: document", "rank", "score")
    for arm, place in explained.arms.items():
        found = ("–", "–") if place is None else (f"{place.rank:,}", wording.number(place.score))
        table.add_row(_label(arm), *found)
    fused = f"{explained.hit.stage1_rank:,}", wording.number(explained.fused_score, 4)
    table.add_row("fused", *fused, style="bold")
    return table


def _section_table(explained: HitExplanation) -> Table:
    """Stage 2: what the section's score is made of."""
    hit, added = explained.hit, explained.added
    table = _numbers_table("stage 2: section", "score", *(["share"] if added else []))
    for name, value in hit.signals.items():
        share = [_signed(added[name])] if added else []
        table.add_row(_label(name), wording.number(value), *share)
    total = ["", _signed(hit.score)] if added else [wording.number(hit.score)]
    table.add_row("score", *total, style="bold")
    return table


def _numbers_table(title: str, *columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(title, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def facts_table() -> Table:
    """A table of facts by name."""
    facts = Table.grid(padding=(0, 3, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    return facts


def _facts(explained: HitExplanation, words: Sequence[QueryWord], verdict: Verdict) -> Table:
    facts = facts_table()
    missing = [word for word in words if word.n_documents and word not in explained.words]
    facts.add_row(
        "matched", _listed(explained.words, "not dim bold") if explained.words else "no word of the query"
    )
    if missing:
        facts.add_row("not in it", _listed(missing, "not dim"))
    add_verdict(facts, verdict)
    return facts


def add_verdict(facts: Table, verdict: Verdict) -> None:
    """Rows that tell a verdict and the first of its findings."""
    facts.add_row("verdict", Text.assemble(verdict_status(verdict), f": {verdict.reason}"))
    for finding in verdict.findings[:_MAX_FINDINGS]:
        code, detail = finding.code.replace("_", " "), f": {finding.detail}" if finding.detail else ""
        facts.add_row("", Text.assemble("• ", (printable(code), "bold"), printable(detail)))
    if len(verdict.findings) > _MAX_FINDINGS:
        facts.add_row(
            "", Text(f"and {len(verdict.findings) - _MAX_FINDINGS:,} more, see prime diff", style="dim")
        )


def verdict_status(verdict: Verdict) -> Text:
    """The status of a verdict in its colour."""
    return Text(verdict.status, style=_VERDICT_STYLES.get(verdict.status, "cyan"))


def _listed(words: Sequence[QueryWord], style: str) -> Text:
    """Words with the number of documents that hold them, the rarest first."""
    shown = _rarest_first(words)[:_MAX_WORDS]
    counts = [
        wording.plural(shown[0].n_documents, "document"),
        *(f"{word.n_documents:,}" for word in shown[1:]),
    ]
    cells = [
        Text.assemble((printable(word.word), style), f" ({count})")
        for word, count in zip(shown, counts, strict=True)
    ]
    more = [Text(f"and {len(words) - len(shown):,} more", style="dim")] if len(words) > len(shown) else []
    return Text(" · ").join([*cells, *more])


def _rarest_first(words: Sequence[QueryWord]) -> list[QueryWord]:
    return sorted(words, key=lambda word: word.n_documents)


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + wording.number(value)


def _label(signal: str) -> str:
    return _NAMES.get(signal, signal.replace("_", " "))


def warmed_view(warmed: Warmed, limit_bytes: int) -> Group:
    """What filling the cache of token vectors came to.

    Args:
        warmed: What it came to.
        limit_bytes: The setting ``token_vector_cache_bytes``.
    """
    if warmed.scorer != "late_interaction":
        return Group(
            Text(
                f"Nothing to do: retrieval.scorer is {warmed.scorer}, and only late_interaction keeps token vectors."
            )
        )
    counts = {
        "windows": warmed.n_windows,
        "there already": f"{warmed.n_present:,} ({wording.byte_size(warmed.bytes_present)})",
        "made": f"{warmed.n_made:,} ({wording.byte_size(warmed.bytes_made)})",
    }
    if not warmed.n_left:
        return Group(counts_table("Token vectors", counts))
    advised = 1_000_000 * ceil(_HEADROOM * warmed.bytes_of_all / 1_000_000)
    note = (
        f"{warmed.n_left:,} were left out: the cache, limited to {wording.byte_size(limit_bytes)}, would have dropped "
        f"others of them. All take about {wording.byte_size(warmed.bytes_of_all)}: set "
        f"token_vector_cache_bytes = {advised:_} or more."
    )
    return Group(counts_table("Token vectors", counts | {"left out": warmed.n_left}), message("note:", note))
