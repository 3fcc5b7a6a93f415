"""Whether a lost fact can be healed by appending its raw sentence: not where something else stands in its place.

A rewrite that says 3,000 where the raw text says 5,000 keeps its wrong statement if the right one is appended to it.
Where the other number, name or formula is made up, the rules on inventions refuse it; where the raw text has it, too,
in another place, only its surroundings tell.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, Literal

from prime_pipeline.restructuring.rules.features import Features
from prime_pipeline.text.acronyms import acronym_offsets
from prime_pipeline.text.protected import inline_spans

FactKind = Literal["number", "name", "inline"]

_REACH: Final = 70
"""Characters on either side of a fact in which the words stand that it belongs to."""
_MARKS: Final = ",;:()"
_MAX_PLACES: Final = 2_000
"""Facts of one kind that are looked at in one text."""
_MIN_SENTENCE_OVERLAP: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a fact stands, with the stems around it in its clause."""

    start: int
    end: int
    stems: frozenset[str]


def healing_sources(
    raw: Features, rewrite: Features, start: int, end: int, kind: FactKind
) -> tuple[str, ...]:
    """The raw sentence that holds a lost fact; nothing if the rewrite seems to say something else in its place.

    Args:
        raw: The raw text.
        rewrite: What lost the fact.
        start: Offset of the fact in the raw text.
        end: Offset behind it.
        kind: Facts of this kind may have taken its place.
    """
    lost = stems_around(raw, start, end)
    for fact, others in _places(rewrite, kind).items():
        own = _places(raw, kind).get(fact, ())
        if any(_is_in_place_of(lost, start, other.stems, own, raw) for other in others):
            return ()
    return () if _lost_its_negation(raw, rewrite, start) else raw.source(start)


def _is_in_place_of(
    lost: frozenset[str], start: int, other: frozenset[str], own: Sequence[_Place], raw: Features
) -> bool:
    """Whether another fact stands amid the words of the lost one rather than amid those that it has in the raw text.

    Args:
        lost: Stems around the lost fact.
        start: Its offset.
        other: Stems around the other fact in the rewrite.
        own: Where the other fact stands in the raw text.
        raw: The raw text.
    """
    common, sentence = len(lost & other), raw.sentence_at(start)
    if common == 0 or any(place.start <= start < place.end for place in own):
        return False
    best = max(len(place.stems & other) for place in own) if own else 0
    is_neighbour = sentence and any(sentence.start <= place.start < sentence.end for place in own)
    return common > best or (common == best > 1 and not is_neighbour)


@lru_cache(maxsize=12)
def _places(features: Features, kind: FactKind) -> dict[str, list[_Place]]:
    found: dict[str, list[_Place]] = {}
    for fact, start, end in islice(_spans(features, kind), _MAX_PLACES):
        found.setdefault(fact, []).append(_Place(start, end, stems_around(features, start, end)))
    return found


def _spans(features: Features, kind: FactKind) -> Iterator[tuple[str, int, int]]:
    if kind == "number":
        for quantity in features.bare_quantities:
            if quantity.form != "ordinal":
                yield format(quantity.value.normalize(), "f"), quantity.start, quantity.end
        return
    if kind == "name":
        yield from (
            (name.lower(), start, start + len(name)) for name, start in acronym_offsets(features.bare)
        )
    for text in features.names if kind == "name" else inline_spans(features.prose):
        start = features.prose.find(text)
        while start >= 0:
            yield text.lower(), start, start + len(text)
            start = features.prose.find(text, start + len(text))


def stems_around(features: Features, start: int, end: int) -> frozenset[str]:
    """Stems in the clause on either side, those of the fact itself left out."""
    sentence = features.sentence_at(start)
    low, high = (sentence.start, sentence.end) if sentence else (start, end)
    low, high = max(low, start - _REACH), min(high, end + _REACH)
    low = max([low, *(features.bare.rfind(mark, low, start) for mark in _MARKS)])
    stops = [found for mark in _MARKS if (found := features.bare.find(mark + " ", end, high)) >= 0]
    return frozenset(features.around(low, start) + features.around(end, min([high, *stops])))


def _lost_its_negation(raw: Features, rewrite: Features, start: int) -> bool:
    """Whether the sentence at an offset negates something, and the one like it in the rewrite does not."""
    sentence = raw.sentence_at(start)
    if sentence is None or not cues_in(raw, sentence.start, sentence.end, {"strong"}):
        return False
    alike = max(rewrite.sentences, key=lambda s: len(s.stems & sentence.stems), default=None)
    if alike is None or len(alike.stems & sentence.stems) < _MIN_SENTENCE_OVERLAP * len(sentence.stems):
        return False
    return not cues_in(rewrite, alike.start, alike.end, {"strong", "verb", "weak"})


def cues_in(features: Features, start: int, end: int, strengths: set[str]) -> bool:
    """Whether a negation cue of one of the strengths stands between two offsets."""
    first = bisect_left(features.cues, start, key=lambda cue: cue.start)
    last = bisect_left(features.cues, end, key=lambda cue: cue.start)
    return any(cue.strength in strengths for cue in features.cues[first:last])
