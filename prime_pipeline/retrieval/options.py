"""What can be chosen about retrieval."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

Arm = Literal["document_bm25", "section_bm25", "metadata_vector"]
Scorer = Literal["late_interaction", "cross_encoder", "none"]
SectionText = Literal["raw", "restructured", "both"]


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """Options of the two stages.

    Attributes:
        arms: The rankings that stage 1 fuses. The PRIME paper (section 3.4) has ``document_bm25`` and
            ``metadata_vector``; section BM25 (best section per document) is ours.
        arm_depth: Documents that each arm contributes.
        rrf_k: Constant of reciprocal rank fusion; the paper's 60.
        n_candidates: Documents that stage 1 hands to stage 2; the paper's 30.
        scorer: How stage 2 scores sections; ``none`` leaves section BM25 in the order of stage 1.
        rerank_budget: Sections that reach the scorer, best by section BM25 first, and never fewer than are asked
            for; 0 scores every section of the candidates, as the paper does.
        scorer_weight: Of late interaction in a section's score, where section BM25 has 1; all are z-normalised. A
            cross-encoder's score stands alone.
        stage1_weight: Of the fused score of the section's document, likewise, divided by how many sections the document
            has: it says which document, and so the more of a section, the more of the document that is.
        windows_per_section: The most windows of a section that late interaction scores; 0 for all. Fixed when a
            retriever is opened.
        top_k: Sections returned; the paper's 5.
        time_limit_ms: Milliseconds after which a search scores no further sections, for those who wait; 0 for no limit.
            Rankings for evaluation know none.
        section_text: What the scorer reads of a rewritten section; the paper's full mode scores the rewritten text.
            ``both`` reads the raw and the rewritten one, and the better score counts.
    """

    arms: tuple[Arm, ...] = ("document_bm25", "section_bm25", "metadata_vector")
    arm_depth: int = 100
    rrf_k: int = 60
    n_candidates: int = 30
    scorer: Scorer = "late_interaction"
    rerank_budget: int = 48
    scorer_weight: float = 1.0
    stage1_weight: float = 0.5
    windows_per_section: int = 4
    top_k: int = 5
    time_limit_ms: int = 0
    section_text: SectionText = "restructured"

    @property
    def determinants(self) -> dict[str, Any]:
        """What a ranking depends on: not ``top_k``, which only cuts it, nor ``time_limit_ms``, which it does not know."""
        return {name: value for name, value in asdict(self).items() if name not in ("top_k", "time_limit_ms")}

    def paper_literal(self) -> RetrievalOptions:
        """These options with the paper's two arms."""
        return replace(self, arms=("document_bm25", "metadata_vector"))

    def without_reranking(self) -> RetrievalOptions:
        """These options with stage 1 only."""
        return replace(self, scorer="none")
