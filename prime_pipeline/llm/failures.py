"""What a failed call means: whether trying again can help, and when.

=====================================================================  =========================================
failure                                                                meaning
=====================================================================  =========================================
no connection, time-out, 408, 409, 425, 500 to 599                     transient: again, with growing pauses; but
                                                                       an endpoint that no call of a run has
                                                                       reached yet is unusable after 15 s
an answer that is empty, broken off, or cannot be read                 transient: three times at most
429                                                                    transient: again when the endpoint allows,
                                                                       and fewer calls at once; 429 for a spent
                                                                       quota (``insufficient_quota``) is permanent
400 or 413 for too long a context                                      refused: ``context_length``
400 by a content filter, or an answer that ends so                     refused: ``content_filter``
401, 403, 404, 429 for quota, a redirect, a URL, header or             unusable: the run stops, its settings are
certificate that cannot be used                                        wrong
any other 4xx                                                          refused: ``bad_request``, until asked again
=====================================================================  =========================================
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

RefusalCode = Literal["context_length", "content_filter", "bad_request"]

# Codes and types of errors as endpoints document them, in small letters only.
_CONTEXT_CODES = frozenset({"contextlengthexceeded", "exceedcontextsizeerror"})
_FILTER_CODES = frozenset(
    {
        "contentfilter",
        "contentpolicyviolation",
        "datainspectionfailed",
        "moderationblocked",
        "responsibleaipolicyviolation",
    }
)
_QUOTA_CODES = frozenset({"insufficientquota", "insufficientbalance", "billinghardlimitreached"})
# A message may repeat the text that was sent, and advertise billing pages: only whole phrases tell.
_CONTEXT = re.compile(
    r"\bmaximum context (length|window|size)\b|\bcontext (length|window|size) (is |was )?exceeded\b"
    r"|\bexceeds? (the |this |model's |available |maximum )*context (length|window|size)\b"
    r"|\bcontext_length_exceeded\b|\b(prompt|input) is too long\b|\btoo many (input |prompt )?tokens\b"
    r"|\binput token count\b.{0,40}\bexceeds\b|\breduce the length of the (messages|prompt|input)\b",
    re.IGNORECASE,
)
_FILTER = re.compile(r"\bcontent (filter|policy|management policy)\b|\bcontent exists risk\b", re.IGNORECASE)
_QUOTA = re.compile(
    r"\binsufficient[ _](quota|balance|credits?|funds)\b|\bbilling hard limit\b"
    # Some endpoints say so of the quota of a minute, and when to come back.
    r"|\bexceeded your current quota\b(?!.*\bretry in\b)",
    re.IGNORECASE | re.DOTALL,
)
_TRANSIENT_STATUS = frozenset({408, 409, 425})
_UNUSABLE_STATUS = frozenset({401, 402, 403, 404, 407})
# Errors before anything is sent, by name: the package runs on httpx or on httpx2.
_LOCAL_ERRORS = frozenset(
    {"InvalidURL", "LocalProtocolError", "OverflowError", "SSLCertVerificationError", "UnsupportedProtocol"}
)
_UNREACHABLE = frozenset({"ConnectError", "ConnectTimeout"})
_TIMEOUTS = frozenset({"APITimeoutError", "TimeoutError", "TimeoutException"})
_PASSING_ERRORS = frozenset({"HTTPError", "OSError", "OpenAIError", "StreamError", "ValueError"})
_LONGEST_PAUSE_S = 86_400.0  # nobody waits longer, and far longer ones overflow


@dataclass(frozen=True, slots=True)
class Transient:
    """Trying again can help.

    Attributes:
        reason: For people.
        pause_s: What the endpoint asked for; None if it did not say.
        is_throttling: The endpoint has too much to do: fewer calls at once.
        is_unreachable: There was no connection, so that nothing was sent.
    """

    reason: str
    pause_s: float | None = None
    is_throttling: bool = False
    is_unreachable: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """This request will never be answered; another may be."""

    code: RefusalCode
    reason: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """No request will be answered before somebody changes a setting."""

    reason: str


Failure = Transient | Refused | Unusable


def classify(
    status: int,
    message: str,
    headers: Mapping[str, str],
    now_s: float | None = None,
    codes: tuple[str, ...] = (),
) -> Failure:
    """What an answer with an error status, or a redirect, means.

    Args:
        status: HTTP status, 300 or above.
        message: What the endpoint says about it.
        headers: Of the answer; names in any case.
        now_s: Seconds since the epoch, for dates in Retry-After.
        codes: The code and the type of the error.
    """
    pause_s = retry_after_s(headers, now_s)
    pause = f", to be left alone for {pause_s:.0f} s" if pause_s else ""
    reason = " ".join((f"HTTP {status}{pause}:", *codes, message))
    plain_codes = {re.sub(r"[^a-z]", "", code.lower()) for code in codes}

    def says(known_codes: frozenset[str], phrases: re.Pattern[str]) -> bool:
        return bool(plain_codes & known_codes or phrases.search(message))

    if status < 400:
        place = _header(headers, "location") or "another place"
        return Unusable(f"HTTP {status}: it redirects to {place}: set base_url to where it really is")
    if status == 429 and says(_QUOTA_CODES, _QUOTA):
        return Unusable(reason)
    if status == 429 or status >= 500 or status in _TRANSIENT_STATUS:
        return Transient(reason, pause_s, is_throttling=status in {429, 503})
    if status in _UNUSABLE_STATUS:
        return Unusable(reason)
    if status == 413 or says(_CONTEXT_CODES, _CONTEXT):
        return Refused("context_length", reason)
    return Refused("content_filter" if says(_FILTER_CODES, _FILTER) else "bad_request", reason)


def classify_error(error: Exception, timeout_s: float) -> Failure | None:
    """What an exception of the HTTP client means; None for one that is not of its kinds.

    Args:
        error: With its causes.
        timeout_s: Of the request.
    """
    chain = [*_causes(error)]
    names = {base.__name__ for link in chain for base in type(link).__mro__}
    reason = str(chain[-1]) or type(chain[-1]).__name__
    encoding = next((link.encoding for link in chain if isinstance(link, UnicodeEncodeError)), None)
    if encoding == "utf-8":
        return Refused("bad_request", f"the text cannot be sent: {reason}")
    if encoding or names & _LOCAL_ERRORS or "UnicodeError" in names:
        return Unusable(f"nothing can be sent to it: {reason}")
    if names & _UNREACHABLE:
        return Transient(f"no connection: {reason}", is_unreachable=True)
    if names & _TIMEOUTS:
        return Transient(f"no answer within {timeout_s:.0f} s")
    return Transient(f"no connection: {reason}") if names & _PASSING_ERRORS else None


def complaint(body: bytes) -> tuple[tuple[str, ...], str]:
    """The codes and the message in the body of an error: JSON of the usual forms, or whatever else it is."""
    text = body.decode("utf-8", "replace").strip()
    try:
        error = _error_object(json.loads(text))
    except (ValueError, RecursionError):
        return (), text
    codes = [code for code in (error.get("code"), error.get("type")) if isinstance(code, str)]
    message = error.get("message")
    return tuple(dict.fromkeys(codes)), message if isinstance(message, str) else text


def retry_after_s(headers: Mapping[str, str], now_s: float | None = None) -> float | None:
    """Seconds that an answer asks to wait: Retry-After as seconds or HTTP date.

    Returns:
        0 to 86,400, where longer pauses end; None without a usable one.
    """
    value = _header(headers, "retry-after")
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(value).timestamp()
        except (ValueError, TypeError, OverflowError):
            return None
        seconds = moment - (time.time() if now_s is None else now_s)
    is_finite = seconds == seconds and abs(seconds) != float("inf")
    return min(max(0.0, seconds), _LONGEST_PAUSE_S) if is_finite else None


def _header(headers: Mapping[str, str], name: str) -> str:
    return next((value.strip() for key, value in headers.items() if key.lower() == name), "")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _error_object(told: Any) -> dict[str, Any]:
    if isinstance(told, list) and told:
        told = told[0]
    error = told.get("error", told) if isinstance(told, dict) else {}
    return error if isinstance(error, dict) else {"message": error}
