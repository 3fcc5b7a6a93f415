"""How many calls are in flight at once: less when the endpoint says too many, more again while it goes well."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prime_pipeline.errors import ChatClosed


@dataclass(slots=True)
class Permit:
    """Leave for one call.

    Attributes:
        epoch: Number of cuts of the limit before the call started.
    """

    epoch: int


class PauseTooLong(Exception):
    """The endpoint wants to be left alone for longer than a call can wait.

    Attributes:
        pause_s: For how long from now.
    """

    def __init__(self, pause_s: float) -> None:
        super().__init__(f"the endpoint asks to be left alone for {pause_s:.0f} s")
        self.pause_s = pause_s


class ConcurrencyLimiter:
    """A limit shared by all workers of a run: halved on 429, raised by one after as many successes as it is high.

    The scheme is that of TCP's congestion avoidance (additive increase, multiplicative decrease). Calls that were in
    flight together and are all refused count as one refusal, or a single burst would bring the limit down to one. A
    pause that the endpoint asks for holds every worker, so that they do not all come back at the same moment to be
    refused again.

    Args:
        maximum: Calls at once, when all goes well.
        clock: Seconds, only ever rising.
    """

    def __init__(self, maximum: int, clock: Callable[[], float] = time.monotonic) -> None:
        if maximum < 1:
            raise ValueError(f"maximum is {maximum}, expected 1 or more")
        self._maximum = maximum
        self._limit = maximum
        self._in_flight = 0
        self._successes = 0
        self._epoch = 0
        self._resume_at = 0.0
        self._clock = clock
        self._closed = False
        self._changed = threading.Condition()

    @property
    def limit(self) -> int:
        """Calls allowed at once now."""
        return self._limit

    @contextmanager
    def call(self, longest_pause_s: float = math.inf) -> Iterator[Permit]:
        """Wait for leave, and hold it for the block.

        Args:
            longest_pause_s: What the call can wait where the endpoint asked for a pause. How long it waits for other
                calls to end is not limited.

        Raises:
            ChatClosed: The limiter was closed, before or while this call was waiting.
            PauseTooLong: The endpoint asked for a longer pause, before or meanwhile.
        """
        permit = self._acquire(longest_pause_s)
        try:
            yield permit
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def succeeded(self) -> None:
        """Note that a call went well."""
        with self._changed:
            self._successes += 1
            if self._successes >= self._limit < self._maximum:
                self._limit += 1
                self._successes = 0
                self._changed.notify_all()

    def refused(self, permit: Permit, pause_s: float) -> None:
        """Note that the endpoint said 429 to a call, and wants to be left alone for some seconds."""
        with self._changed:
            self._resume_at = max(self._resume_at, self._clock() + pause_s)
            if permit.epoch == self._epoch:
                self._limit = max(1, self._limit // 2)
                self._epoch += 1
            self._successes = 0
            self._changed.notify_all()

    def close(self) -> None:
        """End all waiting: whoever waits for leave, or asks for it later, gets ChatClosed."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _acquire(self, longest_pause_s: float) -> Permit:
        with self._changed:
            while True:
                if self._closed:
                    raise ChatClosed
                wait_s = self._resume_at - self._clock()
                if wait_s > max(0.0, longest_pause_s):
                    raise PauseTooLong(wait_s)
                if wait_s <= 0 and self._in_flight < self._limit:
                    self._in_flight += 1
                    return Permit(self._epoch)
                self._changed.wait(min(wait_s, threading.TIMEOUT_MAX) if wait_s > 0 else None)
