"""What calls may cost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from prime_pipeline.errors import BudgetSpent, SettingsError
from prime_pipeline.llm.budget import Budget, Prices
from prime_pipeline.llm.chat import Usage

PRICES = Prices(prompt_per_million=2.0, completion_per_million=8.0, currency="EUR")


def usage(prompt_tokens: int, completion_tokens: int) -> Usage:
    return Usage(prompt_tokens, completion_tokens, estimated=False)


def test_a_price_by_hand() -> None:
    assert PRICES.cost(500_000, 250_000) == pytest.approx(1.0 + 2.0)


def test_a_cost_limit_needs_prices() -> None:
    with pytest.raises(SettingsError, match="prices"):
        Budget(max_cost=1.0)


def test_a_call_that_could_go_beyond_the_limit_is_not_begun() -> None:
    budget = Budget(max_tokens=100)
    with budget.reserved(usage(40, 60)):
        budget.spend(usage(40, 41))
    with budget.reserved(usage(10, 9)):
        budget.spend(usage(10, 2))
    with (
        pytest.raises(BudgetSpent, match=r"93 tokens of 100 .* raise the limit"),
        budget.reserved(usage(4, 4)),
    ):
        pass


def test_a_cost_limit_counts_both_kinds_of_tokens() -> None:
    budget = Budget(max_cost=0.01, prices=PRICES)
    with budget.reserved(usage(1000, 1000)):  # 0.002 + 0.008
        budget.spend(usage(1000, 900))
    with pytest.raises(BudgetSpent, match=r"0.0092 EUR of 0.0100"), budget.reserved(usage(0, 101)):
        pass


def test_without_limits_nothing_is_refused() -> None:
    budget = Budget()
    with budget.reserved(usage(10**9, 10**9)):
        budget.spend(usage(10**9, 10**9))
    assert budget.spent == usage(10**9, 10**9)


def test_a_call_waits_where_another_may_leave_room() -> None:
    budget = Budget(max_tokens=100)
    entered = threading.Event()

    def second() -> None:
        with budget.reserved(usage(0, 60)):
            entered.set()

    with budget.reserved(usage(0, 60)):
        thread = threading.Thread(target=second)
        thread.start()
        assert not entered.wait(0.1)
        budget.spend(usage(0, 10))
    assert entered.wait(5)
    thread.join()


def test_many_calls_in_flight_stay_within_the_limit() -> None:
    budget = Budget(max_tokens=1000)

    def call(number: int) -> bool:
        try:
            with budget.reserved(usage(10, 90)):
                budget.spend(usage(10, 60 + number % 30))
        except BudgetSpent:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        answered = list(pool.map(call, range(40)))
    spent = budget.spent.prompt_tokens + budget.spent.completion_tokens
    assert 900 < spent <= 1000
    assert 10 <= sum(answered) < 40


def test_a_call_that_fails_gives_its_room_back() -> None:
    budget = Budget(max_tokens=100)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="failed"), budget.reserved(usage(50, 50)):
            raise RuntimeError("failed")
