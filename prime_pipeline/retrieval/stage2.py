"""Stage 2: the sections of the candidates, ordered by a cheap score, the best of them scored with care."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.indexes.lexical import LexicalIndex, StoredSection
from prime_pipeline.retrieval.options import RetrievalOptions, SectionText
from prime_pipeline.retrieval.stage1 import Candidates

_ROUNDING = 1e-6
"""Relative difference that float32 arithmetic can make; dividing by so small a deviation would rank noise."""


IsOver = Callable[[], bool]
"""Whether the time that scoring may take has passed."""


class SectionScorer(Protocol):
    """Scores sections against a query."""

    @property
    def name(self) -> str:
        """What the score is called in a hit's signals."""

    @property
    def is_mixed(self) -> bool:
        """Whether section BM25 and the document's score in stage 1 are added, all z-normalised over the scored sections."""

    def score(
        self, query: str, sections: Sequence[StoredSection], is_over: IsOver | None = None
    ) -> NDArray[np.float64]:
        """One score per section, higher is better; shape (n_sections,).

        Args:
            query: Any text.
            sections: The best by the cheap order first.
            is_over: Asked before anything that takes long; once it is true, the sections that are left get NaN.
        """


@dataclass(frozen=True, slots=True)
class ScoredSection:
    """A section with the score that ranks it.

    Attributes:
        section: The section.
        score: Higher is better.
        signals: What went into the score, by name.
        added: The signals as they were added up, z-normalised over the scored sections and weighted; empty where one alone
            is the score.
    """

    section: StoredSection
    score: float
    signals: Mapping[str, float]
    added: Mapping[str, float] = field(default_factory=dict)


def bm25_order(lexical: LexicalIndex, candidates: Candidates, n_candidates: int) -> list[tuple[int, float]]:
    """All sections of the first ``n_candidates`` documents as (position, section BM25), best first.

    Sections that share no word with the query have 0 and follow in the order of their documents, then their own.
    """
    stage1_rank = {doc_id: rank for rank, (doc_id, _) in enumerate(candidates.ranking[:n_candidates])}
    rank_of_document = np.array([stage1_rank.get(doc_id, -1) for doc_id in lexical.doc_ids])
    ranks = rank_of_document[lexical.sections.documents]
    positions = np.flatnonzero(ranks >= 0)
    scores = np.zeros(len(ranks))
    scores[candidates.section_scores.positions] = candidates.section_scores.scores
    keys = (lexical.sections.ordinals[positions], ranks[positions], -scores[positions])
    return [(int(positions[i]), float(scores[positions[i]])) for i in np.lexsort(keys)]


def cheap_order(lexical: LexicalIndex, candidates: Candidates, n_candidates: int) -> list[tuple[int, float]]:
    """The same by the sum of section BM25 and the document's score in stage 1, both z-normalised: the order of scoring."""
    ordered = bm25_order(lexical, candidates, n_candidates)
    fused = dict(candidates.ranking)
    documents = lexical.sections.documents
    of_document = np.array([fused[lexical.doc_ids[documents[position]]] for position, _ in ordered])
    scores = z_normalised(np.array([score for _, score in ordered])) + z_normalised(of_document)
    return [ordered[i] for i in np.argsort(-scores, kind="stable")]


def order_sections(
    lexical: LexicalIndex, candidates: Candidates, n_candidates: int, top_k: int
) -> list[ScoredSection]:
    """The first ``top_k`` sections of the candidates by section BM25, for retrieval without a scorer."""
    ordered = bm25_order(lexical, candidates, n_candidates)[:top_k]
    return [
        ScoredSection(lexical.stored_section(at), score, {"section_bm25": score}) for at, score in ordered
    ]


