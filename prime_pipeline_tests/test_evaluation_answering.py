"""Answers from a real HTTP server on loopback: cached, budgeted, in order, and what fails is told."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.errors import ChatClosed
from prime_pipeline.evaluation.answering import (
    Answer,
    AnswerGenerator,
    AnswerOptions,
    Answers,
    Question,
    answer_all,
)
from prime_pipeline.evaluation.passages import Passage
from prime_pipeline.llm.budget import Budget
from prime_pipeline.llm.cached import CachedChat
from prime_pipeline.llm.client import ChatClient
from prime_pipeline.llm.limiter import ConcurrencyLimiter
from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.records import Query, Spending
from prime_pipeline_tests.chat_endpoint import Endpoint, Step, answer, fault

PAID = Spending(calls=1, prompt_tokens=7, completion_tokens=3)


def chat(endpoint: Endpoint, folder: Path, budget: Budget | None = None) -> CachedChat:
    client = ChatClient(
        endpoint.url, "", ConcurrencyLimiter(8), n_words, deadline_s=20.0, sleep=lambda seconds: None
    )
    return CachedChat(client, ReplyCache(folder / "llm.sqlite"), budget or Budget())


def n_words(text: str) -> int:
    return len(text.split())


def generator(chat: CachedChat, **options: Any) -> AnswerGenerator:
    return AnswerGenerator(chat, AnswerOptions("http://endpoint/v1", "m", **options), n_words)


def question(name: str, *texts: str) -> Question:
    found = tuple(Passage(f"{name}#{at}", "T", ("H",), text) for at, text in enumerate(texts, start=1))
    return Question(Query(name, f"What of {name}?"), found)


def questions(n_questions: int) -> list[Question]:
    return [question(f"q{at}", f"text of q{at}") for at in range(n_questions)]


def asked(body: dict[str, Any]) -> str:
    """The id of the question in a request."""
    found = re.search(r"What of (\w+)\?", body["messages"][1]["content"])
    assert found
    return found[1]


def echo(body: dict[str, Any]) -> Step:
    return answer(f"answer to {asked(body)}")


def test_an_answer_comes_with_its_evidence_and_its_cost(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.plays(answer("<think>hm</think>BERT, a CRF\n"))
    found = generator(chat(endpoint, tmp_path)).answer(question("q", "We use BERT.", "And a CRF."))
    assert found == Answer("q", "BERT, a CRF", ("q#1", "q#2"), 0, PAID)
    (sent,) = endpoint.requests
    assert (sent["temperature"], sent["max_tokens"], sent["model"]) == (0, 512, "m")
    assert "Unanswerable" in sent["messages"][0]["content"]
    assert "<text-1>\nWe use BERT.\n</text-1>" in endpoint.users[0]
    assert endpoint.users[0].endswith("<question-1>\nWhat of q?\n</question-1>")


def test_nobody_pays_twice_also_not_for_a_refusal(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.responds(lambda body: fault(400, "no", "content_filter") if asked(body) == "q1" else echo(body))
    first = answer_all(questions(3), generator(chat(endpoint, tmp_path)), 2)
    second = answer_all(questions(3), generator(chat(endpoint, tmp_path)), 2)
    assert len(endpoint.requests) == 3
    assert second.predictions == first.predictions == {"q0": "answer to q0", "q2": "answer to q2"}
    assert [one.from_cache for one in first.answers] == [False] * 3
    assert [one.from_cache for one in second.answers] == [True] * 3
    assert first.spending == Spending(calls=2, prompt_tokens=14, completion_tokens=6)
    assert second.spending == Spending(cache_hits=3)


def test_another_text_or_model_is_another_question(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.responds(echo)
    asking = chat(endpoint, tmp_path)
    generator(asking).answer(question("q", "raw text"))
    assert not generator(asking).answer(question("q", "dense text")).from_cache
    assert not generator(asking, max_answer_tokens=9).answer(question("q", "raw text")).from_cache
    assert generator(asking).answer(question("q", "raw text")).from_cache


def test_what_does_not_fit_is_cut_and_counted(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.plays(answer("x"))
    long = "one two three\n\n" + "many words " * 20
    # A passage's tags, title and heading count ten words here.
    asking = generator(chat(endpoint, tmp_path), max_context_tokens=24)
    found = asking.answer(question("q", long, "four " * 30, "five"))
    assert (found.section_ids, found.n_cut) == (("q#1", "q#3"), 2)
    (sent,) = endpoint.users
    assert "<text-1>\none two three\n</text-1>" in sent
    assert "<text-1>\nfive\n</text-1>" in sent
    assert not re.search("many|four", sent)


@pytest.mark.parametrize("texts", [(), ("far too many words",)])
def test_without_a_passage_nobody_is_asked(
    endpoint: Endpoint, tmp_path: Path, texts: tuple[str, ...]
) -> None:
    found = generator(chat(endpoint, tmp_path), max_context_tokens=3).answer(question("q", *texts))
    assert (found.failure, found.section_ids, found.n_cut) == ("no_passage", (), len(texts))
    assert "max_context_tokens" in found.detail
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("step", "failure", "detail", "n_paid"),
    [
        (fault(400, "blocked", "content_filter"), "content_filter", "blocked", 0),
        (fault(400, "maximum context length is 10"), "context_length", "maximum context length", 0),
        (answer("half an ans", finish="length"), "truncated", "longer than 512 tokens", 1),
        (answer(""), "endpoint_unavailable", "an empty answer", 3),
    ],
)
def test_a_failure_is_recorded_and_the_others_go_on(
    endpoint: Endpoint, tmp_path: Path, step: Step, failure: str, detail: str, n_paid: int
) -> None:
    endpoint.responds(lambda body: step if asked(body) == "q1" else echo(body))
    found = answer_all(questions(3), generator(chat(endpoint, tmp_path)), 2)
    assert [one.failure for one in found.answers] == [None, failure, None]
    failed = found.answers[1]
    assert (failed.text, failed.section_ids, failed.spending.calls) == ("", ("q1#1",), n_paid)
    assert detail in failed.detail
    assert found.stopped is None
    assert found.predictions.keys() == {"q0", "q2"}


def test_answers_keep_the_order_of_the_questions(endpoint: Endpoint, tmp_path: Path) -> None:
    def slow_first(body: dict[str, Any]) -> Step:
        time.sleep(0.3 if asked(body) == "q0" else 0)
        return echo(body)

    endpoint.responds(slow_first)
    told: list[tuple[str, int, int | None]] = []
    found = answer_all(
        questions(8), generator(chat(endpoint, tmp_path)), 4, lambda *state: told.append(state)
    )
    assert [one.text for one in found.answers] == [f"answer to q{at}" for at in range(8)]
    assert told[-1] == ("answering", 8, 8)


def test_questions_that_are_open_again_are_not_told_as_done(endpoint: Endpoint, tmp_path: Path) -> None:
    def by_question(body: dict[str, Any]) -> Step:
        steps: dict[str, Step] = {"q1": answer(""), "q2": fault(400, "no", "content_filter")}
        return steps.get(asked(body)) or echo(body)

    endpoint.responds(by_question)
    told: list[tuple[str, int, int | None]] = []
    found = answer_all(
        questions(4), generator(chat(endpoint, tmp_path)), 2, lambda *state: told.append(state)
    )
    assert [one.is_open for one in found.answers] == [False, True, False, False]
    assert told[-1] == ("answering", 3, 4)


def test_no_more_are_under_way_than_there_are_workers(endpoint: Endpoint, tmp_path: Path) -> None:
    under_way, most, lock = 0, 0, threading.Lock()

    def counted(body: dict[str, Any]) -> Step:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.05)
        with lock:
            under_way -= 1
        return echo(body)

    endpoint.responds(counted)
    answer_all(questions(12), generator(chat(endpoint, tmp_path)), 3)
    assert most == 3


def test_no_questions_are_no_answers(endpoint: Endpoint, tmp_path: Path) -> None:
    assert answer_all([], generator(chat(endpoint, tmp_path)), 2) == Answers(())


def test_what_is_planned_is_what_would_be_sent(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.plays(answer("x"))
    asking = generator(chat(endpoint, tmp_path), max_answer_tokens=9, max_context_tokens=24)
    long = question("q", "one two three\n\n" + "many words " * 20, "five")
    request = asking.planned(long)
    assert request is not None
    assert endpoint.requests == []
    asking.answer(long)
    (sent,) = endpoint.requests
    assert [message["content"] for message in sent["messages"]] == [request.system, request.user]
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("m", 9, request.temperature)
    assert request.max_tokens == 9
    assert asking.prompt_tokens(request) == n_words(request.system) + n_words(request.user)


def test_nothing_is_planned_where_the_answer_or_a_refusal_is_known(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.responds(lambda body: fault(400, "no", "content_filter") if asked(body) == "q1" else echo(body))
    asking = generator(chat(endpoint, tmp_path))
    assert [asking.planned(q) is None for q in questions(3)] == [False] * 3
    answer_all(questions(2), asking, 2)
    assert [asking.planned(q) is None for q in questions(3)] == [True, True, False]
    assert generator(chat(endpoint, tmp_path), max_answer_tokens=9).planned(questions(1)[0]) is not None


def test_a_question_that_failed_for_now_is_planned_again(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.plays(answer(""))
    asking = generator(chat(endpoint, tmp_path))
    assert asking.answer(question("q", "text")).failure == "endpoint_unavailable"
    assert asking.planned(question("q", "text")) is not None


@pytest.mark.parametrize("texts", [(), ("far too many words",)])
def test_without_a_passage_nothing_is_planned(
    endpoint: Endpoint, tmp_path: Path, texts: tuple[str, ...]
) -> None:
    asking = generator(chat(endpoint, tmp_path), max_context_tokens=3)
    assert asking.planned(question("q", *texts)) is None


def refusing_key(endpoint: Endpoint, folder: Path) -> CachedChat:
    endpoint.responds(lambda body: fault(401, "wrong key") if asked(body) == "q3" else echo(body))
    return chat(endpoint, folder)


def spent_soon(endpoint: Endpoint, folder: Path) -> CachedChat:
    endpoint.responds(echo)
    cost = n_words(_first_request(endpoint, folder)) + 512
    return chat(endpoint, folder, Budget(max_tokens=cost + 25))  # each answer is charged with 10


def _first_request(endpoint: Endpoint, folder: Path) -> str:
    """The words of a request like all others."""
    generator(chat(endpoint, folder / "apart")).answer(question("qx", "text of qx"))
    messages = endpoint.requests.pop()["messages"]
    return " ".join(message["content"] for message in messages)


@pytest.mark.parametrize(
    ("stopping", "failure", "reason"),
    [
        (refusing_key, "endpoint_unusable", "wrong key"),
        (spent_soon, "budget_spent", "run again"),
    ],
)
def test_a_run_that_cannot_go_on_stops_with_what_is_done(
    endpoint: Endpoint,
    tmp_path: Path,
    stopping: Callable[[Endpoint, Path], CachedChat],
    failure: str,
    reason: str,
) -> None:
    (tmp_path / "apart").mkdir()
    found = answer_all(questions(20), generator(stopping(endpoint, tmp_path)), 1)
    assert [one.query_id for one in found.answers] == ["q0", "q1", "q2", "q3"]
    assert [one.failure for one in found.answers] == [None, None, None, failure]
    assert found.stopped is not None
    assert reason in found.stopped
    assert found.predictions.keys() == {"q0", "q1", "q2"}
    endpoint.responds(echo)
    again = answer_all(questions(20), generator(chat(endpoint, tmp_path)), 4)
    assert again.stopped is None
    assert again.spending.cache_hits == 3
    assert len(again.predictions) == 20


def test_an_endpoint_that_is_not_there_ends_the_run_at_once(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/v1"
    client = ChatClient(url, "", ConcurrencyLimiter(8), n_words, deadline_s=0.0)
    asking = generator(CachedChat(client, ReplyCache(tmp_path / "llm.sqlite"), Budget()))
    found = answer_all(questions(20), asking, 1)
    assert [one.failure for one in found.answers] == ["endpoint_unusable"]
    assert found.stopped is not None
    assert url in found.stopped
    assert "see that it runs" in found.stopped


def test_a_closed_chat_ends_the_run(endpoint: Endpoint, tmp_path: Path) -> None:
    asking = chat(endpoint, tmp_path)

    def closing(body: dict[str, Any]) -> Step:
        if asked(body) == "q2":
            asking.close()
        return echo(body)

    endpoint.responds(closing)
    with pytest.raises(ChatClosed):
        answer_all(questions(50), generator(asking), 2)
    assert len(endpoint.requests) < 10


def test_what_a_broken_run_paid_is_known(endpoint: Endpoint, tmp_path: Path) -> None:
    asking = chat(endpoint, tmp_path)

    def closing(body: dict[str, Any]) -> Step:
        if asked(body) == "q2":
            asking.close()
        return echo(body)

    endpoint.responds(closing)
    answering = generator(asking)
    with pytest.raises(ChatClosed):
        answer_all(questions(4), answering, 1)
    assert answering.spending == PAID + PAID
