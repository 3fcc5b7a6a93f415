"""What a rewriting is judged by, as those see it who ask for rewrites: findings, and a patch where one can heal them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.records import Finding
from prime_pipeline.text.protected import Protected


@dataclass(frozen=True, slots=True)
class Patch:
    """A rewrite with raw sentences appended.

    Attributes:
        text: The whole, placeholders still in it.
        appended: The sentences.
    """

    text: str
    appended: tuple[str, ...]


class SentenceSimilarity(Protocol):
    """How alike passages are to windows of sentences, in meaning."""

    @property
    def fingerprint(self) -> str:
        """Hash of the model: two with the same one find the same."""

    def __call__(self, passages: Sequence[str], windows: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Cosines in [-1, 1], (n_passages, n_windows); a window is a run of neighbouring sentences."""


class Judge(Protocol):
    """The fidelity gate. Both texts come with placeholders for what is protected.

    The context is what the rewriter was told about the section, its document's title and its headings, joined by line
    ends: what stands there is known, and none of it has to be in the rewrite.
    """

    @property
    def fingerprint(self) -> str:
        """Hash of version, thresholds and models: two judges with the same one find the same."""

    def findings(self, raw: Protected, rewrite: str, context: str = "") -> tuple[Finding, ...]:
        """Everything that speaks against a rewrite of the raw text, in order of importance; empty if it is faithful."""

    def patch(
        self, raw: Protected, rewrite: str, findings: tuple[Finding, ...], context: str = ""
    ) -> Patch | None:
        """The rewrite with the missing sentences appended, if that passes; None if no patch can heal it."""
