"""Commands that operate an index: build it, look at it, search it, take it back, clean up."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prime_pipeline.cli.doorway import (
    EXIT_PARTIAL,
    NOT_YET,
    HomeOption,
    JsonOption,
    ModeOption,
    PathOption,
    ProfileOption,
    SinceOption,
    TagOption,
    UntilOption,
    app,
    chosen_documents,
    from_here,
    opened,
    opened_workspace,
    print_json,
    refreshed,
    reporting,
)

if TYPE_CHECKING:
    from prime_pipeline.defs.runs import RefreshSummary
    from prime_pipeline.indexes.builds import Manifest
    from prime_pipeline.records import SectionHit
    from prime_pipeline.workspace import Workspace

DEMO_QUESTION = "How can I retry a failing call with exponential backoff?"


@app.command()
def demo(
    full: Annotated[
        bool,
        typer.Option("--full", help="Restructure the sections, too: by rules, without a language model."),
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Index the documentation of the installed Python packages, measure retrieval on it, and answer a question.

    Everything goes through Dagster into a home of its own (demo/ below PRIME_HOME). Needs no network and no key.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.operating import demo_view
        from prime_pipeline.corpus.source import INSTALLED
        from prime_pipeline.models.location import EMBEDDED_MODEL
        from prime_pipeline.retrieval.systems import SYSTEMS
        from prime_pipeline.settings import load_settings

        main_home = load_settings({"home": home}).stored
        settings = {
            "home": main_home.below("demo").root,
            "cache_home": main_home.cache_root,
            "corpus": INSTALLED,
            "queries": INSTALLED,
            "evaluate": SYSTEMS,
            "mode": "full" if full else "offline",
            "publish_to": "",
            "restructuring": {"method": "extractive"},
            "profile": "embedded",
            "embedder": EMBEDDED_MODEL,
        }
        if not as_json:
            console.print(
                "The documentation of the Python packages installed here, indexed through Dagster\n"
            )
        with opened_workspace(settings, console, show_progress=not as_json) as workspace:
            summary = refreshed(workspace, allow_removals=True, republish=True, accept_drop=True)
            with workspace.retriever() as retriever:
                hits = retriever.search(DEMO_QUESTION, top_k=3)
        ui_command = f"prime ui --home {from_here(workspace.home.root)}"
        if as_json:
            print_json(_demo_fields(summary, hits, ui_command))
        else:
            console.print(demo_view(summary, DEMO_QUESTION, hits, ui_command))


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
    accept_drop: Annotated[
        bool, typer.Option("--accept-drop", help="Publish a build even if NDCG fell by more than is allowed.")
    ] = False,
    mode: ModeOption = None,
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring documents, metadata and indexes up to date with the corpus, and publish them.

    Cheap when nothing changed. Exits with 3 if some files failed or some sections were put off; all others are
    published. Exits with 4 if NDCG fell by more than index.max_ndcg_drop: what was published before is served on. In full mode with a language model this spends money: see prime estimate.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.operating import refresh_view

        options = {"home": home, "corpus": corpus, "queries": queries, "mode": mode, "profile": profile}
        with opened_workspace(options, console, show_progress=not as_json) as workspace:
            summary = refreshed(
                workspace, allow_removals=allow_removals, republish=republish, accept_drop=accept_drop
            )
        if as_json:
            print_json(_summary_fields(summary))
        else:
            console.print(refresh_view(summary), soft_wrap=True)
        if summary.is_partial:
            raise typer.Exit(EXIT_PARTIAL)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="The question, in plain words.")],
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", min=1, help="Sections to return.")] = None,
    path: PathOption = "",
    tag: TagOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    profile: ProfileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the sections that answer a question, with their sources; on request in some of the documents only."""
    with reporting(as_json) as console:
        from prime_pipeline.console.parts import cut_short_notes, hits_view

        documents = chosen_documents(path, tag, since, until)
        workspace = opened({"home": home, "profile": profile})
        waiting = nullcontext() if as_json else console.status("searching")
        with waiting, workspace.retriever() as retriever:
            hits = retriever.search(query, top_k, documents=documents)
        variant = retriever.manifest.variant
        if variant != workspace.mode and not as_json:
            console.print(f"[dim]{NOT_YET}[/]")
        if as_json:
            print_json(
                {
                    "query": query,
                    "variant": variant,
                    "build": retriever.manifest.build_id,
                    "hits": [_hit_fields(hit) for hit in hits],
                }
            )
        elif hits:
            console.print(hits_view(hits), *cut_short_notes(hits), sep="\n")
        else:
            console.print("nothing found")


