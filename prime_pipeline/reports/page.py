"""A report as one page of HTML that opens offline: it loads nothing, and its only script sorts tables."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Final

from prime_pipeline.pages import environment
from prime_pipeline.reports import wording
from prime_pipeline.reports.charts import report_charts
from prime_pipeline.reports.content import ReportContent, check
from prime_pipeline.reports.figures import svg
from prime_pipeline.reports.layout import Table
from prime_pipeline.reports.summary import summary
from prime_pipeline.reports.tables import report_tables

PUBLISHED_NOTE = (
    "Numbers marked published are those of the PRIME paper, made with its models on its data; they stand beside ours for "
    "orientation and enter no computation."
)


LAYOUT_VERSION: Final = 2
"""Raise it when the same content would make another page, so that pages which are there are written anew."""


def layout_mark() -> str:
    """What the head of a page names its layout by."""
    return f"prime_pipeline, layout {LAYOUT_VERSION}"


def report_page(content: ReportContent) -> str:
    """The page. Equal contents give equal bytes, and what the content names is shown as text, whatever it holds.

    Raises:
        ReportError: See :func:`~prime_pipeline.reports.content.check`.
    """
    check(content)
    tables = report_tables(content)
    charts = report_charts(content)
    prose = prose_parts(content)
    contents = [("summary", "Summary"), *((table.id, table.title) for table in tables)]
    return render(
        "report.html",
        title=content.title,
        facts=report_facts(content),
        contents=[*contents, *((anchor, name) for anchor, name, _ in prose)],
        content=content,
        summary=summary(content),
        groups=grouped(tables),
        charts=charts,
        figures={table_id: svg(chart, f"figure-{table_id}") for table_id, chart in charts.items()},
        prose=prose,
    )


def report_facts(content: ReportContent) -> list[str]:
    """What stands below the title."""
    documents = [] if content.n_documents is None else [wording.plural(content.n_documents, "document")]
    has_queries = any(cell.result is not None for cell in content.cells_of(content.dataset))
    return [
        f"queries from “{content.dataset}”" if has_queries else content.dataset,
        *documents,
        content.created,
    ]


def grouped(tables: tuple[Table, ...]) -> Mapping[str, tuple[Table, ...]]:
    """Group heading to its tables, in order."""
    return {group: tuple(members) for group, members in groupby(tables, key=lambda table: table.group)}


def prose_parts(content: ReportContent) -> list[tuple[str, str, tuple[str, ...]]]:
    """The closing parts as (id, heading, sentences)."""
    parts = [
        ("conventions", "Conventions", content.conventions),
        ("notes", "Notes", (*content.notes, PUBLISHED_NOTE)),
    ]
    return [part for part in parts if part[2]]


def render(template: str, **values: object) -> str:
    """A page from one of the templates; half of a surrogate pair, which no file can hold, becomes a question mark."""
    page = environment("prime_pipeline.reports").get_template(template).render(layout=layout_mark(), **values)
    return page.encode("utf-8", "replace").decode()
