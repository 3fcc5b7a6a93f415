"""The limit on calls at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from prime_pipeline.errors import ChatClosed
from prime_pipeline.llm.limiter import ConcurrencyLimiter, PauseTooLong


def test_a_burst_of_refusals_counts_once() -> None:
    limiter = ConcurrencyLimiter(8)
    with limiter.call() as one, limiter.call() as two, limiter.call() as three:
        for permit in (one, two, three):
            limiter.refused(permit, 0.0)
    assert limiter.limit == 4
    with limiter.call() as later:
        limiter.refused(later, 0.0)
    assert limiter.limit == 2


def test_the_limit_never_falls_below_one_and_never_rises_above_its_maximum() -> None:
    limiter = ConcurrencyLimiter(2)
    for _ in range(4):
        with limiter.call() as permit:
            limiter.refused(permit, 0.0)
    assert limiter.limit == 1
    for _ in range(20):
        limiter.succeeded()
    assert limiter.limit == 2


def test_a_pause_holds_every_worker() -> None:
    limiter = ConcurrencyLimiter(4)
    with limiter.call() as permit:
        limiter.refused(permit, 0.15)
    started = time.monotonic()
    with limiter.call():
        pass
    assert time.monotonic() - started >= 0.1


@pytest.mark.parametrize("pause_s", [3600.0, 1e308, float("inf")])
def test_a_pause_that_is_too_long_ends_the_waiting(pause_s: float) -> None:
    limiter = ConcurrencyLimiter(4)
    ended = threading.Event()

    def worker() -> None:
        with pytest.raises(PauseTooLong, match="left alone for"), limiter.call(60.0):
            pass
        ended.set()

    with limiter.call() as permit:
        limiter.refused(permit, 30.0)
        thread = threading.Thread(target=worker)
        thread.start()
        assert not ended.wait(0.05)
        limiter.refused(permit, pause_s)
        assert ended.wait(5)
    thread.join()


def test_a_pause_without_end_can_be_waited_for() -> None:
    limiter = ConcurrencyLimiter(1)
    with limiter.call() as permit:
        limiter.refused(permit, 1e308)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(limiter.call().__enter__)
        time.sleep(0.05)
        assert not waiting.done()
        limiter.close()
        with pytest.raises(ChatClosed):
            waiting.result(5)


def test_a_worker_waits_for_leave_and_gets_it() -> None:
    limiter = ConcurrencyLimiter(1)
    entered = threading.Event()

    def worker() -> None:
        with limiter.call():
            entered.set()

    with limiter.call():
        thread = threading.Thread(target=worker)
        thread.start()
        assert not entered.wait(0.05)
    assert entered.wait(5)
    thread.join()


def test_leave_comes_back_when_a_call_fails() -> None:
    limiter = ConcurrencyLimiter(1)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="failed"), limiter.call():
            raise RuntimeError("failed")


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        ConcurrencyLimiter(0)


def test_close_wakes_who_waits_and_turns_away_who_comes_later() -> None:
    limiter = ConcurrencyLimiter(1)
    with limiter.call() as permit:
        limiter.refused(permit, 300.0)
    turned_away = threading.Event()

    def worker() -> None:
        with pytest.raises(ChatClosed), limiter.call():
            pass
        turned_away.set()

    thread = threading.Thread(target=worker)
    thread.start()
    assert not turned_away.wait(0.05)
    limiter.close()
    assert turned_away.wait(5)
    thread.join()
    with pytest.raises(ChatClosed), limiter.call():
        pass
