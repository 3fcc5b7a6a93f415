"""The command line.

Every command prints for people, and with ``--json`` one JSON object for programs. Exit codes: 0 all well, 1 failed,
2 wrong usage, 3 done in part (some files failed, or a check did not pass), 130 interrupted.

Nothing heavy is imported before a command needs it, so that ``prime --help`` stays fast.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from prime_pipeline.defs.runs import RefreshSummary
    from prime_pipeline.workspace import Workspace

EXIT_FAILED = 1
EXIT_PARTIAL = 3
EXIT_INTERRUPTED = 130

DEMO_QUESTION = "How can I retry a failing call with exponential backoff?"

app = typer.Typer(
    name="prime",
    help="Prepare a corpus of structured documents for retrieval, and keep it prepared.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 all well, 1 failed, 2 wrong usage, 3 done in part, 130 interrupted.",
)

HomeOption = Annotated[Path | None, typer.Option("--home", help="PRIME_HOME, where everything is written.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
ProfileOption = Annotated[
    str | None, typer.Option(help="embedded (no network) or paper (needs the model hub).")
]


@app.command()
def demo(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Index the documentation of the installed Python packages, measure retrieval on it, and answer a question.

    Everything goes through Dagster into a home of its own (demo/ below PRIME_HOME). Needs no network and no key.
    """
    with _reporting(as_json) as console:
        from prime_pipeline.corpus.source import INSTALLED
        from prime_pipeline.models.location import EMBEDDED_MODEL
        from prime_pipeline.retrieval.comparison import SYSTEMS
        from prime_pipeline.settings import load_settings

        main_home = load_settings({"home": home}).stored
        settings = {
            "home": main_home.below("demo").root,
            "cache_home": main_home.cache_root,
            "corpus": INSTALLED,
            "queries": INSTALLED,
            "evaluate": SYSTEMS,
            "profile": "embedded",
            "embedder": EMBEDDED_MODEL,
        }
        if not as_json:
            console.print(
                "[bold]PRIME[/] on the documentation of the Python packages installed here, built through Dagster\n"
            )
        with _workspace(settings, console, show_progress=not as_json) as workspace:
            summary = _refresh(workspace, allow_removals=True, republish=True)
            retriever = workspace.retriever()
            hits = retriever.search(DEMO_QUESTION, top_k=3)
            retriever.close()
        evaluation = summary.evaluation
        published = summary.steps["offline/published_index"]
        counts = {name: published[name] for name in ("documents", "sections", "vectors")}
        measures = {
            name: dict(system.means) for name, system in (evaluation.systems if evaluation else {}).items()
        }
        ui_command = f"prime ui --home {_shown(workspace.home.root)}"
        if as_json:
            answer = [_hit_fields(hit) for hit in hits]
            n_queries = evaluation.n_queries if evaluation else 0
            _print_json(
                {
                    **counts,
                    "queries": n_queries,
                    "measures": measures,
                    "question": DEMO_QUESTION,
                    "hits": answer,
                    "ui": ui_command,
                }
            )
            return
        _show_demo(console, counts, summary, measures, hits, ui_command)


