"""A sample before the bill: a few sections rewritten, their verdicts, and what the rest would take at that rate."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from prime_pipeline.llm.budget import Prices
from prime_pipeline.llm.in_order import done_in_order
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document, Section, SectionOutcome, Spending, section_id
from prime_pipeline.refresh.spending import note_spending
from prime_pipeline.restructuring.rewriting import Rewriter
from prime_pipeline.restructuring.strategy import Strategy
from prime_pipeline.storage.ledger import Ledger


@dataclass(frozen=True, slots=True)
class SampledSection:
    """One section of the sample.

    Attributes:
        document: Its document.
        section: The section.
        outcome: What became of it.
        expected_prompt_tokens: What was counted for its first requests.
        expected_completion_tokens: What was expected of their answers.
    """

    document: Document
    section: Section
    outcome: SectionOutcome
    expected_prompt_tokens: int
    expected_completion_tokens: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Sections that were rewritten to see how it goes.

    Attributes:
        sections: In order of section id.
    """

    sections: tuple[SampledSection, ...]

    @property
    def spending(self) -> Spending:
        """What the sample cost."""
        return sum((sampled.outcome.spending for sampled in self.sections), Spending())

    @property
    def prompt_factor(self) -> float:
        """Prompt tokens paid, repairs included, per token expected; 1 where nothing was paid."""
        expected = sum(s.expected_prompt_tokens for s in self._paid)
        return sum(s.outcome.spending.prompt_tokens for s in self._paid) / expected if expected else 1.0

    @property
    def completion_factor(self) -> float:
        """Completion tokens paid, repairs included, per token expected; 1 where nothing was paid."""
        expected = sum(s.expected_completion_tokens for s in self._paid)
        return sum(s.outcome.spending.completion_tokens for s in self._paid) / expected if expected else 1.0

    @property
    def _paid(self) -> list[SampledSection]:
        return [s for s in self.sections if s.outcome.spending.calls]


def sample_sections(
    documents: Callable[[], Iterable[Document]],
    rewriter: Rewriter,
    n_sections: int,
    n_workers: int,
    count_tokens: Callable[[str], int],
    progress: Progress = silent,
) -> Sample:
    """Rewrite sections that the router lets through, as a refresh would; the answers are kept for it.

    The choice is by a hash of the section's id: without a pattern, and the same every time, so that a second look
    costs nothing.

    Args:
        documents: Gives all documents, twice.
        rewriter: Asks the model.
        n_sections: The most sections.
        n_workers: Sections at once.
        count_tokens: Tokens of a text.
        progress: Told of every section.
    """
    chosen = set(heapq.nsmallest(n_sections, _eligible(documents(), rewriter)))
    pairs = sorted(
        ((d, s) for d in documents() for s in d.content_sections if _rank(d, s) in chosen),
        key=lambda pair: (pair[0].doc_id, pair[1].ordinal),
    )
    sampled = []
    outcomes = done_in_order([partial(rewriter.rewrite, *pair) for pair in pairs], n_workers)
    for (document, section), outcome in zip(pairs, outcomes, strict=True):
        sampled.append(_sampled(document, section, outcome, rewriter, count_tokens))
        progress("sample", len(sampled), len(pairs))
    return Sample(tuple(sampled))


def note_sample(ledger: Ledger, sample: Sample, strategy: Strategy, prices: Prices | None) -> None:
    """Write into the ledger what a sample cost, as a run of its own."""
    spending: dict[str, Spending] = {}
    for sampled in sample.sections:
        doc_id = sampled.document.doc_id
        spending[doc_id] = spending.get(doc_id, Spending()) + sampled.outcome.spending
    note_spending(ledger, "sample", strategy.fingerprint, strategy.label, spending, prices)


def _eligible(documents: Iterable[Document], rewriter: Rewriter) -> Iterator[tuple[str, str]]:
    for document in documents:
        for section in document.content_sections:
            if rewriter.planned(document, section):
                yield _rank(document, section)


def _rank(document: Document, section: Section) -> tuple[str, str]:
    identity = section_id(document.doc_id, section.ordinal)
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest(), identity


def _sampled(
    document: Document,
    section: Section,
    outcome: SectionOutcome,
    rewriter: Rewriter,
    count_tokens: Callable[[str], int],
) -> SampledSection:
    planned = rewriter.planned(document, section)
    return SampledSection(
        document,
        section,
        outcome,
        sum(request.prompt_tokens(count_tokens) for request in planned),
        sum(request.completion_tokens(count_tokens) for request in planned),
    )
