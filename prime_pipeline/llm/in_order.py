"""Tasks done by several threads at once, their results in the order of the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

_T = TypeVar("_T")

_WINDOW_PER_WORKER = 32
"""Tasks under way for each worker. So many may be finished while the first one hangs, before the order makes workers
wait."""
_WAKE_S = 0.5


def done_in_order(tasks: Iterable[Callable[[], _T]], n_workers: int) -> Generator[_T]:
    """The results of tasks, in their order.

    Tasks are taken as they are needed, and at most 32 for each worker are under way. If the caller stops early or a task
    fails, what has not begun is cancelled, and what has is not waited for.

    Args:
        tasks: May be lazy.
        n_workers: Threads; with 1 everything runs in the calling thread.

    Raises:
        Exception: Whatever a task raises, at its place.
    """
    if n_workers == 1:
        yield from (task() for task in tasks)
        return
    pool = ThreadPoolExecutor(n_workers, thread_name_prefix="asking")
    ahead: deque[Future[_T]] = deque()
    try:
        for task in tasks:
            ahead.append(pool.submit(task))
            while ahead and (len(ahead) >= _WINDOW_PER_WORKER * n_workers or ahead[0].done()):
                yield _result(ahead.popleft())
        while ahead:
            yield _result(ahead.popleft())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _result(future: Future[_T]) -> _T:
    while not future.done():
        # Not for ever: a signal that was handed to another thread is only seen by this one when it wakes.
        wait([future], timeout=_WAKE_S)
    return future.result()
