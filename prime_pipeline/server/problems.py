"""Errors as problem documents (RFC 9457): what, which, and what to do about it, as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from pydantic import ValidationError

from prime_pipeline.errors import InvalidRequest, PrimeError, ServerBusy, UnknownDocument

MEDIA_TYPE: Final = "application/problem+json"

_MAX_DETAIL_CHARACTERS: Final = 1_000
_STATUS: Final[dict[type[PrimeError], int]] = {InvalidRequest: 400, UnknownDocument: 404, ServerBusy: 503}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document.

    Attributes:
        type: Always ``about:blank``: the status says which kind it is.
        title: The status in words.
        status: The HTTP status.
        detail: The culprit and the remedy.
        error: The name of the error, as commands print it.
    """

    type: str
    title: str
    status: int
    detail: str
    error: str


def problem(status: int, detail: str, error: str) -> Problem:
    """A problem of an HTTP status."""
    return Problem("about:blank", HTTPStatus(status).phrase, status, detail, error)


def problem_of(error: Exception) -> Problem:
    """What a caller is told of an error: all of one that is meant to be read, nothing of a fault of ours."""
    if isinstance(error, PrimeError):
        status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 503)
        return problem(status, str(error), type(error).__name__)
    if isinstance(error, ValidationError):
        return problem(400, _faults(error), InvalidRequest.__name__)
    return problem(500, "this is a fault of the server: its log says more", "InternalError")


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    told = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
    return told[:_MAX_DETAIL_CHARACTERS]  # names of unknown parameters are in it
