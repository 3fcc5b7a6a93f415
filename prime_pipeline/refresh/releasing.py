"""What a home serves, sent to object storage and fetched from there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from prime_pipeline.errors import HomeInUse, NothingReleased, ReleaseDamaged
from prime_pipeline.indexes.builds import MANIFEST_FILE, VARIANTS, Builds, read_manifest
from prime_pipeline.progress import Progress, silent
from prime_pipeline.storage.fingerprint import file_fingerprint
from prime_pipeline.storage.home import Home
from prime_pipeline.storage.releases import Release, ReleasedFile, ReleaseStore, Upload

REPORT_FILES = ("report.html", "report.md", "report.json", "comparison.html")

_BUILD = re.compile(r"[0-9a-f]{16}")
_OF_A_BUILD = re.compile(r"indexes/(?P<variant>[a-z]+)/builds/(?P<build>[0-9a-f]{16})/[^/]+")


@dataclass(frozen=True, slots=True)
class Pulled:
    """What fetching came to.

    Attributes:
        release: What was live there.
        changed: Whether another build is served here than before.
        n_files: Files that were fetched.
        n_bytes: Their bytes.
    """

    release: Release
    changed: bool
    n_files: int
    n_bytes: int


def publish_release(
    store: ReleaseStore, home: Home, variant: str, build: Path, keep: int, progress: Progress = silent
) -> Upload:
    """Send the served build, the warehouse and the report, and make them the live release.

    Args:
        store: Where to.
        home: Whose.
        variant: What is served, ``offline`` or ``full``.
        build: Folder of the served build. It must stay while this runs.
        keep: Earlier releases that stay there.
        progress: Told of files.

    Raises:
        RemoteUnusable, ReleaseDamaged, SchemaMismatch: See :class:`~prime_pipeline.storage.releases.ReleaseStore`.
    """
    manifest = read_manifest(build)
    parts = [build / name for name in (MANIFEST_FILE, *manifest.files)]
    more = [home.warehouse, *(home.reports / name for name in REPORT_FILES)]
    paths = [*parts, *(path for path in more if path.is_file())]
    about = {"variant": variant, "build": manifest.build_id, "profile": manifest.profile}
    files = {path.relative_to(home.root).as_posix(): path for path in paths}
    return store.publish(files, about, keep, progress)


def live_release(store: ReleaseStore, home: Home) -> Release:
    """The release that can be pulled into a home.

    Raises:
        HomeInUse: The home makes an index of its own.
        NothingReleased: There is none.
        RemoteUnusable, ReleaseDamaged, SchemaMismatch: See :class:`~prime_pipeline.storage.releases.ReleaseStore`.
    """
    if home.seal(
        "raw"
    ).is_file():  # written by a refresh only, while the store of documents is made by whoever looks into it
        raise HomeInUse(home.root)
    release = store.live()
    if release is None:
        raise NothingReleased(store.url)
    variant, build = release.about.get("variant"), release.about.get("build", "")
    if variant not in VARIANTS or not _BUILD.fullmatch(build):
        raise ReleaseDamaged(store.url, "it does not say what it serves")
    return release


def pull_release(
    store: ReleaseStore, release: Release, home: Home, keep: int, progress: Progress = silent
) -> Pulled:
    """Fetch what is not here yet, and serve it. A reader of the build before goes on undisturbed.

    The build is checked and swapped in at once; warehouse and report follow, each replaced at once. Files that an
    interrupted pull has fetched are not fetched again.

    Args:
        store: Where from.
        release: See :func:`live_release`.
        home: Where to.
        keep: Earlier builds that stay here.
        progress: Told of files.

    Raises:
        IndexCorrupt, IndexNotFound, SchemaMismatch: The build is none that this version can serve; the one before stays.
        RemoteUnusable, ReleaseDamaged, StoreUnavailable: See :class:`~prime_pipeline.storage.releases.ReleaseStore`.
    """
    variant, build = release.about["variant"], release.about["build"]
    builds = Builds(home.indexes(variant))
    staged = builds.staging(build)
    parts: dict[ReleasedFile, Path] = {}
    others: dict[ReleasedFile, Path] = {}
    for file in release.files:
        target = home.root / file.path
        if (found := _OF_A_BUILD.fullmatch(file.path)) and found.groups() == (variant, build):
            parts[file] = staged / target.name
        elif target == home.warehouse or (target.parent == home.reports and target.name in REPORT_FILES):
            others[file] = target
        else:
            raise ReleaseDamaged(store.url, f"{file.path} has no place in a home")
    fetched: list[ReleasedFile] = []
    with home.index_lock(variant):
        changed = builds.live_id != build
        if changed or builds.intact_path is None:
            fetched += _fetch(store, parts, progress)
            builds.adopt(build)
        builds.collect_garbage(keep)
    with home.lock("warehouse"):
        fetched += _fetch(store, others, progress)
    return Pulled(release, changed, len(fetched), sum(file.size for file in fetched))


def _fetch(store: ReleaseStore, wanted: dict[ReleasedFile, Path], progress: Progress) -> list[ReleasedFile]:
    """Fetch the files that are not there yet; returns which."""
    fetched = []
    for position, (file, target) in enumerate(wanted.items(), start=1):
        if not (target.is_file() and file_fingerprint(target) == file.sha256):
            store.fetch(file, target)
            fetched.append(file)
        progress("fetch", position, len(wanted))
    return fetched
