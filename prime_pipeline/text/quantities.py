"""Numbers of a text as values, with the unit or the noun that each one counts.

Digits and words, thousands separators, scales (``64M``, ``5 million``), powers of ten, ordinals, ``half`` and ``twice``
are read. Digits inside names (``word2vec``, ``SemEval-2017``) are part of the name; behind a prefix (``post-1.0``,
``top-5``) they are a number. Known limits: decimals in words
are read in the form ``twelve point five`` only, fractions in words only as ``half``, ``third(s)`` and ``quarter(s)``
behind a number; a bare ``one`` is taken for a pronoun; Roman numerals are no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Final, Literal

from prime_pipeline.text.stems import stem

NumberForm = Literal["digits", "word", "multiple", "ordinal"]

_SMALL: Final = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS: Final = {
    word: 10 * tens
    for tens, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2
    )
}
_SCALES: Final = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_LETTER_SCALES: Final = {
    "k": 1_000,
    "K": 1_000,
    "M": 10**6,
    "m": 10**6,
    "B": 10**9,
    "bn": 10**9,
    "G": 10**9,
}
_ORDINALS: Final = {
    word: value
    for value, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
        ],
        1,
    )
}
_MULTIPLES: Final = {
    "half": Decimal("0.5"), "halves": Decimal("0.5"), "halved": Decimal("0.5"), "dozen": Decimal(12),
    **dict.fromkeys(("twice", "twofold", "double", "doubles", "doubled", "doubling", "both", "pair"), Decimal(2)),
    **dict.fromkeys(("thrice", "threefold", "triple", "triples", "tripled"), Decimal(3)),
    **dict.fromkeys(("fourfold", "quadruple", "quadrupled"), Decimal(4)),
}  # fmt: skip
_FRACTIONS: Final = {
    "third": 3,
    "thirds": 3,
    "quarter": 4,
    "quarters": 4,
    "fourths": 4,
    "fifths": 5,
    "tenths": 10,
}
_WORDS: Final = "|".join(sorted((*_SMALL, *_TENS), key=len, reverse=True))
_NUMBER_WORDS: Final = (
    rf"(?:{_WORDS})(?:[ -](?:and\ )?(?:{_WORDS}|hundred|thousand|million|billion|trillion)(?![^\W_])){{0,8}}"
)
_DIGITS: Final = r"\d{1,3}(?:(?:,|\{,\}|[ \u00a0\u2009\u202f])\d{3}(?!\d))+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_NUMBER: Final = re.compile(
    rf"""
    (?<![^\W_])(?<![^\W_]\.)(?:(?<![^\W\d_][-/–_])|(?<=\bpost-)|(?<=\bpre-)|(?<=\bsub-)|(?<=\btop-))(?<![_^])(?<![_^]\{{)
    (?:
      (?:(?P<sign>(?<![^\s(\[{{$=,~<>≤≥±])[-−])|(?<!\d[.,])(?<!\d))
      (?P<digits>{_DIGITS})
      (?:\s?(?:\\times|[×*x])\s?10\s?\^\s?\{{?\s?(?P<power>[-−+]?\d{{1,3}})\}}?|[eE](?P<exponent>[-−+]?\d{{1,3}})(?![^\W_]))?
      (?:\ ?\^\ ?\{{?(?P<raised>[-−]?\d{{1,3}})\}}?)?
      (?P<ordinal>(?:st|nd|rd|th)(?![^\W_]))?
      (?:(?P<letter>bn|[kKmMBG])(?:(?![^\W_])|(?=(?-i:[A-Z][a-z])))(?!-[^\W\d_]))?
      (?:[\s$-]{{1,2}}(?P<scale>hundred|thousand|million|billion|trillion)s?(?![^\W_]))?
    | (?P<words>{_NUMBER_WORDS}(?:\ point(?:\ (?:{_WORDS})){{1,6}})?)(?P<fold>fold)?(?:[ -](?P<fraction>thirds?|quarters?|fourths|fifths|tenths))?(?![^\W_])
    | (?P<multiple>{"|".join(_MULTIPLES)})(?![^\W_])
    | (?P<rank>{"|".join(_ORDINALS)})(?![^\W_])
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PERCENT: Final = re.compile(
    r"[\s$}]*\\?(?P<points>%[ -](?:abs|points?)|percent(?:age)?[ -]points?|pp(?![^\W_]))|[\s$})]{0,2}\\?(?:%|％)|[ -]?per ?cent(?![^\W_])|(?P<mille>[ ]?‰)"
)
_TIMES: Final = re.compile(r"\s?(?:×|\\times|x(?![^\W_])|times(?![^\W_])|-?fold(?![^\W_]))")
_SUMMARY: Final = re.compile(
    r"\b(?:contribution|goal|aim|objective|purpose|motivation|reason|rationale|approach|strategy|idea|problem|challenge"
    r"|novelty|benefit|advantage|limitation|task|work|focus)s?\b(?: (?:of|for|behind) [^.;:]{1,60})?"
    r" (?:is|are|was|were) (?:therefore |thus |hence )?(?P<count>(?:two|three|four|five)-?fold)(?=\s?(?:[:.,;–—]|\Z))",
    re.IGNORECASE,
)
_MONEY: Final = re.compile(r"(?<![\w}])(?P<currency>US\$|[$€£¥])\s?\Z")
_CLOSED_MATH: Final = re.compile(r"\$\s?\\[a-z]+\s?\$\s?\Z")
"""``$\\sim$`` in front of a number, whose last sign is no currency."""
_OR_MORE: Final = re.compile(r" (?:or|and) (?:more|fewer|less|so|above|over)\b")
_CARRIED: Final = re.compile(r"[\s$]*(?:-|–|to|and|or|,|/|vs\.?|versus|±|,? ?and)[\s$]*", re.IGNORECASE)
_UNIT_WORD: Final = re.compile(r"[\s$}-]{0,3}([^\W\d_µ]{1,14}|µs|μs|°C|°)(?![^\W_])")
_GLUED_WORD: Final = re.compile(r"[A-Z][a-z]+(?![^\W_])")
_FOLLOWING: Final = re.compile(r"[\s$)}\"'’*_-]{0,4}([^\W\d_][\w'’]*|[.,;:(\[]|\S)")
UNITS: Final[dict[str, str]] = {
    form: unit
    for unit, forms in {
        "ms": "ms msec millisecond milliseconds",
        "µs": "µs μs us microsecond microseconds",
        "s": "s sec secs second seconds",
        "min": "min mins minute minutes",
        "h": "h hr hrs hour hours",
        "day": "day days",
        "week": "week weeks",
        "month": "month months",
        "year": "year years",
        "decade": "decade decades",
        "century": "century centuries",
        "KB": "kb kilobyte kilobytes",
        "MB": "mb megabyte megabytes",
        "GB": "gb gigabyte gigabytes",
        "TB": "tb terabyte terabytes",
        "Hz": "hz hertz",
        "kHz": "khz kilohertz",
        "MHz": "mhz megahertz",
        "GHz": "ghz gigahertz",
        "km": "km kilometer kilometers kilometre kilometres",
        "m": "meter meters metre metres",
        "cm": "cm centimeter centimeters centimetre centimetres",
        "mm": "mm millimeter millimeters",
        "kg": "kg kilogram kilograms",
        "mg": "mg milligram milligrams",
        "$": "dollar dollars usd",
        "¢": "cent cents",
        "€": "euro euros eur",
        "dB": "db decibel decibels",
        "point": "point points",
    }.items()
    for form in forms.split()
}
"""Units that one writes in full or in short, by every form of theirs in lower case."""
_COUNTED: Final = frozenset(
    map(
        stem,
        [
            "token",
            "word",
            "sentence",
            "character",
            "document",
            "paragraph",
            "article",
            "page",
            "tweet",
            "comment",
            "post",
            "message",
            "user",
            "annotator",
            "annotation",
            "speaker",
            "label",
            "class",
            "category",
            "language",
            "example",
            "instance",
            "sample",
            "pair",
            "record",
            "query",
            "question",
            "answer",
            "paper",
            "book",
            "dialogue",
            "conversation",
            "utterance",
            "turn",
            "layer",
            "unit",
            "dimension",
            "epoch",
            "step",
            "iteration",
            "batch",
            "parameter",
            "feature",
            "neuron",
            "head",
            "fold",
            "run",
            "participant",
            "worker",
            "judge",
            "student",
            "subject",
            "person",
            "people",
            "event",
            "topic",
            "entity",
            "relation",
            "triple",
            "node",
            "edge",
            "segment",
            "video",
            "image",
            "frame",
            "wordpiece",
            "subword",
            "byte",
            "line",
            "file",
            "review",
            "dataset",
            "corpus",
            "model",
            "word",
            "hop",
            "beam",
            "thread",
            "core",
            "machine",
            "cpu",
            "gpu",
            "tpu",
        ],
    )
)
"""What numbers of technical prose count most often."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number of a text.

    Attributes:
        value: Scale words and letters multiplied in; the sign too.
        unit: ``%``, ``pp`` (percentage points), ``‰``, ``×``, a currency sign, or a value of :data:`UNITS`; else "".
        phrase: Stems of the words behind it up to the next preposition, verb-like word or mark: what it counts.
        form: How it is written: ``digits``, ``word``, ``multiple`` (half, twice, both) or ``ordinal``.
        start: Offset of the first character.
        end: Offset behind the number, its unit not included.
    """

    value: Decimal
    unit: str
    phrase: tuple[str, ...]
    form: NumberForm
    start: int
    end: int

    @property
    def counted(self) -> frozenset[str]:
        """The stems of commonly counted nouns in the phrase."""
        return _COUNTED.intersection(self.phrase)


def quantities(text: str) -> list[Quantity]:
    """All numbers in order. In ``from 5 to 10 ms`` and ``5, 10 and 20 %`` every number has the unit.

    The ``twofold`` of ``The contribution is twofold`` counts what is told of next, and multiplies nothing: no unit.
    """
    found = [quantity for match in _NUMBER.finditer(text) if (quantity := _quantity(text, match))]
    counts = {summary.start("count") for summary in _SUMMARY.finditer(text)}
    found = [replace(q, unit="") if q.start in counts else q for q in found]
    for position in range(len(found) - 2, -1, -1):
        this, following = found[position], found[position + 1]
        between = text[this.end : following.start]
        if not this.unit and following.unit and len(between) < 12 and _CARRIED.fullmatch(between):
            found[position] = Quantity(this.value, following.unit, this.phrase or following.phrase, this.form, this.start, this.end)  # fmt: skip
    return found


def counted_in(text: str, offset: int) -> frozenset[str]:
    """The stems of commonly counted nouns among the words at an offset, up to a preposition, a verb or a mark."""
    return _COUNTED.intersection(_phrase(text, offset))


def without_summary_counts(text: str) -> str:
    """The text without clauses that only tell how many things follow (``The goal is twofold``)."""
    return _SUMMARY.sub("", text)


def _quantity(text: str, match: re.Match[str]) -> Quantity | None:
    start, end = match.span()
    following = text[end : end + 1]
    if match["digits"] and following.isalpha() and _glued_name(text, end):
        return None
    value, form = _value(match)
    if value is None:
        return None
    return Quantity(
        value, _unit(text, match), () if following.isupper() else _phrase(text, end), form, start, end
    )


def _value(match: re.Match[str]) -> tuple[Decimal | None, NumberForm]:
    if match["digits"]:
        return _digits_value(match), "ordinal" if match["ordinal"] else "digits"
    if match["words"]:
        return None if match["words"].lower() == "one" else _words_value(match), "word"
    if match["multiple"]:
        return _MULTIPLES[match["multiple"].lower()], "multiple"
    return Decimal(_ORDINALS[match["rank"].lower()]), "ordinal"


def _glued_name(text: str, end: int) -> bool:
    """Whether letters stuck to digits make a name (``20bn-something``, ``3D``), no unit and no next word (``12Hidden``)."""
    word = _UNIT_WORD.match(text, end)
    is_unit = word is not None and (word[1].lower() in UNITS or word[1] == "x")
    return not is_unit and not _GLUED_WORD.match(text, end)


def _digits_value(match: re.Match[str]) -> Decimal | None:
    digits = re.sub(r"[^\d.]", "", match["digits"])
    power = (match["power"] or match["exponent"] or "0").replace("−", "-")
    try:
        value = Decimal(digits).scaleb(int(power))
        if match["raised"]:
            value **= int(match["raised"].replace("−", "-"))
    except (InvalidOperation, ArithmeticError):
        return None
    value *= _LETTER_SCALES.get(match["letter"] or "", 1) * _SCALES.get((match["scale"] or "").lower(), 1)
    return -value if match["sign"] else value


def _words_value(match: re.Match[str]) -> Decimal:
    whole, _, decimals = match["words"].lower().partition(" point ")
    total, group = 0, 0
    for word in re.findall(r"[a-z]+", whole):
        if word in _SCALES:
            group = max(group, 1) * _SCALES[word]
            if word != "hundred":
                total, group = total + group, 0
        else:
            group += _SMALL.get(word, 0) + _TENS.get(word, 0)
    value = Decimal(total + group)
    for place, word in enumerate(decimals.split(), 1):
        value += Decimal(_SMALL.get(word, 0)).scaleb(-place)
    return value / _FRACTIONS[match["fraction"].lower()] if match["fraction"] else value


def _unit(text: str, match: re.Match[str]) -> str:
    end = match.end()
    if found := _PERCENT.match(text, end):
        return "pp" if found["points"] else "‰" if found["mille"] else "%"
    if match["fold"] or (match["digits"] and _TIMES.match(text, end)):
        return "×"
    before = _MONEY.search(text, max(0, match.start() - 5), match.start())
    if _CLOSED_MATH.search(text, max(0, match.start() - 20), match.start()):
        before = None
    if (
        before
        and text[end : end + 12].count("$") == 0
        and (before["currency"] != "$" or "\\" not in text[end : end + 3])
    ):
        return before["currency"].removeprefix("US")
    word = _UNIT_WORD.match(text, end)
    if word is None or match["ordinal"] or match["rank"]:
        return ""
    return UNITS.get(word[1].lower(), "")


_PHRASE_ENDS: Final = frozenset(
    [
        "of",
        "in",
        "on",
        "for",
        "to",
        "from",
        "by",
        "with",
        "and",
        "or",
        "as",
        "at",
        "are",
        "is",
        "was",
        "were",
        "be",
        "than",
        "that",
        "which",
        "who",
        "when",
        "where",
        "while",
        "but",
        "not",
        "have",
        "has",
        "had",
        "per",
        "between",
        "over",
        "under",
        "into",
        "the",
        "a",
        "an",
        "this",
        "these",
        "we",
        "it",
        "they",
        "can",
        "could",
        "used",
        "using",
        "out",
        "about",
        "during",
        "through",
        "after",
        "before",
        "within",
        "across",
        "only",
        "if",
    ]
)


def _phrase(text: str, end: int) -> tuple[str, ...]:
    """Stems of up to four words that follow directly."""
    return tuple(_following_words(text, end))


def _following_words(text: str, end: int) -> Iterator[str]:
    if skipped := _OR_MORE.match(text, end):
        end = skipped.end()
    for _ in range(4):
        found = _FOLLOWING.match(text, end)
        if found is None or not found[1][0].isalpha() or found[1].lower() in _PHRASE_ENDS:
            return
        yield stem(found[1])
        end = found.end()
