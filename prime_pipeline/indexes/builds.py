"""A build: metadata, lexical index and vector index of one sealed corpus, published together or not at all.

Parts are made in ``staging/<build>/`` and moved to ``builds/<build>/`` when they agree with one another; then one small
file, CURRENT, names the live build. A reader that holds an older build goes on undisturbed. The id of a build is a hash
of all that determines it, so the same input gives the same build, and a part that is there is a part that is right.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prime_pipeline.errors import (
    IndexCorrupt,
    IndexNotFound,
    IndexOutdated,
    NoEarlierBuild,
    StoreCorrupt,
    StoreUnavailable,
)
from prime_pipeline.indexes.lexical import LEXICAL_VERSION, LexicalIndex, LexicalSource
from prime_pipeline.indexes.vectors import VECTORS_VERSION, VectorIndex, VectorOptions, check_vectors
from prime_pipeline.storage.atomic import sync_directory, write_text
from prime_pipeline.storage.fingerprint import FileFingerprints, file_fingerprint, fingerprint
from prime_pipeline.storage.metadata_file import MetadataFile
from prime_pipeline.storage.seal import SealedCorpus

SCHEMA_VERSION = 4
VARIANTS = ("offline", "full")
"""What is built: of raw sections, and of restructured ones."""
METADATA_FILE = "metadata.sqlite"
LEXICAL_FILE = "lexical.sqlite"
MANIFEST_FILE = "manifest.json"

_BUILD_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """All that determines a build.

    Attributes:
        variant: ``offline`` or ``full``.
        corpus: The documents and their versions.
        metadata_fingerprint: Hash of how metadata is synthesised.
        embedder_name: For people.
        embedder_fingerprint: Hash of the model's files.
        profile: ``embedded`` or ``paper``; recorded, and no part of the id (the models are).
        vector_options: How vectors are searched.
        lexical_source: Which text of rewritten sections BM25 sees.
        restructuring: How sections were rewritten, for people; empty in ``offline``. What was made of them is in the
            versions of the documents.
        mode: Why this variant is built, for people: the mode of the settings, or what ``auto`` came to. Recorded, and
            no part of the id.
        embedder_runtime: What computes the vectors, for people, see :attr:`~prime_pipeline.models.embedder.Embedder.runtime`.
            Recorded, and no part of the id, since another runtime is another embedder.
        forgotten: Hash of the ids that must not be read again; empty for none. A build starts from an earlier one only if
            this is the same: in a copy, traces of what was taken out remain.
    """

    variant: str
    corpus: SealedCorpus
    metadata_fingerprint: str
    embedder_name: str
    embedder_fingerprint: str
    profile: str
    vector_options: VectorOptions
    lexical_source: LexicalSource = "raw"
    restructuring: str = ""
    mode: str = ""
    embedder_runtime: Mapping[str, str | float] = field(default_factory=dict)
    forgotten: str = ""

    @property
    def build_id(self) -> str:
        """Sixteen hex digits that are equal exactly for equal builds."""
        determinants = {
            "schema": [SCHEMA_VERSION, LEXICAL_VERSION, VECTORS_VERSION],
            "variant": self.variant,
            "corpus": self.corpus.version,
            "metadata": self.metadata_fingerprint,
            "embedder": self.embedder_fingerprint,
            "vectors": asdict(self.vector_options),
            "lexical_source": self.lexical_source,
            **({"forgotten": self.forgotten} if self.forgotten else {}),
        }
        return fingerprint(determinants)[:16]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a build says about itself.

    Attributes:
        build_id: See :class:`BuildPlan`.
        variant: ``offline`` or ``full``.
        profile: ``embedded`` or ``paper``.
        corpus_version: Of the sealed corpus.
        metadata_fingerprint: How metadata was synthesised.
        embedder_name: For people.
        embedder_fingerprint: Of the model's files.
        dimensions: Of a vector.
        n_documents: In both indexes.
        n_sections: Section rows.
        n_vectors: Vectors; one per document.
        vector_search: ``exact`` or ``hnsw``.
        lexical_source: Which text of rewritten sections BM25 sees.
        restructuring: How sections were rewritten; empty in ``offline``.
        mode: The mode of the settings, or what ``auto`` came to.
        ids_fingerprint: Hash of the sorted document ids.
        files: SHA-256 by file name.
        embedder_runtime: See :class:`BuildPlan`.
        forgotten: See :class:`BuildPlan`.
    """

    build_id: str
    variant: str
    profile: str
    corpus_version: str
    metadata_fingerprint: str
    embedder_name: str
    embedder_fingerprint: str
    dimensions: int
    n_documents: int
    n_sections: int
    n_vectors: int
    vector_search: str
    lexical_source: str
    restructuring: str
    mode: str
    ids_fingerprint: str
    files: Mapping[str, str]
    embedder_runtime: Mapping[str, str | float] = field(default_factory=dict)
    forgotten: str = ""


