"""The way to the endpoint: one HTTP request, one body, within a time and a size; every failure is classified.

The only module that knows the HTTP library and sends the key. It asks once and reads no answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from prime_pipeline.llm.chat import ChatRequest
from prime_pipeline.llm.connections import Connections, Sockets
from prime_pipeline.llm.failures import Failure, Transient, Unusable, classify, classify_error, complaint

if TYPE_CHECKING:
    from ssl import SSLContext

    from openai import OpenAI

_CONNECT_TIMEOUT_S = 10.0
_MOST_ERROR_BYTES = 65_536
_KEYLESS = "none"  # local servers ask for no key, and the package refuses to send none
_HEADERS = {"Accept-Encoding": "identity"}  # or a few bytes could unfold to gigabytes


class Failed(Exception):
    """A request came to nothing."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class Transport:
    """Posts to one OpenAI-compatible endpoint. Follows no redirect: texts and key go where they were meant to, or nowhere.

    Safe for several threads, each of which keeps a connection of its own.

    Args:
        base_url: For example ``http://127.0.0.1:8080/v1``.
        api_key: Empty for endpoints that ask for none.
        timeout_s: For one request, from connecting to the last byte.
    """

    def __init__(self, base_url: str, api_key: str, timeout_s: float) -> None:
        self._base_url = base_url
        self._key = api_key
        self._timeout_s = timeout_s
        self._connections = Connections()
        self._own = threading.local()
        self._lock = threading.Lock()
        self._certificates: SSLContext | None = None

    def post(self, request: ChatRequest, most_bytes: int) -> bytes:
        """The body of the answer; of one that is larger than ``most_bytes``, the beginning and more than these.

        Raises:
            Failed: There was none, or one with an error status.
        """
        client = self._client()
        return self._body(
            lambda: client.chat.completions.with_streaming_response.create(
                model=request.model,
                messages=[
                    {"role": "system", "content": request.system},
                    {"role": "user", "content": request.user},
                ],
                temperature=request.temperature,
                max_tokens=request.max_tokens,
            ),
            most_bytes,
        )

    def models(self, most_bytes: int) -> bytes:
        """The list of models, likewise; nobody charges for it.

        Raises:
            Failed: There was none.
        """
        client = self._client()
        return self._body(client.models.with_streaming_response.list, most_bytes)

    def _body(self, send: Callable[[], Any], most_bytes: int) -> bytes:
        with self._connections.limited(self._timeout_s) as sockets:
            try:
                with send() as response:
                    return _beginning(response.iter_bytes(), most_bytes)
            except Exception as error:
                failure = self._failure(error, sockets)
                if failure is None:
                    raise
        raise Failed(failure)

    def close(self) -> None:
        """Cut off all requests, from any thread, and those to come."""
        self._connections.close()

    def _failure(self, error: Exception, sockets: Sockets) -> Failure | None:
        # Of what the hook raises, some versions of the package pass on the exception, others make it a cause.
        status = next((e for e in (error, error.__cause__) if isinstance(e, _ErrorStatus)), None)
        if status:
            return status.failure
        failure = classify_error(error, self._timeout_s)
        if sockets.is_cut and not (isinstance(failure, Transient) and failure.is_unreachable):
            return Transient(f"no answer within {self._timeout_s:.0f} s")
        return failure

    def _client(self) -> OpenAI:
        """This thread's client."""
        if not hasattr(self._own, "client"):
            self._own.client = self._opened()
        client: OpenAI = self._own.client
        return client

    def _opened(self) -> OpenAI:
        import openai

        if not (self._key.isascii() and self._key.isprintable()):
            raise Failed(Unusable("the key holds characters that no key can hold: copy it anew"))
        hooks: dict[str, list[Callable[..., None]]] = {
            "request": [self._connections.watch],
            "response": [_raise_for_status],
        }
        try:
            return openai.OpenAI(
                base_url=self._base_url,
                api_key=self._key or _KEYLESS,
                max_retries=0,
                timeout=openai.Timeout(self._timeout_s, connect=min(self._timeout_s, _CONNECT_TIMEOUT_S)),
                default_headers=_HEADERS,
                http_client=openai.DefaultHttpxClient(
                    event_hooks=hooks, follow_redirects=False, verify=self._trusted()
                ),
            )
        except Exception as error:  # noqa: BLE001 - a bad URL, proxy or certificate file: each has its own class
            reason = f"no HTTP client can be made ({error}): check base_url, and proxy and SSL variables"
            raise Failed(Unusable(reason)) from None

    def _trusted(self) -> SSLContext:
        """The certificates for all threads: reading them takes ten times as long as the rest of a client."""
        import httpx

        with self._lock:
            if self._certificates is None:
                self._certificates = httpx.create_ssl_context()
            return self._certificates


class _ErrorStatus(Failed):
    """The endpoint answered, with an error status or a redirect."""


def _raise_for_status(response: Any) -> None:
    """Take an error out of the package's hands, which would read a body of any size: a response hook of httpx."""
    if response.status_code >= 300:
        body = _beginning(response.iter_bytes(), _MOST_ERROR_BYTES)
        codes, message = complaint(body)
        raise _ErrorStatus(classify(response.status_code, message, dict(response.headers), codes=codes))


def _beginning(chunks: Iterator[bytes], n_bytes: int) -> bytes:
    """All chunks, or as many as it takes to be longer than some bytes."""
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > n_bytes:
            break
    return bytes(body)
