"""The chat client against a real HTTP server on loopback that plays every fault."""

from __future__ import annotations

import contextlib
import email.utils
import json
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from werkzeug import Response

from prime_pipeline.errors import ChatClosed, EndpointUnavailable, EndpointUnusable, RequestRefused
from prime_pipeline.llm.chat import ChatRequest, Usage
from prime_pipeline.llm.client import ChatClient
from prime_pipeline.llm.limiter import ConcurrencyLimiter
from prime_pipeline_tests.chat_endpoint import Endpoint, answer, fault

KEY = "sk-secret-4711"


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
    with pytest.raises(EndpointUnusable, match="Check the llm settings"):
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
        {**answer(), "choices": "abc"},
        {**answer(), "choices": [None]},
        {**answer(), "choices": {"0": 1}},
        answer(7),
        answer({"text": "x"}),
        answer([1, 2]),
        answer([{"type": "text", "text": None}]),
        answer("x", finish={"reason": "stop"}),
    ],
)
def test_an_empty_or_odd_answer_is_asked_again(endpoint: Endpoint, empty: dict[str, Any]) -> None:
    endpoint.plays(empty, answer())
    assert client(endpoint).complete(request()).text == "fine"
    assert len(endpoint.requests) == 2


NO_COMPLETIONS = [
    b"<html>Sign in</html>",
    b"null",
    b"[1,2]",
    b"{}",
    b"",
    b"\xff",
    b"[" * 100_000,
    b"1" * 9_999,
]


@pytest.mark.parametrize("body", NO_COMPLETIONS, ids=lambda body: repr(body[:9]))
def test_what_is_no_completion_is_asked_for_three_times_and_not_paid(endpoint: Endpoint, body: bytes) -> None:
    endpoint.script.append(lambda: Response(body, content_type="text/html"))
    paid: list[Usage] = []
    with pytest.raises(EndpointUnavailable, match="an answer that cannot be read"):
        client(endpoint).complete(request(), paid.append)
    assert len(endpoint.requests) == 3
    assert paid == []


def test_usage_of_what_is_no_completion_counts_if_it_is_reported(endpoint: Endpoint) -> None:
    endpoint.plays({"usage": {"prompt_tokens": 7, "completion_tokens": 3}}, answer())
    paid: list[Usage] = []
    assert client(endpoint).complete(request(), paid.append).text == "fine"
    assert paid == [Usage(7, 3, estimated=False)] * 2


def test_text_in_parts_is_joined_and_surrogates_are_replaced(endpoint: Endpoint) -> None:
    parts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "a\ud800"},
        {"type": "text", "text": "b"},
    ]
    endpoint.plays(answer(parts))
    assert client(endpoint).complete(request()).text == "a\ufffdb"


def test_an_answer_without_end_is_not_read_to_its_end(endpoint: Endpoint) -> None:
    n_sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal n_sent
        yield json.dumps(answer("x"))[:-200].encode()
        while n_sent < 500:
            n_sent += 1
            yield b"x" * 1_000_000

    endpoint.script.append(lambda: Response(endless(), content_type="application/json"))
    paid: list[Usage] = []
    with pytest.raises(EndpointUnavailable, match="far longer than max_tokens allow"):
        client(endpoint).complete(request("one two"), paid.append)
    assert n_sent < 100
    assert paid == [Usage(4, 100, estimated=True)] * 3  # the most that it can have cost


def test_an_answer_far_longer_than_asked_for_is_neither_counted_nor_cleaned(endpoint: Endpoint) -> None:
    endpoint.plays(answer("word " * 3_000, usage={}))
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return 1

    asking = ChatClient(endpoint.url, KEY, ConcurrencyLimiter(1), count, sleep=lambda s: None)
    with pytest.raises(EndpointUnavailable, match="far longer"):
        asking.complete(request())
    assert max(counted) < 100


def test_an_error_without_end_is_cut(endpoint: Endpoint) -> None:
    endpoint.plays(fault(422, "word " * 1_000_000))
    with pytest.raises(RequestRefused) as error:
        client(endpoint).complete(request())
    assert len(str(error.value)) < 2_000


