"""Section scorers for stage 2: late interaction over cached token vectors, and a cross-encoder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, takewhile
from math import fsum

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.indexes.lexical import StoredSection
from prime_pipeline.models.cross_encoder import CrossEncoderScorer
from prime_pipeline.models.embedder import Embedder
from prime_pipeline.models.late_interaction import maxsim_quantised
from prime_pipeline.retrieval.stage2 import IsOver
from prime_pipeline.retrieval.token_vectors import QuantisedVectors, TokenVectors, scoring_text
from prime_pipeline.storage.blob_cache import Cache
from prime_pipeline.text.words import term_words

_LOOKED_UP_AT_ONCE = 16
"""Sections; their vectors are in memory together."""
_ENCODED_AT_ONCE = 16
"""Windows, where time is no matter; else one section's."""
_CROSS_ENCODED_AT_ONCE = 8
"""Sections, where time matters; else all."""
_WINDOWS_KEPT = 2_048
"""Of long sections, with their words in memory: some 10 kB each."""
_ALPHANUMERIC_RUN = re.compile(r"[^\W_]+")

IdfLookup = Callable[[Iterable[str]], Mapping[str, float]]
"""Smoothed IDF of words over the indexed documents."""
_Windows = dict[int, Sequence[str]]
"""Windows by the position of their section among those that are scored."""


class LateInteractionScorer:
    """Section BM25 plus IDF-weighted MaxSim over the embedder's token vectors, maximum over a section's windows.

    Token vectors are computed when a window is first scored and kept by content, in 8 bits per component. Of a section
    with many windows (a changelog, say) only those are scored that hold the most of the query's words by IDF: encoding
    is what a query that meets new sections waits for, and a window that shares nothing with the query hardly wins.

    Args:
        embedder: Whose token vectors are compared.
        cache: Keeps them, by model and text. Where it cannot be read or written (a full disk), scoring goes on
            without it.
        idf: Weights the query's words; pieces of a word share its weight, punctuation has none.
        windows_per_section: The most windows of a section that are scored; 0 for all.
    """

    name = "late_interaction"
    is_mixed = True

    def __init__(
        self, embedder: Embedder, cache: Cache, idf: IdfLookup, windows_per_section: int = 0
    ) -> None:
        self._windows_per_section = windows_per_section
        self._embedder = embedder
        self._idf = idf
        self.token_vectors = TokenVectors(embedder, cache)
        self._words_of = lru_cache(_WINDOWS_KEPT)(_words_of)

    def score(
        self, query: str, sections: Sequence[StoredSection], is_over: IsOver | None = None
    ) -> NDArray[np.float64]:
        """Weighted mean over the query's tokens of the best cosine in the section's best window; 0 without tokens.

        Sections whose vectors are kept come first, since they cost little; then the others, in order, until the time is
        over.
        """
        query_vectors, spans = self._embedder.query_token_vectors(query)
        weights = self._weights(query, spans)
        query_idf = self._idf(set(term_words(query)))
        scores = np.full(len(sections), np.nan)
        for windows, vectors in self._vectors(sections, query_idf, is_over):
            for i, texts in windows.items():
                found = (maxsim_quantised(query_vectors, weights, vectors[window]) for window in texts)
                scores[i] = max(found, default=0.0)
        return scores

    def _vectors(
        self, sections: Sequence[StoredSection], query_idf: Mapping[str, float], is_over: IsOver | None
    ) -> Iterator[tuple[_Windows, Mapping[str, QuantisedVectors]]]:
        """Some sections' windows at a time, with the vectors of all of them."""
        cold: _Windows = {}
        for start in range(0, len(sections), _LOOKED_UP_AT_ONCE):
            if start and is_over and is_over():
                return
            some = enumerate(sections[start : start + _LOOKED_UP_AT_ONCE], start)
            windows = {i: self._windows(section, query_idf) for i, section in some}
            vectors = self.token_vectors.kept(chain.from_iterable(windows.values()))
            warm = {i: texts for i, texts in windows.items() if vectors.keys() >= set(texts)}
            cold |= {i: texts for i, texts in windows.items() if i not in warm}
            yield warm, vectors
        for group in _in_groups(cold, 1 if is_over else _ENCODED_AT_ONCE):
            if is_over and is_over():
                return
            vectors = self.token_vectors.of(chain.from_iterable(group.values()), is_over)
            yield {i: texts for i, texts in group.items() if vectors.keys() >= set(texts)}, vectors

    def _weights(self, query: str, spans: Sequence[tuple[int, int]]) -> NDArray[np.float32]:
        read_until = max((end for _, end in spans), default=0)  # the encoder may not read all of a long query
        matches = takewhile(lambda match: match.start() < read_until, _ALPHANUMERIC_RUN.finditer(query))
        runs = [(match.start(), match.end(), match.group()) for match in matches]
        words = [next((run for start, end, run in runs if start < b and a < end), "") for a, b in spans]
        terms = [(term_words(word) or [""])[0] for word in words]
        idf = self._idf({term for term in terms if term})
        return np.array([idf[term] if term else 0.0 for term in terms], dtype=np.float32)

    def _windows(self, section: StoredSection, query_idf: Mapping[str, float]) -> Sequence[str]:
        windows = self.token_vectors.windows(scoring_text(section))
        if not 0 < self._windows_per_section < len(windows):
            return windows
        # fsum, since the words of a set come in another order in every process.
        shared = [fsum(query_idf[word] for word in query_idf.keys() & self._words_of(w)) for w in windows]
        best = sorted(range(len(windows)), key=lambda i: (-shared[i], i))[: self._windows_per_section]
        return [windows[i] for i in sorted(best)]


def _words_of(window: str) -> frozenset[str]:
    return frozenset(term_words(window))


def _in_groups(windows: _Windows, n_windows: int) -> Iterator[_Windows]:
    """Sections in their order, in groups that have so many windows or more together, but for the last."""
    group: _Windows = {}
    for i, texts in windows.items():
        group[i] = texts
        if sum(map(len, group.values())) >= n_windows:
            yield group
            group = {}
    if group:
        yield group


class CrossEncoderSectionScorer:
    """A cross-encoder's logit of query and section, maximum over windows (the PRIME paper's stage 2, section 3.4)."""

    name = "cross_encoder"
    is_mixed = False

    def __init__(self, cross_encoder: CrossEncoderScorer) -> None:
        self._cross_encoder = cross_encoder

    def score(
        self, query: str, sections: Sequence[StoredSection], is_over: IsOver | None = None
    ) -> NDArray[np.float64]:
        """Raw logits; with a limit of time in batches, in order."""
        texts = [scoring_text(section) for section in sections]
        scores = np.full(len(texts), np.nan)
        step = _CROSS_ENCODED_AT_ONCE if is_over else max(1, len(texts))
        for start in range(0, len(texts), step):
            if is_over and is_over():
                break
            scores[start : start + step] = self._cross_encoder.score(query, texts[start : start + step])
        return scores
