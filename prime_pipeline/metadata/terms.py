"""Discriminative terms: which words tell a document from the rest of its corpus.

Words come in, counted by document into flat arrays; nothing here knows where a word was read.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.metadata.options import MetadataOptions, Reading
from prime_pipeline.text.stop_words import STOP_WORDS
from prime_pipeline.text.words import literal_words, term_words

_COLUMNS: Final = {"word": "<u4", "count": "<u4", "first_position": "<u4", "in_heading": "?"}
"""What is counted of one distinct word of one document, as it is written, the same on every machine: the word's number in
a list of words, how often it occurs, where first, and whether a heading has it."""

_SCORED_AT_ONCE: Final = 128
"""Documents; their scores fit into a processor's cache, which takes half of the time of all at once."""

_CONTRACTION: Final = re.compile(r".*'(?:s|t|d|m|re|ve|ll)")


def word_reader(reading: Reading) -> Callable[[str], list[str]]:
    """The function that cuts text into words in this reading; queries that look up frequencies need the same."""
    return literal_words if reading == "paper_literal" else term_words


def is_candidate(word: str) -> bool:
    """Whether a word can be a discriminative term in the default reading.

    Stop words, contractions and possessives (``don't``, ``model's``), words without a letter, and words with fewer
    than three letters and digits cannot.
    """
    if word in STOP_WORDS:
        return False
    if word.isalpha():  # nearly all words; the rest takes ten times as long
        return len(word) > 2
    if _CONTRACTION.fullmatch(word):
        return False
    return sum(map(str.isalnum, word)) > 2 and any(map(str.isalpha, word))