@pytest.mark.parametrize(
    "head", ["", "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"], ids=["head", "body"]
)
def test_an_answer_that_drips_ends_with_the_time_of_an_attempt(head: str) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        threading.Thread(target=drip, args=(listening, head.encode()), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        asking = ChatClient(url, "", ConcurrencyLimiter(1), len, deadline_s=0.0, timeout_s=0.4)
        started = time.monotonic()
        with pytest.raises(EndpointUnavailable, match="no answer within"):
            asking.complete(request())
        assert time.monotonic() - started < 3.0


def drip(listening: socket.socket, head: bytes) -> None:
    peer, _ = listening.accept()
    with peer, contextlib.suppress(OSError):
        peer.sendall(head)
        for _ in range(200):
            peer.sendall(b"H")
            time.sleep(0.05)


@pytest.mark.parametrize("ended_by", ["time", "close"])
def test_a_thread_keeps_its_connection_which_can_still_be_cut(ended_by: str) -> None:
    received: list[bytes] = []
    with socket.socket() as listening, ThreadPoolExecutor(1) as pool:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        threading.Thread(target=answer_once, args=(listening, received), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        timeout_s = {"time": 0.5, "close": 60.0}[ended_by]
        asking = ChatClient(url, "", ConcurrencyLimiter(1), len, deadline_s=0.0, timeout_s=timeout_s)
        assert pool.submit(asking.complete, request()).result(10).text == "fine"
        second = pool.submit(asking.complete, request())
        wait_for(lambda: b"".join(received).count(b"POST ") == 2)
        if ended_by == "close":
            assert_ends_soon(asking, [second])
        else:
            with pytest.raises(EndpointUnavailable, match="no answer within"):
                second.result(10)


def answer_once(listening: socket.socket, received: list[bytes]) -> None:
    """Answer the first request of one connection, and read what else comes on it."""
    body = json.dumps(answer()).encode()
    peer, _ = listening.accept()
    with peer, contextlib.suppress(OSError):
        received.append(peer.recv(65_536))
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        while data := peer.recv(65_536):
            received.append(data)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(endpoint: Endpoint, status: int) -> None:
    elsewhere = endpoint.url.replace("127.0.0.1", "localhost") + "/chat/completions"
    endpoint.plays(fault(status, Location=elsewhere), answer("from another host"))
    with pytest.raises(EndpointUnusable, match=f"redirects to {elsewhere}: set base_url"):
        client(endpoint).complete(request())
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "SSL_CERT_FILE"])
def test_bad_variables_are_no_crash(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    (tmp_path / "no.pem").write_text("no certificate")
    monkeypatch.setenv(variable, {"HTTP_PROXY": "foo://x", "SSL_CERT_FILE": f"{tmp_path}/no.pem"}[variable])
    with pytest.raises(EndpointUnusable, match="no HTTP client can be made"):
        client(endpoint).complete(request())
    assert endpoint.requests == []


@pytest.mark.parametrize("url", ["ftp://host/v1", "http://", "http://[::1", f"http://{'a' * 70}.b/v1"])
def test_what_waiting_cannot_heal_is_not_tried_again(url: str) -> None:
    waits: list[float] = []
    asking = ChatClient(url, KEY, ConcurrencyLimiter(1), len, sleep=waits.append)
    with pytest.raises(EndpointUnusable):
        asking.complete(request())
    assert waits == []


@pytest.mark.parametrize("key", ["sk-SECRET\rx", "sk-SECR\x00ET", "sk-SECRÉT", "sk-SECRET\u2028x"])
def test_a_key_that_cannot_be_sent_is_named_and_not_shown(endpoint: Endpoint, key: str) -> None:
    asking = ChatClient(endpoint.url, key, ConcurrencyLimiter(1), len)
    with pytest.raises(EndpointUnusable, match="the key holds characters") as error:
        asking.complete(request())
    assert "SECR" not in "".join(traceback.format_exception(error.value))


def test_white_space_around_a_key_is_not_sent(endpoint: Endpoint) -> None:
    endpoint.plays(answer())
    ChatClient(endpoint.url, f" {KEY}\r\n", ConcurrencyLimiter(1), len).complete(request())
    assert [r.headers["Authorization"] for r, _ in endpoint.server.log] == [f"Bearer {KEY}"]


def test_a_key_is_redacted_in_every_form(endpoint: Endpoint) -> None:
    key = "sk-'SE\\CR+E/T"
    forms = [key, repr(key), repr(key.encode()), json.dumps(key), quote(key), quote(key, safe="")]
    endpoint.plays(fault(401, " ".join(forms)))
    with pytest.raises(EndpointUnusable) as error:
        ChatClient(endpoint.url, key, ConcurrencyLimiter(1), len).complete(request())
    assert "CR" not in str(error.value)


def test_a_truncated_answer_says_so(endpoint: Endpoint) -> None:
    endpoint.plays(answer("half a sen", finish="length"))
    reply = client(endpoint).complete(request())
    assert (reply.finish, reply.is_complete) == ("length", False)


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}])
def test_usage_that_is_not_told_is_estimated_and_flagged(endpoint: Endpoint, usage: dict[str, int]) -> None:
    endpoint.plays(answer("three words here", usage=usage))
    told = client(endpoint).complete(request("five words are in here")).usage
    assert (told.prompt_tokens, told.completion_tokens, told.estimated) == (7, 3, True)


