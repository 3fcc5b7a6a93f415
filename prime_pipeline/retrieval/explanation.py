"""Why a search returned what it did: the places in every arm, the signals, and the words that matched."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prime_pipeline.indexes.lexical import MAX_QUERY_WORDS, LexicalIndex
from prime_pipeline.records import SectionHit
from prime_pipeline.retrieval.stage1 import Candidates
from prime_pipeline.retrieval.stage2 import ScoredSection
from prime_pipeline.text.words import lexical_words


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of the query, and how rare it is, as the lexical index matches words: by stem, diacritics folded.

    Attributes:
        word: In its lexical form, not its stem.
        n_documents: Documents that hold it.
        idf: ln((N + 1) / (n_documents + 1)) + 1 for N documents.
    """

    word: str
    n_documents: int
    idf: float


@dataclass(frozen=True, slots=True)
class ArmPlace:
    """Where an arm of stage 1 has a document.

    Attributes:
        rank: 1 for the best.
        score: The arm's own; higher is better.
    """

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class HitExplanation:
    """Why a section was returned where it was.

    Attributes:
        hit: The section, as the search returns it.
        arms: By arm the place of the section's document; None where the arm did not find it within its depth.
        fused_score: Of the document after stage 1.
        added: The signals of stage 2 as they were added up, z-normalised over the scored sections and weighted; empty where one
            signal alone is the score.
        words: Words of the query that the section holds (its title and headings included), the rarest first.
    """

    hit: SectionHit
    arms: Mapping[str, ArmPlace | None]
    fused_score: float
    added: Mapping[str, float]
    words: tuple[QueryWord, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a query was answered.

    Attributes:
        query: As it was asked.
        n_documents: In the index.
        words: The query's words, in order, each once.
        hits: What the search returns, explained, best first.
    """

    query: str
    n_documents: int
    words: tuple[QueryWord, ...] = ()
    hits: tuple[HitExplanation, ...] = ()

    @property
    def unknown_words(self) -> tuple[str, ...]:
        """Words of the query that no document holds."""
        return tuple(word.word for word in self.words if not word.n_documents)


def explain_hits(
    query: str,
    lexical: LexicalIndex,
    candidates: Candidates,
    sections: Sequence[ScoredSection],
    hits: Sequence[SectionHit],
) -> Explanation:
    """Explain hits by what the two stages made of them.

    Args:
        query: Any text.
        lexical: The index that was searched; it says itself which words match.
        candidates: What stage 1 found.
        sections: What stage 2 made of the hits, in their order.
        hits: Best first.
    """
    n_documents = len(lexical.doc_ids)
    words = {
        word: _query_word(word, lexical.document_frequency(word), n_documents)
        for word in lexical_words(query)[:MAX_QUERY_WORDS]
    }
    fused = dict(candidates.ranking)
    explained = tuple(
        HitExplanation(
            hit,
            _places(candidates, hit.doc_id),
            fused[hit.doc_id],
            scored.added,
            _rarest_first(words[word] for word in lexical.words_in(words, scored.section)),
        )
        for hit, scored in zip(hits, sections, strict=True)
    )
    return Explanation(query, n_documents, tuple(words.values()), explained)


def _query_word(word: str, n_holding: int, n_documents: int) -> QueryWord:
    return QueryWord(word, n_holding, math.log((n_documents + 1) / (n_holding + 1)) + 1.0)


def _rarest_first(words: Iterable[QueryWord]) -> tuple[QueryWord, ...]:
    return tuple(sorted(words, key=lambda word: word.n_documents))


def _places(candidates: Candidates, doc_id: str) -> dict[str, ArmPlace | None]:
    places: dict[str, ArmPlace | None] = {}
    for arm, ranking in candidates.arms.items():
        found = ((rank, score) for rank, (other, score) in enumerate(ranking, start=1) if other == doc_id)
        places[arm] = next((ArmPlace(rank, score) for rank, score in found), None)
    return places
