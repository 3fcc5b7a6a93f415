"""What every arm and the section scorer say of a home's queries, captured once, so that choices are compared in numpy.

The other scripts import this; run alone it does nothing. Late interaction scores every section of the documents that any arm
found, so that any fusion of the arms finds its candidates scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.baselines.pooled_vectors import PooledVectors
from prime_pipeline.baselines.representations import Corpus, units
from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.evaluation.statistics import PairedDifference, PerQuery, paired_differences
from prime_pipeline.indexes.builds import LEXICAL_FILE
from prime_pipeline.indexes.embedding import embed_texts
from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.indexes.vectors import VectorIndex, VectorSearch
from prime_pipeline.records import Run
from prime_pipeline.retrieval.options import Arm, RetrievalOptions
from prime_pipeline.retrieval.scorers import LateInteractionScorer
from prime_pipeline.retrieval.stage1 import find_candidates
from prime_pipeline.retrieval.stage2 import z_normalised
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.seal import read_seal
from prime_pipeline.workspace import Workspace

ARMS: tuple[Arm, ...] = ("document_bm25", "section_bm25", "metadata_vector")
DEFAULT_MIXTURE = (RetrievalOptions().scorer_weight, RetrievalOptions().stage1_weight)
N_CANDIDATES = 30
RRF_K = 60

Scores = NDArray[np.float64]
Weights = tuple[float, float, float]
"""Of the arms, in their order."""
Mixture = tuple[float, float]
"""Weights of the scorer and of stage 1 beside section BM25, all z-normalised over the scored sections; see ``RetrievalOptions``."""


@dataclass(frozen=True, slots=True)
class CapturedQuery:
    """One query.

    Attributes:
        query_id: Its id.
        text: Its text.
        ranks: (n_arms, n_documents), from 1; infinite where the arm did not find the document among its first 100.
        lexical: Section BM25, (n_sections,).
        own: What the scorer says, (n_sections,); NaN where it was not asked.
    """

    query_id: str
    text: str
    ranks: Scores
    lexical: Scores
    own: Scores

    def fused(self, weights: Weights) -> Scores:
        """Weighted reciprocal rank fusion of the arms, (n_documents,); 0 where no arm with a weight found it."""
        shares = np.array(weights)[:, None] / (RRF_K + self.ranks)
        total: Scores = shares.sum(axis=0)
        return total


@dataclass(frozen=True, slots=True)
class Captured:
    """All queries over one index.

    Attributes:
        doc_ids: Ids of the documents, sorted.
        documents: Position of each section's document, (n_sections,).
        n_characters: Of each section's text, (n_sections,).
        queries: In the order of the query set.
        query_set: With judgements.
    """

    doc_ids: Sequence[str]
    documents: NDArray[np.int64]
    n_characters: NDArray[np.int64]
    queries: Sequence[CapturedQuery]
    query_set: QuerySet

    @property
    def clusters(self) -> Mapping[str, str]:
        """The document that each query is asked of; where there is none, each query by itself."""
        return self.query_set.clusters or {q.query_id: q.query_id for q in self.queries}

    def ndcg(self, run: Run) -> PerQuery:
        """NDCG@5 by query."""
        return evaluate(run, self.query_set.qrels, ["ndcg@5"]).per_query["ndcg@5"]

    def cheap_order(self, query: CapturedQuery, fused: Scores) -> NDArray[np.int64]:
        """Sections of the candidates in the order of scoring: BM25 and the document's score in stage 1, z-normalised."""
        best = _best_documents(fused)
        rank = np.full(len(fused), -1)
        rank[best] = np.arange(len(best))
        of_section = rank[self.documents]
        positions = np.flatnonzero(of_section >= 0)
        scores = z_normalised(query.lexical[positions]) + z_normalised(fused[self.documents[positions]])
        order = np.lexsort((positions, of_section[positions], -query.lexical[positions], -scores))
        return positions[order]

    def stage1(self, fused: Scores) -> dict[str, float]:
        """The documents that any arm found, with scores that fall by rank."""
        found = np.flatnonzero(fused > 0)
        order = found[np.lexsort((found, -fused[found]))]
        return {self.doc_ids[at]: 1.0 / rank for rank, at in enumerate(order, start=1)}

    def reranked(
        self,
        query: CapturedQuery,
        fused: Scores,
        scored: NDArray[np.int64],
        mixture: Mixture = DEFAULT_MIXTURE,
    ) -> dict[str, float]:
        """Documents by their best scored section, then the others as stage 1 has them."""
        of_scorer, of_stage1 = mixture
        scores = z_normalised(query.lexical[scored]) + of_scorer * z_normalised(query.own[scored])
        shares = 1.0 / np.bincount(self.documents)[self.documents[scored]]
        scores = scores + of_stage1 * shares * z_normalised(fused[self.documents[scored]])
        best: dict[int, float] = {}
        for at, score in zip(self.documents[scored].tolist(), scores.tolist(), strict=True):
            best[at] = max(best.get(at, -np.inf), score)
        first = [self.doc_ids[at] for at in sorted(best, key=lambda at: (-best[at], at))]
        ids = dict.fromkeys([*first, *self.stage1(fused)])
        return {doc_id: 1.0 / rank for rank, doc_id in enumerate(ids, start=1)}


