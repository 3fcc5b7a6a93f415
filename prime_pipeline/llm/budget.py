"""What calls may cost: a limit in tokens, in money, or in both, for one run. Knows nothing of what the calls are for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prime_pipeline.errors import BudgetSpent, SettingsError
from prime_pipeline.llm.chat import Usage

_NOTHING = Usage(0, 0, estimated=False)


@dataclass(frozen=True, slots=True)
class Prices:
    """What a model costs.

    Attributes:
        prompt_per_million: For a million tokens read.
        completion_per_million: For a million tokens generated.
        currency: For people.
    """

    prompt_per_million: float
    completion_per_million: float
    currency: str = "USD"

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The price of so many tokens, in ``currency``."""
        spent = prompt_tokens * self.prompt_per_million + completion_tokens * self.completion_per_million
        return spent / 1_000_000


class Budget:
    """A limit that all threads of a run share.

    Each call first reserves the most it can cost, and what it really cost is counted when it is answered. A call that
    fits only once others have come in below their reservation waits for them. So calls in flight never add up to more
    than the limit, as far as tokens are counted here as the endpoint counts them. Only an answer that is paid, of no
    use, and asked for again can go beyond.

    Args:
        max_tokens: Read and generated together; None for no limit.
        max_cost: In the currency of the prices; None for no limit.
        prices: Needed for ``max_cost``.

    Raises:
        SettingsError: A cost is limited without prices.
    """

    def __init__(
        self, max_tokens: int | None = None, max_cost: float | None = None, prices: Prices | None = None
    ) -> None:
        if max_cost is not None and prices is None:
            raise SettingsError(
                "a cost limit needs the prices of the model: set them, or limit tokens instead"
            )
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._prices = prices
        self._spent = _NOTHING
        self._reserved = _NOTHING
        self._changed = threading.Condition()

    @property
    def spent(self) -> Usage:
        """What the calls of this run came to so far."""
        return self._spent

    def spend(self, usage: Usage) -> None:
        """Count what an answer cost, usable or not."""
        with self._changed:
            self._spent += usage

    @contextmanager
    def reserved(self, most: Usage) -> Iterator[None]:
        """Hold room for a call for the block, in which it is spent.

        Args:
            most: What the call can cost at most.

        Raises:
            BudgetSpent: There is no room, and there will be none however the calls in flight end.
        """
        with self._changed:
            while not self._fits(self._spent + self._reserved + most):
                if not self._fits(self._spent + most):
                    raise self._refusal(most)
                self._changed.wait()
            self._reserved += most
        try:
            yield
        finally:
            with self._changed:
                self._reserved = Usage(
                    self._reserved.prompt_tokens - most.prompt_tokens,
                    self._reserved.completion_tokens - most.completion_tokens,
                    estimated=False,
                )
                self._changed.notify_all()

    def _fits(self, usage: Usage) -> bool:
        n_tokens = usage.prompt_tokens + usage.completion_tokens
        return (self._max_tokens is None or n_tokens <= self._max_tokens) and (
            self._max_cost is None or self._cost(usage) <= self._max_cost
        )

    def _cost(self, usage: Usage) -> float:
        return self._prices.cost(usage.prompt_tokens, usage.completion_tokens) if self._prices else 0.0

    def _refusal(self, most: Usage) -> BudgetSpent:
        spent, limit, need = [], [], []
        if self._max_tokens is not None:
            spent.append(f"{self._spent.prompt_tokens + self._spent.completion_tokens:,} tokens")
            limit.append(f"{self._max_tokens:,}")
            need.append(f"{most.prompt_tokens + most.completion_tokens:,} tokens")
        if self._max_cost is not None and self._prices is not None:
            spent.append(f"{self._cost(self._spent):.4f} {self._prices.currency}")
            limit.append(f"{self._max_cost:.4f}")
            need.append(f"{self._cost(most):.4f} {self._prices.currency}")
        return BudgetSpent(" and ".join(spent), " and ".join(limit), " and ".join(need))
