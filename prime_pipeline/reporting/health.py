"""What could be wrong with a home: one check after the other, each with what to do. No check changes anything.

What Dagster has to say is asked in ``defs/``.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final, Literal

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.datasets.locations import KNOWN_ITEMS
from prime_pipeline.datasets.queries import load_query_set
from prime_pipeline.errors import PrimeError
from prime_pipeline.indexes.builds import VARIANTS, Manifest, read_manifest
from prime_pipeline.llm.probe import listed_models
from prime_pipeline.models.location import decisive_files, model_fingerprint, resolve_model
from prime_pipeline.refresh.veto import read_veto
from prime_pipeline.storage.documents import document_file_name
from prime_pipeline.storage.seal import read_seal
from prime_pipeline.storage.sqlite import fault_of
from prime_pipeline.storage.warehouse import warehouse_counts
from prime_pipeline.workspace import Workspace

State = Literal["ok", "warning", "problem"]

PACKAGE: Final = "prime-pipeline"
_LITTLE_BYTES: Final = 1 << 30
_TOO_LITTLE_BYTES: Final = 100 << 20
_VERSIONS: Final = (
    "dagster",
    "duckdb",
    "hnswlib",
    "numpy",
    "openai",
    "sentence-transformers",
    "torch",
    "transformers",
)


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at.

    Attributes:
        area: What it belongs to: ``home``, ``settings``, ``models``, …
        name: What it is.
        state: ``problem``: something does not work; ``warning``: it works, and somebody should know.
        found: What was found.
        remedy: What to do; empty where nothing is.
    """

    area: str
    name: str
    state: State
    found: str
    remedy: str = ""


def ok(area: str, name: str, found: str) -> Check:
    """A check that found nothing wrong."""
    return Check(area, name, "ok", found)


def examine(workspace: Workspace) -> Iterator[Check]:
    """All checks of a home, in order; a fault of a check is a problem that it found."""
    areas: tuple[tuple[str, Callable[[Workspace], Iterator[Check]]], ...] = (
        ("home", _home),
        ("settings", _settings),
        ("models", _models),
        ("endpoint", _endpoint),
        ("index", _index),
        ("stores", _stores),
        ("warehouse", _warehouse),
        ("packages", _packages),
    )
    for area, checks in areas:
        yield from guarded(area, lambda checks=checks: checks(workspace))  # type: ignore[misc]


