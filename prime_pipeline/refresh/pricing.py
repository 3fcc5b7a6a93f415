"""What restructuring will cost, said before it is spent: an estimate, corrected by a sample where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from prime_pipeline.llm.budget import Prices
from prime_pipeline.refresh.sampling import Sample
from prime_pipeline.restructuring.estimate import DocumentEstimate, Estimate


@dataclass(frozen=True, slots=True)
class Quote:
    """What restructuring a corpus would take.

    Attributes:
        label: How sections would be rewritten.
        estimate: What was counted; None where no language model is asked, so that it costs nothing.
        sample: Sections rewritten to see how it goes; their answers are paid and no part of the estimate.
        prices: What tokens cost; None if unknown.
        concurrency: Calls at once.
    """

    label: str
    estimate: Estimate | None
    sample: Sample | None
    prices: Prices | None
    concurrency: int

    @property
    def prompt_tokens(self) -> int:
        """To be read, repairs included as far as the sample shows them."""
        factor = self.sample.prompt_factor if self.sample else 1.0
        return round(factor * self.estimate.prompt_tokens) if self.estimate else 0

    @property
    def completion_tokens(self) -> int:
        """To be generated, likewise."""
        factor = self.sample.completion_factor if self.sample else 1.0
        return round(factor * self.estimate.completion_tokens) if self.estimate else 0

    @property
    def cost(self) -> float | None:
        """In the currency of the prices; None without a price."""
        if self.estimate is None:
            return 0.0
        return self.prices.cost(self.prompt_tokens, self.completion_tokens) if self.prices else None

    @property
    def seconds(self) -> float | None:
        """Wall time at the measured rate; None if no call was ever measured."""
        return self.estimate.seconds(self.concurrency) if self.estimate else 0.0

    def cost_of(self, document: DocumentEstimate) -> float | None:
        """Of one document, without the correction by a sample."""
        return self.prices.cost(document.prompt_tokens, document.completion_tokens) if self.prices else None

    def fields(self) -> Mapping[str, Any]:
        """For programs."""
        counted = self.estimate
        fields: dict[str, Any] = {
            "restructuring": self.label,
            "sections": counted.n_sections if counted else 0,
            "routed": counted.n_routed if counted else 0,
            "calls": counted.n_calls if counted else 0,
            "cached": counted.n_cached if counted else 0,
            "cached_share": counted.cached_share if counted else 0.0,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
            "currency": self.prices.currency if self.prices else None,
            "seconds": self.seconds,
            "documents": [
                {**asdict(document), "cost": self.cost_of(document)}
                for document in (counted.documents if counted else ())
            ],
        }
        if self.sample:
            fields["sample"] = [
                {
                    "document": sampled.document.doc_id,
                    "section": sampled.section.ordinal,
                    "outcome": sampled.outcome.kind,
                    "reasons": [finding.code for finding in sampled.outcome.findings],
                    **asdict(sampled.outcome.spending),
                }
                for sampled in self.sample.sections
            ]
        return fields
