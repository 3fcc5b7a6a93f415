"""The HTTP application: routes, limits, and every error as a problem document."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from prime_pipeline.errors import InvalidRequest, PrimeError, ServerBusy
from prime_pipeline.server.answers import QueryService, Question
from prime_pipeline.server.guard import Guard
from prime_pipeline.server.openapi import openapi_document
from prime_pipeline.server.page import page_policy, query_page
from prime_pipeline.server.problems import problem, problem_of
from prime_pipeline.server.replies import json_reply, problem_reply

MAX_WAITING: Final = 256
"""Requests beyond those at work that may wait; more are told to come again."""
_SEVERAL: Final = "tag"
"""The parameter that may be given several times."""
_Answer = TypeVar("_Answer")


def application(service: QueryService, token: str = "", n_threads: int | None = None) -> ASGIApp:
    """The application over a service.

    Args:
        service: Asked in threads; closed by who made it.
        token: What callers must send; empty for none, see :class:`~prime_pipeline.server.guard.Guard`.
        n_threads: Requests at work at once; by default as many as there are processors, and four at least.
    """
    endpoints = _Endpoints(service, n_threads or max(4, os.cpu_count() or 1))
    routes: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/": endpoints.page,
        "/search": endpoints.search,
        "/explain": endpoints.explain,
        "/documents/{doc_id:path}": endpoints.document,
        "/health": endpoints.health,
        "/openapi.json": endpoints.openapi,
    }
    inner = Starlette(
        routes=[Route(path, endpoint) for path, endpoint in routes.items()],
        exception_handlers={HTTPException: _http_problem, **dict.fromkeys(_TOLD, _problem)},
    )
    return Guard(inner, token)


class _Endpoints:
    """What stands behind the routes; errors are made problem documents by the application."""

    def __init__(self, service: QueryService, n_threads: int) -> None:
        self._service = service
        self._limiter = anyio.CapacityLimiter(n_threads)

    async def page(self, request: Request) -> Response:
        page, status = await self._in_thread(lambda: self._page(request.query_params))
        return HTMLResponse(page, status, {"Content-Security-Policy": page_policy()})

    def _page(self, parameters: QueryParams) -> tuple[str, int]:
        if not parameters:
            return query_page({}), 200
        try:
            return query_page(parameters, self._service.explain(asked(parameters))), 200
        except (PrimeError, ValidationError) as error:
            problem = problem_of(error)
            return query_page(parameters, problem=problem), problem.status

    async def search(self, request: Request) -> Response:
        question = asked(request.query_params)
        return json_reply(await self._in_thread(lambda: self._service.search(question)))

    async def explain(self, request: Request) -> Response:
        question = asked(request.query_params)
        return json_reply(await self._in_thread(lambda: self._service.explain(question)))

    async def document(self, request: Request) -> Response:
        doc_id = request.path_params["doc_id"]
        return json_reply(await self._in_thread(lambda: self._service.document(doc_id)))

    async def health(self, request: Request) -> Response:
        del request
        return json_reply(await self._in_thread(self._service.health))

    async def openapi(self, request: Request) -> Response:
        del request
        return JSONResponse(openapi_document())

    async def _in_thread(self, ask: Callable[[], _Answer]) -> _Answer:
        if (n_waiting := self._limiter.statistics().tasks_waiting) >= MAX_WAITING:
            raise ServerBusy(n_waiting)
        return await anyio.to_thread.run_sync(ask, limiter=self._limiter)


def asked(parameters: QueryParams) -> Question:
    """The question that the parameters of an address ask; empty ones, as a form sends them, count as not given.

    Raises:
        InvalidRequest: One that may be given once is given several times.
        ValidationError: One is missing, unknown or out of range.
    """
    fields: dict[str, str | list[str]] = {}
    for name in parameters:
        values = [value for value in parameters.getlist(name) if value or name == "query"]
        if name == _SEVERAL:
            fields[name] = values
        elif len(values) > 1:
            raise InvalidRequest(f"{name[:100]} is given {len(values)} times: give it once")
        elif values:
            fields[name] = values[0]
    return Question.model_validate(fields)


def _problem(request: Request, error: Exception) -> Response:
    del request
    return problem_reply(problem_of(error))


def _http_problem(request: Request, error: Exception) -> Response:
    del request
    status = error.status_code if isinstance(error, HTTPException) else 500
    remedy = {404: "there is nothing at this address", 405: "this address answers GET only"}
    detail = f"{remedy.get(status, 'the request is not understood')}: /openapi.json tells what can be asked"
    return problem_reply(problem(status, detail, "NoSuchAddress"))


_TOLD: Final[tuple[type[Exception], ...]] = (PrimeError, ValidationError, Exception)