@pytest.mark.parametrize(
    "n_tokens", [10**30, 2**62, 1_000_000, 7.5, "7", -1, [7], True, {"n": 7}, float("inf")]
)
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_usage_that_cannot_be_true_is_estimated_and_flagged(
    endpoint: Endpoint, name: str, n_tokens: Any
) -> None:
    endpoint.plays(
        answer("three words here", usage={"prompt_tokens": 9, "completion_tokens": 9, name: n_tokens})
    )
    told = client(endpoint).complete(request("five words are in here")).usage
    assert told == Usage(7, 3, estimated=True)


@pytest.mark.parametrize("usage", ["many", [1], 3])
def test_usage_of_another_shape_is_estimated(endpoint: Endpoint, usage: Any) -> None:
    endpoint.plays({**answer("one"), "usage": usage})
    assert client(endpoint).complete(request("two")).usage == Usage(3, 1, estimated=True)


@pytest.mark.parametrize("pause", ["3600", "1e308", "1" + "0" * 30, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_pause_beyond_the_deadline_ends_all_calls_at_once(endpoint: Endpoint, pause: str) -> None:
    endpoint.plays(fault(429, Retry_After=pause))
    asking = ChatClient(endpoint.url, KEY, ConcurrencyLimiter(2), len, deadline_s=3.0)
    started = time.monotonic()
    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(asking.complete, request(f"{i}")) for i in range(6)]
        for call in calls:
            with pytest.raises(EndpointUnavailable, match=r"left alone for (3600|3599|86400) s"):
                call.result(10)
    assert time.monotonic() - started < 3.0
    assert len(endpoint.requests) <= 2


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


def in_own_time(url: str, **options: Any) -> tuple[ChatClient, list[float]]:
    """A client whose time is that of its pauses, and what its clock shows."""
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    limiter = ConcurrencyLimiter(1)
    return ChatClient(url, KEY, limiter, len, sleep=sleep, clock=lambda: clock[0], **options), clock


@pytest.mark.parametrize(("deadline_s", "patience_s"), [(600.0, 15), (5.0, 5), (0.0, 0)])
def test_an_endpoint_that_is_not_there_is_named_and_given_up_soon(
    caplog: pytest.LogCaptureFixture, deadline_s: float, patience_s: int
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    asking, clock = in_own_time(url, deadline_s=deadline_s)
    reason = rf"no connection: .*attempts within {patience_s} s, and no answer before\): see that it runs"
    with pytest.raises(EndpointUnusable, match=f"{url} cannot be used: {reason}"):
        asking.complete(request())
    assert patience_s - 3 <= clock[0] <= patience_s  # the next pause would have been 3 s at most
    told = [f"endpoint {url} does not answer (no connection", f"trying again for up to {patience_s} s"]
    assert all(part in message for message in warnings(caplog) for part in told)
    assert len(warnings(caplog)) == (patience_s > 0)


def test_an_endpoint_that_went_away_is_waited_for_and_told_of_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        leaving = threading.Thread(target=answer_and_leave, args=(listening,), daemon=True)
        leaving.start()
        asking, clock = in_own_time(f"http://127.0.0.1:{listening.getsockname()[1]}/v1")
        assert asking.complete(request()).text == "fine"
        leaving.join(10)
    assert warnings(caplog) == []
    with pytest.raises(EndpointUnavailable, match=r"did not answer within 600 s .*no connection"):
        asking.complete(request("more"))
    assert 540 <= clock[0] <= 600
    assert "trying again for up to 600 s" in warnings(caplog)[0]
    assert 2 <= len(warnings(caplog)) <= 10


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, but for the server's own messages."""
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def answer_and_leave(listening: socket.socket) -> None:
    """Answer one request, and listen no more."""
    body = json.dumps(answer()).encode()
    peer, _ = listening.accept()
    listening.close()
    with peer:
        peer.recv(65_536)
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        peer.sendall(head % len(body) + body)


def test_an_endpoint_that_fails_from_the_start_is_waited_for_and_told_of_without_the_key(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.plays(fault(500, f"broken for {KEY}"))
    asking, clock = in_own_time(endpoint.url)
    with pytest.raises(EndpointUnavailable, match="HTTP 500"):
        asking.complete(request())
    assert 540 <= clock[0] <= 600
    assert f"{endpoint.url} does not answer (HTTP 500: broken for [key])" in warnings(caplog)[0]
    assert KEY not in caplog.text


def test_a_fault_that_passes_at_once_is_not_told(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.plays(fault(500), fault(500), answer())
    client(endpoint).complete(request())
    assert warnings(caplog) == []


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
