"""Chat that nobody pays twice: the cache before the endpoint, the budget between them.

What an answer is good for is not known here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from prime_pipeline.errors import EndpointUnusable, RequestRefused
from prime_pipeline.llm.budget import Budget
from prime_pipeline.llm.chat import ChatRequest, Reply, Usage
from prime_pipeline.llm.client import ChatClient
from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.records import Spending


class Account:
    """What the questions of one piece of work came to, answered or not. For one thread.

    Args:
        doc_ids: The documents that the work is about; answers are kept with them, and forgotten with any of them.
    """

    def __init__(self, *doc_ids: str) -> None:
        self.spending = Spending()
        self.doc_ids = doc_ids

    def paid(self, usage: Usage) -> None:
        """Note an answer that was paid."""
        self.spending += Spending(
            calls=1,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            estimated=usage.estimated,
        )

    def truncated(self) -> None:
        """Note that the answer paid last was cut off."""
        self.spending += Spending(truncated=1)

    def found(self) -> None:
        """Note an answer or a refusal that was known already."""
        self.spending += Spending(cache_hits=1)


class CachedChat:
    """Answers from the cache, else from the endpoint within a budget. Safe for several threads.

    Threads that ask the same at once pay once. An endpoint that turned out to be unusable is not asked again; what is
    in the cache is answered all the same.

    Args:
        client: Asks the endpoint.
        cache: Keeps complete replies and refusals.
        budget: What the calls may cost.
    """

    def __init__(self, client: ChatClient, cache: ReplyCache, budget: Budget) -> None:
        self._client = client
        self._cache = cache
        self._budget = budget
        self._turns = _Turns()
        self._unusable: EndpointUnusable | None = None

    def ask(self, request: ChatRequest, account: Account) -> Reply:
        """The complete reply to a request; a new one is committed to the cache before it is returned.

        Args:
            request: What is asked.
            account: Gets what it cost, also when this raises.

        Raises:
            RequestRefused: The endpoint refuses the request, or did so before; or its answer was cut off
                (``truncated``) now or before. The same request is never paid for again.
            BudgetSpent: The call could cost more than may still be spent.
            EndpointUnusable: As of :class:`ChatClient`; then for every later request, too.
            EndpointUnavailable: As of :class:`ChatClient`.
            ChatClosed: As of :class:`ChatClient`.
        """
        key = request.key
        self._cache.note_origin(key, account.doc_ids)
        with self._turns.turn(key):
            reply = self._known(key, account)
            if reply is None:
                reply = self._answered(key, request, account)
            return reply

    def knows(self, request: ChatRequest) -> bool:
        """Whether a request is answered, or known to be refused, without asking the endpoint."""
        key = request.key
        return self._cache.reply(key) is not None or self._cache.refusal(key) is not None

    def close(self) -> None:
        """End all calls; see :meth:`ChatClient.close`. The cache stays open."""
        self._client.close()

    def _known(self, key: str, account: Account) -> Reply | None:
        reply = self._cache.reply(key)
        refusal = None if reply else self._cache.refusal(key)
        if reply or refusal:
            account.found()
        if refusal:
            raise RequestRefused(*refusal)
        return reply

    def _answered(self, key: str, request: ChatRequest, account: Account) -> Reply:
        try:
            reply = self._paid(request, account)
        except RequestRefused as refusal:
            if refusal.code != "bad_request":  # which a server's own fault may be, and is free to ask again
                self._cache.keep_refusal(key, refusal.code, refusal.reason)
            raise
        except EndpointUnusable as error:
            self._unusable = error
            raise
        self._cache.keep_reply(key, request.model, reply)
        # Another process may have been first: then its reply is the one that all later runs will see.
        return self._cache.reply(key) or reply

    def _paid(self, request: ChatRequest, account: Account) -> Reply:
        if self._unusable:
            raise self._unusable.with_traceback(None)  # or the traceback would grow with every request

        def paid(usage: Usage) -> None:
            account.paid(usage)
            self._budget.spend(usage)

        with self._budget.reserved(self._client.most(request)):
            reply = self._client.complete(request, paid)
        if reply.is_complete:
            return reply
        account.truncated()
        raise RequestRefused("truncated", f"the answer is longer than {request.max_tokens} tokens")


class _Turns:
    """One lock per key, for as long as somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[threading.Lock, int]] = {}
        self._guard = threading.Lock()

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        """Hold the key's lock for the block."""
        with self._guard:
            lock, n_users = self._locks.get(key, (threading.Lock(), 0))
            self._locks[key] = lock, n_users + 1
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, n_users = self._locks.pop(key)
                if n_users > 1:
                    self._locks[key] = lock, n_users - 1
