"""What restructuring would take, before a single call is made: calls, tokens, time, and what is paid already.

Prompt tokens are counted in the very requests that would be sent. How long an answer will be nobody knows before:
measured replies say it where there are enough of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document
from prime_pipeline.restructuring.rewriting import Rewriter


@dataclass(frozen=True, slots=True)
class DocumentEstimate:
    """What one document would take.

    Attributes:
        doc_id: The document.
        n_sections: All its sections.
        n_routed: Those that stay raw without a call.
        n_cached: Requests that are answered already.
        n_calls: Requests to pay, before repairs.
        prompt_tokens: Of the requests to pay.
        completion_tokens: Expected of them.
    """

    doc_id: str
    n_sections: int
    n_routed: int
    n_cached: int
    n_calls: int
    prompt_tokens: int
    completion_tokens: int

    @property
    def tokens(self) -> int:
        """Read and generated together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a set of documents would take.

    Attributes:
        documents: Most tokens first; ties by id.
        seconds_per_call: Mean of the replies of this model in the cache; None if there are none.
    """

    documents: tuple[DocumentEstimate, ...]
    seconds_per_call: float | None

    @property
    def n_calls(self) -> int:
        """Requests to pay, before repairs."""
        return sum(document.n_calls for document in self.documents)

    @property
    def n_cached(self) -> int:
        """Requests that are answered already."""
        return sum(document.n_cached for document in self.documents)

    @property
    def n_sections(self) -> int:
        """All sections."""
        return sum(document.n_sections for document in self.documents)

    @property
    def n_routed(self) -> int:
        """Sections that stay raw without a call."""
        return sum(document.n_routed for document in self.documents)

    @property
    def cached_share(self) -> float:
        """Share of the requests that are answered already, from 0 to 1."""
        total = self.n_cached + self.n_calls
        return self.n_cached / total if total else 0.0

    @property
    def prompt_tokens(self) -> int:
        """Of the requests to pay."""
        return sum(document.prompt_tokens for document in self.documents)

    @property
    def completion_tokens(self) -> int:
        """Expected of the requests to pay."""
        return sum(document.completion_tokens for document in self.documents)

    def seconds(self, concurrency: int) -> float | None:
        """Wall time at the measured rate; None if none was measured."""
        return None if self.seconds_per_call is None else self.n_calls * self.seconds_per_call / concurrency


def estimate(
    documents: Iterable[Document],
    n_documents: int,
    rewriter: Rewriter,
    replies: ReplyCache,
    count_tokens: Callable[[str], int],
    progress: Progress = silent,
) -> Estimate:
    """Count what restructuring documents would take; no call is made.

    Args:
        documents: May be lazy.
        n_documents: How many they are, for the progress.
        rewriter: Knows the requests.
        replies: Knows what is answered already, and how long answers took.
        count_tokens: Tokens of a text.
        progress: Told of every document.
    """
    estimates = []
    for position, document in enumerate(documents, start=1):
        estimates.append(_of_document(document, rewriter, replies, count_tokens))
        progress("estimate", position, n_documents)
    ordered = sorted(estimates, key=lambda e: (-e.tokens, e.doc_id))
    return Estimate(tuple(ordered), replies.mean_seconds(rewriter.model))


def _of_document(
    document: Document, rewriter: Rewriter, replies: ReplyCache, count_tokens: Callable[[str], int]
) -> DocumentEstimate:
    planned = [rewriter.planned(document, section) for section in document.content_sections]
    requests = [request for section in planned for request in section]
    answered = replies.cached_keys([request.chat.key for request in requests])
    to_pay = [request for request in requests if request.chat.key not in answered]
    return DocumentEstimate(
        doc_id=document.doc_id,
        n_sections=len(planned),
        n_routed=sum(1 for section in planned if not section),
        n_cached=len(requests) - len(to_pay),
        n_calls=len(to_pay),
        prompt_tokens=sum(request.prompt_tokens(count_tokens) for request in to_pay),
        completion_tokens=sum(request.completion_tokens(count_tokens) for request in to_pay),
    )