def structure_chunks(home: Path) -> PooledVectors:
    """Vectors of all sections of a home's documents, for :func:`capture`."""
    workspace = Workspace(load_settings({"home": home}))
    documents = list(workspace.store.load_all(read_seal(workspace.home.seal("raw")).documents))
    corpus = Corpus(documents, [], workspace.metadata_options, workspace.embedder.tokenizer)
    chunks = units("structure-chunks", corpus)
    vectors, _ = embed_texts([chunk.text for chunk in chunks], workspace.embedder, workspace.embeddings)
    workspace.close()
    return PooledVectors([chunk.doc_id for chunk in chunks], vectors)


def capture(home: Path, variant: str = "offline", vectors: VectorSearch | None = None) -> Captured:
    """Ask arms and scorer about all queries of a home that was refreshed with queries.

    Args:
        home: See there.
        variant: ``offline`` or ``full``.
        vectors: Searched in the place of the index's own.
    """
    workspace = Workspace(load_settings({"home": home}))
    query_set, live = workspace.query_set, workspace.builds(variant).live_path
    if query_set is None or live is None:
        raise SystemExit(f"{home} has no queries, or nothing is published: prime refresh --queries")
    lexical = LexicalIndex(live / LEXICAL_FILE)
    searched = vectors or VectorIndex(live)
    with workspace.retriever(variant) as retriever:
        scorer = LateInteractionScorer(
            workspace.embedder, workspace.token_vectors, retriever.idf, RetrievalOptions().windows_per_section
        )
        sections = list(lexical.iterate_sections())
        documents = lexical.sections.documents
        queries = []
        for query in query_set.queries:
            options = RetrievalOptions(arms=ARMS, scorer="none")
            found = find_candidates(query.text, lexical, searched, workspace.embedder, options)
            ranks = np.full((len(ARMS), len(lexical.doc_ids)), np.inf)
            place = {doc_id: at for at, doc_id in enumerate(lexical.doc_ids)}
            for row, arm in enumerate(ARMS):
                for rank, (doc_id, _) in enumerate(found.arms[arm], start=1):
                    ranks[row, place[doc_id]] = rank
            bm25 = np.zeros(len(sections))
            bm25[found.section_scores.positions] = found.section_scores.scores
            asked = np.flatnonzero(np.isfinite(ranks).any(axis=0)[documents])
            own = np.full(len(sections), np.nan)
            own[asked] = scorer.score(query.text, [sections[at] for at in asked])
            queries.append(CapturedQuery(query.query_id, query.text, ranks, bm25, own))
    lexical.close()
    workspace.close()
    lengths = np.array([len(section.text) for section in sections])
    return Captured(lexical.doc_ids, documents, lengths, queries, query_set)


def difference(left: PerQuery, right: PerQuery, clusters: Mapping[str, str]) -> PairedDifference:
    """Left minus right, with documents resampled."""
    return paired_differences({"left": left, "right": right}, [("left", "right")], clusters)["left", "right"]


def shown(found: PairedDifference) -> str:
    """A difference with its interval."""
    if found.low is None or found.high is None:
        return f"{found.difference:+.4f}"
    return f"{found.difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"


def _best_documents(fused: Scores) -> NDArray[np.int64]:
    found = np.flatnonzero(fused > 0)
    order: NDArray[np.int64] = found[np.lexsort((found, -fused[found]))][:N_CANDIDATES]
    return order
