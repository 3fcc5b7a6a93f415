"""Content hashes: what two things must share to be the same thing."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_SETTLED_NS: Final = 100_000_000
"""A file that was written so shortly before it was read may be written again without another time of change."""


def fingerprint(value: Any) -> str:
    """SHA-256 (hex) of the canonical JSON of a value made of dicts, lists, strings, numbers, booleans and None.

    Keys are sorted and fields are separated by JSON itself, so no two different values share their bytes.
    """
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def text_fingerprint(*parts: str) -> str:
    """SHA-256 (hex) of several texts, kept apart by their lengths; much cheaper than JSON for long texts."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return hashlib.sha256(b"".join(b"%d:%b" % (len(data), data) for data in encoded)).hexdigest()


def file_fingerprint(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes; where processors have instructions for it nothing that detects damage is faster."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FileFingerprints:
    """Fingerprints of files, computed once while a file stays as it is.

    A file counts as unchanged while inode, size and times of change and modification are: for one process that reads gigabytes
    several times within a minute. Who has to notice damage of any age starts with a new object.

    Args:
        read: Gives the fingerprint of a file.
    """

    def __init__(self, read: Callable[[Path], str] = file_fingerprint) -> None:
        self._read = read
        self._known: dict[tuple[int, ...], str] = {}

    def of(self, path: Path) -> str:
        """The fingerprint of a file, wherever it was moved to meanwhile."""
        status = path.stat()
        mark = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if mark in self._known:
            return self._known[mark]
        started_ns = time.time_ns()
        found = self._read(path)
        if started_ns - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS:
            self._known[mark] = found
        return found
