"""Writing so that a reader, or the next start after a crash, sees the old file or the new one, never a part."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prime_pipeline.errors import StoreUnavailable

GARBAGE_AGE_S = 3600.0
"""A stray file is garbage when it is this old: nothing that is being written stays unnamed for so long."""
TEMPORARY_NAME = re.compile(r"\.(?P<target>.+)\.[0-9a-f]{32}\.tmp")
"""The names of temporary files of :func:`atomic_path`; nothing else that ends so is ours to remove."""


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Hand out a temporary path beside ``target`` and move it there when the block ends well.

    The file is flushed to disk before it gets its name. If the block raises, ``target`` stays as it was and the
    temporary file is removed. A process that is killed leaves one whose name begins with a dot and ends in ``.tmp``.

    Raises:
        StoreUnavailable: The disk is full, the folder cannot be written, or the block raised another OSError.
    """
    # Not by tempfile, whose files only their owner can read: other users may be meant to read what is published.
    temporary = target.parent / f".{target.name[:40]}.{uuid.uuid4().hex}.tmp"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch(exist_ok=False)
        yield temporary
        sync_file(temporary)
        temporary.replace(target)
        sync_directory(target.parent)
    except OSError as error:
        raise StoreUnavailable(target, error.strerror or str(error)) from error
    finally:
        with suppress(OSError):  # a name that could not be made cannot be removed either
            temporary.unlink()


def remove_leftovers(folder: Path, older_than_s: float) -> int:
    """Remove temporary files that killed processes left in a folder (not below it); returns how many.

    Younger ones stay: their process may be at work. So does every file whose name is not of our own form.
    """
    stale = stale_leftovers(folder, older_than_s)
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


def stale_leftovers(folder: Path, older_than_s: float) -> list[Path]:
    """The files that :func:`remove_leftovers` would remove."""
    ours = [path for path in folder.glob(".*.tmp") if TEMPORARY_NAME.fullmatch(path.name)]
    return [path for path in ours if is_older(path, older_than_s)]


def is_older(path: Path, age_s: float) -> bool:
    """Whether a path is a file that was last written so many seconds ago; one that just went away is not."""
    try:
        return path.is_file() and path.stat().st_mtime < time.time() - age_s
    except FileNotFoundError:
        return False


def write_bytes(target: Path, data: bytes) -> None:
    """Replace ``target`` by ``data`` atomically and durably."""
    with atomic_path(target) as temporary:
        temporary.write_bytes(data)


def write_text(target: Path, text: str) -> None:
    """Replace ``target`` by ``text`` (UTF-8) atomically and durably.

    Raises:
        UnicodeEncodeError: The text holds half of a surrogate pair, so nobody could read the file again.
    """
    write_bytes(target, text.encode("utf-8"))


def sync_file(path: Path) -> None:
    """Flush a file's data to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Flush a directory, so that a rename in it survives a power cut."""
    sync_file(path)
