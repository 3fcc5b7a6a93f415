"""Where a corpus lies, and in words why a path cannot be read. Opens no document."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from prime_pipeline.corpus.decoding import printable
from prime_pipeline.errors import CorpusError, CorpusNotFound

_CAUSES: Final[Mapping[int, str]] = {
    errno.ENOENT: "it has vanished, or is a link to nothing: remove it or restore what it names",
    errno.ELOOP: "it is a link in a loop of links: remove it",
    errno.EACCES: "permission denied: check its permissions",
    errno.EPERM: "permission denied: check its permissions",
    errno.ENAMETOOLONG: "its name is too long: shorten it",
}


def unreadable(error: OSError) -> str:
    """Why a path cannot be read and what to do, without the path."""
    cause = _CAUSES.get(
        error.errno or 0, f"{error.strerror or error}: check the disk or network that holds it"
    )
    return f"cannot be read, {cause}"


def corpus_path(location: str) -> Path:
    """The folder or regular file at a location, ``~`` expanded; a folder can be listed.

    Raises:
        CorpusNotFound: There is nothing at the location.
        CorpusError: It cannot be reached, is a link to nothing, or is a pipe or device.
    """
    shown = printable(location)
    try:
        path = Path(location).expanduser()
        mode = _readable_mode(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        if path.is_symlink():
            raise CorpusError(f"corpus {shown} {unreadable(error)}") from error
        raise CorpusNotFound(shown) from None
    except OSError as error:
        raise CorpusError(f"corpus {shown} {unreadable(error)}") from error
    except (ValueError, RuntimeError) as error:  # a NUL character; ~ without a home
        raise CorpusError(f"corpus {shown!r} is no path ({error}): check its spelling") from error
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise CorpusError(
            f"corpus {shown} is no folder and no regular file: a pipe or a device cannot be read"
        )
    return path


def _readable_mode(path: Path) -> int:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        os.scandir(f"{path}/.").close()  # raises now what would look like an empty folder later
    return mode
