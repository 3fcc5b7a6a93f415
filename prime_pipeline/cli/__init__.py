"""The command line.

Every command prints for people, and with ``--json`` one JSON object for programs. Exit codes: 0 all well, 1 failed,
2 wrong usage, 3 done in part (some files failed, or a check did not pass), 4 not published because quality fell, 130 interrupted.

Nothing heavy is imported before a command needs it, so that ``prime --help`` stays fast.
"""

from __future__ import annotations

import gc
import io
import sys
from typing import Any, Final

import typer

# Each adds its commands to the app, in the order of the help.
# isort: off
from prime_pipeline.cli import operating  # noqa: F401
from prime_pipeline.cli import forgetting  # noqa: F401
from prime_pipeline.cli import health  # noqa: F401
from prime_pipeline.cli import explaining  # noqa: F401
from prime_pipeline.cli import serving  # noqa: F401
from prime_pipeline.cli import restructuring  # noqa: F401
from prime_pipeline.cli import measuring  # noqa: F401
from prime_pipeline.cli import reproducing  # noqa: F401

# isort: on
from prime_pipeline.cli.doorway import EXIT_INTERRUPTED, app, print_json

__all__ = ["app", "main"]

# Typer carries its own click or uses the one installed, by version; either way this is click's UsageError.
_WRONG_USAGE: Any = typer.BadParameter.__mro__[1]


_COLLECTED_EVERY: Final = (100_000, 20, 20)
"""Of Python's garbage collection: a refresh makes millions of small records that live as long as it does, and looking through
them again and again took a seventh of its time."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(*_COLLECTED_EVERY)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character must not end the command
    if "--json" not in sys.argv:
        app()
        return
    try:
        sys.exit(app(standalone_mode=False))
    except _WRONG_USAGE as error:
        print_json({"error": type(error).__name__, "message": error.format_message()})
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(EXIT_INTERRUPTED)
