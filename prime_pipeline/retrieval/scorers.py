"""Section scorers for stage 2: late interaction over cached token vectors, and a cross-encoder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import takewhile
from math import fsum

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.errors import StoreUnavailable
from prime_pipeline.indexes.lexical import StoredSection
from prime_pipeline.models.cross_encoder import CrossEncoderScorer
from prime_pipeline.models.embedder import Embedder
from prime_pipeline.models.late_interaction import maxsim_quantised, quantise
from prime_pipeline.storage.blob_cache import Cache
from prime_pipeline.storage.fingerprint import text_fingerprint
from prime_pipeline.text.words import term_words

_ENCODE_BATCH = 16
_SPLIT_TEXTS_KEPT = 4_096
"""Texts whose windows are kept in memory: splitting a section took several times as long as looking its vectors up."""
_ALPHANUMERIC_RUN = re.compile(r"[^\W_]+")

IdfLookup = Callable[[Iterable[str]], Mapping[str, float]]
"""Smoothed IDF of words over the indexed documents."""


def scoring_text(section: StoredSection) -> str:
    """What a scorer reads of a section: its heading path and its body, the rewritten one if the section has one."""
    heading = " > ".join(section.heading_path)
    body = section.text[section.body_start :].strip() if section.rewritten is None else section.rewritten
    return f"{heading}\n{body}" if heading else body


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
    adds_lexical_score = True

    def __init__(
        self, embedder: Embedder, cache: Cache, idf: IdfLookup, windows_per_section: int = 0
    ) -> None:
        self._windows_per_section = windows_per_section
        self._embedder = embedder
        self._cache = cache
        self._idf = idf
        self._split = lru_cache(_SPLIT_TEXTS_KEPT)(self._split_now)

    def score(self, query: str, sections: Sequence[StoredSection]) -> NDArray[np.float64]:
        """Weighted mean over the query's tokens of the best cosine in the section's best window; 0 without tokens."""
        query_vectors, spans = self._embedder.query_token_vectors(query)
        weights = self._weights(query, spans)
        query_idf = self._idf(set(term_words(query)))
        windows = [self._windows(section, query_idf) for section in sections]
        vectors = self._token_vectors([window for texts in windows for window in texts])
        return np.array(
            [
                max((maxsim_quantised(query_vectors, weights, vectors[w]) for w in texts), default=0.0)
                for texts in windows
            ]
        )

    def _weights(self, query: str, spans: Sequence[tuple[int, int]]) -> NDArray[np.float32]:
        read_until = max((end for _, end in spans), default=0)  # the encoder may not read all of a long query
        matches = takewhile(lambda match: match.start() < read_until, _ALPHANUMERIC_RUN.finditer(query))
        runs = [(match.start(), match.end(), match.group()) for match in matches]
        words = [next((run for start, end, run in runs if start < b and a < end), "") for a, b in spans]
        terms = [(term_words(word) or [""])[0] for word in words]
        idf = self._idf({term for term in terms if term})
        return np.array([idf[term] if term else 0.0 for term in terms], dtype=np.float32)

    def _split_now(self, text: str) -> tuple[str, ...]:
        return tuple(self._embedder.tokenizer.windows(text, self._embedder.window_tokens))

    def _windows(self, section: StoredSection, query_idf: Mapping[str, float]) -> Sequence[str]:
        text = scoring_text(section)
        windows = self._split(text) if text else ()
        if not 0 < self._windows_per_section < len(windows):
            return windows
        # fsum, since the words of a set come in another order in every process.
        shared = [fsum(query_idf[word] for word in query_idf.keys() & set(term_words(w))) for w in windows]
        best = sorted(range(len(windows)), key=lambda i: (-shared[i], i))[: self._windows_per_section]
        return [windows[i] for i in sorted(best)]

    def _token_vectors(self, texts: Sequence[str]) -> dict[str, NDArray[np.int8]]:
        keys = {
            text: text_fingerprint("token vectors, int8", self._embedder.fingerprint, text) for text in texts
        }
        cached: dict[str, bytes] = {}
        with suppress(StoreUnavailable):
            cached = self._cache.lookup(keys.values())
        missing = [text for text, key in keys.items() if key not in cached]
        for start in range(0, len(missing), _ENCODE_BATCH):
            batch = missing[start : start + _ENCODE_BATCH]
            encoded = [quantise(vectors).tobytes() for vectors in self._embedder.token_vectors(batch)]
            new = {keys[text]: value for text, value in zip(batch, encoded, strict=True)}
            with suppress(StoreUnavailable):
                self._cache.store(new)
            cached.update(new)
        dimensions = self._embedder.dimensions
        # All through 8 bits, new ones too, so that a score does not depend on whether the cache was warm.
        return {
            text: np.frombuffer(cached[key], dtype=np.int8).reshape(-1, dimensions)
            for text, key in keys.items()
        }


class CrossEncoderSectionScorer:
    """A cross-encoder's logit of query and section, maximum over windows (the PRIME paper's stage 2, section 3.4)."""

    name = "cross_encoder"
    adds_lexical_score = False

    def __init__(self, cross_encoder: CrossEncoderScorer) -> None:
        self._cross_encoder = cross_encoder

    def score(self, query: str, sections: Sequence[StoredSection]) -> NDArray[np.float64]:
        """Raw logits."""
        return self._cross_encoder.score(query, [scoring_text(section) for section in sections]).astype(
            np.float64
        )
