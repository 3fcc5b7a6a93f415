"""Releases: sets of files in object storage, each published at once and fetched with its hashes.

In a folder that any driver of fsspec reaches (S3, Google Cloud Storage, Azure, SFTP, a mounted disk)::

    objects/<sha256>/<name>   a file; never changed once a release names it
    releases/<id>.json        which files a release consists of, and where each lies in a home
    CURRENT                   the releases that are kept, the last one live

A file is whole before a release names it, and a release is whole before CURRENT does. So a reader finds the release before or
the new one, never a mixture, and an upload that was cut off has changed nothing. What an earlier release holds is not sent again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from prime_pipeline.errors import (
    PasswordInAddress,
    PrimeError,
    ReleaseDamaged,
    RemoteUnusable,
    SchemaMismatch,
)
from prime_pipeline.progress import Progress, silent
from prime_pipeline.storage.atomic import atomic_path
from prime_pipeline.storage.fingerprint import fingerprint

SCHEMA_VERSION = 1

_CHUNK = 1 << 20
_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")  # of a path: nothing that leads elsewhere, or is hidden
_HASH = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class ReleasedFile:
    """A file of a release.

    Attributes:
        path: Where it lies in a home, with slashes.
        sha256: Of its bytes, in hex.
        size: In bytes.
    """

    path: str
    sha256: str
    size: int

    @property
    def object(self) -> str:
        """Where it lies in object storage."""
        return f"objects/{self.sha256}/{PurePosixPath(self.path).name}"


@dataclass(frozen=True, slots=True)
class Release:
    """A set of files that belong together.

    Attributes:
        release_id: Sixteen hex digits that are equal exactly for equal releases.
        about: What a reader must know before it uses them, by name.
        files: In order of path.
    """

    release_id: str
    about: Mapping[str, str]
    files: tuple[ReleasedFile, ...]


@dataclass(frozen=True, slots=True)
class Upload:
    """What publishing came to.

    Attributes:
        release: What is live now.
        changed: Whether it is another one than before.
        n_files: Files that were sent.
        n_bytes: Their bytes.
    """

    release: Release
    changed: bool
    n_files: int = 0
    n_bytes: int = 0


def holds_password(url: str) -> bool:
    """Whether an address names a password before its host, which every message and event would show."""
    return ":" in url.partition("://")[2].rpartition("@")[0]


class ReleaseStore:
    """Releases in a folder of object storage. One home publishes there; any number of readers fetch.

    Args:
        url: As fsspec takes it, such as ``s3://bucket/folder`` or ``file:///mnt/share``.

    Raises:
        PasswordInAddress: See :func:`holds_password`.
        RemoteUnusable: There is no driver for it, or it cannot be reached; methods may raise it too.
        ReleaseDamaged, SchemaMismatch: What lies there was not written like this; methods may raise these too.
    """

    def __init__(self, url: str) -> None:
        import fsspec  # takes its time, and most homes publish nowhere

        if holds_password(url):
            raise PasswordInAddress
        self.url = url.rstrip("/")
        with self._errors():
            self._files, root = fsspec.core.url_to_fs(self.url)
            self._root = root.rstrip("/")

    def live(self) -> Release | None:
        """The release that is live, if there is one."""
        with self._errors():
            history = self._history()
            return self._release(history[-1]) if history else None

    def publish(
        self, files: Mapping[str, Path], about: Mapping[str, str], keep: int, progress: Progress = silent
    ) -> Upload:
        """Send what is not there yet, make it the live release, and remove what no kept release names.

        Args:
            files: Local files by their path in a home. Each may be replaced meanwhile, by rename.
            about: See :class:`Release`.
            keep: Earlier releases that stay, for whoever is fetching one.
            progress: Told of files.
        """
        with self._errors():
            before = [self._release(release_id) for release_id in self._history()]
            known = {file.object for release in before for file in release.files}
            sent: list[ReleasedFile] = []
            found = []
            for position, (path, local) in enumerate(sorted(files.items()), start=1):
                file, is_new = self._send(path, local, known)
                found.append(file)
                sent += [file] if is_new else []
                progress("upload", position, len(files))
            release = _release(about, found)
            if before and before[-1] == release:
                return Upload(release, changed=False)
            stored = {"about": release.about, "files": [asdict(file) for file in release.files]}
            self._write(_manifest(release.release_id), stored)
            history = [*(earlier for earlier in before if earlier != release), release]
            kept = history[-(keep + 1) :]
            self._write("CURRENT", {"history": [one.release_id for one in kept]})
            self._remove([earlier for earlier in before if earlier not in kept], kept)
        return Upload(release, True, len(sent), sum(file.size for file in sent))

    def drop_earlier(self) -> int:
        """Remove all releases but the live one, with what only they hold; returns how many."""
        with self._errors():
            releases = [self._release(release_id) for release_id in self._history()]
            if len(releases) > 1:
                self._write("CURRENT", {"history": [releases[-1].release_id]})
                self._remove(releases[:-1], releases[-1:])
            return max(len(releases) - 1, 0)

    def fetch(self, file: ReleasedFile, target: Path) -> None:
        """Fetch a file; ``target`` is replaced only by the very bytes that were released.

        Raises:
            ReleaseDamaged: They are not there any more.
            StoreUnavailable: ``target`` cannot be written.
        """
        digest = hashlib.sha256()
        with atomic_path(target) as temporary, temporary.open("wb") as out:
            for chunk in self._chunks(file.object):
                digest.update(chunk)
                out.write(chunk)
            if digest.hexdigest() != file.sha256:
                raise ReleaseDamaged(self.url, f"{file.object} is not the file that was released")

    def _chunks(self, name: str) -> Iterator[bytes]:
        with self._errors(), self._files.open(self._at(name), "rb") as source:
            while chunk := source.read(_CHUNK):
                yield chunk

    def _send(self, path: str, local: Path, known: set[str]) -> tuple[ReleasedFile, bool]:
        # One open file is read twice, so that what is sent is what was hashed.
        with local.open("rb") as source:
            sha256 = hashlib.file_digest(source, "sha256").hexdigest()
            file = ReleasedFile(path, sha256, source.tell())
            if file.object in known:
                return file, False
            source.seek(0)
            self._make_folder(file.object)
            with self._files.open(self._at(file.object), "wb") as out:
                shutil.copyfileobj(source, out, _CHUNK)
        return file, True

    def _history(self) -> list[str]:
        try:
            history = self._read("CURRENT")["history"]
        except FileNotFoundError:
            return []
        if not all(isinstance(item, str) and _ID.fullmatch(item) for item in history):
            raise ReleaseDamaged(self.url, "CURRENT does not name releases")
        return list(history)

    def _release(self, release_id: str) -> Release:
        try:
            stored = self._read(_manifest(release_id))
        except FileNotFoundError:
            raise ReleaseDamaged(self.url, f"release {release_id} is gone") from None
        release = _release(stored["about"], [ReleasedFile(**file) for file in stored["files"]])
        if release.release_id != release_id or not all(_is_safe(file) for file in release.files):
            raise ReleaseDamaged(self.url, f"release {release_id} is not what was released")
        return release

    def _read(self, name: str) -> dict[str, Any]:
        try:
            stored: dict[str, Any] = json.loads(self._files.cat_file(self._at(name)))
            version = stored["schema_version"]
        except (ValueError, KeyError, TypeError) as error:
            raise ReleaseDamaged(self.url, f"{name} cannot be read: {error}") from error
        if version != SCHEMA_VERSION:
            raise SchemaMismatch(f"{self.url}/{name}", version, SCHEMA_VERSION)
        return stored

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        """Replace a small file. A file system writes it piece by piece, so it gets its name last, by a rename."""
        text = json.dumps({"schema_version": SCHEMA_VERSION, **values}, indent=2) + "\n"
        temporary = f"{name}.{uuid4().hex}.tmp"
        self._make_folder(name)
        self._files.pipe_file(self._at(temporary), text.encode("ascii"))
        self._files.mv(self._at(temporary), self._at(name))

    def _remove(self, dropped: list[Release], kept: list[Release]) -> None:
        needed = {file.object for release in kept for file in release.files}
        gone = {file.object for release in dropped for file in release.files} - needed
        for name in [*(_manifest(release.release_id) for release in dropped), *sorted(gone)]:
            self._files.rm_file(self._at(name))

    def _make_folder(self, name: str) -> None:
        if not self._files.async_impl:  # those are object stores, which have none
            self._files.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Tell whatever a driver raises as what it is: each has errors of its own."""
        try:
            yield
        except PrimeError:
            raise
        except (KeyError, TypeError, AttributeError) as error:  # of a manifest: drivers raise others
            raise ReleaseDamaged(self.url, f"{type(error).__name__}: {error}") from error
        except Exception as error:
            raise RemoteUnusable(self.url, error) from error


def _release(about: Mapping[str, str], files: list[ReleasedFile]) -> Release:
    release_id = fingerprint({"about": dict(about), "files": [asdict(file) for file in files]})[:16]
    return Release(release_id, dict(about), tuple(files))


def _manifest(release_id: str) -> str:
    return f"releases/{release_id}.json"


def _is_safe(file: ReleasedFile) -> bool:
    is_below = all(_PART.fullmatch(part) for part in file.path.split("/"))
    return is_below and bool(_HASH.fullmatch(file.sha256)) and isinstance(file.size, int)
