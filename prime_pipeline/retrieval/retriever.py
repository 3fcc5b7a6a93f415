"""The retriever: an opened build and the two stages over it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Self

from prime_pipeline.errors import IndexModelMismatch
from prime_pipeline.indexes.builds import LEXICAL_FILE, METADATA_FILE, Manifest, verify_build
from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.indexes.vectors import VectorIndex, VectorSearch
from prime_pipeline.models.cross_encoder import CrossEncoderScorer
from prime_pipeline.models.embedder import Embedder
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import CutShort, Run, SectionHit, section_id
from prime_pipeline.retrieval.explanation import Explanation, explain_hits
from prime_pipeline.retrieval.filters import DocumentFilter
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.scorers import CrossEncoderSectionScorer, LateInteractionScorer
from prime_pipeline.retrieval.stage1 import Candidates, find_candidates
from prime_pipeline.retrieval.stage2 import (
    IsOver,
    ScoredSection,
    SectionScorer,
    best_by_document,
    bm25_order,
    order_sections,
    rerank_sections,
)
from prime_pipeline.retrieval.warming import Warmed, warm_token_vectors
from prime_pipeline.storage.blob_cache import Cache
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.metadata_file import MetadataFile
from prime_pipeline.text.words import lexical_words

RETRIEVAL_VERSION = 1
"""Raise it when the same build, options and query would give another ranking."""


_FILTERS_KEPT = 16
"""With the ids of the documents that each of them leaves out."""
_N_RANKED_SECTIONS = 48
"""Sections of a ranking where the budget is not what limits them."""


@dataclass(frozen=True, slots=True)
class Rankings:
    """What a query finds, best first.

    Attributes:
        documents: Ids of all documents that any arm found.
        sections: Ids of the sections that were ordered: those within the budget, all where everything is scored.
    """

    documents: tuple[str, ...]
    sections: tuple[str, ...]


def by_rank(ids: Sequence[str]) -> list[tuple[str, float]]:
    """Ids, best first, each with 1 / rank as its score."""
    return [(found, 1.0 / rank) for rank, found in enumerate(ids, start=1)]


def as_run(rankings: Mapping[str, Sequence[str]]) -> Run:
    """Ids by query, best first, as the measures and TREC files take them."""
    return {query_id: dict(by_rank(ids)) for query_id, ids in rankings.items()}


def retriever_fingerprint(build_id: str, options: RetrievalOptions, cross_encoder: str | None) -> str:
    """Hash of all that a ranking depends on, beside the query.

    Args:
        build_id: Of the build.
        options: How it retrieves.
        cross_encoder: Fingerprint of that model; of no account where it does not score.
    """
    return fingerprint(
        {
            "version": RETRIEVAL_VERSION,
            "build": build_id,
            "options": options.determinants,
            "cross_encoder": cross_encoder if options.scorer == "cross_encoder" else None,
        }
    )


class Retriever:
    """Answers queries from one published build. Safe for several threads.

    A retriever goes on with the build that it opened while a refresh publishes another; open a new one to see that.

    Example:
        >>> from prime_pipeline import open_retriever
        >>> with open_retriever(".prime") as retriever:  # doctest: +SKIP
        ...     for hit in retriever.search("how are partitions named?"):
        ...         print(hit.score, hit.source_path, hit.start_line, hit.heading_path)

    Args:
        folder: Of the build.
        embedder: The one that made it.
        token_vectors: Cache for late interaction.
        options: How to retrieve.
        cross_encoder: Needed where ``options.scorer`` is ``cross_encoder``.
        clock: Seconds, for limits of time.

    Attributes:
        manifest: What the build says about itself.
        options: How it retrieves.

    Raises:
        IndexNotFound, IndexCorrupt, SchemaMismatch: The build cannot be used.
        IndexModelMismatch: Another embedder made it.
        RuntimeError: A method was called after :meth:`close`.
    """

    def __init__(
        self,
        folder: Path,
        embedder: Embedder,
        token_vectors: Cache,
        options: RetrievalOptions,
        cross_encoder: CrossEncoderScorer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.manifest: Manifest = verify_build(folder)
        if self.manifest.embedder_fingerprint != embedder.fingerprint:
            found = f"{self.manifest.embedder_name} ({self.manifest.embedder_fingerprint[:12]})"
            raise IndexModelMismatch(folder, found, f"{embedder.name} ({embedder.fingerprint[:12]})")
        self.options = options
        self._is_closed = False
        self._clock = clock
        self._embedder = embedder
        self._cross_encoder = cross_encoder
        self._metadata = MetadataFile(folder / METADATA_FILE)
        self._lexical = LexicalIndex(folder / LEXICAL_FILE)
        self._vectors = VectorIndex(folder)
        self._excluded_by = lru_cache(_FILTERS_KEPT)(self._find_excluded)
        late_interaction = LateInteractionScorer(
            embedder, token_vectors, self.idf, options.windows_per_section
        )
        self._token_vectors = late_interaction.token_vectors
        self._scorers: dict[str, SectionScorer] = {"late_interaction": late_interaction}
        if cross_encoder is not None:
            self._scorers["cross_encoder"] = CrossEncoderSectionScorer(cross_encoder)

    @property
    def fingerprint(self) -> str:
        """Hash of all that a ranking depends on, beside the query: build, options, and the cross-encoder if used."""
        cross_encoder = self._cross_encoder.fingerprint if self._cross_encoder else None
        return retriever_fingerprint(self.manifest.build_id, self.options, cross_encoder)

    def search(
        self,
        query: str,
        top_k: int | None = None,
        options: RetrievalOptions | None = None,
        documents: DocumentFilter | None = None,
    ) -> list[SectionHit]:
        """The best sections for a query, best first.

        Args:
            query: Any text; nothing in it is read as syntax.
            top_k: Sections to return; by default that of the options.
            options: Other options for this query.
            documents: Which documents may answer; the others are treated as if they were not there, but for the
                frequencies of words.

        Returns:
            At most ``top_k`` hits; fewer where the candidates have fewer sections, none for a query without a word. Where
            ``time_limit_ms`` ended the scoring of sections, each hit says so; the first ``top_k`` of the cheap order are
            scored in any case.
        """
        found = self._search(query, top_k, options, documents)
        return found.hits if found else []

    def explain(
        self,
        query: str,
        top_k: int | None = None,
        options: RetrievalOptions | None = None,
        documents: DocumentFilter | None = None,
    ) -> Explanation:
        """The hits of :meth:`search`, with what led to each: places in the arms, signals, words that matched.

        Args:
            query: Any text; nothing in it is read as syntax.
            top_k: Sections to return; by default that of the options.
            options: Other options for this query.
            documents: Which documents may answer, see :meth:`search`.
        """
        found = self._search(query, top_k, options, documents)
        if found is None:
            return Explanation(query, len(self._lexical.doc_ids))
        return explain_hits(query, self._lexical, found.candidates, found.sections, found.hits)

    def rank(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        vectors: VectorSearch | None = None,
        embedder: Embedder | None = None,
        excluded: AbstractSet[str] = frozenset(),
    ) -> Rankings:
        """Documents and sections for a query, for evaluation.

        With a scorer, documents with a scored section come first, by their best one; the others follow in the order
        of stage 1. A query without a word finds nothing.

        Args:
            query: Any text.
            options: Other options for this query.
            vectors: Searched in the place of the build's vector index, for comparisons.
            embedder: The one that made ``vectors``, if it is not the build's; it encodes the query for them only.
            excluded: Ids of documents that are treated as if they were not there.
        """
        self._require_open()
        options = options or self.options
        if not lexical_words(query):
            return Rankings((), ())
        query = _encodable(query)
        candidates = find_candidates(
            query, self._lexical, vectors or self._vectors, embedder or self._embedder, options, excluded
        )
        n_sections = options.rerank_budget or _N_RANKED_SECTIONS
        doc_ids = [doc_id for doc_id, _ in candidates.ranking]
        if options.scorer == "none":
            return Rankings(tuple(doc_ids), self._cheaply_ordered(candidates, options, n_sections))
        sections = self._sections(query, candidates, options, n_sections)
        by_best = [doc_id for doc_id, _ in best_by_document(sections)]
        found = (section_id(s.section.doc_id, s.section.ordinal) for s in sections)
        return Rankings(tuple(dict.fromkeys(by_best + doc_ids)), tuple(found))

    def rank_within(
        self, query: str, doc_id: str, options: RetrievalOptions | None = None
    ) -> tuple[str, ...]:
        """All sections of one document for a query, for evaluation: ids, best first.

        Stage 1 has nothing to find; the sections are ordered as :meth:`rank` orders those of its candidates. A query
        without a word, and a document that is not indexed, find nothing.
        """
        self._require_open()
        options = replace(options or self.options, rerank_budget=0)
        if not lexical_words(query):
            return ()
        query = _encodable(query)
        section_scores = self._lexical.score_sections(query)
        candidates = Candidates([(doc_id, 1.0)], {}, section_scores)
        sections = self._sections(query, candidates, options, self.manifest.n_sections)
        return tuple(section_id(s.section.doc_id, s.section.ordinal) for s in sections)

    def warm(self, progress: Progress = silent) -> Warmed:
        """Make and keep the token vectors of all sections, so that no query has to; finished work survives an interruption.

        Cheap when all are there. Where another scorer than late interaction is chosen, there is nothing to do.

        Args:
            progress: Told of the sections that are looked through, and of the windows that are encoded.

        Raises:
            StoreUnavailable: The cache cannot be read or written.
        """
        self._require_open()
        if self.options.scorer != "late_interaction":
            return Warmed(self.options.scorer)
        return warm_token_vectors(self._lexical, self.options.section_text, self._token_vectors, progress)

    def idf(self, words: Iterable[str]) -> dict[str, float]:
        """Smoothed IDF over the indexed documents: ln((N + 1) / (df + 1)) + 1 (the PRIME paper, section 3.3)."""
        self._require_open()
        frequencies = self._metadata.document_frequencies(words)
        n_documents = self._metadata.n_documents
        return {word: math.log((n_documents + 1) / (df + 1)) + 1.0 for word, df in frequencies.items()}

    @property
    def metadata(self) -> MetadataFile:
        """The build's metadata of documents."""
        return self._metadata

    @property
    def lexical(self) -> LexicalIndex:
        """The build's lexical index."""
        return self._lexical

    def close(self) -> None:
        """Close the build's files; nothing can be searched after that."""
        self._is_closed = True
        self._metadata.close()
        self._lexical.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise RuntimeError(f"the retriever of build {self.manifest.build_id} is closed: open a new one")

    def _cheaply_ordered(
        self, candidates: Candidates, options: RetrievalOptions, n_sections: int
    ) -> tuple[str, ...]:
        """Ids of the sections that a search without a scorer would return; nothing else of them is read."""
        ordered = bm25_order(self._lexical, candidates, options.n_candidates)[:n_sections]
        sections, doc_ids = self._lexical.sections, self._lexical.doc_ids
        return tuple(
            section_id(doc_ids[sections.documents[at]], int(sections.ordinals[at])) for at, _ in ordered
        )

    def _search(
        self,
        query: str,
        top_k: int | None,
        options: RetrievalOptions | None,
        documents: DocumentFilter | None,
    ) -> _Found | None:
        """What a search finds; None for nothing to search for."""
        self._require_open()
        options = options or self.options
        top_k = options.top_k if top_k is None else top_k
        if top_k < 1 or not lexical_words(query):
            return None
        query = _encodable(query)
        excluded = self._excluded_by(documents) if documents else frozenset()
        candidates = find_candidates(query, self._lexical, self._vectors, self._embedder, options, excluded)
        is_over = self._time_limit(options)
        sections = self._sections(query, candidates, options, top_k, is_over)
        is_short = is_over is not None and is_over()
        cut_short = self._cut_short(candidates, options, top_k, len(sections)) if is_short else None
        stage1_rank = {doc_id: rank for rank, (doc_id, _) in enumerate(candidates.ranking, start=1)}
        hits = [
            _hit(rank, scored, stage1_rank[scored.section.doc_id], candidates, cut_short)
            for rank, scored in enumerate(sections[:top_k], start=1)
        ]
        return _Found(candidates, sections[:top_k], hits)

    def _find_excluded(self, documents: DocumentFilter) -> frozenset[str]:
        return documents.excluded(self._lexical.documents())

    def _time_limit(self, options: RetrievalOptions) -> IsOver | None:
        """Tells when the scoring of sections, which starts now, has to end; None without a limit."""
        if not options.time_limit_ms or options.scorer == "none":
            return None
        end = self._clock() + options.time_limit_ms / 1000
        return lambda: self._clock() >= end

    def _cut_short(
        self, candidates: Candidates, options: RetrievalOptions, top_k: int, n_scored: int
    ) -> CutShort | None:
        """How far scoring came; None where it came to its end after all."""
        n_sections = len(
            bm25_order(self._lexical, candidates, options.n_candidates)[: _budget(options, top_k)]
        )
        return CutShort(n_scored, n_sections, options.time_limit_ms) if n_scored < n_sections else None

    def _sections(
        self,
        query: str,
        candidates: Candidates,
        options: RetrievalOptions,
        top_k: int,
        is_over: IsOver | None = None,
    ) -> list[ScoredSection]:
        if options.scorer == "none":
            return order_sections(self._lexical, candidates, options.n_candidates, top_k)
        scorer = self._scorers.get(options.scorer)
        if scorer is None:
            raise ValueError(
                f"scorer {options.scorer!r} is not loaded: open the retriever with a cross_encoder"
            )
        within = replace(options, rerank_budget=_budget(options, top_k) or 0)
        return rerank_sections(query, self._lexical, candidates, scorer, within, is_over, at_least=top_k)


