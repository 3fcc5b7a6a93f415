"""A chat endpoint on loopback that plays whatever a test needs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

Step = dict[str, Any] | tuple[int, dict[str, Any], dict[str, str]]
"""The body of a successful answer, or status, body and headers of another."""


def answer(text: Any = "fine", finish: Any = "stop", usage: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": usage
        if usage is not None
        else {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def fault(
    status: int, message: str = "no", code: str | None = None, **headers: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    return (
        status,
        {"error": {"message": message, "code": code}},
        {k.replace("_", "-"): v for k, v in headers.items()},
    )


class Endpoint:
    """Plays a script of answers and then repeats the last one, or answers each request by a function."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.requests: list[dict[str, Any]] = []
        self.script: list[Callable[[], Response]] = []
        self.responder: Callable[[dict[str, Any]], Step] | None = None
        self._lock = threading.Lock()
        server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(self._handle)

    @property
    def url(self) -> str:
        return self.server.url_for("/v1")

    @property
    def users(self) -> list[str]:
        """The user messages of all requests, in the order of arrival."""
        return [str(request["messages"][1]["content"]) for request in self.requests]

    def plays(self, *steps: Step) -> None:
        for step in steps:
            self.script.append(lambda step=step: _response(step))  # type: ignore[misc]

    def responds(self, responder: Callable[[dict[str, Any]], Step]) -> None:
        self.responder = responder

    def _handle(self, request: Request) -> Response:
        body = json.loads(request.get_data())
        with self._lock:
            self.requests.append(body)
            n_requests = len(self.requests)
        if self.responder:
            return _response(self.responder(body))
        return self.script[min(n_requests, len(self.script)) - 1]()


def _response(step: Step) -> Response:
    status, body, headers = step if isinstance(step, tuple) else (200, step, {})
    return Response(json.dumps(body), status, headers, content_type="application/json")
