"""How far the words of a passage are the raw text's own."""

from __future__ import annotations

from dataclasses import dataclass

from prime_pipeline.restructuring.rules.features import Features
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.restructuring.rules.paraphrase import MEASURE_STEMS, PARAPHRASE_STEMS
from prime_pipeline.text.stems import content_stems


@dataclass(frozen=True, slots=True)
class Novelty:
    """The content words of a passage that the raw text lacks.

    Attributes:
        stems: Their stems, in order.
        weight: Their number, those of paraphrase counted in part.
        n_stems: All content words of the passage, each once.
    """

    stems: tuple[str, ...]
    weight: float
    n_stems: int

    @property
    def share(self) -> float:
        """The weight over all content words; 0 for a passage without any."""
        return self.weight / self.n_stems if self.n_stems else 0.0


def novelty(raw: Features, passage: str, options: GateOptions) -> Novelty:
    """What in a passage of a rewrite does not come from the raw text."""
    stems = [s for s in dict.fromkeys(content_stems(passage)) if s not in MEASURE_STEMS]
    new = tuple(s for s in stems if s not in raw.stems and not (len(s) > 5 and s[:5] in raw.families))
    weight = sum(options.paraphrase_weight if s in PARAPHRASE_STEMS else 1.0 for s in new)
    return Novelty(new, weight, len(stems))