@dataclass(frozen=True, slots=True)
class ServedBuild:
    """The build that answers queries now.

    Attributes:
        variant: ``offline`` or ``full``.
        build_id: The build.
        published_at: When it was, in UTC, as ISO 8601 to the second.
    """

    variant: str
    build_id: str
    published_at: str


@dataclass(frozen=True, slots=True)
class Publication:
    """What publishing a build came to.

    Attributes:
        build_id: The build that the plan asks for.
        live: The build that is served now.
        changed: Whether the served build is another one than before.
        withheld: Why the planned build is not served, if so.
    """

    build_id: str
    live: str | None
    changed: bool
    withheld: str | None = None


Approve = Callable[[Path, Path], None]
"""Given the folders of a build that is to be published and of the served one; raises if it should not be."""


class Builds:
    """The builds of one variant: staging, publishing, going back, tidying up.

    Args:
        folder: Holds ``staging/``, ``builds/`` and ``CURRENT``. Whoever changes it holds the home's lock of that name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fingerprints = FileFingerprints()

    def staging(self, build_id: str) -> Path:
        """Where the parts of a build are made, or put if it was made elsewhere; the published folder if the build is there."""
        published = self.path(build_id)
        return published if (published / MANIFEST_FILE).is_file() else self._folder / "staging" / build_id

    def path(self, build_id: str) -> Path:
        """Folder of a published build."""
        return self._folder / "builds" / build_id

    @property
    def live_id(self) -> str | None:
        """Id of the served build, if there is one."""
        history = self._current()["history"]
        return history[-1]["build"] if history else None

    @property
    def served_id(self) -> str:
        """Id of the served build.

        Raises:
            IndexNotFound: None is.
        """
        if (live := self.live_id) is None:
            raise IndexNotFound(self._folder)
        return live

    @property
    def live_path(self) -> Path | None:
        """Folder of the served build, if there is one that is whole enough to have a manifest."""
        live = self.live_id
        return self.path(live) if live and (self.path(live) / MANIFEST_FILE).is_file() else None

    @property
    def intact_path(self) -> Path | None:
        """Folder of the served build if every file is the one that was published: what a new build may start from.

        Reads all of it, see :meth:`verify`. Damage that no reader notices would go into the new build otherwise, and get a good hash there.
        """
        live = self.live_id
        return self.path(live) if live and self._is_whole(live) else None

    def verify(self, build_id: str) -> Manifest:
        """The manifest of a published build, after every file was compared with its hash; see :func:`verify_build`.

        A file that this object has read and that was not touched since is not read again: the steps of a refresh ask
        several times.
        """
        return verify_build(self.path(build_id), self._fingerprints.of)

    def history(self) -> list[dict[str, str]]:
        """Builds that were published and can be returned to, oldest first, as {build, published_at}."""
        return list(self._current()["history"])

    def publish(
        self, plan: BuildPlan, *, even_if_withdrawn: bool = False, approve: Approve | None = None
    ) -> Publication:
        """Check the staged parts against one another and make the build the served one.

        Args:
            plan: Of the build whose parts are all there.
            even_if_withdrawn: Publish a build that ``prime rollback`` took back.
            approve: Looks at the whole build before it takes the place of another; if it raises, it does not, and stays
                in its folder until :meth:`collect_garbage`.

        Raises:
            IndexCorrupt: The parts do not agree; the served build stays, and the parts are made anew next time.
        """
        current = self._current()
        before = self.live_id
        if plan.build_id in current["withdrawn"] and not even_if_withdrawn:
            reason = (
                f"build {plan.build_id} was taken back by `prime rollback`: it is not published again until the corpus "
                "or a setting changes; `prime refresh --republish` overrides that"
            )
            return Publication(plan.build_id, before, changed=False, withheld=reason)
        if plan.build_id == before and self.live_path is not None:
            self._note_mode(plan)
            return Publication(plan.build_id, before, changed=False)
        self._move_into_place(plan)
        if approve is not None and before is not None:
            approve(self.path(plan.build_id), self.path(before))
        self._serve(plan.build_id)
        return Publication(plan.build_id, plan.build_id, changed=True)

    def adopt(self, build_id: str) -> None:
        """Serve a build that was made elsewhere, once all its files are where :meth:`staging` says.

        Raises:
            IndexCorrupt, IndexNotFound, IndexOutdated: It is not whole, or another one; the served build stays.
        """
        staged, target = self.staging(build_id), self.path(build_id)
        if verify_build(staged, self._fingerprints.of).build_id != build_id:
            raise IndexCorrupt(staged, "it is another build than its name says")
        if staged != target:
            _move(staged, target)
        self._serve(build_id)

    def disown_damaged(self, plan: BuildPlan) -> bool:
        """If the planned build is published but damaged, take its manifest away, so that its parts are made anew."""
        manifest = self.path(plan.build_id) / MANIFEST_FILE
        if not manifest.is_file() or self._is_whole(plan.build_id):
            return False
        manifest.unlink()
        return True

    def rollback(self) -> tuple[str, str]:
        """Serve the build before the live one again; returns (taken back, now live).

        Raises:
            NoEarlierBuild: There is none.
            IndexCorrupt, IndexNotFound, IndexOutdated: It cannot be served; the live build stays.
        """
        current = self._current()
        history = current["history"]
        if len(history) < 2:
            raise NoEarlierBuild(self._folder)
        taken_back, live = history[-1]["build"], history[-2]["build"]
        self.verify(live)
        self._write_current(history[:-1], [*current["withdrawn"], taken_back])
        return taken_back, live

    def start_for(self, plan: BuildPlan) -> Path | None:
        """Folder of the served build if a new one may be made from a copy of it: intact, and with the same exclusions."""
        folder = self.intact_path
        return folder if folder and read_manifest(folder).forgotten == plan.forgotten else None

    def remove_other_than(self, forgotten: str, *, even_live: bool) -> list[str]:
        """Remove staged parts, and all builds that were not made under just these exclusions; returns what went.

        Args:
            forgotten: See :attr:`BuildPlan.forgotten`.
            even_live: Remove the served build, too, if it is one of them: then the one before it that is left is served,
                or none.
        """
        current, live = self._current(), self.live_id
        found = [path for path in self._folder.glob("builds/*") if _BUILD_ID.fullmatch(path.name)]
        stale = [path for path in found if not _was_made_under(path, forgotten)]
        stale = [path for path in stale if even_live or path.name != live]
        gone = {path.name for path in stale}
        history = [item for item in current["history"] if item["build"] not in gone]
        if history != current["history"]:
            self._write_current(history, current["withdrawn"])
        staged = [path for path in self._folder.glob("staging/*") if _BUILD_ID.fullmatch(path.name)]
        for path in (*stale, *staged):
            shutil.rmtree(path)
        return sorted(gone)

    def collect_garbage(self, keep: int, but: str = "") -> list[str]:
        """Remove staged parts and all builds but the served one, the ``keep`` before it, and ``but``; returns what went.

        What is not named like a build is not ours and stays.
        """
        current = self._current()
        kept = current["history"][-(keep + 1) :]
        kept_ids = {but, *(item["build"] for item in kept)}
        self._write_current(kept, current["withdrawn"])
        builds = (path for path in self._folder.glob("builds/*") if path.name not in kept_ids)
        found = (*self._folder.glob("staging/*"), *builds)
        stale = sorted(path for path in found if _BUILD_ID.fullmatch(path.name) and path.is_dir())
        for path in stale:
            shutil.rmtree(path)
        return sorted(path.name for path in stale)

    def _note_mode(self, plan: BuildPlan) -> None:
        """The same build may be asked for by another mode, which its manifest then names."""
        manifest = read_manifest(self.path(plan.build_id))
        if manifest.mode != plan.mode:
            _write_manifest(self.path(plan.build_id), replace(manifest, mode=plan.mode))

    def _is_whole(self, build_id: str) -> bool:
        try:
            self.verify(build_id)
        except (IndexCorrupt, IndexNotFound, IndexOutdated):
            return False
        return True

    def _move_into_place(self, plan: BuildPlan) -> None:
        staged, target = self.staging(plan.build_id), self.path(plan.build_id)
        if staged == target:
            self.verify(plan.build_id)  # an earlier build, back in service as it was published
            return
        try:
            manifest = describe_build(staged, plan, self._fingerprints.of)
        except (IndexCorrupt, IndexOutdated):
            shutil.rmtree(staged, ignore_errors=True)  # or every run to come would find the same parts
            raise
        _write_manifest(staged, manifest)
        _move(staged, target)

    def _serve(self, build_id: str) -> None:
        current = self._current()
        entry = {"build": build_id, "published_at": datetime.now(UTC).isoformat(timespec="seconds")}
        history = [item for item in current["history"] if item["build"] != build_id]
        withdrawn = [build for build in current["withdrawn"] if build != build_id]
        self._write_current([*history, entry], withdrawn)

    def _current(self) -> dict[str, Any]:
        path = self._folder / "CURRENT"
        try:
            current = json.loads(path.read_bytes())
            return {"history": current["history"], "withdrawn": current["withdrawn"]}
        except (FileNotFoundError, NotADirectoryError):
            return {"history": [], "withdrawn": []}
        except OSError as error:
            raise StoreUnavailable(path, error.strerror or str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise StoreCorrupt(path, str(error)) from error  # a refresh writes it anew, once it is gone

    def _write_current(self, history: list[dict[str, str]], withdrawn: list[str]) -> None:
        current = {"schema_version": SCHEMA_VERSION, "history": history, "withdrawn": withdrawn}
        write_text(self._folder / "CURRENT", json.dumps(current, indent=2) + "\n")


def _move(staged: Path, target: Path) -> None:
    for leftover in staged.glob(".*"):  # temporary files of a run that was killed
        leftover.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():  # what is left of a damaged build
        shutil.rmtree(target)
    staged.rename(target)
    sync_directory(target.parent)


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    text = json.dumps({"schema_version": SCHEMA_VERSION, **asdict(manifest)}, indent=2, sort_keys=True)
    write_text(folder / MANIFEST_FILE, text + "\n")


def describe_build(
    folder: Path, plan: BuildPlan, fingerprint_of: Callable[[Path], str] = file_fingerprint
) -> Manifest:
    """Check the parts of a build against its plan and one another, and describe them.

    Raises:
        IndexCorrupt: An id is missing from one part or too much in it, or the vectors are not unit vectors.
        IndexOutdated: Another version of this program wrote a part.
    """
    with (
        closing(MetadataFile(folder / METADATA_FILE)) as metadata,
        closing(LexicalIndex(folder / LEXICAL_FILE)) as lexical,
    ):
        vectors = VectorIndex(folder)
        _check_agreement(folder, plan, metadata, lexical, vectors)
        return Manifest(
            build_id=plan.build_id,
            variant=plan.variant,
            profile=plan.profile,
            corpus_version=plan.corpus.version,
            metadata_fingerprint=plan.metadata_fingerprint,
            embedder_name=plan.embedder_name,
            embedder_fingerprint=plan.embedder_fingerprint,
            embedder_runtime=plan.embedder_runtime,
            dimensions=vectors.dimensions,
            n_documents=len(plan.corpus.documents),
            n_sections=len(lexical.sections.rows),
            n_vectors=len(vectors.doc_ids),
            vector_search=vectors.search_method,
            lexical_source=plan.lexical_source,
            restructuring=plan.restructuring,
            mode=plan.mode,
            ids_fingerprint=fingerprint(vectors.doc_ids),
            files={
                p.name: fingerprint_of(p) for p in sorted(folder.glob("[!.]*")) if p.name != MANIFEST_FILE
            },
            forgotten=plan.forgotten,
        )


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a build.

    Raises:
        IndexNotFound: There is no such build.
        IndexCorrupt: Its manifest is missing or damaged.
        IndexOutdated: Another version of this program wrote it.
    """
    path = folder / MANIFEST_FILE
    try:
        stored = json.loads(path.read_bytes())
        if stored["schema_version"] != SCHEMA_VERSION:
            raise IndexOutdated(path, stored["schema_version"], SCHEMA_VERSION)
        return Manifest(**{name: value for name, value in stored.items() if name != "schema_version"})
    except (FileNotFoundError, NotADirectoryError):
        if folder.is_dir():
            raise IndexCorrupt(folder, f"{MANIFEST_FILE} is missing") from None
        raise IndexNotFound(folder) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexCorrupt(folder, f"its manifest cannot be read: {error}") from error


