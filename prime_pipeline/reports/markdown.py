"""A report as Markdown, for the Dagster UI and for terminals: the words of the page without its figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prime_pipeline.reports import wording
from prime_pipeline.reports.content import ReportContent, check
from prime_pipeline.reports.layout import Datum, Table
from prime_pipeline.reports.page import grouped, prose_parts, report_facts
from prime_pipeline.reports.summary import summary
from prime_pipeline.reports.tables import report_tables

MAX_ROWS = 200
"""Longer tables are cut here, with a word about it: the Dagster UI keeps all of a text in its event log."""


def report_markdown(content: ReportContent) -> str:
    """The report as GitHub-flavoured Markdown; names are escaped, so that none of them is read as markup.

    Raises:
        ReportError: See :func:`~prime_pipeline.reports.content.check`.
    """
    check(content)
    blocks = "\n\n".join(_blocks(content)) + "\n"
    return blocks.encode("utf-8", "replace").decode()


def findings_markdown(content: ReportContent) -> str:
    """What one part of a report found: its tables that have rows, and its notes, without title and summary."""
    check(content)
    blocks = []
    if content.profile and content.profile.evidence:
        told = (
            f"Regime: {content.profile.regime}.",
            f"Recommended: {wording.recommendation(content.profile.recommended_mode)}.",
        )
        blocks.append(_bullets([*told, *content.profile.evidence]))
    for table in report_tables(content):
        if table.rows and not table.folded and table.id not in {"settings", "fingerprints"}:
            blocks += _table(table, "")
    if content.notes:
        blocks.append(_bullets(content.notes))
    return ("\n\n".join(blocks) + "\n").encode("utf-8", "replace").decode()


def _blocks(content: ReportContent) -> Iterator[str]:
    yield f"# {_escaped(content.title)}"
    yield " · ".join(_escaped(fact) for fact in report_facts(content))
    yield "## Summary"
    for topic, claims in summary(content).items():
        yield f"**{topic}**"
        yield _bullets(str(claim) for claim in claims)
    for group, tables in grouped(report_tables(content)).items():
        yield f"## {group}"
        if group == "Corpus profile" and content.profile and content.profile.evidence:
            yield _bullets(content.profile.evidence)
        for table in tables:
            yield from _table(table, content.commands.get(table.id, ""))
    for _, name, sentences in prose_parts(content):
        yield f"## {name}"
        yield _bullets(sentences)


def _table(table: Table, command: str) -> Iterator[str]:
    yield f"### {table.title}"
    yield _escaped(table.caption)
    if not table.rows:
        filled = f" It is filled by {_code(command)}" if command else ""
        yield f"{table.empty}{filled}"
        return
    if table.folded:
        yield f"{len(table.rows):,} rows: see the page."
        return
    rules = ("---" if kind == "text" else "---:" for kind in table.kinds)
    lines = [map(_escaped, table.columns), rules, *(map(_datum, row) for row in table.rows[:MAX_ROWS])]
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if len(table.rows) > MAX_ROWS:
        yield f"{len(table.rows) - MAX_ROWS:,} more rows: see the page."


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"* {_escaped(sentence)}" for sentence in sentences)


def _datum(datum: Datum) -> str:
    text = _escaped(datum.text)
    if not datum.detail:
        return text
    detail = _escaped(datum.detail)
    return f"{text} {detail}" if datum.detail.startswith("[") else f"{text} ({detail})"


def _escaped(text: str) -> str:
    """Text on one line, with every character that could be markup escaped."""
    line = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]<>|~#&!$])", r"\\\1", line)


def _code(text: str) -> str:
    """Text as a code span: fenced by more backticks than it holds in a row."""
    line = " ".join(text.split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}" if "`" in line else f"{fence}{line}{fence}"
