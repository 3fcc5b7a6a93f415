"""Who may ask: whoever sends the token, or, without one, programs and pages of this machine alone."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prime_pipeline.server.problems import Problem, problem
from prime_pipeline.server.replies import problem_reply

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_CHALLENGE: Final = 'Bearer, Basic realm="prime", charset="UTF-8"'


def is_loopback(host: str) -> bool:
    """Whether a host, by name or address, can be reached from this machine only."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Lets a request through to an application, or answers it with a problem; marks every answer as not to be kept.

    With a token every request has to send it: as a bearer token or, for browsers, which ask their user for it, as the
    password of basic authentication. Without one the request has to name a loopback host, so that a page from elsewhere
    cannot have its own name point to this machine and read the answers.

    Args:
        app: The application.
        token: The secret; empty for none.
    """

    def __init__(self, app: ASGIApp, token: str = "") -> None:
        self._app = app
        self._digest = _digest(token) if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":  # the application starts or ends; none of ours knows web sockets
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Headers(scope=scope))
        answer: ASGIApp = problem_reply(refusal) if refusal else self._app
        await answer(scope, receive, _with_headers(send, refusal))

    def _refusal(self, headers: Headers) -> Problem | None:
        if self._digest is not None:
            if _matches(headers.get("authorization", ""), self._digest):
                return None
            return problem(401, "send the token of this server: Authorization: Bearer TOKEN", "Unauthorized")
        if is_loopback(_host(headers.get("host", ""))):
            return None
        detail = "without a token this server answers on 127.0.0.1 and localhost only: ask it by that name, or set a token"
        return problem(421, detail, "ForeignHost")


def _with_headers(send: Send, refusal: Problem | None) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if refusal and refusal.status == 401:
                headers["WWW-Authenticate"] = _CHALLENGE
        await send(message)

    return sending


def _matches(authorization: str, digest: bytes) -> bool:
    scheme, _, credentials = authorization.partition(" ")
    given = credentials.strip()
    if scheme.lower() == "basic":
        try:
            given = base64.b64decode(given, validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
    elif scheme.lower() != "bearer":
        return False
    # Digests, so that neither content nor length of the token shows in the time that it takes.
    return hmac.compare_digest(_digest(given), digest)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _host(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""
