"""Work in a process of its own that is killed, as by ``kill -9``, after a chosen number of steps.

Steps are lines of this package and rounds of SQLite's machine, so that a process also dies in the middle of a statement or
between two system calls, and the same number always means the same place. No clock is involved.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

PACKAGE = str(Path(__file__).parent.parent / "prime_pipeline")
_SQLITE_INSTRUCTIONS = 20
"""Of SQLite's machine, which make one step."""
_OF_FILES = frozenset(
    {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "sqlite3.connect"}
)
_CONTEXT = get_context(
    "forkserver"
)  # a fork of a process without threads; a new one would load everything again
_CONTEXT.set_forkserver_preload(
    ["prime_pipeline_tests.killing", "prime_pipeline_tests.bad_day", "prime_pipeline.definitions"]
)


class Steps:
    """Counts what this process does, and kills it when it has done enough.

    Args:
        until: Steps after which the process dies; 0 for never.
        with_lines: Count lines; else what is done to files, which slows nothing down.
    """

    def __init__(self, until: int, *, with_lines: bool = True) -> None:
        self.n = 0
        self._with_lines = with_lines
        self._until = until

    def count(self) -> int:
        """One more; 0, by which SQLite goes on."""
        self.n += 1
        if self.n == self._until:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    def watch(self) -> None:
        """Count from now on."""
        connect = sqlite3.connect

        def watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*arguments, **options)
            connection.set_progress_handler(self.count, _SQLITE_INSTRUCTIONS)
            return connection

        sqlite3.connect = sqlite3.dbapi2.connect = watched  # type: ignore[assignment]
        if self._with_lines:
            sys.settrace(self._called)
        else:
            sys.addaudithook(lambda event, _: self.count() if event in _OF_FILES else 0)

    def _called(self, frame: Any, event: str, argument: object) -> Any:
        return self._line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _line(self, frame: Any, event: str, argument: object) -> Any:
        if event == "line":
            self.count()
        return self._line


def steps_of(work: Callable[..., None], *arguments: object, with_lines: bool = True) -> int:
    """How many steps some work takes that nobody kills."""
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_counted, args=(sender, work, arguments, with_lines))
    process.start()
    n: int = receiver.recv()
    process.join()
    return n


def killed_after(
    n_steps: int, work: Callable[..., None], *arguments: object, with_lines: bool = True
) -> bool:
    """Do some work in a process that is killed after so many steps; whether it was, or had ended before."""
    process = _CONTEXT.Process(target=_killed, args=(n_steps, work, arguments, with_lines))
    process.start()
    process.join()
    if process.exitcode not in (0, -signal.SIGKILL):
        raise AssertionError(f"the work failed by itself (exit code {process.exitcode})")
    return process.exitcode != 0


def at_once(n_processes: int, work: Callable[..., None], *arguments: object) -> list[int | None]:
    """Do the same work in several processes at once; their exit codes."""
    processes = [_CONTEXT.Process(target=work, args=arguments) for _ in range(n_processes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def _counted(sender: Any, work: Callable[..., None], arguments: tuple[object, ...], with_lines: bool) -> None:
    steps = Steps(0, with_lines=with_lines)
    steps.watch()
    work(*arguments)
    sys.settrace(None)
    sender.send(steps.n)


def _killed(n_steps: int, work: Callable[..., None], arguments: tuple[object, ...], with_lines: bool) -> None:
    Steps(n_steps, with_lines=with_lines).watch()
    work(*arguments)
