"""Tasks of several threads, in order: what is given back, what is held, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from prime_pipeline.llm.in_order import done_in_order


@pytest.mark.parametrize("n_workers", [1, 2, 7])
def test_results_come_in_the_order_of_the_tasks(n_workers: int) -> None:
    assert list(done_in_order([partial(str, at) for at in range(200)], n_workers)) == list(
        map(str, range(200))
    )


def test_several_tasks_run_at_once() -> None:
    together = threading.Barrier(3, timeout=20)
    assert list(done_in_order([together.wait] * 3, 3)) != []


def test_tasks_are_taken_as_they_are_needed() -> None:
    gate, taken = threading.Event(), 0

    def tasks() -> Iterator[partial[bool]]:
        nonlocal taken
        for _ in range(1_000):
            taken += 1
            yield partial(gate.wait, 20)

    results = done_in_order(tasks(), 2)
    opener = threading.Timer(0.2, gate.set)
    opener.start()
    assert next(results)
    assert taken <= 2 * 32 + 1
    results.close()
    opener.join()


@pytest.mark.parametrize("n_workers", [1, 4])
def test_an_error_comes_at_its_place_and_ends_the_rest(n_workers: int) -> None:
    def fails() -> int:
        raise LookupError("here")

    tasks: list[Callable[[], int]] = [partial(int, 1), fails, partial(int, 2)]
    results = done_in_order(tasks, n_workers)
    assert next(results) == 1
    with pytest.raises(LookupError, match="here"):
        next(results)
    assert list(results) == []
