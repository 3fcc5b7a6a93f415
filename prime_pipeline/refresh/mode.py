"""What ``mode = auto`` came to: which variant is built and what its vectors are made of, as the corpus profile has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal

from prime_pipeline.metadata.options import MetadataOptions, Reading
from prime_pipeline.storage.atomic import write_text

Variant = Literal["offline", "full"]

_CHOICES: Final[Mapping[str, tuple[Variant, bool]]] = {
    "metadata": ("offline", False),
    "full": ("full", False),
    "full text": ("offline", True),
}
"""By the mode that a profile recommends: the variant, and whether full texts are embedded in the place of metadata."""


@dataclass(frozen=True, slots=True)
class ModeDecision:
    """A mode and why it was chosen.

    Attributes:
        variant: ``offline`` or ``full``.
        embeds_full_text: Whether vectors are made of full texts, because metadata would not help.
        regime: That of the corpus profile; ``undecided`` where there is none.
        reasons: The profile's evidence in sentences, or why there is none.
    """

    variant: Variant
    embeds_full_text: bool
    regime: str
    reasons: tuple[str, ...]

    @classmethod
    def following(cls, regime: str, recommended: str, reasons: tuple[str, ...]) -> ModeDecision:
        """What a profile recommends; raw sections and metadata where it recommends nothing."""
        variant, embeds_full_text = _CHOICES.get(recommended, ("offline", False))
        return cls(variant, embeds_full_text, regime, reasons)

    @property
    def label(self) -> str:
        """For manifests, reports and people, such as ``auto: offline, vectors of full texts (structure-absent)``."""
        vectors = "full texts" if self.embeds_full_text else "metadata"
        return f"auto: {self.variant}, vectors of {vectors} ({self.regime})"

    def reading(self, configured: Reading) -> Reading:
        """How metadata is read, given what the settings say; the paper's literal reading is never changed."""
        return "full_text" if self.embeds_full_text and configured == "default" else configured


UNDECIDED: Final = ModeDecision("offline", False, "undecided", ("no refresh has looked at the corpus yet",))
"""Before the first refresh."""


def read_decision(path: Path) -> ModeDecision:
    """The decision in a file, or :data:`UNDECIDED` where there is none that can be read: a refresh makes it anew."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        decision = ModeDecision(**{**stored, "reasons": tuple(stored["reasons"])})
    except (OSError, ValueError, KeyError, TypeError):
        return UNDECIDED
    return decision if decision.variant in {"offline", "full"} else UNDECIDED


def write_decision(path: Path, decision: ModeDecision) -> None:
    """Keep a decision.

    Raises:
        StoreUnavailable: The file cannot be written.
    """
    write_text(path, json.dumps(asdict(decision), indent=2) + "\n")


def decided_options(options: MetadataOptions, decision: ModeDecision | None) -> MetadataOptions:
    """How metadata is synthesised; None where nothing was left to the corpus profile."""
    return options if decision is None else replace(options, reading=decision.reading(options.reading))
