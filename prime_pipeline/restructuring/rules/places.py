"""The rule on places: who is compared keeps its side, and numbers stay with what they are numbers of.

It knows comparisons by their words and numbers by their neighbours. Much that is exchanged in other ways passes: its
findings are sure, its silence is not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice, pairwise
from typing import Final

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.rules.features import Features
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.text.stems import stem

_MAX_PLACES: Final = 120
"""Comparisons and numbers looked at in one text: they are held against each other, so that time grows with the square."""
_COMPARISON: Final = re.compile(
    r"""\b(?:(?P<passive>(?:outperformed|surpassed|exceeded|beaten)\ by)|(?P<up>outperform\w*|surpass\w*|exceed\w*|beats?|(?:better|higher|larger|greater|bigger|superior|faster|more\ \w+|stronger|longer|easier)\b)
    |(?P<down>underperform\w*|(?:worse|lower|smaller|inferior|slower|less\ \w+|fewer|weaker|shorter|harder)\b))""",
    re.IGNORECASE | re.VERBOSE,
)  # fmt: skip
_SIDE: Final = 200
"""Characters on either side of a comparison in which its sides stand."""
_TRANSITIVE: Final = re.compile(r"outperform|surpass|exceed|beat|underperform", re.IGNORECASE)
_FRONTED: Final = re.compile(
    r"\b(?:compared (?:to|with)|relative to|in comparison (?:to|with)|than)\s(?P<other>[^,;]{2,100}),\s",
    re.IGNORECASE,
)
_ASPECTS: Final[dict[str, tuple[str, ...]]] = {
    "size": ("larger", "greater", "bigger", "smaller", "fewer"),
    "speed": ("faster", "slower"),
    "length": ("longer", "shorter"),
    "ease": ("easier", "harder"),
}
_TO: Final = re.compile(r"\bto\s+[$€£]?\Z")
_THAN: Final = re.compile(r"\b(?:than|to|compared with)\b", re.IGNORECASE)
_SIDE_END: Final = re.compile(
    r"[;:.!?]|,(?!\d)|\b(?:because|since|which|while|whereas|but|as|although|(?<!than )(?<!to )that)\b",
    re.IGNORECASE,
)
_FUNCTION_WORDS: Final = frozenset(
    [
        "the",
        "of",
        "and",
        "to",
        "in",
        "is",
        "that",
        "for",
        "with",
        "as",
        "are",
        "this",
        "on",
        "by",
        "be",
        "from",
        "an",
        "which",
        "we",
        "it",
        "has",
        "have",
        "or",
        "at",
        "was",
        "were",
        "can",
        "not",
        "but",
        "its",
        "these",
        "than",
        "our",
        "also",
        "already",
        "model",
        "models",
        "approach",
        "approaches",
        "method",
        "methods",
        "based",
        "all",
        "other",
        "others",
        "ones",
        "one",
        "those",
        "even",
        "still",
        "much",
        "significantly",
        "far",
        "both",
    ]
)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The greater and the lesser side of a comparison, with the words that only one of them has.

    Attributes:
        aspect: What is compared: the stem of ``more diverse``, ``size`` or ``speed``; empty for what is simply better.
        greater: Words of the side that has more of it.
        lesser: Words of the other.
        text: The sentence.
    """

    aspect: str
    greater: frozenset[str]
    lesser: frozenset[str]
    text: str


