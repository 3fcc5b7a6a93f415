"""Whether a corpus may have changed, without reading it."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

from prime_pipeline.corpus.bright import BRIGHT, bright_location
from prime_pipeline.corpus.location import corpus_path
from prime_pipeline.corpus.source import INSTALLED
from prime_pipeline.storage.fingerprint import fingerprint


def corpus_state(location: str) -> str:
    """A hash over path, size and time of change of every file of a corpus.

    Cheap enough to be asked every minute. It may change although no document did; a scan then finds nothing to do.

    Raises:
        CorpusNotFound, CorpusError: See :func:`~prime_pipeline.corpus.location.corpus_path`.
    """
    if location == INSTALLED:
        installed = {
            (dist.metadata["Name"] or "", dist.version) for dist in importlib.metadata.distributions()
        }
        return fingerprint(sorted(installed))
    root = corpus_path(bright_location(location).folder if location.startswith(BRIGHT) else location)
    paths = [root] if root.is_file() else _files(root)
    return fingerprint(sorted([str(path), *_size_and_time(path)] for path in paths))


def _files(root: Path) -> list[Path]:
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(folder, name) for name in names if not name.startswith(".")]
    return found


def _size_and_time(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:  # gone since it was listed, or a dangling link
        return (-1, -1)
    return (status.st_size, status.st_mtime_ns)
