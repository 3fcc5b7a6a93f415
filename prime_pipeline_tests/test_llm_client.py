"""The chat client against a real HTTP server on loopback that plays every fault."""

from __future__ import annotations

import email.utils
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from prime_pipeline.errors import ChatClosed, EndpointUnavailable, EndpointUnusable, RequestRefused
from prime_pipeline.llm.chat import ChatRequest, Usage
from prime_pipeline.llm.client import ChatClient
from prime_pipeline.llm.limiter import ConcurrencyLimiter
from prime_pipeline_tests.chat_endpoint import Endpoint, answer, fault

KEY = "sk-secret-4711"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with HTTPServer(threaded=True) as server:
        yield Endpoint(server)


def client(endpoint: Endpoint, waits: list[float] | None = None, **options: Any) -> ChatClient:
    limiter = options.pop("limiter", None) or ConcurrencyLimiter(4)
    pauses = [] if waits is None else waits
    return ChatClient(
        endpoint.url,
        KEY,
        limiter,
        lambda text: len(text.split()),
        sleep=pauses.append,
        **options,
    )


def request(user: str = "text", **options: Any) -> ChatRequest:
    return ChatRequest("http://x", "m", "be good", user, "v1", 100, **options)


def test_an_answer_with_its_usage(endpoint: Endpoint) -> None:
    endpoint.plays(answer("  hello "))
    reply = client(endpoint).complete(request())
    assert (reply.text, reply.finish, reply.is_complete) == ("hello", "stop", True)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.estimated) == (7, 3, False)
    sent = endpoint.requests[0]
    assert (sent["temperature"], sent["max_tokens"], sent["model"]) == (0.0, 100, "m")
    assert [m["role"] for m in sent["messages"]] == ["system", "user"]


def test_the_key_is_sent_and_nowhere_else(endpoint: Endpoint) -> None:
    endpoint.plays(fault(401, f"Incorrect API key provided: {KEY}"))
    with pytest.raises(EndpointUnusable) as error:
        client(endpoint).complete(request())
    assert KEY not in str(error.value)
    assert "[key]" in str(error.value)
    sent = [r.headers["Authorization"] for r, _ in endpoint.server.log]
    assert sent == [f"Bearer {KEY}"]


def test_a_429_waits_as_long_as_the_endpoint_asks(endpoint: Endpoint) -> None:
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    endpoint.plays(fault(429, Retry_After="2"), fault(429, Retry_After=date), answer())
    clock = [0.0]
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += seconds

    limiter = ConcurrencyLimiter(4, clock=lambda: clock[0])
    asking = ChatClient(endpoint.url, KEY, limiter, len, sleep=sleep)
    assert asking.complete(request()).text == "fine"
    assert waits[0] >= 2.0
    assert 27.0 <= waits[1] <= 40.0


def test_a_429_halves_the_limit_and_success_raises_it_again(endpoint: Endpoint) -> None:
    limiter = ConcurrencyLimiter(4)
    endpoint.plays(fault(429, Retry_After="0"), answer())
    asking = client(endpoint, limiter=limiter)
    asking.complete(request())
    assert limiter.limit == 2
    for _ in range(6):
        asking.complete(request())
    assert limiter.limit == 4


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504])
def test_passing_faults_are_tried_again_with_growing_pauses(endpoint: Endpoint, status: int) -> None:
    endpoint.plays(fault(status), fault(status), fault(status), answer())
    waits: list[float] = []
    assert client(endpoint, waits).complete(request()).text == "fine"
    assert len(waits) == 3
    assert all(0 <= wait <= 60 for wait in waits)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (
            fault(400, "This model's maximum context length is 4096 tokens", "context_length_exceeded"),
            "context_length",
        ),
        (fault(413, "too large"), "context_length"),
        (fault(400, "blocked by the content management policy", "content_filter"), "content_filter"),
        (fault(422, "temperature must be a number"), "bad_request"),
        (answer("partly", finish="content_filter"), "content_filter"),
    ],
)
def test_what_is_refused_is_not_asked_again(endpoint: Endpoint, step: Any, code: str) -> None:
    endpoint.plays(step, answer())
    with pytest.raises(RequestRefused) as error:
        client(endpoint).complete(request())
    assert error.value.code == code
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "step", [fault(401), fault(403), fault(404, "no such model"), fault(429, "x", "insufficient_quota")]
)
def test_wrong_settings_end_it_at_once(endpoint: Endpoint, step: Any) -> None:
    endpoint.plays(step, answer())
    with pytest.raises(EndpointUnusable, match="Check its key"):
        client(endpoint).complete(request())
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "empty",
    [
        answer(None),
        answer(""),
        answer("<think>so much"),
        {**answer(), "choices": []},
        {**answer(), "choices": None},
    ],
)
def test_an_empty_answer_is_asked_again(endpoint: Endpoint, empty: dict[str, Any]) -> None:
    endpoint.plays(empty, answer())
    assert client(endpoint).complete(request()).text == "fine"
    assert len(endpoint.requests) == 2