def swapped(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """Whatever is compared keeps its side of the comparison, and numbers stay with what they belong to."""
    return [
        *_turned_comparisons(raw, rewrite),
        *_exchanged_numbers(raw, rewrite),
        *_turned_ranges(raw, rewrite),
    ]


def _turned_comparisons(raw: Features, rewrite: Features) -> Iterator[Finding]:
    before = [*islice(_comparisons(raw), _MAX_PLACES)]
    for new in islice(_comparisons(rewrite), _MAX_PLACES):
        alike = [old for old in before if old.aspect == new.aspect]
        turned = any(_is_turned(old, new) for old in alike)
        if turned and not any(old.greater & new.greater and old.lesser & new.lesser for old in alike):
            yield Finding("swapped", f"the other way round: {new.text[:100]!r}")


def _is_turned(old: _Sides, new: _Sides) -> bool:
    """Whether each lesser side has words of the other's greater one, and none in common."""
    return bool(old.greater & new.lesser and old.lesser & new.greater and not old.lesser & new.lesser)


def _comparisons(features: Features) -> Iterator[_Sides]:
    for sentence in features.sentences:
        for found in _COMPARISON.finditer(sentence.text):
            one, other = _sides(sentence.text, found)
            greater, lesser = (one, other) if found["up"] else (other, one)
            if greater - lesser and lesser - greater:
                yield _Sides(_aspect(found[0]), greater - lesser, lesser - greater, sentence.text)


def _sides(text: str, found: re.Match[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Words left and right of a comparison, in active order: ``compared to B, A is better`` has A on the left."""
    before, behind = (
        text[max(0, found.start() - _SIDE) : found.start()],
        text[found.end() : found.end() + _SIDE],
    )
    left, right = _SIDE_END.split(before)[-1], _SIDE_END.split(behind)[0]
    if _TRANSITIVE.match(found[0]):
        return _side(left), _side(right)
    if link := _THAN.search(right):
        return _side(f"{left} {right[: link.start()]}"), _side(right[link.end() :])
    if front := _FRONTED.search(before):
        return _side(before[front.end() :]), _side(front["other"])
    return frozenset(), frozenset()


def _aspect(comparison: str) -> str:
    word, _, adjective = comparison.lower().partition(" ")
    if adjective:
        return stem(adjective)
    return next((aspect for aspect, words in _ASPECTS.items() if word in words), "")


def _side(text: str) -> frozenset[str]:
    words = (re.sub(r"['’]s\Z", "", w.lower()) for w in re.findall(r"[^\W_][\w'’-]*", text[-120:]))
    return frozenset(word for word in words if len(word) > 1) - _FUNCTION_WORDS


def _turned_ranges(raw: Features, rewrite: Features) -> Iterator[Finding]:
    """``from 14 to 12`` that became ``from 12 to 14``."""
    before = {*_ranges(raw)}
    for low, high in dict.fromkeys(_ranges(rewrite)):
        if (high, low) in before and (low, high) not in before:
            yield Finding("swapped", f"from {low:f} to {high:f}, which was the other way round")


def _ranges(features: Features) -> Iterator[tuple[Decimal, Decimal]]:
    for one, other in pairwise(features.bare_quantities):
        before = features.bare[max(0, one.start - 6) : one.start].lower()
        between = features.bare[one.end : other.start]
        if before.endswith("from ") and len(between) < 20 and _TO.search(between):
            yield one.value, other.value


_Place = tuple[frozenset[str], frozenset[str], frozenset[str]]
"""Of a number: stems before it and behind it in its clause, up to the next number; names around it."""
_REACH: Final = 60
_CLAUSE_MARK: Final = re.compile(r"[;:]|,\s")


def _exchanged_numbers(raw: Features, rewrite: Features) -> Iterator[Finding]:
    """Two numbers of one raw sentence or its neighbour, each in the words of the other: before, behind, or names."""
    before = _number_places(raw, raw.names, look_back=True)
    after = _number_places(rewrite, raw.names, look_back=False)
    common = [value for value in before if value in after]
    for position, one in enumerate(common):
        for other in common[position + 1 : position + 5]:
            sides = zip(before[one], before[other], after[one], after[other], strict=True)
            if before[one][1] & after[one][1] - before[other][1]:
                continue  # it goes on counting what it counted
            if any(_is_exchange(*side) for side in sides):
                yield Finding("swapped", f"{one} and {other} in each other's place")


def _is_exchange(
    old_1: frozenset[str], old_2: frozenset[str], new_1: frozenset[str], new_2: frozenset[str]
) -> bool:
    crossed_1, crossed_2 = (old_1 - old_2) & (new_2 - new_1), (old_2 - old_1) & (new_1 - new_2)
    straight = (old_1 - old_2) & (new_1 - new_2) or (old_2 - old_1) & (new_2 - new_1)
    return bool(crossed_1 and crossed_2 and not straight)


def _number_places(features: Features, names: tuple[str, ...], *, look_back: bool) -> dict[str, _Place]:
    """The places of numbers that occur once; to look back is to take the names of the sentence before, too."""
    every, names = features.bare_quantities[:_MAX_PLACES], names[:_MAX_PLACES]
    counts = Counter(quantity.value for quantity in every)
    found = {}
    for position, quantity in enumerate(every):
        sentence = features.sentence_at(quantity.start)
        if counts[quantity.value] > 1 or quantity.form != "digits" or sentence is None:
            continue
        low = max(sentence.start, every[position - 1].end if position else 0, quantity.start - _REACH)
        high = min(
            sentence.end, *(q.start for q in every[position + 1 : position + 2]), quantity.end + _REACH
        )
        stop = _CLAUSE_MARK.search(features.bare, quantity.end, high)
        behind = features.around(quantity.end, stop.start() if stop else high)
        previous = features.sentence_at(sentence.start - 2) if look_back else None
        text = features.prose[(previous or sentence).start : sentence.end]
        named = frozenset(name for name in names if name in text)
        found[format(quantity.value, "f")] = (
            frozenset(features.around(low, quantity.start)),
            frozenset(behind),
            named,
        )
    return found
