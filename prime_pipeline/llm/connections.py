"""The connections of an HTTP client, so that another thread can cut them: at the end of a run, or of an attempt's time.

Closing an HTTP client from outside wakes nobody who waits for an answer; shutting the socket down does. And the
time-outs of HTTP clients bound the wait for the next byte, not for the last.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class Sockets:
    """Sockets that are cut together. Safe for several threads."""

    def __init__(self, opened: Iterable[socket.socket] = ()) -> None:
        self._sockets = weakref.WeakSet(opened)
        self._lock = threading.Lock()
        self._is_cut = False

    @property
    def is_cut(self) -> bool:
        """Whether they were cut."""
        return self._is_cut

    def add(self, opened: socket.socket) -> None:
        """Add one, which is cut at once if the others were."""
        with self._lock:
            self._sockets.add(opened)
            is_cut = self._is_cut
        if is_cut:
            _cut(opened)

    def cut(self) -> None:
        """Cut all, and those that are still to be opened."""
        with self._lock:
            self._is_cut = True
            sockets = [*self._sockets]
        for opened in sockets:
            _cut(opened)


class Connections:
    """Knows the sockets that each thread has opened. Each thread must have an HTTP client of its own.

    Then a kept connection serves requests of the thread that opened it and no other's, which may be cut alone.
    Safe for several threads.
    """

    def __init__(self) -> None:
        self._all = Sockets()
        self._own = threading.local()

    def watch(self, request: Any) -> None:
        """Note the socket that a request opens, if it finds none that is kept: a request hook of httpx."""
        kept, limited = self._kept(), self._own.limited

        def traced(event: str, details: dict[str, Any]) -> None:
            # Names and details of events as httpcore documents them under "trace".
            if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
                opened = details["return_value"].get_extra_info("socket")
                kept.add(opened)
                limited.add(opened)
                self._all.add(opened)

        request.extensions["trace"] = traced

    @contextmanager
    def limited(self, seconds: float) -> Iterator[Sockets]:
        """Cut, after so many seconds, what this thread has opened or opens within the block."""
        self._own.limited = sockets = Sockets(self._kept())
        timer = threading.Timer(seconds, sockets.cut)
        timer.daemon = True
        timer.start()
        try:
            yield sockets
        finally:
            timer.cancel()

    def close(self) -> None:
        """Cut all connections, and those that are still to be opened."""
        self._all.cut()

    def _kept(self) -> weakref.WeakSet[socket.socket]:
        """What this thread has opened and nobody has closed yet."""
        if not hasattr(self._own, "kept"):
            self._own.kept = weakref.WeakSet()
        kept: weakref.WeakSet[socket.socket] = self._own.kept
        return kept


def _cut(opened: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        opened.shutdown(socket.SHUT_RDWR)