def test_an_answer_that_is_no_json_is_asked_again(endpoint: Endpoint) -> None:
    endpoint.script.append(lambda: Response("<html>busy</html>", 200, content_type="application/json"))
    endpoint.plays(answer())
    assert client(endpoint).complete(request()).text == "fine"


def test_a_truncated_answer_says_so(endpoint: Endpoint) -> None:
    endpoint.plays(answer("half a sen", finish="length"))
    reply = client(endpoint).complete(request())
    assert (reply.finish, reply.is_complete) == ("length", False)


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}])
def test_usage_that_is_not_told_is_estimated_and_flagged(endpoint: Endpoint, usage: dict[str, int]) -> None:
    endpoint.plays(answer("three words here", usage=usage))
    told = client(endpoint).complete(request("five words are in here")).usage
    assert (told.prompt_tokens, told.completion_tokens, told.estimated) == (7, 3, True)


def test_the_deadline_ends_the_attempts(endpoint: Endpoint) -> None:
    endpoint.plays(fault(503))
    with pytest.raises(EndpointUnavailable, match="HTTP 503"):
        client(endpoint, deadline_s=0.0).complete(request())
    endpoint.plays(fault(429, Retry_After="3600"))
    with pytest.raises(EndpointUnavailable):
        client(endpoint, deadline_s=60.0).complete(request())


def test_waiting_for_leave_does_not_count_against_the_deadline(endpoint: Endpoint) -> None:
    endpoint.plays(fault(503), answer())
    limiter = ConcurrencyLimiter(1)
    asking = client(endpoint, limiter=limiter, deadline_s=1.5)
    with ThreadPoolExecutor(1) as pool:
        with limiter.call():
            call = pool.submit(asking.complete, request())
            time.sleep(2.0)
        assert call.result(30).text == "fine"


def test_a_socket_that_never_answers_times_out() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        asking = ChatClient(
            url, "", ConcurrencyLimiter(1), len, deadline_s=0.5, timeout_s=0.2, sleep=lambda s: None
        )
        with pytest.raises(EndpointUnavailable, match="no answer within"):
            asking.complete(request())


def test_an_endpoint_that_is_not_there_is_named() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    asking = ChatClient(url, "", ConcurrencyLimiter(1), len, deadline_s=0.0, sleep=lambda s: None)
    with pytest.raises(EndpointUnavailable, match=url):
        asking.complete(request())


def test_no_more_calls_at_once_than_the_limit(endpoint: Endpoint) -> None:
    at_once, most = 0, 0
    lock = threading.Lock()

    def slow() -> Response:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.02)
        with lock:
            at_once -= 1
        return Response(json.dumps(answer()), content_type="application/json")

    endpoint.script.append(slow)
    asking = client(endpoint, limiter=ConcurrencyLimiter(3))
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda i: asking.complete(request(f"{i}")), range(24)))
    assert {reply.text for reply in replies} == {"fine"}
    assert 1 < most <= 3


def test_every_answer_is_reported_since_each_is_paid(endpoint: Endpoint) -> None:
    endpoint.plays(answer(""), fault(503), answer("half", finish="insufficient_system_resource"), answer())
    paid: list[Usage] = []
    assert client(endpoint).complete(request(), paid.append).text == "fine"
    assert [usage.prompt_tokens for usage in paid] == [7, 7, 7]


def test_useless_answers_are_not_paid_for_ever(endpoint: Endpoint) -> None:
    endpoint.plays(answer(""))
    with pytest.raises(EndpointUnavailable, match="empty answer"):
        client(endpoint).complete(request())
    assert len(endpoint.requests) == 3


def test_close_wakes_a_call_that_waits_to_be_tried_again(endpoint: Endpoint) -> None:
    endpoint.plays(fault(429, Retry_After="300"))
    asking = ChatClient(endpoint.url, KEY, ConcurrencyLimiter(2), len)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(asking.complete, request(f"{i}")) for i in range(2)]
        wait_for(lambda: len(endpoint.requests) > 0)
        time.sleep(0.2)
        assert_ends_soon(asking, calls)


def test_close_cuts_a_call_that_waits_for_its_answer_and_wakes_one_that_waits_for_leave(
    endpoint: Endpoint,
) -> None:
    end = threading.Event()
    endpoint.responds(lambda body: answer(f"{end.wait(60)}"))
    asking = ChatClient(endpoint.url, KEY, ConcurrencyLimiter(1), len)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(asking.complete, request(f"{i}")) for i in range(2)]
        wait_for(lambda: len(endpoint.requests) > 0)
        time.sleep(0.2)
        assert_ends_soon(asking, calls)
    end.set()
    with pytest.raises(ChatClosed):
        asking.complete(request())
    assert len(endpoint.requests) == 1


def wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def assert_ends_soon(asking: ChatClient, calls: list[Future[Any]]) -> None:
    started = time.monotonic()
    asking.close()
    for call in calls:
        with pytest.raises(ChatClosed):
            call.result(10)
    assert time.monotonic() - started < 5
