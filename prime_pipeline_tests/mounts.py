"""Real file systems that are full or read-only: file modes prove nothing where tests run as root."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[Path]:
    """A disk of a size, in memory, mounted on a folder."""
    folder.mkdir()
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs"):
        yield folder


@contextmanager
def read_only(folder: Path, at: Path) -> Iterator[Path]:
    """A folder once more, under a path where nobody can write."""
    at.mkdir()
    with _mounted(at, "--bind", str(folder)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(at)], check=True, capture_output=True)
        yield at


@contextmanager
def _mounted(folder: Path, *arguments: str) -> Iterator[None]:
    if shutil.which("mount") is None:
        pytest.xfail("there is no mount here")
    result = subprocess.run(["mount", *arguments, str(folder)], check=False, capture_output=True, text=True)
    if (
        result.returncode != 0
    ):  # no fault of ours, and not ours to give: told, also where skipping counts as failing
        pytest.xfail(f"this user may not mount: {result.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)
