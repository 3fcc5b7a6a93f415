"""What is shown of where a section came from, from the build that serves it down to the lines of its file."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_pipeline.console.explaining import add_verdict, facts_table, verdict_status
from prime_pipeline.console.parts import message, printable, source_of
from prime_pipeline.records import section_id
from prime_pipeline.reports import wording

if TYPE_CHECKING:
    from prime_pipeline.records import DocumentMetadata
    from prime_pipeline.reporting.lineage import (
        DocumentLineage,
        Origin,
        SectionLineage,
        SourceLine,
        SourceState,
    )

_MAX_TERMS = 12
_MAX_HEADINGS = 8
_MAX_SECTIONS = 200
_INDEXED = {
    "raw": "the raw text",
    "restructured": "the restructured text",
    "both": "raw and restructured text",
}
_STATE_STYLES = {
    "unchanged": "green",
    "moved": "yellow",
    "changed": "yellow",
    "gone": "red",
    "unreadable": "red",
}


def lineage_view(found: DocumentLineage | SectionLineage) -> Group:
    """Where a section came from, or the sections of a document. Fits 80 columns."""
    from prime_pipeline.reporting.lineage import SectionLineage

    return _section_view(found) if isinstance(found, SectionLineage) else _document_view(found)


def _section_view(found: SectionLineage) -> Group:
    section, whole = found.section, found.of_document
    facts = _served_facts(whole)
    facts.add_row("text", _standing_text(found))
    facts.add_row("BM25 sees", _INDEXED[whole.indexed_text])
    add_verdict(facts, found.verdict)
    _add_rest(facts, whole)
    facts.add_row("source", Text(printable(source_of(section)), style="cyan"))
    facts.add_row("since then", _state(found.state))
    own_id = section_id(section.doc_id, section.ordinal)
    return Group(
        Text(printable(" › ".join([section.title, *section.heading_path])), style="bold"),
        Text(printable(own_id), style="dim"),
        "",
        facts,
        "",
        *_lines(found.lines, found.n_lines_left),
    )


def _document_view(whole: DocumentLineage) -> Group:
    facts = _served_facts(whole)
    _add_rest(facts, whole)
    facts.add_row("source", Text(printable(whole.document.source_path), style="cyan"))
    facts.add_row("since then", _state(whole.state))
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("section", overflow="fold")
    table.add_column("heading", overflow="fold")
    table.add_column("lines", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for section, verdict in whole.sections[:_MAX_SECTIONS]:
        codes = dict.fromkeys(finding.code.replace("_", " ") for finding in verdict.findings)
        told = verdict_status(verdict)
        table.add_row(
            Text(printable(section_id(section.doc_id, section.ordinal))),
            Text(printable(" › ".join(section.heading_path))),
            "" if section.start_line is None else f"{section.start_line}-{section.end_line}",
            told + Text(f": {', '.join(codes)}") if codes else told,
        )
    left = len(whole.sections) - _MAX_SECTIONS
    more = [message("and", f"{left:,} more sections, see --json", "dim")] if left > 0 else []
    return Group(Text(printable(whole.document.title), style="bold"), "", facts, "", table, *more)


def _served_facts(whole: DocumentLineage) -> Table:
    facts = facts_table()
    build = whole.build
    published = f", published {build.published_at}" if build.published_at else ""
    facts.add_row("served by", f"{build.variant} build {build.build_id}{published}")
    facts.add_row("content", f"version {whole.version[:16]}")
    return facts


def _standing_text(found: SectionLineage) -> Text:
    section = found.section
    if section.restructured is None:
        stands = f"raw, {len(section.text.strip()):,} characters"
    else:
        stands = (
            f"restructured, {len(section.text.strip()):,} characters became {len(section.restructured):,}"
        )
    return Text(stands)


def _add_rest(facts: Table, whole: DocumentLineage) -> None:
    """How the document was restructured, and what stands for it in the vectors."""
    if whole.origin:
        facts.add_row("restructured by", _origin(whole.origin))
    if whole.metadata:
        facts.add_row("terms", _terms(whole.metadata))
        facts.add_row("headings", _headings(whole.metadata))


def _origin(origin: Origin) -> Text:
    parts = [
        origin.label,
        f"model {origin.model}" if origin.model else "",
        f"prompt {origin.prompt_version}" if origin.prompt_version else "",
    ]
    if origin.asked_at:
        calls = wording.plural(origin.calls, "call")
        parts.append(f"last asked {origin.asked_at}: {calls} paid, {origin.cache_hits:,} from the cache")
    return Text(printable("; ".join(part for part in parts if part)))


def _terms(metadata: DocumentMetadata) -> Text:
    shown = ", ".join(term for term, _ in islice(metadata.terms, _MAX_TERMS))
    left = len(metadata.terms) - _MAX_TERMS
    return Text.assemble(printable(shown) or "none", (f" and {left:,} more" if left > 0 else "", "dim"))


def _headings(metadata: DocumentMetadata) -> Text:
    if not metadata.headings:
        return Text("none")
    highest = min(level for level, _ in metadata.headings)
    lines = [f"{'  ' * (level - highest)}{text}" for level, text in metadata.headings[:_MAX_HEADINGS]]
    left = len(metadata.headings) - _MAX_HEADINGS
    return Text.assemble(printable("\n".join(lines)), (f"\nand {left:,} more" if left > 0 else "", "dim"))


def _state(state: SourceState) -> Text:
    return Text.assemble(
        (state.status, _STATE_STYLES.get(state.status, "cyan")), printable(f": {state.reason}")
    )


def _lines(lines: tuple[SourceLine, ...], n_left: int) -> list[RenderableType]:
    """Raw lines with their numbers; those of the section are marked."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(no_wrap=True, justify="right", style="dim")
    table.add_column(overflow="fold")
    for line in lines:
        number = "" if line.number is None else str(line.number)
        mark, style = (">", "") if line.is_of_section else ("", "dim")
        table.add_row(mark, number, Text(printable(line.text), style=style))
    return [table, *([Text(f"and {wording.plural(n_left, 'more line')}", style="dim")] if n_left else [])]
