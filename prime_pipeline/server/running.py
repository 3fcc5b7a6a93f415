"""An application on a port of this machine, until somebody ends it."""

from __future__ import annotations

import socket
from contextlib import suppress

from starlette.types import ASGIApp

from prime_pipeline.errors import PortTaken, TokenNeeded
from prime_pipeline.server.guard import is_loopback

_GRACE_S = 10
"""For requests under way when the server is ended."""


def listening_socket(host: str, port: int, token: str) -> socket.socket:
    """A socket that is bound; port 0 takes a free one.

    Raises:
        TokenNeeded: Others could reach it, and there is no token.
        PortTaken: It cannot be bound.
    """
    if not (token or is_loopback(host)):
        raise TokenNeeded(host)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise PortTaken(host, port, error) from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()
    except OSError as error:
        bound.close()
        raise PortTaken(host, port, error) from error
    return bound


def url_of(bound: socket.socket) -> str:
    """The address of a socket for people."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(app: ASGIApp, bound: socket.socket) -> None:
    """Serve until Ctrl-C, which is the way to end it; requests under way are answered first.

    Requests are not logged, since questions may be nobody's business; faults are, on stderr.
    """
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_GRACE_S,
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[bound])
