"""Stage 1: the arms, each a ranking of documents, and their fusion to candidates."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.indexes.lexical import LexicalIndex, SectionScores
from prime_pipeline.indexes.vectors import VectorSearch
from prime_pipeline.models.embedder import Embedder
from prime_pipeline.retrieval.fusion import reciprocal_rank_fusion
from prime_pipeline.retrieval.options import RetrievalOptions


@dataclass(frozen=True, slots=True)
class Candidates:
    """The documents that stage 1 found.

    Attributes:
        ranking: (document id, fused score), best first; all documents that any arm found.
        arms: Each arm's ranking, (document id, the arm's score), best first.
        section_scores: Section BM25 of the query, for stage 2 to use again.
    """

    ranking: list[tuple[str, float]]
    arms: Mapping[str, list[tuple[str, float]]]
    section_scores: SectionScores

    def arm_ranks(self, doc_id: str) -> dict[str, int]:
        """Rank (from 1) of a document in each arm that found it."""
        ranks = {}
        for arm, ranking in self.arms.items():
            for rank, (found, _) in enumerate(ranking, start=1):
                if found == doc_id:
                    ranks[arm] = rank
        return ranks


def find_candidates(
    query: str,
    lexical: LexicalIndex,
    vectors: VectorSearch,
    embedder: Embedder,
    options: RetrievalOptions,
    excluded: AbstractSet[str] = frozenset(),
) -> Candidates:
    """Ask every arm and fuse what they say; each arm goes as much deeper as documents are excluded."""
    depth = options.arm_depth + len(excluded)
    section_scores = lexical.score_sections(query)
    arms: dict[str, list[tuple[str, float]]] = {}
    for arm in options.arms:
        if arm == "document_bm25":
            found = lexical.search_documents(query, depth)
        elif arm == "section_bm25":
            found = best_sections_by_document(lexical, section_scores, depth)
        else:
            found = vectors.search(embedder.encode_query(query), depth)
        arms[arm] = [pair for pair in found if pair[0] not in excluded][: options.arm_depth]
    rankings = [[doc_id for doc_id, _ in ranking] for ranking in arms.values()]
    return Candidates(reciprocal_rank_fusion(rankings, options.rrf_k), arms, section_scores)


def best_sections_by_document(
    lexical: LexicalIndex, scores: SectionScores, depth: int
) -> list[tuple[str, float]]:
    """Documents by their best section's BM25, best first; ties by id."""
    best: NDArray[np.float64] = np.zeros(len(lexical.doc_ids))
    np.maximum.at(best, lexical.sections.documents[scores.positions], scores.scores)
    found = np.flatnonzero(best)
    order = np.lexsort((found, -best[found]))[:depth]
    return [(lexical.doc_ids[found[i]], float(best[found[i]])) for i in order]
