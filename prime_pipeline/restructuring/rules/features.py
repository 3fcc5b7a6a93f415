"""What the rules look at: everything about one text, computed once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from unicodedata import normalize

from prime_pipeline.text.acronyms import acronym_form, acronym_offsets, definitions, initials
from prime_pipeline.text.entities import EntityFinder
from prime_pipeline.text.negations import NegationCue, negation_cues
from prime_pipeline.text.non_prose import without_non_prose
from prime_pipeline.text.protected import Protected, inline_spans, protect
from prime_pipeline.text.quantities import Quantity, quantities
from prime_pipeline.text.references import (
    is_road_map,
    references,
    symbols,
    without_pointers,
    without_references,
)
from prime_pipeline.text.sentences import sentence_spans
from prime_pipeline.text.stems import WORD, is_content, stem

_GLUED: Final = re.compile(r"(?<=\d)[A-Z][a-z]+|(?<=[a-z])[A-Z][a-z]{2,}")
_CITATION_MARK: Final = re.compile("BIBREF")
_LAST_WORD: Final = re.compile(r"[^\W_]+\Z")
_COMPOUND: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")


@dataclass(frozen=True, slots=True)
class Token:
    """One content word.

    Attributes:
        stem: See :func:`prime_pipeline.text.stems.stem`.
        start: Offset of its first character.
    """

    stem: str
    start: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence.

    Attributes:
        start: Offset of its first character.
        end: Offset behind it.
        text: Verbatim.
        stems: Of its content words; citation marks and references have none.
        is_road_map: Whether it tells where things stand in the document, or what its authors hope.
    """

    start: int
    end: int
    text: str
    stems: frozenset[str]
    is_road_map: bool


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """One text as the rules see it. All offsets are those of ``text``.

    Compared and hashed by identity, so that what a rule computes of one text can be remembered.

    Attributes:
        text: As it is, with placeholders.
        prose: Blanks in place of the placeholders.
        bare: Blanks in place of citation marks, references, list numbers, lost formulas and all that is no prose too.
        placeholders: In order, with repetitions.
        words: All words in lower case, in order; compounds are split.
        initials: Their first letters, with blanks for marks; see :func:`prime_pipeline.text.acronyms.initials`.
        vocabulary: The words, the singular of acronyms, and the parts of words that lost the blank between them.
        sentences: In order.
        tokens: Content words of ``bare``, in order.
        stems: Of all content words in ``prose``, with the number of sentences that hold them.
        families: Their first five letters: what the stemmer keeps apart often meets there.
        quantities: Numbers of ``prose`` that are neither references nor list numbers.
        bare_quantities: Numbers of ``bare``.
        acronyms: Of ``bare``, with the offset of the first occurrence.
        definitions: Acronyms with their long forms.
        names: Of ``bare``, distinct, in order.
        cues: Negation cues of ``bare``.
        inline: Distinct inline code and math.
        references: References inside the document and lost formulas.
        context: Of the title and headings that a rewriter was told; None for a rewrite, or if there are none. Their
            words count as words of the raw text (``initials``, ``vocabulary``, ``stems``, ``families``).
    """

    text: str
    prose: str
    bare: str
    placeholders: tuple[str, ...]
    words: tuple[str, ...]
    initials: tuple[str, str]
    vocabulary: frozenset[str]
    sentences: tuple[Sentence, ...]
    tokens: tuple[Token, ...]
    stems: Mapping[str, int]
    families: frozenset[str]
    quantities: tuple[Quantity, ...]
    bare_quantities: tuple[Quantity, ...]
    acronyms: Mapping[str, int]
    definitions: Mapping[str, str]
    names: tuple[str, ...]
    cues: tuple[NegationCue, ...]
    inline: tuple[str, ...]
    references: frozenset[str]
    context: Features | None = None

    @property
    def known_prose(self) -> str:
        """The prose, and the context's behind it."""
        return f"{self.prose}\n{self.context.prose}" if self.context else self.prose

    def sentence_at(self, offset: int) -> Sentence | None:
        """The sentence that holds an offset; None between sentences."""
        position = bisect_right(self.sentences, offset, key=lambda sentence: sentence.start) - 1
        found = self.sentences[position] if position >= 0 else None
        return found if found and offset < found.end else None

    def source(self, offset: int) -> tuple[str, ...]:
        """The sentence that holds an offset, as ``sources`` of a finding."""
        found = self.sentence_at(offset)
        return (found.text,) if found else ()

    def around(self, start: int, end: int) -> list[str]:
        """Stems of the content words that begin between two offsets, in order."""
        low = bisect_right(self.tokens, start - 1, key=lambda token: token.start)
        high = bisect_right(self.tokens, end - 1, key=lambda token: token.start)
        return [token.stem for token in self.tokens[low:high]]


