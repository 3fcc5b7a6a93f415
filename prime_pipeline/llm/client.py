"""The chat client: one question, one answer, whatever the endpoint does in between.

Tries again what can be tried again, within a deadline; says plainly what cannot. It neither caches nor judges. The key
stays in here: it is in no request record, no error and no log.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from prime_pipeline.errors import ChatClosed, EndpointUnavailable, EndpointUnusable, RequestRefused
from prime_pipeline.llm.chat import ChatRequest, Finish, Reply, Usage
from prime_pipeline.llm.cleaning import cleaned
from prime_pipeline.llm.connections import Connections
from prime_pipeline.llm.failures import Failure, Refused, Transient, Unusable, classify
from prime_pipeline.llm.limiter import ConcurrencyLimiter, Permit

if TYPE_CHECKING:
    from openai import OpenAI
    from tenacity import RetryCallState

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_CONNECT_TIMEOUT_S = 10.0
_MOST_USELESS = (
    3  # an answer without text is paid all the same, and at temperature 0 the next is likely no better
)
_FINISHES: dict[str | None, Finish] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    None: "stop",
    "eos": "stop",
    "end_turn": "stop",
    "max_tokens": "length",
}
_KEYLESS = "none"  # local servers ask for no key, and the package refuses to send none


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
        deadline_s: From the first attempt to the end of the last; waiting for leave of the limiter does not count.
        timeout_s: For one attempt.
        sleep: Waits between attempts; by default as long as asked for, or until :meth:`close`.
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
    ) -> None:
        self._base_url = base_url
        self._key = api_key
        self._limiter = limiter
        self._count_tokens = count_tokens
        self._deadline_s = deadline_s
        self._timeout_s = timeout_s
        self._closed = threading.Event()
        self._sleep = sleep or self._pause
        self._connections = Connections()
        self._lock = threading.Lock()
        self._openai: OpenAI | None = None

    def most(self, request: ChatRequest) -> Usage:
        """What one answer to a request can cost, as tokens are counted here."""
        return Usage(self._prompt_tokens(request), request.max_tokens, estimated=True)

    def close(self) -> None:
        """End all calls, from any thread: those that wait or are under way raise ChatClosed, and so do later ones.

        What the endpoint generates for a call under way may still be charged.
        """
        self._closed.set()
        self._limiter.close()
        self._connections.close()

    def complete(self, request: ChatRequest, paid: Callable[[Usage], None] = _nobody) -> Reply:
        """The answer to a request; one with ``finish="length"`` was cut off.

        Args:
            request: What is asked.
            paid: Hears of every answer that came, usable or not, since each is paid.

        Raises:
            ChatClosed: The client was closed.
            RequestRefused: The endpoint will never answer this request (too long, filtered, malformed).
            EndpointUnusable: It will answer none before a setting changes (key, model, quota).
            EndpointUnavailable: It did not answer within the deadline.
        """
        from tenacity import RetryError, Retrying, retry_if_exception_type, wait_random_exponential

        grows = wait_random_exponential(multiplier=_FIRST_PAUSE_S, max=_LONGEST_PAUSE_S)

        def pause_s(state: RetryCallState) -> float:
            failure = state.outcome.exception() if state.outcome else None
            asked = failure.failure.pause_s if isinstance(failure, _TryAgain) else None
            # Jitter on top of what was asked for, or all workers would be back in the same instant.
            return grows(state) if asked is None else asked + grows(state) * 0.1

        course = _Course(paid)

        def hopeless(state: RetryCallState) -> bool:
            seconds = (state.seconds_since_start or 0.0) - course.waited_s + state.upcoming_sleep
            return seconds > self._deadline_s or course.n_answers >= _MOST_USELESS

        attempts = Retrying(
            retry=retry_if_exception_type(_TryAgain), wait=pause_s, stop=hopeless, sleep=self._sleep
        )
        try:
            return attempts(self._attempt, request, course)
        except RetryError as error:
            last = error.last_attempt.exception()
            reason = last.failure.reason if isinstance(last, _TryAgain) else str(last)
            n_attempts = error.last_attempt.attempt_number
            raise EndpointUnavailable(
                self._base_url, self._redacted(reason), n_attempts, self._deadline_s
            ) from None

    def _pause(self, seconds: float) -> None:
        self._closed.wait(seconds)

    def _attempt(self, request: ChatRequest, course: _Course) -> Reply:
        if self._closed.is_set():
            raise ChatClosed
        came = time.monotonic()
        with self._limiter.call() as permit:
            started = time.monotonic()
            course.waited_s += started - came
            completion = self._ask(request, permit)
            seconds = time.monotonic() - started
        reply = self._reply(request, completion, seconds, course)
        self._limiter.succeeded()
        return reply

    def _ask(self, request: ChatRequest, permit: Permit) -> Any:
        import openai

        try:
            return self._client().chat.completions.create(
                model=request.model,
                messages=[
                    {"role": "system", "content": request.system},
                    {"role": "user", "content": request.user},
                ],
                temperature=request.temperature,
                max_tokens=request.max_tokens,
            )
        except openai.APIStatusError as error:
            message = f"{error.code or ''} {error.message}".strip()
            failure = classify(error.status_code, message, dict(error.response.headers))
        except openai.APITimeoutError:
            failure = Transient(f"no answer within {self._timeout_s:.0f} s")
        except openai.APIConnectionError as error:
            failure = Transient(f"no connection: {error.__cause__ or error}")
        except (openai.APIResponseValidationError, ValueError) as error:
            failure = Transient(f"an answer that cannot be read: {error}")
        raise self._raised(failure, permit)

    def _raised(self, failure: Failure, permit: Permit) -> Exception:
        """The exception for a failure; throttling is passed on to the limiter."""
        if isinstance(failure, Unusable):
            return EndpointUnusable(self._base_url, self._redacted(failure.reason))
        if isinstance(failure, Refused):
            return RequestRefused(failure.code, self._redacted(failure.reason))
        if failure.is_throttling:
            self._limiter.refused(permit, failure.pause_s or 0.0)
        return _TryAgain(failure)

    def _reply(self, request: ChatRequest, completion: Any, seconds: float, course: _Course) -> Reply:
        choices = getattr(completion, "choices", None) or []
        content = choices[0].message.content if choices and choices[0].message else None
        finish = _FINISHES.get(choices[0].finish_reason, "other") if choices else "other"
        usage = self._usage(request, completion, content or "")
        course.answered(usage)
        if finish == "content_filter":
            raise RequestRefused("content_filter", "the answer ended by a content filter")
        text = cleaned(content or "")
        if finish == "other":
            raise _TryAgain(Transient("an answer that was broken off"))
        if not text and finish == "stop":
            raise _TryAgain(Transient("an empty answer"))
        return Reply(text, finish, usage, seconds)

    def _usage(self, request: ChatRequest, completion: Any, content: str) -> Usage:
        told = getattr(completion, "usage", None)
        prompt, generated = getattr(told, "prompt_tokens", 0) or 0, getattr(told, "completion_tokens", 0) or 0
        if prompt > 0 and (generated > 0 or not content):
            return Usage(prompt, generated, estimated=False)
        return Usage(self._prompt_tokens(request), self._count_tokens(content), estimated=True)

    def _prompt_tokens(self, request: ChatRequest) -> int:
        return self._count_tokens(request.system) + self._count_tokens(request.user)

    def _redacted(self, text: str) -> str:
        """Text without the key, which some endpoints repeat in their errors."""
        return text.replace(self._key, "[key]") if len(self._key) > 3 else text

    def _client(self) -> OpenAI:
        with self._lock:
            if self._openai is None:
                import openai

                self._openai = openai.OpenAI(
                    base_url=self._base_url,
                    api_key=self._key or _KEYLESS,
                    max_retries=0,
                    timeout=openai.Timeout(self._timeout_s, connect=min(self._timeout_s, _CONNECT_TIMEOUT_S)),
                    http_client=openai.DefaultHttpxClient(event_hooks={"request": [self._connections.watch]}),
                )
            return self._openai


class _Course:
    """What happens to one request from its first attempt on."""

    def __init__(self, paid: Callable[[Usage], None]) -> None:
        self.waited_s = 0.0
        self.n_answers = 0
        self._paid = paid

    def answered(self, usage: Usage) -> None:
        self.n_answers += 1
        self._paid(usage)


class _TryAgain(Exception):
    """A transient failure on its way to the retries."""

    def __init__(self, failure: Transient) -> None:
        super().__init__(failure.reason)
        self.failure = failure
