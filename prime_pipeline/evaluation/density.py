"""How dense a text is in what tells documents apart, by the IDF of the raw corpus, which is fixed for every text measured.

What restructuring did to density is a paired difference over documents; the statistics say what it is worth.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Final

from prime_pipeline.text.stop_words import STOP_WORDS
from prime_pipeline.text.words import term_words

_TECHNICAL_QUANTILE: Final = 0.75
DENSITY_CONVENTIONS: Final = (
    "Tokens are words of running text, lower-cased; stop words are scikit-learn's English list.",
    "IDF is ln((N + 1) / (df + 1)) + 1 over the raw corpus, for raw and restructured text alike.",
    "A technical term is no stop word, holds a letter, and is rarer than three quarters of the raw corpus's tokens (IDF).",
    "The density of technical terms is per 100 tokens.",
    "Semantic density is (1 - s) * mean IDF / s, where s is the stop-word ratio.",
    "A corpus's value is the mean over its documents.",
)
"""What the measures mean, for reports."""


@dataclass(frozen=True, slots=True)
class Density:
    """How dense one text is.

    Attributes:
        n_tokens: Words, at least 1.
        stop_word_ratio: Share of stop words, from 0 to 1.
        technical_term_density: Technical terms per 100 tokens.
        mean_idf: Over all tokens, repeated ones each time.
        semantic_density: ``(1 - s) * mean_idf / s`` for a stop-word ratio s: content-bearing tokens times mean IDF, over
            filler tokens (PRIME paper, appendix D.5). None for a text without stop words.
    """

    n_tokens: int
    stop_word_ratio: float
    technical_term_density: float
    mean_idf: float
    semantic_density: float | None


MEASURES: Final = tuple(field.name for field in fields(Density) if field.name != "n_tokens")
"""Names of the measures of density."""


class ReferenceIdf:
    """The IDF of a raw corpus, and the IDF from which its words count as technical.

    The threshold is the 75th percentile over the corpus's tokens. Over its vocabulary it would be the IDF of a word that
    occurs in one document, above which there is nothing: most words of a corpus do.

    Args:
        texts: The raw documents.

    Raises:
        ValueError: No document holds a word.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        n_texts = 0
        document_frequencies: Counter[str] = Counter()
        frequencies: Counter[str] = Counter()
        for text in texts:
            words = Counter(term_words(text))
            n_texts += 1
            document_frequencies.update(words.keys())
            frequencies.update(words)
        if not frequencies:
            raise ValueError("a reference IDF needs a document with words")
        self._n_texts = n_texts
        self._document_frequencies = document_frequencies
        self._idf: dict[str, float] = {}
        self._is_technical: dict[str, bool] = {}
        self.technical_above = self._quantile(frequencies)

    def __call__(self, word: str) -> float:
        """``ln((N + 1) / (df + 1)) + 1`` (PRIME paper, section 3.3); of a word that the corpus lacks, df is 0."""
        if (known := self._idf.get(word)) is not None:  # every document asks for many of the same words
            return known
        idf = math.log((self._n_texts + 1) / (self._document_frequencies[word] + 1)) + 1
        self._idf[word] = idf
        return idf

    def is_technical(self, word: str) -> bool:
        """Whether it is no stop word, holds a letter, and is rarer than three quarters of the corpus's tokens."""
        if (known := self._is_technical.get(word)) is not None:
            return known
        found = word not in STOP_WORDS and any(map(str.isalpha, word)) and self(word) > self.technical_above
        self._is_technical[word] = found
        return found

    def _quantile(self, frequencies: Mapping[str, int]) -> float:
        """The least IDF that at least three quarters of the tokens do not exceed."""
        wanted = _TECHNICAL_QUANTILE * sum(frequencies.values())
        by_idf = sorted((self(word), n) for word, n in frequencies.items())
        reached = accumulate(n for _, n in by_idf)
        return next(idf for (idf, _), n_tokens in zip(by_idf, reached, strict=True) if n_tokens >= wanted)


def density(text: str, idf: ReferenceIdf) -> Density | None:
    """How dense a text is; None for one without words."""
    words = Counter(term_words(text))
    n_tokens = words.total()
    if not n_tokens:
        return None
    n_stop_words = sum(n for word, n in words.items() if word in STOP_WORDS)
    n_technical = sum(n for word, n in words.items() if idf.is_technical(word))
    stop_word_ratio, mean_idf = (
        n_stop_words / n_tokens,
        sum(idf(word) * n for word, n in words.items()) / n_tokens,
    )
    return Density(
        n_tokens=n_tokens,
        stop_word_ratio=stop_word_ratio,
        technical_term_density=100 * n_technical / n_tokens,
        mean_idf=mean_idf,
        semantic_density=(1 - stop_word_ratio) * mean_idf / stop_word_ratio if n_stop_words else None,
    )


def by_measure(densities: Mapping[str, Density]) -> dict[str, dict[str, float]]:
    """Measure to document id to value, where it is defined."""
    found: dict[str, dict[str, float]] = {}
    for measure in MEASURES:
        values = {doc_id: getattr(density, measure) for doc_id, density in sorted(densities.items())}
        found[measure] = {doc_id: value for doc_id, value in values.items() if value is not None}
    return found
