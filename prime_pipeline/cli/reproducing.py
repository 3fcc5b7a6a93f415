"""The command that runs the paper's whole experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prime_pipeline.cli.doorway import (
    EXIT_PARTIAL,
    HomeOption,
    JsonOption,
    ProfileOption,
    app,
    from_here,
    given_path,
    opened_workspace,
    print_json,
    refreshed,
    reporting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.text import Text

    from prime_pipeline.defs.runs import RefreshSummary
    from prime_pipeline.reporting.report import PublishedReport
    from prime_pipeline.reports.content import ReportContent
    from prime_pipeline.reports.writing import ReportFiles
    from prime_pipeline.storage.home import Home

Dataset = Literal["qasper", "nfcorpus", "bright", "folder"]


@app.command()
def reproduce(
    dataset: Annotated[Dataset, typer.Argument(help="What to run the experiment on.")],
    data: Annotated[
        Path | None,
        typer.Option(parser=given_path, help="The data set's file or folder; for folder: your documents."),
    ] = None,
    beir: Annotated[
        Path | None,
        typer.Option(parser=given_path, help="For folder: a BEIR folder, documents, queries and judgements."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            help="For folder: queries with judgements. Without them, queries are made from headings and sentences."
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="For bright: one task, such as biology; all that are there without it.")
    ] = None,
    whole_pages: Annotated[
        bool, typer.Option("--long", help="For bright: whole pages instead of passages.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(parser=given_path, help="Write report.html, report.md and report.json here, too."),
    ] = None,
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce the paper's experiment: every representation under every pipeline, with intervals, comparisons and costs.

    Runs in a home of its own (experiments/ below PRIME_HOME), through Dagster. What is kept is not made again. Without a
    language model the restructured text is made by rules, and never called SR.

    Settings of PRIME_HOME's prime.toml count here, too, below those of the experiment's own. BM25 reads the restructured
    text, as in the paper, unless restructuring.lexical_source is set anywhere. Exits with 3 if some files failed or some
    sections were put off: the report is on all others.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.measuring import report_view
        from prime_pipeline.reporting.bright import bright_report
        from prime_pipeline.reports.writing import write_report
        from prime_pipeline.settings import load_settings

        main_home = load_settings({"home": home}).stored
        places = _places(dataset, data, beir, queries, task, whole_pages=whole_pages)
        done = {}
        for place in places:
            told = {**_settings(place, main_home), "profile": profile}
            done[place.task] = _run(_with_lexical_source(told), place, console, as_json=as_json)
        is_whole = dataset == "bright" and task is None
        of_all = main_home.below(f"experiments/{'bright' if is_whole else places[0].name}")
        published = next(iter(done.values())).published
        content, files = published.content, published.files
        if is_whole:
            content = bright_report({name: each.published.content for name, each in done.items()})
            files = write_report(of_all.reports, content)
        files = write_report(out, content) if out else files
        if as_json:
            print_json(_fields(content, files, of_all, list(done.values())))
        else:
            console.print(report_view(content, [files.page, files.markdown, files.json]), crop=False)
            for name, each in done.items():
                for line in _left_undone(name, each.summary):
                    console.print(line, soft_wrap=True)
        if any(each.summary.is_partial for each in done.values()):
            raise typer.Exit(EXIT_PARTIAL)


@dataclass(frozen=True, slots=True)
class _Place:
    """An experiment: its name below experiments/, where its documents and queries lie, and its task if it is one of many."""

    name: str
    corpus: str
    queries: str
    task: str = ""


@dataclass(frozen=True, slots=True)
class _Done:
    """An experiment that was run: its refresh, the cells that were made now, and its report."""

    summary: RefreshSummary
    n_made: int
    published: PublishedReport


def _run(settings: Mapping[str, Any], place: _Place, console: Console, *, as_json: bool) -> _Done:
    from prime_pipeline.console.parts import message
    from prime_pipeline.definitions import definitions
    from prime_pipeline.defs.runs import run_experiment
    from prime_pipeline.reporting.experiment import publish_experiment_report

    _check_free(settings)
    if place.task and not as_json:
        console.print(message(f"{place.task}:", from_here(settings["home"]), "bold"), soft_wrap=True)
    with opened_workspace(settings, console, show_progress=not as_json) as workspace:
        summary = refreshed(workspace, allow_removals=True, republish=True, accept_drop=True)
        made = run_experiment(definitions(workspace.settings.partitioning), workspace)
        return _Done(summary, made["experiment"]["changed"], publish_experiment_report(workspace))


def _check_free(settings: Mapping[str, Any]) -> None:
    """Refuse to put an experiment in the place of another one of the same name.

    Raises:
        SettingsError: The home holds one over another corpus.
    """
    from prime_pipeline.errors import SettingsError
    from prime_pipeline.settings import load_settings

    told = load_settings(settings).corpus
    before = load_settings({"home": settings["home"]})
    if before.stored.settings_file.is_file() and before.corpus not in {None, told}:
        raise SettingsError(
            f"{settings['home']} holds the experiment on {before.corpus}, not on {told}: take another --home, or delete that folder"
        )


def _settings(place: _Place, main_home: Home) -> dict[str, Any]:
    """The settings of the experiment's home, which extends the file of the main one if there is any."""
    return {
        "home": main_home.below(f"experiments/{place.name}").root,
        "cache_home": main_home.cache_root,
        "extends": main_home.settings_file if main_home.settings_file.is_file() else None,
        "corpus": place.corpus,
        "queries": place.queries,
        "evaluate": ("default",),
        "mode": "full",
        "publish_to": "",
    }


