"""Chat that nobody pays twice, against a real HTTP server on loopback."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.errors import BudgetSpent, EndpointUnavailable, EndpointUnusable, RequestRefused
from prime_pipeline.llm.budget import Budget
from prime_pipeline.llm.cached import Account, CachedChat
from prime_pipeline.llm.chat import ChatRequest
from prime_pipeline.llm.client import ChatClient
from prime_pipeline.llm.limiter import ConcurrencyLimiter
from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.records import Spending
from prime_pipeline_tests.chat_endpoint import Endpoint, answer, fault

REQUEST = ChatRequest("http://a/v1", "m", "system words", "user", "v1", 100)


def chat(endpoint: Endpoint, folder: Path, budget: Budget | None = None) -> CachedChat:
    client = ChatClient(
        endpoint.url, "", ConcurrencyLimiter(8), lambda text: len(text.split()), sleep=lambda s: None
    )
    return CachedChat(client, ReplyCache(folder / "llm.sqlite"), budget or Budget())


def spent(chat: CachedChat, request: ChatRequest = REQUEST, raises: Any = None) -> Spending:
    account = Account()
    if raises is None:
        chat.ask(request, account)
    else:
        with pytest.raises(raises):
            chat.ask(request, account)
    return account.spending


def test_a_reply_is_paid_once_also_for_a_later_process(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.plays(answer("dense"))
    assert spent(chat(endpoint, tmp_path)) == Spending(calls=1, prompt_tokens=7, completion_tokens=3)
    later = chat(endpoint, tmp_path)
    assert spent(later) == Spending(cache_hits=1)
    assert later.ask(REQUEST, Account()).text == "dense"
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("step", "code", "n_paid"),
    [
        (fault(400, "maximum context length is 10"), "context_length", 0),
        (fault(400, "blocked", "content_filter"), "content_filter", 0),
        (answer("half", finish="content_filter"), "content_filter", 1),
    ],
)
def test_a_refusal_is_remembered(
    endpoint: Endpoint, tmp_path: Path, step: Any, code: str, n_paid: int
) -> None:
    endpoint.plays(step, answer())
    assert spent(chat(endpoint, tmp_path), raises=RequestRefused).calls == n_paid
    with pytest.raises(RequestRefused) as error:
        chat(endpoint, tmp_path).ask(REQUEST, Account())
    assert error.value.code == code
    assert spent(chat(endpoint, tmp_path), raises=RequestRefused) == Spending(cache_hits=1)
    assert len(endpoint.requests) == 1
    spent(chat(endpoint, tmp_path), replace(REQUEST, user="another text"))
    assert len(endpoint.requests) == 2


def test_a_truncated_answer_is_never_a_reply_and_never_paid_twice(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.plays(answer("half a sen", finish="length"), answer("all of it"))
    asking = chat(endpoint, tmp_path)
    first = spent(asking, raises=RequestRefused)
    assert (first.calls, first.truncated, first.completion_tokens) == (1, 1, 3)
    assert spent(asking, raises=RequestRefused) == Spending(cache_hits=1)
    assert asking.ask(replace(REQUEST, max_tokens=200), Account()).text == "all of it"
    assert len(endpoint.requests) == 2


def test_what_useless_answers_cost_is_not_lost(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.plays(answer(""))
    budget = Budget()
    spending = spent(chat(endpoint, tmp_path, budget), raises=EndpointUnavailable)
    assert (spending.calls, spending.prompt_tokens) == (3, 21)
    assert budget.spent.prompt_tokens == 21


def test_an_odd_answer_is_kept_and_one_that_is_no_completion_costs_nothing(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.plays(
        answer("a\ud800", usage={"prompt_tokens": 10**30, "completion_tokens": 2**62}), {"login": "please"}
    )
    budget = Budget(max_tokens=10**6)
    asking = chat(endpoint, tmp_path, budget)
    assert spent(asking) == Spending(calls=1, prompt_tokens=3, completion_tokens=1, estimated=True)
    assert asking.ask(REQUEST, Account()).text == "a\ufffd"
    before = budget.spent
    assert spent(asking, replace(REQUEST, user="more"), raises=EndpointUnavailable) == Spending()
    assert budget.spent == before


def test_threads_that_ask_the_same_at_once_pay_once(endpoint: Endpoint, tmp_path: Path) -> None:
    def slowly(body: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.1)
        return answer(body["messages"][1]["content"])

    endpoint.responds(slowly)
    asking = chat(endpoint, tmp_path)
    requests = [replace(REQUEST, user=f"text {i % 2}") for i in range(12)]
    with ThreadPoolExecutor(12) as pool:
        texts = list(pool.map(lambda r: asking.ask(r, Account()).text, requests))
    assert texts == [r.user for r in requests]
    assert len(endpoint.requests) == 2


def test_an_unusable_endpoint_is_asked_once_and_the_cache_still_answers(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.plays(answer("known"), fault(401))
    asking = chat(endpoint, tmp_path)
    spent(asking)
    for number in range(3):
        spent(asking, replace(REQUEST, user=f"new {number}"), raises=EndpointUnusable)
    assert len(endpoint.requests) == 2
    assert asking.ask(REQUEST, Account()).text == "known"


def test_a_spent_budget_stops_calls_but_not_the_cache(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.plays(answer())
    asking = chat(endpoint, tmp_path, Budget(max_tokens=110))  # one call: 3 words of prompt, 100 of answer
    spent(asking)
    assert spent(asking, replace(REQUEST, user="more"), raises=BudgetSpent) == Spending()
    assert spent(asking) == Spending(cache_hits=1)
    assert len(endpoint.requests) == 1
    assert spent(chat(endpoint, tmp_path), replace(REQUEST, user="more")).calls == 1


@pytest.mark.parametrize(
    ("step", "raises", "is_known"),
    [
        (answer("dense"), None, True),
        (fault(400, "blocked", "content_filter"), RequestRefused, True),
        (answer("half", finish="length"), RequestRefused, True),
        (fault(400, "strange"), RequestRefused, False),
        (answer(""), EndpointUnavailable, False),
        (fault(401), EndpointUnusable, False),
    ],
)
def test_what_need_not_be_asked_again_is_known(
    endpoint: Endpoint, tmp_path: Path, step: Any, raises: Any, is_known: bool
) -> None:
    endpoint.plays(step)
    asking = chat(endpoint, tmp_path)
    assert not asking.knows(REQUEST)
    assert endpoint.requests == []
    spent(asking, raises=raises)
    n_requests = len(endpoint.requests)
    later = chat(endpoint, tmp_path)
    assert asking.knows(REQUEST) is later.knows(REQUEST) is is_known
    assert not asking.knows(replace(REQUEST, user="another text"))
    assert len(endpoint.requests) == n_requests
