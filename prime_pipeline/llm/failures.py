"""What a failed call means: whether trying again can help, and when.

=====================================================================  =========================================
failure                                                                meaning
=====================================================================  =========================================
no connection, time-out, 408, 409, 425, 500 to 599, no usable answer   transient: again, with growing pauses
429                                                                    transient: again when the endpoint allows,
                                                                       and fewer calls at once; 429 for a spent
                                                                       quota (``insufficient_quota``) is permanent
400 or 413 for too long a context                                      refused: ``context_length``
400 by a content filter, or an answer that ends so                     refused: ``content_filter``
401, 403, 404, 429 for quota                                           unusable: the run stops, its settings are
                                                                       wrong
any other 4xx                                                          refused: ``bad_request``, until asked again
=====================================================================  =========================================
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

RefusalCode = Literal["context_length", "content_filter", "bad_request"]

_CONTEXT = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|too many tokens|prompt is too long|exceeds? the available context",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content[ _-]?(filter|policy|management)|moderation|safety system|risk", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient[ _-]?(quota|balance)|billing|exceeded your current quota", re.IGNORECASE)
_TRANSIENT_STATUS = frozenset({408, 409, 425})
_UNUSABLE_STATUS = frozenset({401, 402, 403, 404, 407})


@dataclass(frozen=True, slots=True)
class Transient:
    """Trying again can help.

    Attributes:
        reason: For people.
        pause_s: What the endpoint asked for; None if it did not say.
        is_throttling: The endpoint has too much to do: fewer calls at once.
    """

    reason: str
    pause_s: float | None = None
    is_throttling: bool = False


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


def classify(status: int, message: str, headers: Mapping[str, str], now_s: float | None = None) -> Failure:
    """What an answer with an error status means.

    Args:
        status: HTTP status, 400 or above.
        message: What the endpoint says about it, error code included.
        headers: Of the answer; names in any case.
        now_s: Seconds since the epoch, for dates in Retry-After.
    """
    reason = f"HTTP {status}: {message}"
    if status == 429 and _QUOTA.search(message):
        return Unusable(reason)
    if status == 429:
        return Transient(reason, retry_after_s(headers, now_s), is_throttling=True)
    if status >= 500 or status in _TRANSIENT_STATUS:
        return Transient(reason, retry_after_s(headers, now_s), is_throttling=status == 503)
    if status in _UNUSABLE_STATUS:
        return Unusable(reason)
    if _CONTEXT.search(message) or status == 413:
        return Refused("context_length", reason)
    return Refused("content_filter" if _FILTER.search(message) else "bad_request", reason)


def retry_after_s(headers: Mapping[str, str], now_s: float | None = None) -> float | None:
    """Seconds that an answer asks to wait, 0 or more: Retry-After as seconds or HTTP date; None without a usable one."""
    value = next((v.strip() for name, v in headers.items() if name.lower() == "retry-after"), "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(value).timestamp()
        except (ValueError, TypeError):
            return None
        seconds = moment - (time.time() if now_s is None else now_s)
    return max(0.0, seconds) if seconds == seconds and seconds != float("inf") else None
