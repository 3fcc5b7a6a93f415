"""Answers as HTTP responses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

from prime_pipeline.server.problems import MEDIA_TYPE, Problem

adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
"""What writes answers of a type as JSON, and describes them."""


def json_reply(answer: Any, status: int = 200, media_type: str = "application/json") -> Response:
    """A record as JSON, field by field."""
    return Response(adapter(type(answer)).dump_json(answer), status, media_type=media_type)


def problem_reply(found: Problem) -> Response:
    """A problem document."""
    return json_reply(found, found.status, MEDIA_TYPE)
