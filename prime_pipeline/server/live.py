"""The retriever over what is published now, for many threads: a new build is taken up without a restart.

Whoever began on a build ends on it: it is closed when the last of them is done. Models and caches belong to the workspace
and stay.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from prime_pipeline.errors import PrimeError, StoreUnavailable
from prime_pipeline.indexes.builds import ServedBuild
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.workspace import Workspace

TRIED_AGAIN_AFTER_S: Final = 5.0
"""A build that cannot be opened is left alone so long, unless another one is published; opening reads all of it."""
_ATTEMPTS: Final = 3
"""At opening what is published, where each time another build was published and the one before collected."""


@dataclass(slots=True)
class _Opened:
    """An open retriever, and how many use it."""

    build: ServedBuild
    retriever: Retriever
    n_users: int = 0
    is_retired: bool = False


@dataclass(frozen=True, slots=True)
class _Failure:
    build: ServedBuild
    error: PrimeError
    at_s: float


class LiveRetriever:
    """Lends the retriever over what is published now. Safe for any number of threads.

    At every use the small files that name the live build are read. One thread opens a new build; others go on with the one
    before meanwhile. If a new one cannot be opened, or the files cannot be read, the one before answers on, and
    :attr:`problem` says why.

    Args:
        workspace: What is published in its home is lent.
        clock: Seconds, for trying again.
    """

    def __init__(self, workspace: Workspace, clock: Callable[[], float] = time.monotonic) -> None:
        self._workspace = workspace
        self._clock = clock
        self._opening = threading.Lock()
        self._state = threading.Lock()
        self._current: _Opened | None = None
        self._failure: _Failure | None = None
        self._problem: PrimeError | None = None

    @property
    def problem(self) -> PrimeError | None:
        """Why what is published now is not what is lent, as far as the last use knew; None if it is."""
        return self._problem

    @contextmanager
    def borrowed(self) -> Iterator[tuple[ServedBuild, Retriever]]:
        """The build that is served now and a retriever over it, which stays open until the block ends.

        Raises:
            IndexNotFound, IndexCorrupt, IndexModelMismatch, SchemaMismatch, StoreCorrupt, StoreUnavailable: Nothing that
                can be used is published, and nothing is open.
        """
        opened = self._take()
        try:
            yield opened.build, opened.retriever
        finally:
            self._give_back(opened)

    def close(self) -> None:
        """Let go of what is open, as soon as nobody uses it. Who borrows after that opens it again."""
        with self._opening:
            self._replace(None)

    def _take(self) -> _Opened:
        try:
            self._follow()
        except PrimeError as error:
            self._problem = error
            if (opened := self._use_current()) is None:
                raise
            return opened
        # Closed by another thread in between: opened once more.
        return self._use_current() or self._take()

    def _follow(self) -> None:
        """See that what is published now is open, unless another thread is about to and something is open already."""
        if self._is_current(self._workspace.served):
            self._problem = None
            return
        if not self._opening.acquire(blocking=self._current is None):
            return
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                # Read again: this thread may have waited, and nobody is sent back to an older build.
                build = self._workspace.served
                if self._is_current(build):
                    return  # another thread was quicker
                try:
                    self._open(build)
                except PrimeError as error:
                    if self._workspace.served == build or attempt == _ATTEMPTS:
                        self._note(build, error)
                        raise
                else:
                    return
        finally:
            self._opening.release()

    def _open(self, build: ServedBuild) -> None:
        known = self._failure
        if known and known.build == build and self._clock() < known.at_s + TRIED_AGAIN_AFTER_S:
            raise known.error.with_traceback(None)
        try:
            retriever = self._workspace.retriever_of(
                self._workspace.builds(build.variant).path(build.build_id)
            )
        except OSError as error:  # collected while it was being opened, say
            folder = self._workspace.home.indexes(build.variant)
            raise StoreUnavailable(folder, error.strerror or str(error)) from error
        self._failure = self._problem = None
        self._replace(_Opened(build, retriever))

    def _note(self, build: ServedBuild, error: PrimeError) -> None:
        """Remember a failure, unless it is the one that is remembered: the time of the first try counts."""
        if self._failure is None or self._failure.error is not error:
            self._failure = _Failure(build, error, self._clock())

    def _is_current(self, build: ServedBuild) -> bool:
        with self._state:
            return self._current is not None and self._current.build == build

    def _use_current(self) -> _Opened | None:
        with self._state:
            if self._current is not None:
                self._current.n_users += 1
            return self._current

    def _replace(self, opened: _Opened | None) -> None:
        with self._state:
            before, self._current = self._current, opened
            if before is not None:
                before.is_retired = True
            is_idle = before is not None and before.n_users == 0
        if before is not None and is_idle:
            before.retriever.close()

    def _give_back(self, opened: _Opened) -> None:
        with self._state:
            opened.n_users -= 1
            is_last = opened.is_retired and opened.n_users == 0
        if is_last:
            opened.retriever.close()