@app.command()
def refresh(
    corpus: Annotated[str | None, typer.Option(help="Folder or data set; remembered in the home.")] = None,
    queries: Annotated[str | None, typer.Option(help="Queries to evaluate with; remembered too.")] = None,
    allow_removals: Annotated[
        bool, typer.Option("--allow-removals", help="Remove documents even if more than a fifth would go.")
    ] = False,
    republish: Annotated[
        bool, typer.Option("--republish", help="Publish a build even if a rollback took it back.")
    ] = False,
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring documents, metadata and indexes up to date with the corpus, and publish them.

    Cheap when nothing changed. Exits with 3 if some files failed; all others are published.
    """
    with _reporting(as_json) as console:
        options = {"home": home, "corpus": corpus, "queries": queries, "profile": profile}
        with _workspace(options, console, show_progress=not as_json) as workspace:
            summary = _refresh(workspace, allow_removals=allow_removals, republish=republish)
        if as_json:
            _print_json(_summary_fields(summary))
        else:
            _show_refresh(console, summary)
        if summary.is_partial:
            raise typer.Exit(EXIT_PARTIAL)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="The question, in plain words.")],
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", min=1, help="Sections to return.")] = None,
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the sections that answer a question, with their sources."""
    with _reporting(as_json) as console:
        from prime_pipeline.console import hits_view
        from prime_pipeline.workspace import Workspace

        workspace = Workspace(_settings({"home": home, "profile": profile}))
        with workspace.retriever() as retriever:
            status = console.status("searching") if not as_json else None
            if status:
                status.start()
            hits = retriever.search(query, top_k)
            if status:
                status.stop()
        if as_json:
            _print_json(
                {
                    "query": query,
                    "build": retriever.manifest.build_id,
                    "hits": [_hit_fields(hit) for hit in hits],
                }
            )
        elif hits:
            console.print(hits_view(hits))
        else:
            console.print("nothing found")


@app.command()
def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show what is served, the builds that can be returned to, and the files that failed."""
    with _reporting(as_json) as console:
        from prime_pipeline.console import counts_table
        from prime_pipeline.indexes.builds import read_manifest
        from prime_pipeline.workspace import Workspace

        workspace = Workspace(_settings({"home": home}))
        builds = workspace.builds("offline")
        if builds.live_id is None:
            from prime_pipeline.errors import IndexNotFound

            raise IndexNotFound(builds.path(""))
        manifest = read_manifest(builds.path(builds.live_id))
        failed = {e.source_path: e.failure for e in workspace.store.catalogue().values() if e.failure}
        served = {
            "home": str(workspace.home.root),
            "corpus": workspace.settings.corpus or "not set",
            "build": manifest.build_id,
            "documents": manifest.n_documents,
            "sections": manifest.n_sections,
            "vectors": manifest.n_vectors,
            "embedder": manifest.embedder_name,
            "profile": manifest.profile,
            "vector search": manifest.vector_search,
        }
        if as_json:
            _print_json({**served, "builds": builds.history(), "failed": failed})
            return
        console.print(counts_table("Served", served))
        history = {item["build"]: item["published_at"] for item in reversed(builds.history())}
        console.print(counts_table("\nBuilds, newest first", history))
        if failed:
            console.print(counts_table("\nFailed, tried again by every refresh", failed))


@app.command()
def ui(
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 3000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; leave it on loopback unless you know better.")
    ] = "127.0.0.1",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the Dagster UI on this home: lineage, runs, backfills, schedules. Ctrl-C ends it."""
    with _reporting(as_json) as console:
        from prime_pipeline.defs.instance import ui_command

        stored = _settings({"home": home}).stored
        stored.prepare()
        _check_port(host, port)
        command, environment = ui_command(stored, host, port)
        url = f"http://{host}:{port}"
        if as_json:
            _print_json({"url": url, "home": str(stored.root)})
        else:
            console.print(f"Dagster on [bold]{_shown(stored.root)}[/]: {url} (Ctrl-C ends it)")
        sys.stdout.flush()
        os.execve(command[0], command, environment)  # noqa: S606


@app.command()
def rollback(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Serve the build before the live one again.

    The build taken back is not published again until the corpus or a setting changes (or with refresh --republish).
    """
    with _reporting(as_json) as console:
        from prime_pipeline.workspace import Workspace

        workspace = Workspace(_settings({"home": home}))
        with workspace.home.lock("index-offline"):
            taken_back, live = workspace.builds("offline").rollback()
        if as_json:
            _print_json({"taken_back": taken_back, "live": live})
        else:
            console.print(f"Serving build [bold]{live}[/] again; {taken_back} was taken back.")


@app.command()
def gc(
    keep: Annotated[int | None, typer.Option(min=0, help="Earlier builds to keep.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove builds and leftovers that nothing needs."""
    with _reporting(as_json) as console:
        from prime_pipeline.workspace import Workspace

        workspace = Workspace(_settings({"home": home}))
        kept = workspace.settings.index.keep_builds if keep is None else keep
        with workspace.home.lock("index-offline"):
            removed_builds = workspace.builds("offline").collect_garbage(kept)
        with workspace.home.lock("documents"):
            n_files = workspace.store.collect_garbage() + workspace.home.remove_leftovers()
        if as_json:
            _print_json({"builds": removed_builds, "files": n_files})
        else:
            console.print(f"Removed {len(removed_builds)} builds and {n_files} leftover files.")


def main() -> None:
    """Run the command line."""
    app()


@contextmanager
def _reporting(as_json: bool) -> Iterator[Console]:
    """Turn what a user can act on into a message and an exit code; anything else is a fault and shows its trace."""
    from rich.console import Console

    from prime_pipeline.console import message
    from prime_pipeline.errors import PrimeError

    console = Console(highlight=False)
    try:
        yield console
    except PrimeError as error:
        if as_json:
            _print_json({"error": type(error).__name__, "message": str(error)})
        else:
            Console(stderr=True).print(message("error:", str(error), "bold red"), soft_wrap=True)
        raise typer.Exit(EXIT_FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _settings(options: Mapping[str, Any]) -> Any:
    from prime_pipeline.settings import load_settings

    return load_settings(options)


@contextmanager
def _workspace(options: Mapping[str, Any], console: Console, *, show_progress: bool) -> Iterator[Workspace]:
    from prime_pipeline.console import progress_on
    from prime_pipeline.workspace import Workspace

    settings = _settings(options)
    with progress_on(console, enabled=show_progress) as progress:
        workspace = Workspace(settings, progress=progress)
        try:
            yield workspace
        finally:
            workspace.close()


def _refresh(workspace: Workspace, *, allow_removals: bool, republish: bool) -> RefreshSummary:
    from prime_pipeline.definitions import defs
    from prime_pipeline.defs.runs import run_refresh
    from prime_pipeline.settings import remember

    workspace.settings.corpus_location  # noqa: B018  raises before anything is written
    workspace.home.prepare()
    summary = run_refresh(defs, workspace, allow_removals=allow_removals, republish=republish)
    remember(workspace.settings)
    return summary


def _summary_fields(summary: RefreshSummary) -> dict[str, Any]:
    scan = summary.scan
    counts = {name: len(scan[name]) for name in ("added", "changed", "removed", "failed")}
    return {
        "run_id": summary.run_id,
        "added": counts["added"],
        "updated": counts["changed"],
        "removed": counts["removed"],
        "unchanged": scan["unchanged"],
        "changed": counts["added"] + counts["changed"] + counts["removed"],
        "failed": scan["failed"],
        "failed_checks": list(summary.failed_checks),
        "steps": {name: dict(values) for name, values in summary.steps.items()},
        "measures": {name: dict(run.means) for name, run in summary.evaluation.systems.items()}
        if summary.evaluation
        else {},
    }


def _show_refresh(console: Console, summary: RefreshSummary) -> None:
    from prime_pipeline.console import counts_table, measures_table, message

    fields = _summary_fields(summary)
    published = summary.steps["offline/published_index"]
    vectors = summary.steps["offline/vector_index"]
    counts = {name: fields[name] for name in ("added", "updated", "removed", "unchanged")}
    counts |= {"failed": len(fields["failed"]), "embedded": vectors.get("encoded", 0)}
    counts |= {
        name: published[name] for name in ("documents", "sections", "vectors", "served") if name in published
    }
    console.print(counts_table("Refresh", counts))
    for source, reason in list(fields["failed"].items())[:20]:
        console.print(message("failed:", f"{source}: {reason}"), soft_wrap=True)
    for source, warning in summary.scan["warnings"][:20]:
        console.print(message("note:", f"{source}: {warning}"), soft_wrap=True)
    for name, step in summary.steps.items():
        if "notes" in step:
            console.print(message(f"{name}:", str(step["notes"]).removeprefix("* "), "dim"), soft_wrap=True)
    for check in summary.failed_checks:
        console.print(message("check did not pass:", check), soft_wrap=True)
    if summary.evaluation:
        measures = {name: run.means for name, run in summary.evaluation.systems.items()}
        title = f"{summary.evaluation.n_queries} queries, {summary.evaluation.queries}"
        console.print(measures_table(title, measures, ("ndcg@5", "mrr")))


def _show_demo(
    console: Console,
    counts: Mapping[str, int],
    summary: RefreshSummary,
    measures: Mapping[str, Mapping[str, float]],
    hits: Any,
    ui_command: str,
) -> None:
    from prime_pipeline.console import counts_table, hits_view, measures_table

    failed = {"failed": len(summary.scan["failed"])} if summary.scan["failed"] else {}
    console.print(counts_table("\nIndexed", {**counts, **failed}))
    n_queries = summary.evaluation.n_queries if summary.evaluation else 0
    title = f"\n{n_queries} known-item queries: the packages' one-line summaries, which are not in the indexed text"
    console.print(measures_table(title, measures, ("ndcg@5", "mrr")))
    console.print(f"\n[bold]{DEMO_QUESTION}[/]")
    console.print(hits_view(hits))
    console.print(f"Look at it in the Dagster UI:  [bold]{ui_command}[/]")
    console.print(
        'Index a folder of your own:    [bold]prime refresh --corpus DIR[/], then [bold]prime search "…"[/]'
    )


def _hit_fields(hit: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(hit)


def _check_port(host: str, port: int) -> None:
    import socket

    from prime_pipeline.errors import PortTaken

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortTaken(host, port, error) from error


def _print_json(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _shown(path: Path) -> str:
    """A path as short as it can be said from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