def features(raw: Protected, text: str, finder: EntityFinder) -> Features:
    """The features of the raw text itself (``text`` is ``raw.text``) or of a rewrite of it."""
    placeholders = raw.placeholders_in(text)
    prose = text = normalize("NFC", text)
    for placeholder in set(placeholders):
        prose = prose.replace(placeholder, " " * len(placeholder))
    bare, words = without_references(without_non_prose(prose)), [word.lower() for word in WORD.findall(prose)]
    sentences = _sentences(prose, bare)
    stems = Counter(s for start, end in sentence_spans(prose) for s in _stems(prose[start:end]))
    return Features(
        text=text,
        prose=prose,
        bare=bare,
        placeholders=tuple(placeholders),
        words=tuple(words),
        initials=initials(prose),
        vocabulary=frozenset(words) | {acronym_form(word) for word in words} | _glued(prose) | _joined(prose),
        sentences=sentences,
        tokens=tuple(Token(stem(w[0]), w.start()) for w in WORD.finditer(bare) if is_content(w[0])),
        stems=stems,
        families=frozenset(s[:5] for s in stems),
        quantities=tuple(quantities(without_pointers(prose))),
        bare_quantities=tuple(quantities(bare)),
        acronyms=dict(reversed(acronym_offsets(bare))),
        definitions=definitions(prose),
        names=tuple(dict.fromkeys(finder.find(bare))),
        cues=tuple(negation_cues(bare)),
        inline=tuple(dict.fromkeys(inline_spans(prose))),
        references=frozenset(re.sub(r"[\W_]+", " ", r).lower() for r in references(prose) + symbols(prose)),
    )


def with_context(raw: Features, context: str, finder: EntityFinder) -> Features:
    """The features of the raw text with those of its title and headings as known; nothing of these is required."""
    if not context.strip():
        return raw
    known = features(protect(""), context, finder)
    return replace(
        raw,
        initials=(f"{raw.initials[0]} {known.initials[0]}", f"{raw.initials[1]} {known.initials[1]}"),
        vocabulary=raw.vocabulary | known.vocabulary,
        stems={**dict.fromkeys(known.stems, 1), **raw.stems},
        families=raw.families | known.families,
        context=known,
    )


def _sentences(prose: str, bare: str) -> tuple[Sentence, ...]:
    return tuple(
        Sentence(start, end, prose[start:end], _stems(bare[start:end]), is_road_map(prose[start:end]))
        for start, end in sentence_spans(prose)
    )


def _glued(text: str) -> frozenset[str]:
    """The parts of words that lost the blank between them (``YummlyBIBREF8``, ``768Attention``), lower-cased."""
    parts = _GLUED.findall(text)
    for mark in _CITATION_MARK.finditer(text):
        parts += _LAST_WORD.findall(text, max(0, mark.start() - 40), mark.start())
    return frozenset(part.lower() for part in parts)


def _joined(text: str) -> frozenset[str]:
    """Compounds and words divided at a line's end without their hyphens, lower-cased: ``tree-bank`` is treebank."""
    return frozenset(word.replace("-", "").lower() for word in _COMPOUND.findall(text))


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in WORD.findall(text) if is_content(word))