@dataclass(frozen=True, slots=True)
class _Found:
    """What a search found: the hits, and what the stages made of them."""

    candidates: Candidates
    sections: list[ScoredSection]
    hits: list[SectionHit]


def _budget(options: RetrievalOptions, top_k: int) -> int | None:
    """How many sections reach the scorer; None for all."""
    return max(options.rerank_budget, top_k) if options.rerank_budget else None


def _encodable(query: str) -> str:
    """The query without lone surrogates, which undecodable bytes of a command line become and no tokenizer takes."""
    return query.encode("utf-8", "replace").decode("utf-8")


def _hit(
    rank: int, scored: ScoredSection, stage1_rank: int, candidates: Candidates, cut_short: CutShort | None
) -> SectionHit:
    section = scored.section
    return SectionHit(
        rank=rank,
        score=scored.score,
        doc_id=section.doc_id,
        section_id=section_id(section.doc_id, section.ordinal),
        title=section.title,
        heading_path=section.heading_path,
        text=section.text,
        source_path=section.source_path,
        start_line=section.start_line,
        end_line=section.end_line,
        stage1_rank=stage1_rank,
        arm_ranks=candidates.arm_ranks(section.doc_id),
        signals=scored.signals,
        restructured=section.restructured,
        cut_short=cut_short,
    )