def guarded(area: str, checks: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """The checks of an area; an error that is not their own finding ends them and is one."""
    try:
        yield from checks()
    except (PrimeError, OSError) as error:
        yield Check(area, "can be examined", "problem", str(error), "see the message")


def _home(workspace: Workspace) -> Iterator[Check]:
    home = workspace.home
    if not home.root.is_dir():
        yield Check("home", "folder", "problem", f"{home.root} does not exist", "prime refresh --corpus DIR")
        return
    for name, folder in {"folder": home.root, "folder of the caches": home.cache_root}.items():
        if name == "folder" or folder != home.root:
            yield _writable(name, folder)
            yield _space(name, folder)
    stale = home.leftovers()
    size = sum(path.stat().st_size for path in stale if path.exists())
    yield (
        Check(
            "home", "leftovers", "warning", f"{len(stale)} files of killed runs, {size:,} bytes", "prime gc"
        )
        if stale
        else ok("home", "leftovers", "none")
    )
    held = home.held_locks()
    yield (
        Check("home", "locks", "warning", f"held now: {', '.join(held)}", "a run is at work; see prime ui")
        if held
        else ok("home", "locks", "none held")
    )
    unfinished = [entry.doc_id for entry in workspace.forgotten.entries() if not entry.is_complete]
    yield (
        Check(
            "home",
            "forgotten documents",
            "problem",
            f"not finished with: {', '.join(unfinished[:5])}",
            f"prime forget --yes {' '.join(unfinished[:5])}",
        )
        if unfinished
        else ok("home", "forgotten documents", f"{len(workspace.forgotten.ids())}, nothing kept of them")
    )


def _writable(name: str, folder: Path) -> Check:
    # The system is asked and nothing is written: on a file system that is mounted read-only it says no to root, too.
    if os.access(folder, os.W_OK | os.X_OK):
        return ok("home", name, f"{folder} can be written")
    remedy = "mount it for writing, or give this user leave; searching goes on meanwhile"
    return Check("home", name, "problem", f"{folder} cannot be written", remedy)


def _space(name: str, folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    found = f"{free / (1 << 30):,.1f} GiB free"
    what = f"room in the {name}"
    if free >= _LITTLE_BYTES:
        return ok("home", what, found)
    state: State = "problem" if free < _TOO_LITTLE_BYTES else "warning"
    return Check("home", what, state, found, "free space; prime gc --keep 0 removes earlier builds")


def _settings(workspace: Workspace) -> Iterator[Check]:
    settings = workspace.settings
    where = settings.stored.settings_file
    yield ok("settings", "files", f"valid; the home's own is {where if where.is_file() else 'not there'}")
    if not settings.corpus:
        yield Check(
            "settings", "corpus", "warning", "not set: nothing can be refreshed", "prime refresh --corpus DIR"
        )
    else:
        yield _found("settings", "corpus", settings.corpus, lambda: open_corpus(settings.corpus_location))
    if settings.queries and settings.queries != KNOWN_ITEMS:
        location = settings.queries
        yield _found("settings", "queries", location, lambda: load_query_set(location))


def _found(area: str, name: str, found: str, look: Callable[[], object]) -> Check:
    try:
        look()
    except PrimeError as error:
        return Check(area, name, "problem", str(error), "see the message")
    return ok(area, name, found)


def _models(workspace: Workspace) -> Iterator[Check]:
    settings, embedder = workspace.settings, workspace.embedder
    yield _found(
        "models",
        "embedder",
        f"{embedder.name}, loaded; files {embedder.fingerprint[:12]}",
        lambda: embedder.encode_query("a test"),
    )
    if settings.retrieval_options.scorer == "cross_encoder":
        yield _model("cross-encoder", settings.cross_encoder)
    if settings.contradiction_model:
        yield _model("contradictions", settings.contradiction_model)
    for variant in workspace.published_variants():
        manifest = _manifest(workspace, variant)
        if manifest is not None and manifest.embedder_fingerprint != embedder.fingerprint:
            found = f"the index was made by {manifest.embedder_name}, and {embedder.name} is configured"
            remedy = "prime refresh makes it anew; or configure the one that made it"
            yield Check("models", f"embedder of the {variant} index", "problem", found, remedy)


def _model(name: str, model: str) -> Check:
    try:
        folder = resolve_model(model)
        found = f"{model}: {len(decisive_files(folder))} files, {model_fingerprint(folder)[:12]}"
    except PrimeError as error:
        return Check("models", name, "problem", str(error), "see the message")
    return ok("models", name, found)


def _endpoint(workspace: Workspace) -> Iterator[Check]:
    llm = workspace.settings.llm
    if not llm.base_url:
        yield ok("endpoint", "language model", "none is set; nothing needs one")
        return
    try:
        models = listed_models(llm.base_url, llm.api_key.get_secret_value())
    except PrimeError as error:
        yield Check("endpoint", "language model", "problem", str(error), "see the message; nothing was paid")
        return
    for model in sorted({llm.model, workspace.settings.answers.model} - {""}):
        if model in models:
            yield ok("endpoint", model, f"listed by {llm.base_url}")
        else:
            found = f"{llm.base_url} answers and lists {len(models)} models, but not this one"
            remedy = "correct llm.model, unless the endpoint serves what it does not list"
            yield Check("endpoint", model, "warning", found, remedy)


def _index(workspace: Workspace) -> Iterator[Check]:
    published = [v for v in VARIANTS if workspace.builds(v).live_id is not None]
    if not published:
        yield Check("index", "published", "problem", "nothing is published", "prime refresh")
    for variant in published:
        yield from guarded("index", lambda variant=variant: _published(workspace, variant))  # type: ignore[misc]
    wanted = workspace.mode
    if published and wanted not in published:
        yield Check(
            "index",
            "mode",
            "warning",
            f"{wanted} mode has published nothing; another index answers",
            "prime refresh",
        )


def _published(workspace: Workspace, variant: str) -> Iterator[Check]:
    builds = workspace.builds(variant)
    manifest = builds.verify(builds.served_id)
    found = f"build {manifest.build_id}: {manifest.n_documents:,} documents, all files as they were published"
    yield ok("index", variant, found)
    exclusions = workspace.forgotten.fingerprint
    if manifest.forgotten != exclusions:
        found = "the list of forgotten documents has changed since it was built"
        yield Check("index", f"{variant} exclusions", "warning", found, "prime refresh")
    veto = read_veto(workspace.home.veto(variant))
    if veto is not None and veto.served_id == manifest.build_id:
        allowed = workspace.settings.index.max_ndcg_drop or 0.0
        found = f"build {veto.build_id} is not published: {veto.sentence(allowed)}"
        yield Check(
            "index", f"{variant} veto", "warning", found, "prime refresh --accept-drop, or look what changed"
        )


def _stores(workspace: Workspace) -> Iterator[Check]:
    home = workspace.home
    paths = [
        *sorted(home.documents.glob("catalogue.sqlite")),
        *sorted((home.root / "restructured").glob("*/*.sqlite")),
        *sorted(home.root.glob("*.sqlite")),
        *sorted((home.cache_root / "cache").glob("*.sqlite")),
        *sorted(home.dagster.rglob("*.db")),
    ]
    for path in paths:
        root = home.cache_root if path.is_relative_to(home.cache_root) else home.root
        name = str(path.relative_to(root))
        fault = fault_of(path)
        if fault is None:
            yield ok("stores", name, f"sound, {path.stat().st_size:,} bytes")
        else:
            yield Check("stores", name, "problem", fault, _remedy(path, home.root))
    if home.seal("raw").is_file():
        there = {path.name for path in home.documents.glob("[0-9a-f][0-9a-f]/*.json")}
        sealed = read_seal(home.seal("raw")).documents
        lost = [doc_id for doc_id, _ in sealed if document_file_name(doc_id) not in there]
        yield (
            Check(
                "stores",
                "documents",
                "problem",
                f"{len(lost)} files are gone, the first is of {lost[0]!r}",
                "prime refresh",
            )
            if lost
            else ok("stores", "documents", f"{len(sealed):,} files")
        )


def _remedy(path: Path, root: Path) -> str:
    if path.parent.name == "cache" and path.name != "llm.sqlite":
        return "delete it: it is made anew, which costs time only"
    if path.name == "llm.sqlite":
        return "restore it from a backup; or delete it, which means paying for all answers again"
    if path.suffix == ".db":
        return f"move {root / 'dagster'} away and refresh; that costs the history of runs"
    if path.name == "ledger.sqlite":
        return "restore it from a backup; or delete it, which costs the history of spending"
    return f"delete {path.parent} and run prime refresh, which makes it anew"


def _manifest(workspace: Workspace, variant: str) -> Manifest | None:
    live = workspace.builds(variant).live_path
    return read_manifest(live) if live else None


def _warehouse(workspace: Workspace) -> Iterator[Check]:
    path = workspace.home.warehouse
    served = next(reversed(workspace.published_variants()), None)
    manifest = _manifest(workspace, served) if served else None
    if manifest is None:
        yield ok("warehouse", "snapshot", "nothing is published that it could tell of")
        return
    if not path.is_file():
        yield Check("warehouse", "snapshot", "warning", "there is none", "prime refresh")
        return
    counts = warehouse_counts(path, ("metadata", "sections"))
    expected = {"metadata": manifest.n_documents, "sections": manifest.n_sections}
    if counts == expected:
        yield ok(
            "warehouse",
            "snapshot",
            f"{counts['metadata']:,} documents, {counts['sections']:,} sections, as served",
        )
    else:
        found = f"it has {counts}, and the served index {expected}"
        yield Check("warehouse", "snapshot", "warning", found, "prime refresh")


def _packages(workspace: Workspace) -> Iterator[Check]:
    del workspace
    import sqlite3

    installed = {name: _version(name) for name in _VERSIONS}
    shown = ", ".join(f"{name} {found}" for name, found in installed.items() if found)
    yield ok("packages", "versions", f"{shown}, sqlite {sqlite3.sqlite_version}")
    try:
        needed = requires(PACKAGE) or []
    except PackageNotFoundError:
        yield ok("packages", "requirements", "runs from a clone, which states none")
        return
    faults = [fault for line in needed if (fault := _requirement_fault(line))]
    yield (
        Check("packages", "requirements", "problem", "; ".join(faults), f"pip install --upgrade {PACKAGE}")
        if faults
        else ok("packages", "requirements", "all met")
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _requirement_fault(line: str) -> str:
    """What is wrong with a requirement; empty if nothing is, or if it is one of an extra."""
    from packaging.requirements import Requirement

    requirement = Requirement(line)
    if re.search(r"\bextra\s*==", line) or (requirement.marker and not requirement.marker.evaluate()):
        return ""
    found = _version(requirement.name)
    if not found:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(found, prereleases=True):
        return f"{requirement.name} is {found}, needed is {requirement.specifier}"
    return ""