def _with_lexical_source(told: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the text that BM25 reads in the full track: restructured as in the paper, unless one is set.

    Whoever sets ``restructuring.lexical_source``, in a file or a variable, wants to know how well that does, and the
    report names it among the settings. The experiment's own default is remembered in its home, so that a refresh of
    that home builds the same index; from then on that file is the place to change it.
    """
    from prime_pipeline.settings import load_settings

    chosen = load_settings(told).restructuring.lexical_source or "restructured"
    return {**told, "restructuring": {"lexical_source": chosen}}


def _places(
    dataset: Dataset,
    data: Path | None,
    beir: Path | None,
    queries: str | None,
    task: str | None,
    *,
    whole_pages: bool,
) -> list[_Place]:
    """The experiments that are asked for: one, but for BRIGHT without a task."""
    from prime_pipeline.datasets.locations import KNOWN_ITEMS
    from prime_pipeline.datasets.published import bright_locations, published_location

    if (beir or queries) and dataset != "folder":
        raise typer.BadParameter(f"--beir and --queries go with folder: {dataset} brings its own queries")
    if (task or whole_pages) and dataset != "bright":
        raise typer.BadParameter("--task and --long go with bright")
    if dataset == "folder":
        if (data is None) == (beir is None):
            raise typer.BadParameter("folder takes either --data DIR or --beir DIR")
        if beir is not None:
            return [_Place(f"folder-{beir.resolve().name}", str(beir), queries or str(beir))]
        return [_Place(f"folder-{(data or Path()).resolve().name}", str(data), queries or KNOWN_ITEMS)]
    folder = data or Path("data")
    if dataset == "bright":
        found = bright_locations(folder, "long_documents" if whole_pages else "documents")
        if task is not None and task not in found:
            raise typer.BadParameter(f"task {task!r} is not in {folder}: there are {', '.join(found)}")
        suffix = "-long" if whole_pages else ""
        chosen = [task] if task is not None else list(found)
        return [_Place(f"bright-{name}{suffix}", found[name], found[name], name) for name in chosen]
    location = str(folder) if folder.is_file() else published_location(_published(dataset), folder)
    return [_Place(dataset, location, location)]


def _published(dataset: Dataset) -> Literal["qasper", "nfcorpus"]:
    return "nfcorpus" if dataset == "nfcorpus" else "qasper"


def _left_undone(name: str, summary: RefreshSummary) -> Iterator[Text]:
    """What the report is not on: files that failed, documents that were put off; nothing if the refresh was complete."""
    from prime_pipeline.console.parts import message, messages

    if not summary.is_partial:
        return
    yield from messages("failed:", [f"{source}: {reason}" for source, reason in summary.scan.failed.items()])
    restructuring = summary.steps["restructuring"]
    if restructuring.get("put off documents"):
        yield message(
            "put off:",
            f"{restructuring['put off documents']:,} documents: {restructuring['put off because']}",
        )
    if note := summary.steps["restructured_corpus"].get("note"):
        yield message("not published:", str(note))
    yield from messages("check did not pass:", summary.failed_checks)
    of_task = f" of {name}" if name else ""
    yield message(
        "done in part:", f"the report{of_task} is on all but that; run the command again to try it again"
    )


def _fields(
    content: ReportContent,
    files: ReportFiles,
    home: Home,
    done: Sequence[_Done],
) -> dict[str, Any]:
    """What programs are told; ``changed`` counts the cells of the graph that were made now, not taken from a home."""
    return {
        "home": str(home.root),
        "partial": any(each.summary.is_partial for each in done),
        "failed": {source: reason for each in done for source, reason in each.summary.scan.failed.items()},
        "failed_checks": [check for each in done for check in each.summary.failed_checks],
        "changed": sum(each.n_made for each in done),
        "cells": len(content.cells),
        "unavailable": sum(cell.result is None for cell in content.cells),
        "page": str(files.page),
        "markdown": str(files.markdown),
        "json": str(files.json),
    }
