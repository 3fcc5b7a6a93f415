"""What determines the result of restructuring, as a record: two corpora restructured by one strategy are comparable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from prime_pipeline.restructuring.judge import Judge
from prime_pipeline.restructuring.prompts import Prompt
from prime_pipeline.restructuring.rewriting import RewritingOptions
from prime_pipeline.restructuring.router import ROUTER_VERSION
from prime_pipeline.storage.fingerprint import fingerprint


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to restructure.

    Attributes:
        method: Who rewrites.
        label: For people: ``llm:deepseek-chat/full-1``, ``extractive-1``.
        judge: Fingerprint of the gate.
        details: Everything else that determines the result, as plain JSON values; no key of an endpoint.
    """

    method: Literal["extractive", "llm"]
    label: str
    judge: str
    details: Mapping[str, Any]

    @classmethod
    def extractive(cls, version: int | str, judge: Judge) -> Strategy:
        """The strategy of a rule-based extract of this version."""
        return cls("extractive", f"extractive-{version}", judge.fingerprint, {"version": version})

    @classmethod
    def llm(cls, prompt: Prompt, options: RewritingOptions, judge: Judge) -> Strategy:
        """The strategy of a rewriter with these parts."""
        details = {
            **asdict(options),
            "prompt_version": prompt.version,
            "prompt": prompt.fingerprint,
            "router_version": ROUTER_VERSION,
        }
        return cls("llm", f"llm:{options.model}/{prompt.version}", judge.fingerprint, details)

    @property
    def fingerprint(self) -> str:
        """Hash of the record (16 hex digits), fit for a folder's name."""
        return fingerprint(asdict(self))[:16]
