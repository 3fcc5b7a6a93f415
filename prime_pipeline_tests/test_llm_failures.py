"""What a status and a message mean."""

from __future__ import annotations

import ssl

import httpx
import pytest

from prime_pipeline.llm.failures import (
    Refused,
    Transient,
    Unusable,
    classify,
    classify_error,
    complaint,
    retry_after_s,
)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        (" 1.5 ", 1.5),
        ("-3", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 40.0),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
        ("soon", None),
        ("1e308", 86_400.0),
        ("1" + "0" * 30, 86_400.0),
        ("-1e308", 0.0),
        ("-inf", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
        ("Fri, 31 Dec 99999 23:59:59 GMT", None),
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


@pytest.mark.parametrize(
    ("message", "codes"),
    [
        ("no", ("context_length_exceeded",)),
        ("no", ("400", "exceed_context_size_error")),
    ],
)
def test_codes_of_too_long_a_context(message: str, codes: tuple[str, ...]) -> None:
    failure = classify(400, message, {}, codes=codes)
    assert isinstance(failure, Refused)
    assert failure.code == "context_length"


@pytest.mark.parametrize(
    ("message", "codes"),
    [
        ("no", ("content_filter",)),
        ("no", ("data_inspection_failed", "invalid_request_error")),
        ("no", ("DataInspectionFailed",)),
        ("Content Exists Risk", ("invalid_request_error",)),
        ("triggering the content management policy of the service", ()),
        ("blocked by the Content Filter", ()),
    ],
)
def test_content_filters(message: str, codes: tuple[str, ...]) -> None:
    failure = classify(400, message, {}, codes=codes)
    assert isinstance(failure, Refused)
    assert failure.code == "content_filter"


@pytest.mark.parametrize(
    "message",
    [
        "an asterisk is no model name",
        "risk",
        "unknown field 'moderation'",
        "malcontent filters",
        "context_size is no parameter of this model",
        "the context length must be a number",
    ],
)
def test_words_that_only_sound_like_a_refusal(message: str) -> None:
    assert classify(400, message, {}) == Refused("bad_request", f"HTTP 400: {message}")


@pytest.mark.parametrize(
    "message",
    [
        "Rate limit reached: add a payment method at https://example.com/account/billing",
        "You exceeded your current quota, see the plan and billing details. Please retry in 33.6s.",
    ],
)
def test_throttling_that_mentions_billing_passes(message: str) -> None:
    assert isinstance(classify(429, message, {}), Transient)


@pytest.mark.parametrize(
    ("message", "codes"),
    [("no", ("insufficient_quota",)), ("Insufficient Balance", ()), ("insufficient_quota", ())],
)
def test_a_spent_quota(message: str, codes: tuple[str, ...]) -> None:
    assert isinstance(classify(429, message, {}, codes=codes), Unusable)


def test_a_redirect_without_a_place() -> None:
    assert classify(302, "", {}) == Unusable(
        "HTTP 302: it redirects to another place: set base_url to where it really is"
    )


@pytest.mark.parametrize(
    ("body", "codes", "message"),
    [
        (b'{"error": {"message": "m", "code": "c", "type": "t"}}', ("c", "t"), "m"),
        (b'[{"error": {"message": "m", "code": 429}}]', (), "m"),
        (b'{"error": "m"}', (), "m"),
        (b'{"object": "error", "message": "m", "code": "c", "type": "c"}', ("c",), "m"),
        (b'{"detail": "m"}', (), '{"detail": "m"}'),
        (b'{"error": {"message": ["m"]}}', (), '{"error": {"message": ["m"]}}'),
        (b" <html>busy \xff ", (), "<html>busy \ufffd"),
        (b"null", (), "null"),
        (b"[]", (), "[]"),
        (b"[" * 50_000, (), "[" * 50_000),
    ],
    ids=range(10),
)
def test_complaints_of_every_form(body: bytes, codes: tuple[str, ...], message: str) -> None:
    assert complaint(body) == (codes, message)


def test_an_exception_of_the_program_itself_is_no_failure() -> None:
    assert classify_error(KeyError("x"), 1.0) is None


@pytest.mark.parametrize(
    ("error", "is_unreachable"),
    [
        (httpx.ConnectError("[Errno 111] Connection refused"), True),
        (httpx.ConnectError("[Errno -2] Name or service not known"), True),
        (httpx.ConnectTimeout("timed out"), True),
        (httpx.ReadTimeout("timed out"), False),
        (httpx.ReadError("[Errno 104] Connection reset by peer"), False),
        (httpx.RemoteProtocolError("Server disconnected without sending a response."), False),
    ],
    ids=repr,
)
def test_what_never_connected_is_told_from_what_was_broken_off(
    error: Exception, is_unreachable: bool
) -> None:
    wrapped = ConnectionError("Connection error.")
    wrapped.__cause__ = error
    failure = classify_error(wrapped, 1.0)
    assert isinstance(failure, Transient)
    assert failure.is_unreachable == is_unreachable
    assert failure.pause_s is None


def test_a_certificate_that_is_not_trusted_is_not_tried_again() -> None:
    error = ConnectionError("failed")
    error.__cause__ = ssl.SSLCertVerificationError("certificate verify failed")
    failure = classify_error(error, 1.0)
    assert isinstance(failure, Unusable)
    assert "certificate verify failed" in failure.reason


def test_a_text_that_is_no_utf_8_is_refused_and_a_header_that_is_no_ascii_ends_it_all() -> None:
    def failure(encoding: str) -> object:
        return classify_error(UnicodeEncodeError(encoding, "\ud800", 0, 1, "no such character"), 1.0)

    assert isinstance(failure("utf-8"), Refused)
    assert isinstance(failure("ascii"), Unusable)