def rerank_sections(
    query: str,
    lexical: LexicalIndex,
    candidates: Candidates,
    scorer: SectionScorer,
    options: RetrievalOptions,
    is_over: IsOver | None = None,
    at_least: int = 1,
) -> list[ScoredSection]:
    """The sections of the candidates within the budget by the scorer; ties by document id and ordinal.

    A mixed score is the weighted sum of section BM25, the scorer's own, and the fused score of the section's document; of
    the latter's weight each of the document's sections has an equal share.
    The first ``at_least`` sections are scored however long it takes; of the others those are left out that no time is
    left for when ``is_over``.
    """
    ordered = cheap_order(lexical, candidates, options.n_candidates)[: options.rerank_budget or None]
    sections = [lexical.stored_section(position) for position, _ in ordered]
    lexical_scores = np.array([score for _, score in ordered])
    if is_over is None:
        own_scores = score_texts(query, sections, scorer, options.section_text)
    else:
        first = score_texts(query, sections[:at_least], scorer, options.section_text)
        others = score_texts(query, sections[at_least:], scorer, options.section_text, is_over)
        own_scores = np.concatenate([first, others])
        in_time = np.flatnonzero(~np.isnan(own_scores))
        sections = [sections[i] for i in in_time]
        lexical_scores, own_scores = lexical_scores[in_time], own_scores[in_time]
    signals = {"section_bm25": lexical_scores, scorer.name: own_scores}
    scores = own_scores
    added: dict[str, NDArray[np.float64]] = {}
    if scorer.is_mixed:
        added = {
            "section_bm25": z_normalised(lexical_scores),
            scorer.name: options.scorer_weight * z_normalised(own_scores),
        }
        if options.stage1_weight:
            fused = dict(candidates.ranking)
            signals["stage1"] = np.array([fused[section.doc_id] for section in sections])
            weights = options.stage1_weight / np.array([lexical.n_sections(s.doc_id) for s in sections])
            added["stage1"] = weights * z_normalised(signals["stage1"])
        scores = np.sum(list(added.values()), axis=0)
    scored = [
        ScoredSection(section, float(scores[i]), _at(i, signals), _at(i, added))
        for i, section in enumerate(sections)
    ]
    return sorted(scored, key=lambda s: (-s.score, s.section.doc_id, s.section.ordinal))


def score_texts(
    query: str,
    sections: Sequence[StoredSection],
    scorer: SectionScorer,
    section_text: SectionText,
    is_over: IsOver | None = None,
) -> NDArray[np.float64]:
    """One score per section, of the text that is to be read of it; of both texts the better.

    NaN where the time was over before all that is to be read of a section was scored.
    """
    readings = [(at, text) for at, section in enumerate(sections) for text in texts_of(section, section_text)]
    scores = scorer.score(query, [text for _, text in readings], is_over)
    best = np.full(len(sections), -np.inf)
    with np.errstate(invalid="ignore"):  # NaN wins, which numpy calls invalid
        np.maximum.at(best, np.array([at for at, _ in readings], dtype=np.int64), scores)
    return best


def texts_of(section: StoredSection, section_text: SectionText) -> list[StoredSection]:
    """A section as the scorer is to read it: as it is, as if it had not been rewritten, or first raw and then rewritten."""
    raw = replace(section, rewritten=None)
    if section_text == "both":
        return [raw] if section.rewritten is None else [raw, section]
    return [raw if section_text == "raw" else section]


def _at(position: int, signals: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    return {name: float(values[position]) for name, values in signals.items()}


def z_normalised(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores with mean 0 and standard deviation 1; all 0 where they do not differ by more than rounding."""
    if scores.size == 0 or np.ptp(scores) <= _ROUNDING * np.abs(scores).max():
        return np.zeros_like(scores)
    normalised: NDArray[np.float64] = (scores - scores.mean()) / scores.std()
    return normalised


def best_by_document(sections: Sequence[ScoredSection]) -> list[tuple[str, float]]:
    """Documents by their best section (the PRIME paper's aggregation, section 3.4), best first; ties by id."""
    best: dict[str, float] = {}
    for scored in sections:
        doc_id = scored.section.doc_id
        best[doc_id] = max(best.get(doc_id, -np.inf), scored.score)
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