@app.command()
def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show what is served, the builds that can be returned to, and the files that failed."""
    with reporting(as_json) as console:
        from prime_pipeline.console.operating import runtime_label
        from prime_pipeline.console.parts import counts_table
        from prime_pipeline.indexes.builds import read_manifest

        workspace = opened({"home": home})
        builds = workspace.builds(workspace.served_variant)
        manifest = read_manifest(builds.path(builds.served_id))
        failed = workspace.store.failures()
        forgotten = {
            entry.doc_id: f"since {entry.since}" if entry.is_complete else "not finished: prime forget again"
            for entry in workspace.forgotten.entries()
        }
        served = {
            "home": str(workspace.home.root),
            "corpus": workspace.settings.corpus or "not set",
            "queries": workspace.settings.queries or "not set",
            "build": manifest.build_id,
            "documents": manifest.n_documents,
            "sections": manifest.n_sections,
            "vectors": manifest.n_vectors,
            "embedder": manifest.embedder_name,
            "embedder runtime": runtime_label(manifest.embedder_runtime),
            "profile": manifest.profile,
            "mode": workspace.mode_label,
            **({"restructuring": manifest.restructuring} if manifest.restructuring else {}),
            **_status_notes(workspace, manifest),
            **_vetoes(workspace),
            "vector search": manifest.vector_search,
        }
        if as_json:
            runtime = dict(manifest.embedder_runtime)
            more = {"builds": builds.history(), "failed": failed, "forgotten": forgotten}
            print_json({**served, "embedder runtime": runtime, **more})
            return
        console.print(counts_table("Served", served))
        history = {item["build"]: item["published_at"] for item in reversed(builds.history())}
        console.print(counts_table("\nBuilds, newest first", history))
        if failed:
            console.print(counts_table("\nFailed, tried again by every refresh", failed))
        if forgotten:
            console.print(counts_table("\nForgotten, read again after prime forget --undo", forgotten))


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on this machine.")] = 3000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; leave it on loopback unless you know better.")
    ] = "127.0.0.1",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the Dagster UI on this home: lineage, runs, backfills, schedules. Ctrl-C ends it."""
    with reporting(as_json) as console:
        from prime_pipeline.console.parts import message
        from prime_pipeline.defs.instance import ui_command

        stored = opened({"home": home}).home
        stored.prepare()
        _check_port(host, port)
        command, environment = ui_command(stored, host, port)
        url = f"http://{host}:{port}"
        if as_json:
            print_json({"url": url, "home": str(stored.root)})
            sys.stdout.flush()
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing follows the object but on stderr
        else:
            console.print(message("Dagster:", f"{url} on {from_here(stored.root)} (Ctrl-C ends it)", "bold"))
            sys.stdout.flush()
        os.execve(command[0], command, environment)  # noqa: S606