def _was_made_under(folder: Path, forgotten: str) -> bool:
    try:
        return read_manifest(folder).forgotten == forgotten
    except (IndexCorrupt, IndexNotFound, IndexOutdated):
        return False


def verify_build(folder: Path, fingerprint_of: Callable[[Path], str] = file_fingerprint) -> Manifest:
    """The manifest of a build, after every file that it names was compared with its hash.

    Args:
        folder: Of the build.
        fingerprint_of: Gives a file's hash; by default it is read now.

    Raises:
        IndexNotFound, IndexCorrupt, IndexOutdated: The manifest cannot be read, or a file is not the published one.
    """
    manifest = read_manifest(folder)
    for name, expected in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise IndexCorrupt(folder, f"{name} is missing")
        if fingerprint_of(path) != expected:
            raise IndexCorrupt(folder, f"{name} is not the file that was published")
    return manifest


def _check_agreement(
    folder: Path, plan: BuildPlan, metadata: MetadataFile, lexical: LexicalIndex, vectors: VectorIndex
) -> None:
    expected = [doc_id for doc_id, _ in plan.corpus.documents]
    parts = {"metadata": metadata.doc_ids(), "lexical": lexical.doc_ids, "vectors": vectors.doc_ids}
    for name, ids in parts.items():
        if ids != expected:
            raise IndexCorrupt(
                folder, f"{name} holds other documents than the corpus: {_difference(ids, expected)}"
            )
    if lexical.stored_versions() != dict(plan.corpus.documents):
        raise IndexCorrupt(folder, "the lexical index holds other versions of documents than the corpus")
    if (fault := check_vectors(vectors.vectors)) is not None:
        raise IndexCorrupt(folder, fault)


def _difference(found: list[str], expected: list[str]) -> str:
    missing, extra = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    parts = [
        f"{len(ids)} {what} (first {ids[0]!r})"
        for ids, what in ((missing, "missing"), (extra, "too many"))
        if ids
    ]
    return ", ".join(parts) or "the order differs"
