"""Extractive restructuring: a mild, deterministic shortening without any language model.

Only whole road-map sentences, repeated sentences, and phrases from fixed lists go. What a section says stays by
construction: its numbers, names, acronyms and defined terms are counted, and a cut that would take the last one away
is not made; nor is one that touches a word of negation, condition, contrast, quantity or comparison.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prime_pipeline.records import Document
from prime_pipeline.restructuring.extractive_cuts import cuts
from prime_pipeline.restructuring.extractive_facts import (
    facts,
    hide,
    reveal,
    turning_words,
    without_pointers,
)
from prime_pipeline.restructuring.extractive_pointers import PLAIN_FIRST_WORDS, is_pointer
from prime_pipeline.text.protected import PLACEHOLDER_LINE, protect
from prime_pipeline.text.sentences import sentence_spans
from prime_pipeline.text.stop_words import STOP_WORDS
from prime_pipeline.text.words import term_words

EXTRACTIVE_VERSION: Final = "1"
"""Raise it when the same document comes out differently."""

_MIN_STOP_WORD_SHARE: Final = 0.25  # English prose has 0.35 to 0.5, other languages below 0.15
_MIN_NUMERIC_MARKS: Final = 5
_NUMERIC_MARK: Final = re.compile(r"(?<=\s)\[[1-9]\d{0,2}\]")
_LIST_ITEM: Final = re.compile(r"(?:[-*+•>|]|\(?[\dA-Za-z]{1,3}[.)])\s")
_LOOKS_BACK: Final = re.compile(
    r"(?:it|its|this|these|that|those|they|their|them|such|he|she|his|her|both|each|the (?:former|latter|first|second)|"
    r"here|there|then|next|finally|lastly|second|so|one|another|while|as such|for (?:this|these|each)|if so|similarly|"
    r"(?:in|by|with|at) (?:this|these|that|those|both|such)|otherwise|however|but|thus|therefore|hence|also|likewise)\b",
    re.IGNORECASE,
)
_HARMLESS_IN_POINTERS: Final = frozenset({"all", "both", "each", "every", "more", "most", "some"})
_MIN_REPEATED_WORDS: Final = 6
_MAX_LENGTH_RATIO: Final = 2.0
_MAX_CANDIDATES: Final = 16


def extract(document: Document) -> dict[int, str]:
    """The shortened bodies of a document, by section ordinal, of those sections only that change.

    Protected blocks, inline code and math come back byte for byte, lists and paragraphs keep their lines; captions,
    text that is not English and bodies of which nothing would be left stay as they are. The result is a fixed point:
    extracting from the document with these bodies changes nothing. Linear in the size of the document.
    """
    raw = {s.ordinal: s.body for s in document.sections if s.kind != "captions" and s.body}
    bodies: Mapping[int, str] = raw
    # One cut can bare another, within a sentence or by what is left to repeat; few documents need a third round.
    while (shorter := _round(bodies)) != bodies:
        bodies = shorter
    return {ordinal: body for ordinal, body in bodies.items() if body != raw[ordinal]}


def _round(bodies: Mapping[int, str]) -> dict[int, str]:
    marks = {mark for body in bodies.values() for mark in _NUMERIC_MARK.findall(body)}
    said = _Said()
    shorter = {}
    for ordinal, body in bodies.items():
        shorter[ordinal] = _shortened(body, said, numeric_marks=len(marks) >= _MIN_NUMERIC_MARKS)
    return shorter


def _shortened(body: str, said: _Said, *, numeric_marks: bool) -> str:
    protected = protect(body)
    hidden = hide(protected.text)
    if hidden is None or not _is_english(hidden[0]):
        return body
    text, passages = hidden
    passage = _Passage.of(text)
    # A hidden passage has its own character in each section: what sections have in common shows in clear only.
    passage.drop(lambda sentence: said.holds(reveal(sentence, passages)))
    passage.cut(numeric_marks=numeric_marks)
    said.add(reveal(sentence, passages) for sentence in passage.sentences)
    kept = protected.restore(reveal(passage.text, passages)).strip()
    return kept if passage.sentences and term_words(kept) and len(kept) < len(body) else body


def _is_english(text: str) -> bool:
    words = term_words(text)
    return sum(word in STOP_WORDS for word in words) >= _MIN_STOP_WORD_SHARE * max(1, len(words))


@dataclass(slots=True)
class _Passage:
    """A section's sentences with the blanks before each, and how often each fact occurs in them.

    Attributes:
        gaps: One more than sentences: the last stands behind them.
    """

    sentences: list[str]
    gaps: list[str]
    facts: Counter[str]

    @classmethod
    def of(cls, text: str) -> _Passage:
        spans = sentence_spans(text)
        edges = [0, *(edge for span in spans for edge in span), len(text)]
        gaps = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
        sentences = [text[start:end] for start, end in spans]
        return cls(sentences, gaps, sum(map(facts, sentences), Counter()))

    @property
    def text(self) -> str:
        pairs = zip(self.gaps, [*self.sentences, ""], strict=True)
        return "".join(part for pair in pairs for part in pair)

    def drop(self, is_said: Callable[[str], bool]) -> None:
        """Leave out pointers and what was said before, from the end, so that what looks back keeps its hold."""
        for position in reversed(range(len(self.sentences))):
            sentence = self.sentences[position]
            lost = facts(_without_plain_first_word(sentence))
            if self._stands_alone(position) and self._can_lose(lost) and _is_dispensable(sentence, is_said):
                self.facts -= facts(sentence)
                del self.sentences[position]
                self.gaps[position : position + 2] = [_wider(*self.gaps[position : position + 2])]

    def cut(self, *, numeric_marks: bool) -> None:
        """Shorten every sentence by each cut that loses no fact and no turning word."""
        for position, sentence in enumerate(self.sentences):
            if PLACEHOLDER_LINE.fullmatch(sentence):
                continue
            for cut in cuts(sentence, numeric_marks=numeric_marks):
                shorter = cut(sentence)
                if shorter == sentence or turning_words(sentence) - turning_words(shorter):
                    continue
                lost = facts(_without_first_capital(sentence)) - facts(_without_first_capital(shorter))
                if self._can_lose(lost):
                    self.facts -= lost
                    sentence = shorter
            self.sentences[position] = sentence

    def _can_lose(self, lost: Mapping[str, int]) -> bool:
        return all(self.facts[fact] > count for fact, count in lost.items())

    def _stands_alone(self, position: int) -> bool:
        """Whether nothing hangs on the sentence.

        Something does on a list item, on all there is between two blocks, and on what the next sentence looks back at.
        """
        sentence = self.sentences[position]
        before = "".join(self.sentences[max(0, position - 1) : position])
        after = "".join(self.sentences[position + 1 : position + 2])
        if _LIST_ITEM.match(sentence) or all(not s or PLACEHOLDER_LINE.fullmatch(s) for s in (before, after)):
            return False
        return "\n\n" in self.gaps[position + 1] or not _LOOKS_BACK.match(after)


def _is_dispensable(sentence: str, is_said: Callable[[str], bool]) -> bool:
    if is_pointer(sentence):
        return not set(turning_words(sentence)) - _HARMLESS_IN_POINTERS
    return is_said(sentence)


def _wider(before: str, after: str) -> str:
    """Of two gaps the one that parts more; between equals the first."""
    return after if after.count("\n") > before.count("\n") else before


def _without_first_capital(sentence: str) -> str:
    return re.sub(r"\A\W*[A-Z](?=[a-z])", lambda found: found[0].lower(), sentence)


def _without_plain_first_word(sentence: str) -> str:
    first = re.match(r"[A-Z][a-z]+\b", sentence)
    return (
        sentence.lower()[:1] + sentence[1:] if first and first[0].lower() in PLAIN_FIRST_WORDS else sentence
    )


@dataclass(slots=True)
class _Said:
    """What the sections before said: the content words of their sentences in order."""

    sentences: list[Sequence[str]] = field(default_factory=list)
    turns: list[Counter[str]] = field(default_factory=list)
    by_word: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, sentences: Iterable[str]) -> None:
        """Remember the sentences of one section; to be called when the section is done."""
        for sentence in sentences:
            words = content_words(sentence)
            for word in set(words):
                self.by_word[word].append(len(self.sentences))
            self.sentences.append(words)
            self.turns.append(turning_words(sentence))

    def holds(self, sentence: str) -> bool:
        """Whether one earlier sentence says the same.

        It has all content words in the same order, the same turning words, and at most twice as many words.
        """
        words = content_words(sentence)
        if len(words) < _MIN_REPEATED_WORDS or any(word not in self.by_word for word in words):
            return False
        rarest = min(words, key=lambda word: (len(self.by_word[word]), word))
        turns = turning_words(sentence)
        return any(
            self.turns[position] == turns
            and len(self.sentences[position]) <= _MAX_LENGTH_RATIO * len(words)
            and _is_subsequence(words, self.sentences[position])
            for position in self.by_word[rarest][:_MAX_CANDIDATES]
        )


def content_words(sentence: str) -> list[str]:
    """The words of a sentence that are no stop words, in order; citation marks and references aside."""
    return [word for word in term_words(without_pointers(sentence)) if word not in STOP_WORDS]


def _is_subsequence(words: Sequence[str], of: Sequence[str]) -> bool:
    rest: Iterator[str] = iter(of)
    return all(word in rest for word in words)
