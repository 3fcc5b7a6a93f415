"""The chat client: one question, one answer, whatever the endpoint does in between.

Tries again what can be tried again, within a deadline, and logs that it does; says plainly what cannot. It neither
caches nor judges. The key is in no request record, no error and no log.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from prime_pipeline.errors import ChatClosed, EndpointUnavailable, EndpointUnusable, RequestRefused
from prime_pipeline.llm.answers import Answer, Unreadable, most_bytes, read_answer, without_surrogates
from prime_pipeline.llm.chat import ChatRequest, Reply, Usage
from prime_pipeline.llm.cleaning import cleaned
from prime_pipeline.llm.failures import Failure, Refused, Transient, Unusable
from prime_pipeline.llm.limiter import ConcurrencyLimiter, PauseTooLong, Permit
from prime_pipeline.llm.transport import Failed, Transport

if TYPE_CHECKING:
    from tenacity import RetryCallState

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
# An endpoint that no call has reached yet is more likely not there than busy.
_UNREACHED_PATIENCE_S = 15.0
_LONGEST_UNREACHED_PAUSE_S = 3.0
_TOLD_FROM_ATTEMPT = 3
_QUIET_S = 60.0
# An answer without text is paid all the same, and at temperature 0 the next is likely no better.
_MOST_USELESS = 3
_LONGEST_REASON = 1_000  # characters

_log = logging.getLogger(__name__)


def _nobody(usage: Usage) -> None:
    """Hears of what an answer cost, and forgets it."""
    del usage


class ChatClient:
    """Asks one OpenAI-compatible endpoint. Safe for several threads, which share its limit.

    Args:
        base_url: For example ``http://127.0.0.1:8080/v1``.
        api_key: Empty for endpoints that ask for none.
        limiter: Shared by everybody who asks this endpoint in this process.
        count_tokens: Counts tokens of a text, for endpoints that do not tell their usage.
        deadline_s: From the first attempt to the end of the last; waiting for leave of the limiter does not count,
            but a pause that the endpoint asks for must fit into what is left. As long as no call has reached the
            endpoint it is 15 s at most.
        timeout_s: For one attempt, from connecting to the last byte.
        sleep: Waits between attempts; by default as long as asked for, or until :meth:`close`.
        clock: Seconds, only ever rising.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        limiter: ConcurrencyLimiter,
        count_tokens: Callable[[str], int],
        *,
        deadline_s: float = 600.0,
        timeout_s: float = 120.0,
        sleep: Callable[[float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base_url = base_url
        self._key = api_key.strip()
        self._limiter = limiter
        self._count_tokens = count_tokens
        self._deadline_s = deadline_s
        self._closed = threading.Event()
        self._sleep = sleep or self._pause
        self._clock = clock
        self._was_reached = False
        self._quiet_until = -math.inf
        self._telling = threading.Lock()
        self._transport = Transport(base_url, self._key, timeout_s)

    def most(self, request: ChatRequest) -> Usage:
        """What one answer to a request can cost, as tokens are counted here."""
        return Usage(
            self._count_tokens(request.system) + self._count_tokens(request.user),
            request.max_tokens,
            estimated=True,
        )

    def close(self) -> None:
        """End all calls, from any thread: those that wait or are under way raise ChatClosed, and so do later ones.

        What the endpoint generates for a call under way may still be charged.
        """
        self._closed.set()
        self._limiter.close()
        self._transport.close()

    def complete(self, request: ChatRequest, paid: Callable[[Usage], None] = _nobody) -> Reply:
        """The answer to a request; one with ``finish="length"`` was cut off.

        Args:
            request: What is asked.
            paid: Hears of every completion that came, usable or not, since each is paid; of what is none, only if
                the endpoint reports what it cost.

        Raises:
            ChatClosed: The client was closed.
            RequestRefused: The endpoint will never answer this request (too long, filtered, malformed).
            EndpointUnusable: It will answer none before a setting changes (key, model, quota), or no call has reached
                it yet, and this one could not either.
            EndpointUnavailable: It did not answer within the deadline, asks to be left alone for longer, or what it
                answers is of no use.
        """
        from tenacity import RetryError, Retrying, retry_if_exception_type, wait_random_exponential

        grows = wait_random_exponential(multiplier=_FIRST_PAUSE_S, max=_LONGEST_PAUSE_S)

        def pause_s(state: RetryCallState) -> float:
            failure = state.outcome.exception() if state.outcome else None
            asked = failure.failure.pause_s if isinstance(failure, _TryAgain) else None
            if asked is None:
                return min(
                    grows(state), _LONGEST_PAUSE_S if self._was_reached else _LONGEST_UNREACHED_PAUSE_S
                )
            # Jitter on top of what was asked for, or all workers would be back in the same instant.
            return asked + grows(state) * 0.1

        course = _Course(paid, self.most(request), self._deadline_s, self._clock)

        def hopeless(state: RetryCallState) -> bool:
            return bool(state.upcoming_sleep > self._left_s(course)) or course.n_useless >= _MOST_USELESS

        def tell(state: RetryCallState) -> None:
            failure = state.outcome.exception() if state.outcome else None
            if isinstance(failure, _TryAgain):
                self._tell(failure.failure, course)

        attempts = Retrying(
            retry=retry_if_exception_type(_TryAgain),
            wait=pause_s,
            stop=hopeless,
            before_sleep=tell,
            sleep=self._sleep,
        )
        try:
            return attempts(self._attempt, request, course)
        except RetryError as error:
            raise self._given_up(str(error.last_attempt.exception()), course) from None
        except PauseTooLong as error:
            raise self._given_up(str(error), course) from None

    def _pause(self, seconds: float) -> None:
        self._closed.wait(seconds)

    @property
    def _patience_s(self) -> float:
        """For one call, as things are."""
        return self._deadline_s if self._was_reached else min(self._deadline_s, _UNREACHED_PATIENCE_S)

    def _left_s(self, course: _Course) -> float:
        return course.left_s - self._deadline_s + self._patience_s

    def _tell(self, failure: Transient, course: _Course) -> None:
        """Log that a call is tried again: at once without a connection, else from its third attempt; once a minute."""
        if not failure.is_unreachable and course.n_attempts < _TOLD_FROM_ATTEMPT:
            return
        with self._telling:
            if self._clock() < self._quiet_until:
                return
            self._quiet_until = self._clock() + _QUIET_S
        reason, left_s = self._told(failure.reason), self._left_s(course)
        _log.warning(
            "endpoint %s does not answer (%s): trying again for up to %.0f s", self._base_url, reason, left_s
        )

    def _attempt(self, request: ChatRequest, course: _Course) -> Reply:
        if self._closed.is_set():
            raise ChatClosed
        came = self._clock()
        with self._limiter.call(course.left_s) as permit:
            started = self._clock()
            course.waited_s += started - came
            course.n_attempts += 1
            body = self._body(request, permit, most_bytes(course.most))
            seconds = self._clock() - started
        reply = self._reply(body, seconds, course)
        self._limiter.succeeded()
        return reply

    def _body(self, request: ChatRequest, permit: Permit, n_bytes: int) -> bytes:
        try:
            body = self._transport.post(request, n_bytes)
        except Failed as failed:
            if self._closed.is_set():
                raise ChatClosed from None
            raise self._raised(failed.failure, permit) from None
        self._was_reached = True
        return body

    def _raised(self, failure: Failure, permit: Permit) -> Exception:
        """The exception for a failure; throttling is passed on to the limiter."""
        if not (isinstance(failure, Transient) and failure.is_unreachable):
            self._was_reached = True
        if isinstance(failure, Unusable):
            return EndpointUnusable(self._base_url, self._told(failure.reason))
        if isinstance(failure, Refused):
            return RequestRefused(failure.code, self._told(failure.reason))
        if failure.is_throttling:
            self._limiter.refused(permit, failure.pause_s or 0.0)
        return _TryAgain(failure)

    def _given_up(self, reason: str, course: _Course) -> EndpointUnavailable | EndpointUnusable:
        told = self._told(reason)
        if self._was_reached:
            return EndpointUnavailable(self._base_url, told, course.n_attempts, self._deadline_s)
        tried = f"{course.n_attempts} attempts within {self._patience_s:.0f} s, and no answer before"
        return EndpointUnusable(self._base_url, f"{told} ({tried}): see that it runs")

    def _reply(self, body: bytes, seconds: float, course: _Course) -> Reply:
        try:
            answer = read_answer(body, course.most)
        except Unreadable as error:
            if error.usage:
                course.paid(error.usage)
            raise course.useless(f"an answer that cannot be read: {error}") from None
        usage = answer.usage or self._estimated(answer, course)
        course.paid(usage)
        if answer.finish == "content_filter":
            raise RequestRefused("content_filter", "the answer ended by a content filter")
        text = cleaned(answer.content)
        if answer.finish == "other":
            raise course.useless("an answer that was broken off")
        if not text and answer.finish == "stop":
            raise course.useless("an empty answer")
        return Reply(text, answer.finish, usage, seconds)

    def _estimated(self, answer: Answer, course: _Course) -> Usage:
        return Usage(course.most.prompt_tokens, self._count_tokens(answer.content), estimated=True)

    def _told(self, text: str) -> str:
        """What an endpoint says, without the key, which some repeat, in one form or another; at no great length."""
        for form in _forms(self._key) if len(self._key) > 3 else ():
            text = text.replace(form, "[key]")
        return without_surrogates(text)[:_LONGEST_REASON]


class _Course:
    """What happens to one request from its first attempt on."""

    def __init__(
        self, paid: Callable[[Usage], None], most: Usage, deadline_s: float, clock: Callable[[], float]
    ) -> None:
        self.paid = paid
        self.most = most
        self._clock = clock
        self.waited_s = 0.0
        self.n_attempts = 0
        self.n_useless = 0
        self._ends_at = clock() + deadline_s

    @property
    def left_s(self) -> float:
        """Until the deadline, which waiting for leave puts off; below 0 behind it."""
        return self._ends_at + self.waited_s - self._clock()

    def useless(self, reason: str) -> _TryAgain:
        self.n_useless += 1
        return _TryAgain(Transient(reason))


class _TryAgain(Exception):
    """A transient failure on its way to the retries."""

    def __init__(self, failure: Transient) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def _forms(key: str) -> list[str]:
    """A key as errors and logs may hold it, the longest form first."""
    quoted = {repr(key)[1:-1], repr(key.encode(errors="replace"))[2:-1], json.dumps(key)[1:-1]}
    return sorted({key, quote(key), quote(key, safe=""), quote_plus(key), *quoted}, key=len, reverse=True)
