"""The command that removes what a home keeps of documents."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prime_pipeline.cli.doorway import (
    EXIT_PARTIAL,
    HomeOption,
    JsonOption,
    app,
    opened,
    opened_workspace,
    print_json,
    reporting,
)

if TYPE_CHECKING:
    from prime_pipeline.defs.forgetting import ForgettingReport
    from prime_pipeline.reporting.forgetting import Kept
    from prime_pipeline.workspace import Workspace


@app.command()
def forget(
    documents: Annotated[list[str], typer.Argument(help="Ids: paths below the corpus, as hits name them.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without this, what would go is shown.")] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Have the next refresh read them again, if they are still there.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove the text of documents from every store, cache, build and report, and never read them again.

    Runs a refresh, which in full mode with a language model may spend money on what else has changed. Earlier builds go,
    so that there is nothing to roll back to. Exits with 3 if something is left to do, which is named.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.forgetting import forgetting_view, kept_view
        from prime_pipeline.reporting.forgetting import include_again, kept_of

        workspace = opened({"home": home})
        workspace.builds("offline").served_id  # noqa: B018  raises before a home is made that is none
        if undo:
            include_again(workspace, documents)
            if as_json:
                print_json({"included_again": sorted(set(documents))})
            else:
                console.print(
                    f"{len(set(documents))} documents will be read again by the next prime refresh."
                )
            return
        with opened_workspace({"home": home}, console, show_progress=not as_json) as workspace:
            kept = kept_of(workspace, documents)
            if not yes:
                if as_json:
                    print_json({"dry_run": True, **_kept_fields(kept)})
                else:
                    console.print(kept_view(kept))
                return
            report = _forgotten(workspace, kept)
        if as_json:
            print_json(_report_fields(report))
        else:
            console.print(forgetting_view(report), soft_wrap=True)
        if report.is_partial:
            raise typer.Exit(EXIT_PARTIAL)


def _forgotten(workspace: Workspace, kept: Kept) -> ForgettingReport:
    from prime_pipeline.definitions import definitions
    from prime_pipeline.defs.forgetting import forget

    return forget(definitions(workspace.settings.partitioning), workspace, kept)


def _kept_fields(kept: Kept) -> dict[str, Any]:
    fields = asdict(kept)
    del fields["names"]
    return {"documents": fields.pop("doc_ids"), **fields}


def _report_fields(report: ForgettingReport) -> dict[str, Any]:
    return {
        "dry_run": False,
        **_kept_fields(report.kept),
        "removed": dict(report.removed),
        "served": report.refresh.published.get("served"),
        "not_published": list(report.not_published),
        "replies_without_origin": report.replies_without_origin,
        "run_id": report.refresh.run_id,
        "failed": dict(report.refresh.scan.failed),
    }
