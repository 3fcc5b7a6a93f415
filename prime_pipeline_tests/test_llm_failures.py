"""What a status and a message mean."""

from __future__ import annotations

import pytest

from prime_pipeline.llm.failures import Refused, Transient, Unusable, classify, retry_after_s


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        (" 1.5 ", 1.5),
        ("-3", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 40.0),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
    ],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after_s({"Retry-After": value}, now_s=60.0) == seconds
    assert retry_after_s({"retry-after": value}, now_s=60.0) == seconds


def test_no_retry_after() -> None:
    assert retry_after_s({}) is None


def test_throttling_is_told_from_a_spent_quota() -> None:
    busy = classify(429, "rate limit reached", {"retry-after": "4"})
    assert isinstance(busy, Transient)
    assert (busy.pause_s, busy.is_throttling) == (4.0, True)
    assert isinstance(classify(429, "insufficient_quota You exceeded your current quota", {}), Unusable)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 408, 409, 425])
def test_passing_faults(status: int) -> None:
    assert isinstance(classify(status, "x", {}), Transient)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens",
        "context_length_exceeded",
        "the request exceeds the available context size",
        "prompt is too long: 9000 tokens",
    ],
)
def test_too_long_a_context(message: str) -> None:
    assert classify(400, message, {}) == Refused("context_length", f"HTTP 400: {message}")