@app.command()
def pull(
    url: Annotated[
        str, typer.Argument(help="Where another home publishes: what its setting publish_to says.")
    ],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the index, warehouse and report that another home publishes to object storage, and serve them here.

    Only what is not here yet is fetched, and compared with its hashes. A search that is under way goes on undisturbed.
    """
    with reporting(as_json) as console:
        from prime_pipeline.refresh.releasing import live_release, pull_release
        from prime_pipeline.settings import load_settings, remember
        from prime_pipeline.storage.releases import ReleaseStore

        with opened_workspace({"home": home}, console, show_progress=not as_json) as workspace:
            store = ReleaseStore(url)
            release = live_release(store, workspace.home)
            workspace.home.prepare()
            about = {"mode": release.about["variant"], "profile": release.about.get("profile")}
            settings = load_settings({"home": workspace.home.root, **about})
            remember(settings.model_copy(update={"corpus": None, "queries": None}))
            keep = settings.index.keep_builds
            pulled = pull_release(store, release, workspace.home, keep, workspace.progress)
        build = release.about["build"]
        if as_json:
            done = {
                "from": store.url,
                "home": str(workspace.home.root),
                "release": release.release_id,
                **release.about,
                "changed": pulled.changed,
                "files": pulled.n_files,
                "bytes": pulled.n_bytes,
            }
            print_json(done)
        elif pulled.changed or pulled.n_files:
            fetched = f"{pulled.n_files:,} files with {pulled.n_bytes:,} bytes fetched"
            console.print(f"Serving build [bold]{build}[/]; {fetched}.", soft_wrap=True)
        else:
            console.print(f"Nothing new: build [bold]{build}[/] is served.", soft_wrap=True)


@app.command()
def rollback(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Serve the build before the live one again.

    The build taken back is not published again until the corpus or a setting changes (or with refresh --republish).
    """
    with reporting(as_json) as console:
        workspace = opened({"home": home})
        variant = workspace.served_variant
        builds = workspace.builds(variant)
        builds.served_id  # noqa: B018  raises before a home is made that is none
        with workspace.home.index_lock(variant):
            taken_back, live = builds.rollback()
        if as_json:
            print_json({"taken_back": taken_back, "live": live})
        else:
            console.print(f"Serving build [bold]{live}[/] again; {taken_back} was taken back.")


@app.command()
def gc(
    keep: Annotated[int | None, typer.Option(min=0, help="Earlier builds to keep.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove builds and leftovers that nothing needs."""
    with reporting(as_json) as console:
        from prime_pipeline.indexes.builds import VARIANTS

        workspace = opened({"home": home})
        workspace.builds(workspace.served_variant).served_id  # noqa: B018  raises before a home is made that is none
        kept = workspace.settings.index.keep_builds if keep is None else keep
        removed_builds = []
        for variant in VARIANTS:
            with workspace.home.index_lock(variant):
                removed_builds += workspace.builds(variant).collect_garbage(kept)
        with workspace.home.lock("documents"):
            n_files = workspace.store.collect_garbage() + workspace.home.remove_leftovers()
            n_files += workspace.collect_restructured_garbage()
        if as_json:
            print_json({"builds": removed_builds, "files": n_files})
        else:
            console.print(f"Removed {len(removed_builds)} builds and {n_files} leftover files.")


def _summary_fields(summary: RefreshSummary) -> dict[str, Any]:
    scan = summary.scan
    return {
        "run_id": summary.run_id,
        "added": len(scan.added),
        "updated": len(scan.changed),
        "removed": len(scan.removed),
        "unchanged": scan.unchanged,
        "forgotten": scan.n_forgotten,
        "changed": scan.n_changes,
        "failed": dict(scan.failed),
        "warnings": [list(warning) for warning in scan.warnings],
        "failed_checks": list(summary.failed_checks),
        "steps": {name: dict(values) for name, values in summary.steps.items()},
        **_measures_fields(summary),
    }


def _measures_fields(summary: RefreshSummary) -> dict[str, Any]:
    from prime_pipeline.console.operating import measures_of

    measured = measures_of(summary)
    return {
        "measures": {s: {m: i.value for m, i in found.items()} for s, found in measured.items()},
        "intervals": {s: {m: [i.low, i.high] for m, i in found.items()} for s, found in measured.items()},
    }


def _status_notes(workspace: Workspace, manifest: Manifest) -> dict[str, str]:
    """Where what is served is not what the settings ask for."""
    if manifest.variant != workspace.mode:
        return {"note": NOT_YET}
    if manifest.variant == "full" and manifest.restructuring != workspace.strategy.label:
        return {"note": f"the settings ask for {workspace.strategy.label}: refresh to apply them"}
    return {}


def _vetoes(workspace: Workspace) -> dict[str, str]:
    """Builds that are not served because the served one finds more."""
    from prime_pipeline.indexes.builds import VARIANTS
    from prime_pipeline.refresh.veto import read_veto

    allowed = workspace.settings.index.max_ndcg_drop or 0.0
    found = {variant: read_veto(workspace.home.veto(variant)) for variant in VARIANTS}
    return {
        f"not published ({variant})": f"build {veto.build_id}: {veto.sentence(allowed)}; prime refresh --accept-drop"
        for variant, veto in found.items()
        if veto is not None and veto.served_id == workspace.builds(variant).live_id
    }


def _demo_fields(summary: RefreshSummary, hits: list[SectionHit], ui_command: str) -> dict[str, Any]:
    published = summary.published
    restructuring = summary.steps["restructuring"]
    return {
        **{name: published[name] for name in ("documents", "sections", "vectors")},
        **({"restructuring": dict(restructuring)} if "strategy" in restructuring else {}),
        "queries": summary.n_queries,
        **_measures_fields(summary),
        "question": DEMO_QUESTION,
        "hits": [_hit_fields(hit) for hit in hits],
        "report": summary.steps.get("report", {}).get("page"),
        "ui": ui_command,
    }


def _hit_fields(hit: SectionHit) -> dict[str, Any]:
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
