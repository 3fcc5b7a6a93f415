"""The systems that are compared over one build: what plain BM25, the paper's stage 1 and ours are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, get_args

from prime_pipeline.retrieval.options import RetrievalOptions

System = Literal["bm25", "paper_literal", "stage1", "default"]
SYSTEMS: tuple[System, ...] = get_args(System)


SYSTEM_LABELS: Final[Mapping[str, str]] = {
    "bm25": "BM25 over documents",
    "paper_literal": "stage 1 as the paper has it",
    "stage1": "our stage 1",
    "default": "our default, with section scoring",
}
"""The systems for people."""


def systems_of(variant: str, systems: Sequence[System]) -> list[System]:
    """Those of the systems that are evaluated over a variant: the paper's metadata is that of the raw text only."""
    return [system for system in systems if variant == "offline" or system != "paper_literal"]


def system_options(system: System, options: RetrievalOptions) -> RetrievalOptions:
    """How a system retrieves, given the configured options.

    ``bm25`` is BM25 over whole documents; ``paper_literal`` the PRIME paper's stage 1 (section 3.4: document BM25 and
    metadata vectors); ``stage1`` all configured arms; ``default`` these with section scoring.
    """
    if system == "bm25":
        return replace(options, arms=("document_bm25",), scorer="none")
    if system == "paper_literal":
        return options.paper_literal().without_reranking()
    return options.without_reranking() if system == "stage1" else options
