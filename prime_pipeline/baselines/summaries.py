"""Summaries of documents by a language model, for summary-augmented chunks: one call each, cached and budgeted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Final

from prime_pipeline.errors import ChatClosed, LanguageModelError, RequestRefused
from prime_pipeline.evaluation.corpus_properties import full_text
from prime_pipeline.llm.cached import Account, CachedChat
from prime_pipeline.llm.chat import ChatRequest
from prime_pipeline.llm.fences import fence_number, fenced
from prime_pipeline.llm.in_order import done_in_order
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document, Spending
from prime_pipeline.storage.fingerprint import fingerprint

VERSION: Final = "summary-1"
"""For people: the text itself is part of every cache key."""
MAX_CHARACTERS: Final = 24_000
"""Of a document that are read, from its beginning: about 6,000 tokens."""
MAX_TOKENS: Final = 512
"""The most tokens generated: a summary is short, but some models think aloud first."""


@dataclass(frozen=True, slots=True)
class Summaries:
    """What was written.

    Attributes:
        texts: Document id to its summary; without the documents that the endpoint refused.
        stopped: Why there are not all of them; None if every document was asked about.
    """

    texts: Mapping[str, str]
    stopped: LanguageModelError | None = None


def summarise(
    documents: Sequence[Document],
    chat: CachedChat,
    base_url: str,
    model: str,
    n_workers: int,
    spent: Callable[[Spending], None],
    progress: Progress = silent,
) -> Summaries:
    """Have a language model summarise documents, several at once.

    The run ends at the first document that the endpoint cannot or may not be asked about; what is written stays in the
    cache, so that another one goes on there.

    Args:
        documents: Any; one without text is not asked about.
        chat: Answers, from the cache or the endpoint.
        base_url: The endpoint, part of every cache key.
        model: As the endpoint names it.
        n_workers: Threads.
        spent: Told at the end, whatever that is, what it came to.
        progress: Hears of every document.

    Raises:
        ChatClosed: Somebody ended the run.
    """
    with_text = [document for document in documents if full_text(document).strip()]
    accounts = [Account(document.doc_id) for document in with_text]
    tasks = [
        partial(_summary, document, chat, base_url, model, account)
        for document, account in zip(with_text, accounts, strict=True)
    ]
    texts: dict[str, str] = {}
    stopped = None
    try:
        for position, (document, text) in enumerate(
            zip(with_text, done_in_order(tasks, n_workers), strict=True), start=1
        ):
            if text is not None:
                texts[document.doc_id] = text
            progress("summaries", position, len(with_text))
    except ChatClosed:
        raise
    except LanguageModelError as error:
        stopped = error
    finally:
        spent(sum((account.spending for account in accounts), Spending()))
    return Summaries(texts, stopped)


def summarising_fingerprint(base_url: str, model: str) -> str:
    """Hash of all that determines the summary of a text."""
    return fingerprint([VERSION, _instructions(), MAX_CHARACTERS, MAX_TOKENS, base_url, model])


def _summary(document: Document, chat: CachedChat, base_url: str, model: str, account: Account) -> str | None:
    text = full_text(document)[:MAX_CHARACTERS]
    request = ChatRequest(
        base_url=base_url,
        model=model,
        system=_instructions(),
        user=fenced("document", fence_number([text]), text),
        prompt_version=VERSION,
        max_tokens=MAX_TOKENS,
    )
    try:
        return chat.ask(request, account).text
    except RequestRefused:
        return None


@cache
def _instructions() -> str:
    path = files("prime_pipeline.baselines") / "prompts" / "summary.md"
    return path.read_text(encoding="utf-8").strip()
