"""Content hashes: what two things must share to be the same thing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def fingerprint(value: Any) -> str:
    """SHA-256 (hex) of the canonical JSON of a value made of dicts, lists, strings, numbers, booleans and None.

    Keys are sorted and fields are separated by JSON itself, so no two different values share their bytes.
    """
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def text_fingerprint(*parts: str) -> str:
    """SHA-256 (hex) of several texts, kept apart by their lengths; much cheaper than JSON for long texts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode("ascii"))
        digest.update(data)
    return digest.hexdigest()


def file_fingerprint(path: Path) -> str:
    """BLAKE2b-256 (hex) of a file's bytes: detects damage, at about twice the speed of SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
