"""Questions and retrieved passages in, answers out: one call each, cached and budgeted, several at once.

How passages are found and how good the answers are is for others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from prime_pipeline.errors import (
    BudgetSpent,
    EndpointUnavailable,
    EndpointUnusable,
    LanguageModelError,
    RequestRefused,
)
from prime_pipeline.evaluation.answer_prompt import VERSION, Context, fitted, instructions, message
from prime_pipeline.evaluation.passages import Passage
from prime_pipeline.llm.cached import Account, CachedChat
from prime_pipeline.llm.chat import ChatRequest
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Query, Spending, document_of

_FAILURES: dict[type[LanguageModelError], str] = {
    BudgetSpent: "budget_spent",
    EndpointUnavailable: "endpoint_unavailable",
    EndpointUnusable: "endpoint_unusable",
}
_PASSING = frozenset(_FAILURES.values())
_STOPPING = frozenset({"budget_spent", "endpoint_unusable"})
_WAKE_S = 0.5


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How a model is asked for answers.

    Attributes:
        base_url: The endpoint, part of every cache key.
        model: As the endpoint names it.
        max_context_tokens: For the passages; see :func:`prime_pipeline.evaluation.answer_prompt.fitted`.
        max_answer_tokens: The most tokens generated. Answers are short; models that reason aloud need thousands.
        temperature: 0 for the most likely answer.
    """

    base_url: str
    model: str
    max_context_tokens: int = 8000
    max_answer_tokens: int = 512
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and what is read to answer it, best first."""

    query: Query
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one question.

    Attributes:
        query_id: The question.
        text: The model's answer; empty after a failure.
        section_ids: What the model was given to read, best first: the evidence that the answer predicts.
        n_cut: Passages of which it was given less than the whole, or nothing.
        spending: What it cost, in this run.
        failure: Why there is no answer: the code of a refusal (see :class:`prime_pipeline.errors.RequestRefused`),
            ``endpoint_unavailable``, ``endpoint_unusable``, ``budget_spent``, or ``no_passage`` where nothing was
            retrieved or nothing fits, and nobody was asked. None if there is one.
        detail: The failure in words.
    """

    query_id: str
    text: str
    section_ids: tuple[str, ...]
    n_cut: int
    spending: Spending
    failure: str | None = None
    detail: str = ""

    @property
    def from_cache(self) -> bool:
        """Whether the answer (or the refusal) was known already."""
        return self.spending.cache_hits > 0

    @property
    def is_open(self) -> bool:
        """Whether it failed for a reason that another run may not meet: no mean is taken over such answers."""
        return self.failure in _PASSING


@dataclass(frozen=True, slots=True)
class Answers:
    """What became of many questions.

    Attributes:
        answers: In the order of the questions; all of them, unless the run was stopped.
        stopped: Why the run ended before all questions were asked; None if it did not. The answers are then a part
            that no mean should be taken over; another run goes on behind them.
    """

    answers: tuple[Answer, ...]
    stopped: str | None = None

    @property
    def predictions(self) -> Mapping[str, str]:
        """Answers by query id, for scoring; failures are left out, and so count as missing."""
        return {answer.query_id: answer.text for answer in self.answers if answer.failure is None}

    @property
    def spending(self) -> Spending:
        """Of all questions."""
        return sum((answer.spending for answer in self.answers), Spending())


class _NothingToRead(Exception):
    """A question without a passage, which nobody is asked: a model could only answer it from memory."""


