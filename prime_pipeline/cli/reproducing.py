"""The command that runs the paper's whole experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prime_pipeline.cli.doorway import (
    HomeOption,
    JsonOption,
    ProfileOption,
    app,
    opened_workspace,
    print_json,
    refreshed,
    reporting,
)

if TYPE_CHECKING:
    from prime_pipeline.reporting.report import PublishedReport
    from prime_pipeline.storage.home import Home

Dataset = Literal["qasper", "nfcorpus", "bright", "folder"]


@app.command()
def reproduce(
    dataset: Annotated[Dataset, typer.Argument(help="What to run the experiment on.")],
    data: Annotated[
        Path | None, typer.Option(help="The data set's file or folder; for folder: your documents.")
    ] = None,
    beir: Annotated[
        Path | None, typer.Option(help="For folder: a BEIR folder, documents, queries and judgements.")
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            help="For folder: queries with judgements. Without them, queries are made from headings and sentences."
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="For bright: the task, such as biology.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write report.html, report.md and report.json here, too.")
    ] = None,
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce the paper's experiment: every representation under every pipeline, with intervals, comparisons and costs.

    Runs in a home of its own (experiments/ below PRIME_HOME), through Dagster. What is kept is not made again. Without a
    language model the restructured text is made by rules, and never called SR.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.measuring import report_view
        from prime_pipeline.definitions import defs
        from prime_pipeline.defs.runs import run_experiment
        from prime_pipeline.reporting.experiment import publish_experiment_report
        from prime_pipeline.reports.writing import write_report
        from prime_pipeline.settings import load_settings

        main_home = load_settings({"home": home}).stored
        settings = {**_settings(dataset, data, beir, queries, task, main_home), "profile": profile}
        with opened_workspace(settings, console, show_progress=not as_json) as workspace:
            refreshed(workspace, allow_removals=True, republish=True)
            made = run_experiment(defs, workspace)
            published = publish_experiment_report(workspace)
        written = write_report(out, published.content) if out else published.files
        files = [written.page, written.markdown, written.json]
        if as_json:
            print_json(_fields(published, files, settings, made["experiment"]["changed"]))
        else:
            console.print(report_view(published.content, files), crop=False)


def _settings(
    dataset: Dataset,
    data: Path | None,
    beir: Path | None,
    queries: str | None,
    task: str | None,
    main_home: Home,
) -> dict[str, Any]:
    """The settings of the experiment's home."""
    corpus, asked, name = _locations(dataset, data, beir, queries, task)
    return {
        "home": main_home.below(f"experiments/{name}").root,
        "cache_home": main_home.cache_root,
        "corpus": corpus,
        "queries": asked,
        "evaluate": ("default",),
        "mode": "full",
        "restructuring": {"lexical_source": "restructured"},
    }


def _locations(
    dataset: Dataset, data: Path | None, beir: Path | None, queries: str | None, task: str | None
) -> tuple[str, str, str]:
    """Corpus, queries, and the name of the experiment."""
    from prime_pipeline.datasets.locations import KNOWN_ITEMS
    from prime_pipeline.datasets.published import bright_locations, published_location

    if (beir or queries) and dataset != "folder":
        raise typer.BadParameter(f"--beir and --queries go with folder: {dataset} brings its own queries")
    if (dataset == "bright") != (task is not None):
        raise typer.BadParameter("--task names a task of bright, and bright needs one")
    if dataset == "folder":
        if (data is None) == (beir is None):
            raise typer.BadParameter("folder takes either --data DIR or --beir DIR")
        if beir is not None:
            return str(beir), queries or str(beir), f"folder-{beir.resolve().name}"
        return str(data), queries or KNOWN_ITEMS, f"folder-{(data or Path()).resolve().name}"
    folder = data or Path("data")
    if dataset == "bright" and task is not None:
        found = bright_locations(folder)
        if task not in found:
            raise typer.BadParameter(f"task {task!r} is not in {folder}: there are {', '.join(found)}")
        return found[task], found[task], f"bright-{task}"
    location = str(folder) if folder.is_file() else published_location(_published(dataset), folder)
    return location, location, dataset


def _published(dataset: Dataset) -> Literal["qasper", "nfcorpus"]:
    return "nfcorpus" if dataset == "nfcorpus" else "qasper"


def _fields(
    published: PublishedReport, files: list[Path], settings: Mapping[str, Any], n_made: int
) -> dict[str, Any]:
    """What programs are told; ``changed`` counts the cells of the graph that were made now, not taken from the home."""
    cells = published.content.cells
    return {
        "home": str(settings["home"]),
        "changed": n_made,
        "cells": len(cells),
        "unavailable": sum(cell.result is None for cell in cells),
        "page": str(files[0]),
        "markdown": str(files[1]),
        "json": str(files[2]),
    }