class TermStatistics:
    """Counts of a corpus, document by document, and the scores that follow from them.

    Documents are known by the order in which they were added. Memory is 13 bytes per document and distinct word of
    it, and the vocabulary once.
    """

    def __init__(self) -> None:
        self._vocabulary: defaultdict[str, int] = defaultdict()
        self._vocabulary.default_factory = self._vocabulary.__len__
        # One entry per document and distinct word, the entries of a document side by side.
        self._words = array("I")
        self._counts = array("I")
        self._first_positions = array("I")
        self._in_heading = bytearray()
        self._entry_ends = array("Q")
        self._lengths = array("I")
        self._slots = np.empty(0, np.int64)

    @property
    def n_documents(self) -> int:
        """Documents added so far, empty ones included."""
        return len(self._lengths)

    @property
    def vocabulary_size(self) -> int:
        """Distinct words of all documents, stop words included."""
        return len(self._vocabulary)

    def add(self, words: Sequence[str], heading_words: Collection[str] = ()) -> None:
        """Count one document.

        Args:
            words: All its words in order; repeated words are what is counted.
            heading_words: Words of its headings; those that do not occur in ``words`` have no effect.
        """
        ids = np.fromiter(map(self._vocabulary.__getitem__, words), np.int64, len(words))
        positions = np.arange(len(ids))
        slots = self._slots_for_vocabulary()
        slots[ids[::-1]] = positions[::-1]  # written backwards: of equal words the first one stays
        first_positions = np.flatnonzero(slots[ids] == positions)
        distinct = ids[first_positions]
        slots[distinct] = np.arange(len(distinct))
        self._words.frombytes(distinct.astype(np.uint32).tobytes())
        self._counts.frombytes(np.bincount(slots[ids], minlength=len(distinct)).astype(np.uint32).tobytes())
        self._first_positions.frombytes(first_positions.astype(np.uint32).tobytes())
        in_heading = [self._vocabulary[word] for word in set(heading_words) if word in self._vocabulary]
        self._in_heading.extend(np.isin(distinct, in_heading).tobytes())
        self._entry_ends.append(len(self._words))
        self._lengths.append(len(ids))

    def take_over(
        self,
        words: Sequence[str],
        entries: Mapping[str, bytes],
        sizes: Sequence[int],
        kept: Mapping[int, int],
    ) -> None:
        """Add documents as :meth:`counted` gave them, without their texts.

        Args:
            words: What the numbers of words in ``entries`` refer to.
            entries: Columns of all documents that were counted then.
            sizes: How many entries each of these has.
            kept: Which of them are added, in ascending order, each with its number of words.
        """
        parts = _joined_spans(np.cumsum(np.asarray(sizes, np.int64)).tolist(), kept)
        columns = {name: np.frombuffer(entries.get(name, b""), kind) for name, kind in _COLUMNS.items()}
        is_used = np.zeros(len(words), bool)
        for part in parts:
            is_used[columns["word"][part]] = True
        used = np.flatnonzero(is_used)
        ids = np.zeros(len(words), np.uint32)  # words that none of the kept documents has get no id
        ids[used] = [self._vocabulary[words[number]] for number in used.tolist()]
        n_before = len(self._words)
        for part in parts:
            self._words.frombytes(_bytes(ids[columns["word"][part]], "=u4"))
            self._counts.frombytes(_bytes(columns["count"][part], "=u4"))
            self._first_positions.frombytes(_bytes(columns["first_position"][part], "=u4"))
            self._in_heading.extend(_bytes(columns["in_heading"][part], "?"))
        self._entry_ends.extend(n_before + end for end in accumulate(sizes[number] for number in kept))
        self._lengths.extend(kept.values())

    def counted(self, order: Sequence[int]) -> tuple[list[str], dict[str, bytes]]:
        """All words in alphabetical order, and what was counted of the documents, by column.

        The number of a word is its place among all. The columns ``word``, ``count``, ``first_position`` and
        ``in_heading`` have an entry for each distinct word of each document, in order of first position; the
        documents follow one another in ``order``. That is all that the columns depend on, so that documents that were
        taken over and such that were read make no difference.
        """
        vocabulary = list(self._vocabulary)
        alphabetical = sorted(range(len(vocabulary)), key=vocabulary.__getitem__)
        places = np.empty(len(vocabulary), np.uint32)
        places[alphabetical] = np.arange(len(vocabulary), dtype=np.uint32)
        parts = _joined_spans(self._entry_ends, order)
        columns = {
            "word": places[np.asarray(self._words)],
            "count": np.asarray(self._counts),
            "first_position": np.asarray(self._first_positions),
            "in_heading": np.frombuffer(self._in_heading, np.bool_),
        }
        entries = {
            name: b"".join(_bytes(columns[name][part], kind) for part in parts)
            for name, kind in _COLUMNS.items()
        }
        return [vocabulary[number] for number in alphabetical], entries

    @property
    def sizes(self) -> list[int]:
        """Distinct words of each document."""
        sizes: list[int] = np.diff(np.asarray(self._entry_ends, np.int64), prepend=0).tolist()
        return sizes

    @property
    def lengths(self) -> list[int]:
        """Words of each document, repeated ones each time."""
        return self._lengths.tolist()

    def _slots_for_vocabulary(self) -> NDArray[np.int64]:
        """The scratch space, at least one slot per word; what it holds is left over from earlier documents."""
        if len(self._slots) < len(self._vocabulary):
            self._slots = np.empty(2 * len(self._vocabulary), np.int64)
        return self._slots

    def document_frequencies(self) -> dict[str, int]:
        """In how many documents each word occurs; stop words included, since queries hold them."""
        return dict(zip(self._vocabulary, self._frequencies().tolist(), strict=True))

    def best_terms(self, options: MetadataOptions) -> list[tuple[tuple[str, float], ...]]:
        """The discriminative terms of each document with their scores, best first, ties in alphabetical order.

        ``score(t) = TF(t) * IDF(t) * exp(-alpha * first_position / n) * (beta if t is in a heading else 1)`` with
        ``IDF(t) = ln((N + 1) / (df(t) + 1)) + 1`` over the added documents themselves (PRIME paper, section 3.3).
        TF is the raw count: dividing it by the document's length would not change the order within a document.
        Positions count from 0; n is the document's number of words, those that cannot be terms included. A document
        with fewer candidates than ``n_terms`` gets fewer terms.
        """
        vocabulary = list(self._vocabulary)
        # A weight of -1 marks the words that cannot be terms: true scores are positive.
        weights = np.log((self.n_documents + 1) / (self._frequencies() + 1)) + 1
        if options.reading == "default":
            weights[~np.fromiter(map(is_candidate, vocabulary), bool, len(vocabulary))] = -1
        found: list[tuple[tuple[str, float], ...]] = []
        for first in range(0, self.n_documents, _SCORED_AT_ONCE):
            some = range(first, min(first + _SCORED_AT_ONCE, self.n_documents))
            entries = slice(*self._bounds(some[0], some[-1]))
            words, scores = np.asarray(self._words)[entries], self._scores(some, entries, weights, options)
            for number in some:
                start, end = (at - entries.start for at in self._bounds(number, number))
                found.append(_best(scores[start:end], words[start:end], vocabulary, options.n_terms))
        return found

    def _bounds(self, first: int, last: int) -> tuple[int, int]:
        """Where the entries of documents begin and end."""
        return self._entry_ends[first - 1] if first else 0, self._entry_ends[last]

    def _frequencies(self) -> NDArray[np.int64]:
        """Document frequencies, shape (vocabulary_size,)."""
        return np.bincount(np.asarray(self._words), minlength=self.vocabulary_size)

    def _scores(
        self, documents: range, entries: slice, weights: NDArray[np.float64], options: MetadataOptions
    ) -> NDArray[np.float64]:
        """Scores of all entries of some documents, shape (n_entries,)."""
        sizes = [end - start for start, end in (self._bounds(number, number) for number in documents)]
        lengths = np.repeat(np.asarray(self._lengths)[documents.start : documents.stop], sizes)
        scores: NDArray[np.float64] = (
            weights[np.asarray(self._words)[entries]] * np.asarray(self._counts)[entries]
        )
        scores *= np.exp(-options.alpha * (np.asarray(self._first_positions)[entries] / lengths))
        scores[np.frombuffer(self._in_heading, dtype=bool)[entries]] *= options.beta
        return scores


def _joined_spans(ends: Sequence[int], numbers: Iterable[int]) -> list[slice]:
    """Where the entries of documents stand, in the order of their numbers, those that follow one another as one slice.

    Nearly all documents keep their place, so that entries are copied in a few large pieces.
    """
    spans: list[slice] = []
    for number in numbers:
        start, end = ends[number - 1] if number else 0, ends[number]
        if spans and spans[-1].stop == start:
            spans[-1] = slice(spans[-1].start, end)
        else:
            spans.append(slice(start, end))
    return spans


def _bytes(column: NDArray[Any], kind: str) -> memoryview:
    """The values of a contiguous column as bytes, copied only where they are stored in another way."""
    return column.astype(kind, copy=False).view(np.uint8).data


def _best(
    scores: NDArray[np.float64], words: NDArray[np.uint32], vocabulary: list[str], n_terms: int
) -> tuple[tuple[str, float], ...]:
    """The n best of one document; all that tie with the n-th are compared by name."""
    n_terms = min(n_terms, len(scores))
    if n_terms <= 0:
        return ()
    threshold = max(np.partition(scores, -n_terms)[-n_terms], 0.0)
    (at,) = np.nonzero(scores >= threshold)
    ranked = sorted(
        (-score, vocabulary[word]) for score, word in zip(scores[at].tolist(), words[at], strict=True)
    )
    return tuple((word, -negative) for negative, word in ranked[:n_terms])
