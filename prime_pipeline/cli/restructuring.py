"""Commands about restructuring: what it would cost, and what it made of a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prime_pipeline.cli.doorway import (
    EXIT_PARTIAL,
    HomeOption,
    JsonOption,
    app,
    opened_workspace,
    print_json,
    reporting,
)

if TYPE_CHECKING:
    from prime_pipeline.records import Document, DocumentOutcome


@app.command()
def estimate(
    sample: Annotated[
        int, typer.Option(min=0, help="Rewrite this many sections first (paid), and show how it went.")
    ] = 0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what restructuring would take, before it is paid: calls, tokens, money and time, document by document.

    No call is made without --sample. Counts the documents that the last refresh read.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.restructuring import estimate_view

        with opened_workspace({"home": home}, console, show_progress=not as_json) as workspace:
            quote = workspace.quote(sample)
        if as_json:
            print_json(quote.fields())
        else:
            console.print(estimate_view(quote))
        if quote.sample and all(s.outcome.kind == "deferred" for s in quote.sample.sections):
            raise typer.Exit(EXIT_PARTIAL)


@app.command()
def diff(
    document: Annotated[str, typer.Argument(help="Document id or path below the corpus.")],
    section: Annotated[int | None, typer.Option(help="Only the section with this ordinal.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what restructuring made of a document: raw beside rewritten text, with the verdict on every section."""
    with reporting(as_json) as console:
        from prime_pipeline.console.parts import message
        from prime_pipeline.console.restructuring import diff_view
        from prime_pipeline.restructuring.diff_page import page_path

        with opened_workspace({"home": home}, console, show_progress=False) as workspace:
            raw, outcome = workspace.restructured_document(document)
            page = page_path(workspace.home.diffs, raw.doc_id)
        if as_json:
            print_json(_diff_fields(raw, outcome, section, page))
        else:
            console.print(diff_view(raw, outcome, section))
            console.print(message("as a page:", str(page), "dim"), soft_wrap=True)


def _diff_fields(raw: Document, outcome: DocumentOutcome, ordinal: int | None, page: Path) -> dict[str, Any]:
    sections = [
        {
            "ordinal": section.ordinal,
            "heading_path": list(section.heading_path),
            "outcome": what.kind,
            "reasons": [{"code": f.code, "detail": f.detail} for f in what.findings],
            "raw": section.body,
            "rewritten": what.rewritten,
            "appended": list(what.appended),
            "refused": what.refused,
        }
        for section, what in zip(raw.content_sections, outcome.sections, strict=True)
        if ordinal in (None, section.ordinal)
    ]
    return {"document": raw.doc_id, "title": raw.title, "page": str(page), "sections": sections}
