"""The connections of an HTTP client, so that another thread can cut them: a call of two minutes would hold up the end.

Closing an HTTP client from outside wakes nobody who waits for an answer; shutting the socket down does.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import weakref
from typing import Any


class Connections:
    """Knows the sockets of every request that it watches. Safe for several threads."""

    def __init__(self) -> None:
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._closed = False
        self._lock = threading.Lock()

    def watch(self, request: Any) -> None:
        """Note the socket that a request is going to open: a request hook of httpx."""
        request.extensions["trace"] = self._traced

    def close(self) -> None:
        """Cut all connections, and those that are still to be opened."""
        with self._lock:
            self._closed = True
            sockets = [*self._sockets]
        for open_socket in sockets:
            _cut(open_socket)

    def _traced(self, event: str, details: dict[str, Any]) -> None:
        # Names and details of events as httpcore documents them under "trace".
        if event not in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            return
        opened = details["return_value"].get_extra_info("socket")
        with self._lock:
            self._sockets.add(opened)
            closed = self._closed
        if closed:
            _cut(opened)


def _cut(open_socket: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        open_socket.shutdown(socket.SHUT_RDWR)