class AnswerGenerator:
    """Answers questions from passages. Safe for several threads.

    Args:
        chat: Answers, from the cache or the endpoint.
        options: How it is asked.
        count_tokens: Counts the tokens of a text. Where it makes passages be cut it becomes part of the cache's keys,
            so a count that depends on no tokenizer is best.
    """

    def __init__(self, chat: CachedChat, options: AnswerOptions, count_tokens: Callable[[str], int]) -> None:
        self._chat = chat
        self._options = options
        self._count_tokens = count_tokens
        self._accounts: list[Account] = []

    @property
    def spending(self) -> Spending:
        """What all questions came to so far, also those that are under way or were broken off."""
        return sum((account.spending for account in self._accounts), Spending())

    def answer(self, question: Question) -> Answer:
        """The answer to a question; failures of the endpoint are recorded, faults of this program are raised.

        Raises:
            ChatClosed: Somebody ended the run.
        """
        context = self._context(question)
        about = {document_of(passage.section_id) for passage in context.passages}
        account, text, failure, detail = Account(*sorted(about)), "", None, ""
        self._accounts.append(account)
        try:
            text = self._asked(question.query, context, account)
        except RequestRefused as refusal:
            failure, detail = refusal.code, refusal.reason
        except tuple(_FAILURES) as error:
            failure, detail = _FAILURES[type(error)], str(error)
        except _NothingToRead:
            failure, detail = "no_passage", "no section was retrieved, or none fits max_context_tokens"
        section_ids = tuple(passage.section_id for passage in context.passages)
        return Answer(
            question.query.query_id, text, section_ids, context.n_cut, account.spending, failure, detail
        )

    def can_read(self, question: Question) -> bool:
        """Whether some passage fits; else nobody would be asked."""
        return bool(self._context(question).passages)

    def planned(self, question: Question) -> ChatRequest | None:
        """The request that answering would make; None where the answer is known or nobody would be asked."""
        context = self._context(question)
        request = self._request(question.query, context) if context.passages else None
        return None if request is None or self._chat.knows(request) else request

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Tokens that the model reads for a request, about."""
        return self._count_tokens(request.system) + self._count_tokens(request.user)

    def _context(self, question: Question) -> Context:
        return fitted(question.passages, self._options.max_context_tokens, self._count_tokens)

    def _asked(self, query: Query, context: Context, account: Account) -> str:
        if not context.passages:
            raise _NothingToRead
        return self._chat.ask(self._request(query, context), account).text

    def _request(self, query: Query, context: Context) -> ChatRequest:
        return ChatRequest(
            base_url=self._options.base_url,
            model=self._options.model,
            system=instructions(),
            user=message(query.text, context.passages),
            prompt_version=VERSION,
            max_tokens=self._options.max_answer_tokens,
            temperature=self._options.temperature,
        )


def answer_all(
    questions: Sequence[Question], generator: AnswerGenerator, n_workers: int, progress: Progress = silent
) -> Answers:
    """Answer questions, several at once.

    A spent budget or an unusable endpoint stops the run: what is under way is waited for, nothing else is begun, and
    what is done is returned. If the caller is interrupted or something else fails, what has not begun is cancelled,
    and what has is not waited for: close the chat, or it runs on to its end.

    Args:
        questions: With distinct query ids.
        generator: Does the work.
        n_workers: Threads.
        progress: Hears of the questions that are done; those that are open again are not.

    Raises:
        ChatClosed: Somebody ended the run.
    """
    stopped = threading.Event()

    def answered(question: Question) -> Answer | None:
        if stopped.is_set():
            return None
        answer = generator.answer(question)
        if answer.failure in _STOPPING:
            stopped.set()
        return answer

    pool = ThreadPoolExecutor(n_workers, thread_name_prefix="answering")
    try:
        futures = [pool.submit(answered, question) for question in questions]
        _await(futures, progress)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    answers = tuple(answer for future in futures if (answer := future.result()) is not None)
    reasons = (answer.detail for answer in answers if answer.failure in _STOPPING)
    return Answers(answers, next(reasons, None))


def _await(futures: Sequence[Future[Answer | None]], progress: Progress) -> None:
    """Wait until all are done, or raise what the first to fail raised."""
    pending, n_settled = set(futures), 0
    while pending:
        # Not for ever: a signal that was handed to another thread is only seen by this one when it wakes.
        done, pending = wait(pending, timeout=_WAKE_S, return_when=FIRST_EXCEPTION)
        found = [future.result() for future in done]
        n_settled += sum(answer is not None and not answer.is_open for answer in found)
        progress("answering", n_settled, len(futures))
