"""Rules on facts: numbers and what they count, acronyms, names, inline code and math, addresses, references.

A fact of the raw text is missing if the whole rewrite lacks it, and invented if the whole raw text, citation marks
and references included, lacks it. Facts inside citation marks, references and list numbers need not come back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice, takewhile
from typing import Final

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.rules.features import Features
from prime_pipeline.restructuring.rules.healing import FactKind, healing_sources, stems_around
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.text.acronyms import acronyms, is_spelled_out
from prime_pipeline.text.entities import is_coined
from prime_pipeline.text.quantities import UNITS, Quantity, counted_in
from prime_pipeline.text.stems import stem
from prime_pipeline.text.stop_words import STOP_WORDS

_SMALL_COUNT: Final = 6
"""Up to here a number may count what the rewrite lists, or what the raw text lists: ``the two baselines``."""
_VAGUE: Final = frozenset(
    map(
        stem,
        [
            "way",
            "step",
            "part",
            "reason",
            "hypothesis",
            "type",
            "kind",
            "aspect",
            "category",
            "approach",
            "case",
            "strategy",
            "contribution",
            "factor",
            "direction",
            "challenge",
            "component",
            "stage",
            "group",
            "term",
            "main",
            "key",
            "different",
            "following",
            "side",
            "set",
            "other",
            "new",
            "major",
            "common",
            "separate",
            "distinct",
            "important",
            "possible",
            "well",
            "more",
            "previous",
            "related",
            "fold",
            "option",
            "reason",
            "point",
            "issue",
            "problem",
            "goal",
            "idea",
            "fact",
            "method",
            "technique",
            "variant",
            "version",
            "setting",
            "scenario",
            "thing",
            "area",
            "field",
            "piece",
            "difficulty",
            "experiment",
        ],
    )
)
"""What a number in words may count without being a fact of its own."""
_TWO_THINGS: Final = frozenset({"both", "other", "latter", "respectively", "pair", "pairs", "paired"})
"""Words that tell of two things without the number."""
_REST: Final = frozenset({"rest", "remaining", "remainder", "others", "other"})
"""Words that tell of a part without its number."""
_PEOPLE: Final = frozenset(map(stem, ["people", "person", "persons", "human", "individual"]))
_SAME_THINGS: Final = [
    frozenset(map(stem, nouns.split()))
    for nouns in (
        "example instance sample record",
        "annotator judge worker",
        "participant subject",
        "dialogue conversation",
        "label class category",
        "document article paper page",
        "post tweet message comment",
        "unit dimension neuron",
        "corpus dataset",
        "query question",
        "step iteration",
    )
]
"""Counted nouns that faithful rewrites put in each other's place."""
_DOERS: Final = {
    stem(noun): frozenset(map(stem, verbs.split()))
    for noun, verbs in {
        "speaker": "speak spoke spoken",
        "user": "use used using",
        "annotator": "annotate annotated annotation",
        "participant": "participate participated participation",
        "worker": "work worked employ",
        "judge": "judge judged judgment",
        "student": "study studied enrolled",
    }.items()
}
"""People by what they do, with the verbs that say so."""
_ENDING: Final = re.compile(r"(?:e|s|es|y|a|i?ans?|ns?|ic|ical|als?|ish|ese|i|ists?|ism|ean)?")
"""What names and the adjectives made of them end in, behind their common part."""
_DEFINITE: Final = re.compile(r"\b(?:the|these|those|its|their|our|following|all)\s+\Z", re.IGNORECASE)
_PART: Final = re.compile(r"[^\W_]+")
_POSSESSIVE: Final = re.compile(r"['’](?:s\b|(?!\w))")
_CODE: Final = re.compile(r"`[^`\n]{1,200}`")
_CITATION_MARK: Final = re.compile(r"[A-Z]+REF\d+")
_URL: Final = re.compile(r"(?:https?://|www\.)[^\s<>()\[\]{}\"'`]+[^\s<>()\[\]{}\"'`.,;:]", re.IGNORECASE)
_MAX_HEALED: Final = 20
"""Lost facts of one kind that a patch may bring back; a rewrite that lost more is no rewrite of the text."""
_MAX_COMPARED: Final = 100
"""Numbers of one text that are held against all of the other's."""
_MIN_IN_PLACE: Final = 3
"""Stems in common that tell that one number stands in another's place."""
_MIN_KEPT_SENTENCE: Final = 0.6
"""Share of a raw sentence's stems by which it is known again."""
_SEQUENCE: Final = re.compile(r"(?<![\w-])\d+(?:-\d+){2,20}(?![\w-])")
_MAX_ALIKE: Final = 20
"""Occurrences of one number, and words like a name, that are looked at."""
_SYMBOL: Final = r"[kmMGTnµμ]?(?:s|J|W|Wh|B|Hz|m|g|V|A)"
_RATE: Final = re.compile(
    rf"(?<![\w/])(?P<per>{_SYMBOL})/(?P<what>[^\W\d_]+)|(?P<name>[^\W\d_]{{3,30}}) \((?P<in>{_SYMBOL})\)"
)
_GLUED_NUMBER: Final = re.compile(r"(?<![\w.,])(\d{1,9})\.(?=\d+[A-Z])")
_NAMED: Final = re.compile(r"\b[A-Z][\w+]*[ -]\Z")
_SCALE: Final = re.compile(r"\b(dozens|hundreds|thousands|millions|billions) of\b", re.IGNORECASE)
_DESIGNATED: Final = re.compile(r"(?<![\w-])([^\W\d_]{0,30}[A-Z][^\W\d_]{0,30})-(\d{1,6})(?![^\W_])")
"""A number joined to a name."""
_KIN: Final = [
    frozenset(map(stem, nouns.split()))
    for nouns in (
        "minute hour day daily week month year decade century",
        "bit byte character word token sentence",
        "thread core process machine cpu gpu",
    )
]
"""Units and counted nouns of which one in another's place is another fact, a number in front of it or not."""
_AMBIGUOUS: Final = frozenset(map(stem, ["core", "process", "machine"]))
"""What takes a unit's place as a unit, but in the raw text mostly is none: ``core idea``, ``machine translation``."""
_MIN_KIN: Final = 2
"""Stems in common of two places in which two of these stand."""
_UNCOUNTED_UNIT: Final = re.compile(
    r"\b(?:an?|few|several|many|past|last|recent) (minute|hour|day|week|month|year|decade|centur(?:y|ie))s?\b",
    re.IGNORECASE,
)
_OF_WHOLE: Final = re.compile(
    r"(?:\s?\\?%\$?|[ -]per ?cent|[ -]?[^\W\d_]{1,14})\s(?:of|per)\b(?: all| the| its| our| their| total| overall| number of)*"
)
_MIN_SPELLED: Final = 6
"""Letters of a name from which one letter more or less is a slip of the pen."""
_COMPOUND_TAIL: Final = re.compile(r"-([^\W\d_]+)")
_UNIT_WINDOW: Final = 60
"""Characters on either side of a raw number in which its unit may stand."""


# --- numbers ------------------------------------------------------------------------------------------------------


def numbers_missing(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """Every number comes back, as a value; small numbers in words only if they count something definite."""
    every = tuple(q for q in rewrite.quantities if q.form != "ordinal")
    named, kept = _values(every), _values(tuple(q for q in every if not _is_version(rewrite, q)))
    if _TWO_THINGS.intersection(rewrite.words):
        kept.add(Decimal(2))
    lost: dict[Decimal, Quantity] = {}
    for quantity in raw.bare_quantities:
        if (
            _is_fact(raw, quantity)
            and not (named if _is_version(raw, quantity) else kept).intersection(_readings(quantity))
            and not _is_single(quantity, rewrite)
        ):
            lost.setdefault(quantity.value, quantity)
    for quantity in _gone_from_place(raw, rewrite):
        lost.setdefault(quantity.value, quantity)
    places = [(_shown(raw, quantity), quantity.start, quantity.end) for quantity in lost.values()]
    places += [(found[0], *found.span()) for found in _new_scales(raw, rewrite)]
    return _missing("number_missing", raw, rewrite, places, "number")


def _gone_from_place(raw: Features, rewrite: Features) -> Iterator[Quantity]:
    """Numbers with decimals behind a name, said less often than before, gone from a sentence that is kept otherwise."""
    before, after = ([*islice(_named_decimals(text), _MAX_COMPARED)] for text in (raw, rewrite))
    n_before, n_after = Counter(q.value for q in before), Counter(q.value for q in after)
    for old in before:
        sentence = raw.sentence_at(old.start)
        if sentence is None or not 0 < n_after[old.value] < n_before[old.value]:
            continue
        alike = max(rewrite.sentences, key=lambda s: len(s.stems & sentence.stems), default=None)
        if alike is None or len(alike.stems & sentence.stems) < _MIN_KEPT_SENTENCE * len(sentence.stems):
            continue
        if not any(q.value == old.value and alike.start <= q.start < alike.end for q in after):
            yield old


def _named_decimals(features: Features) -> Iterator[Quantity]:
    """Numbers with decimals behind a name, as versions are."""
    for quantity in features.bare_quantities:
        before = features.prose[max(0, quantity.start - 40) : quantity.start]
        if _has_decimals(quantity) and _NAMED.search(before):
            yield quantity


def _has_decimals(quantity: Quantity) -> bool:
    """Whether it is written so: 1.0 is a version or a measured value where a 1 may be anything."""
    return "." in str(quantity.value)


def numbers_invented(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """Every number of the rewrite is in the raw text; a small count may tell how many things the raw text lists."""
    known = (
        _complements(raw)
        | _values(raw.quantities + (raw.context.quantities if raw.context else ()))
        | _before_glued_names(raw)
        | {Decimal(1)}
    )
    counted = {(word, q.value) for q in raw.quantities for word in q.phrase[-1:]}
    nouns = {word for word, _ in counted}
    found: dict[Decimal, Finding] = {}
    for quantity in rewrite.quantities:
        if quantity.form in {"ordinal", "multiple"} or known.intersection(_readings(quantity)):
            continue
        conflict = bool(nouns.intersection(quantity.phrase))
        if _is_small_count(quantity) and not conflict:
            continue
        found.setdefault(quantity.value, Finding("number_invented", _shown(rewrite, quantity)))
    scales = [Finding("number_invented", scale[0]) for scale in _new_scales(rewrite, raw)]
    return [*found.values(), *scales]


def _new_scales(one: Features, other: Features) -> Iterator[re.Match[str]]:
    """``thousands of`` in one text, where the other has no thousand."""
    for found in _SCALE.finditer(one.bare):
        if other.vocabulary.isdisjoint({found[1].lower(), found[1].lower().removesuffix("s")}):
            yield found


def numbers_replaced(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """No number that the raw text has elsewhere stands amid the words of another one."""
    before = [q for q in raw.bare_quantities if q.form != "ordinal"][:_MAX_COMPARED]
    places = [(q, stems_around(raw, q.start, q.end)) for q in before]
    after = [q for q in rewrite.bare_quantities if q.form in {"digits", "word"}][:_MAX_COMPARED]
    found: dict[Decimal, Finding] = {}
    for new in after:
        if old := _replaced(places, rewrite, after, new):
            found[new.value] = Finding(
                "number_invented", f"{_shown(rewrite, new)} in the place of {_shown(raw, old)}"
            )
    return list(found.values())


def _replaced(
    places: list[tuple[Quantity, frozenset[str]]], rewrite: Features, after: list[Quantity], new: Quantity
) -> Quantity | None:
    """The raw number that fits a number's place in the rewrite better than its own, and has no such place there."""
    sentence, readings = rewrite.sentence_at(new.start), _readings(new)
    if sentence is None:
        return None
    here = stems_around(rewrite, new.start, new.end)
    present = _values(tuple(q for q in after if sentence.start <= q.start < sentence.end))
    own = max(
        (len(here & stems) + _counts_same(q, new) for q, stems in places if readings & _readings(q)),
        default=0,
    )
    for old, stems in places:
        if bool(old.unit) != bool(new.unit) or present & _readings(old):
            continue
        if _fits_better(old, new, len(here & stems), own) and not _has_place(rewrite, after, old, stems):
            return old
    return None


def _fits_better(old: Quantity, new: Quantity, common: int, own: int) -> bool:
    """Whether as many stems in common with the other number's place, and with its own, tell of an exchange."""
    if _counts_same(old, new):
        return common > 1 and common + 1 > own
    return common >= _MIN_IN_PLACE and (own == 0 or (common > own + 1 and old.phrase[:1] == new.phrase[:1]))


def _counts_same(one: Quantity, other: Quantity) -> bool:
    return bool(one.phrase) and one.phrase[:2] == other.phrase[:2]


def _has_place(rewrite: Features, after: list[Quantity], old: Quantity, stems: frozenset[str]) -> bool:
    same = (q for q in after if _readings(q) & _readings(old))
    return any(len(stems_around(rewrite, q.start, q.end) & stems) > 1 for q in same)


def sequences_invented(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """Numbers joined by hyphens, to each other (``15-16-8-8-1``) or to a name (``UTF-8``), stay as they are."""
    known = set(_SEQUENCE.findall(raw.known_prose))
    new = dict.fromkeys(_SEQUENCE.findall(rewrite.prose))
    return [
        *(Finding("number_invented", numbers) for numbers in new if known and numbers not in known),
        *_designations_invented(raw, rewrite),
    ]


def _designations_invented(raw: Features, rewrite: Features) -> Iterator[Finding]:
    """Numbers joined to a name (``UTF-8``), in place of those that it has behind it in the raw text."""
    for name, number in islice(dict.fromkeys(_DESIGNATED.findall(rewrite.prose)), _MAX_COMPARED):
        behind = re.findall(rf"(?<![^\W_]){re.escape(name)}[- ]?(\d[^.;\n]{{0,40}})", raw.known_prose)
        if behind and not any(re.search(rf"(?<!\d){number}(?!\d)", text) for text in behind):
            yield Finding("number_invented", f"{name}-{number}")


def _complements(raw: Features) -> set[Decimal]:
    """What is left of each percentage, where the raw text says that something is left: 80 % and the rest is 20 %."""
    if _REST.isdisjoint(raw.words):
        return set()
    return {(100 - q.value).normalize() for q in raw.quantities if q.unit == "%" and 0 < q.value < 100}


def _before_glued_names(raw: Features) -> set[Decimal]:
    """Numbers that end a sentence to which the next one is joined, and that begins with a digit: ``73.20NG``."""
    return {Decimal(found[1]) for found in _GLUED_NUMBER.finditer(raw.prose)}


def _is_version(features: Features, quantity: Quantity) -> bool:
    """Whether it is the version of something named (``Python 3.0``), which is no other place's 3."""
    shown = features.prose[quantity.start : quantity.end]
    return shown.endswith(".0") and bool(_NAMED.search(features.prose[: quantity.start][-40:]))


def _is_fact(raw: Features, quantity: Quantity) -> bool:
    if quantity.form == "ordinal":
        return False
    if quantity.value == 1:
        is_fact = quantity.unit or quantity.counted or _has_decimals(quantity)
        return quantity.form == "digits" and bool(is_fact)
    if quantity.form == "word" and quantity.value <= _SMALL_COUNT and _is_anaphoric(raw, quantity):
        return False
    if quantity.form == "multiple":
        return quantity.value != 2 and quantity.value != 12
    if quantity.form == "digits" or quantity.unit or quantity.value > 10:
        return True
    if _VAGUE.intersection(quantity.phrase):
        return False
    return bool(quantity.counted) or (quantity.value > 2 and bool(quantity.phrase))


def _is_single(quantity: Quantity, rewrite: Features) -> bool:
    """Whether what is counted once is in the rewrite, where it needs no number: ``1 epoch`` is ``an epoch``."""
    return (
        quantity.value == 1
        and not _has_decimals(quantity)
        and quantity.unit != "%"
        and bool(rewrite.stems.keys() & set(quantity.phrase))
    )


def _is_anaphoric(raw: Features, quantity: Quantity) -> bool:
    """Whether a count stands behind a word that says that the things counted are told of nearby: ``these two``."""
    return bool(_DEFINITE.search(raw.prose, max(0, quantity.start - 14), quantity.start))


def _is_small_count(quantity: Quantity) -> bool:
    whole = quantity.value == quantity.value.to_integral_value()
    return whole and 0 <= quantity.value <= _SMALL_COUNT and not quantity.unit


def _values(quantities: tuple[Quantity, ...]) -> set[Decimal]:
    return {value for quantity in quantities for value in _readings(quantity)}


def _readings(quantity: Quantity) -> set[Decimal]:
    """The value, and what else says the same: 95.8 % is 0.958, half is 50 %, a sign may be said in words."""
    value = abs(quantity.value)
    readings = _whole_readings(quantity)
    if quantity.unit == "%":
        readings.add((value / 100).normalize())
    elif quantity.form == "multiple" and value < 1:
        readings.add((value * 100).normalize())
    return readings


def _whole_readings(quantity: Quantity) -> set[Decimal]:
    """The value without its sign, and that of 930.000 words as much of Europe writes it."""
    value = abs(quantity.value)
    has_dot = value >= 1 and value.as_tuple().exponent == -3
    return {value.normalize()} | ({(value * 1000).normalize()} if has_dot else set())


def _shown(features: Features, quantity: Quantity) -> str:
    shown = features.prose[quantity.start : quantity.end + 25].split("\n")[0].strip()
    return f"{features.prose[quantity.start : quantity.end].strip()} (in {shown!r})"


# --- units --------------------------------------------------------------------------------------------------------


def units(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """A number keeps its unit, and goes on counting what it counted in some place of the raw text."""
    before, after = _by_value(raw.quantities), _by_value(rewrite.quantities)
    findings = []
    for value, every in before.items():
        olds, news = every[:_MAX_ALIKE], after.get(value, [])[:_MAX_ALIKE]
        if news:
            findings += [*_unit_findings(raw, olds, rewrite, news)]
    return [
        *findings,
        *_rate_findings(raw, rewrite),
        *_scale_findings(raw, rewrite),
        *_uncounted_unit_findings(raw, rewrite),
        *_kin_findings(raw, rewrite),
    ]


def _unit_findings(
    raw: Features, olds: list[Quantity], rewrite: Features, news: list[Quantity]
) -> Iterator[Finding]:
    """For one value, all of whose places are given."""
    lost = {q.unit for q in olds} - {q.unit for q in news}
    lost = {unit for unit in lost if not any(_names_unit(rewrite, q, unit) for q in news)}
    if lost and all(q.unit for q in olds):
        replaced = any(q.unit not in {"", *(old.unit for old in olds)} for q in news)
        sources = () if replaced else healing_sources(raw, rewrite, olds[0].start, olds[0].end, "number")
        yield Finding("unit_missing", _shown_unit(raw, olds[0], min(lost)), sources)
    if wrong := next(filter(None, (_wrong_unit(raw, olds, rewrite, new) for new in news)), ""):
        yield Finding("unit_changed", _shown_unit(raw, olds[0], wrong))


def _by_value(quantities: tuple[Quantity, ...]) -> dict[Decimal, list[Quantity]]:
    found: dict[Decimal, list[Quantity]] = {}
    for quantity in quantities:
        if quantity.form in {"digits", "word"}:
            for value in _whole_readings(quantity):
                found.setdefault(value, []).append(quantity)
    return found


def _rate_findings(raw: Features, rewrite: Features) -> Iterator[Finding]:
    """Units without a number: ``latency (ms)`` and ``ms/query`` stay as they are."""
    before: dict[str, set[str]] = {}
    for unit, what in _rates(raw.prose):
        before.setdefault(what, set()).add(unit)
    for unit, what in _rates(rewrite.prose):
        if unit not in before.get(what, {unit}):
            yield Finding("unit_changed", f"{what} in {unit}")


def _scale_findings(raw: Features, rewrite: Features) -> Iterator[Finding]:
    """``millions of tokens`` do not become millions of something else that is commonly counted."""
    before: dict[str, list[frozenset[str]]] = {}
    for scale, nouns in _scales(raw.prose):
        before.setdefault(scale, []).append(nouns)
    for scale, nouns in _scales(rewrite.prose):
        olds = before.get(scale, [])
        if nouns and olds and all(old and not old & nouns for old in olds):
            yield Finding("unit_changed", f"{scale} of {min(nouns)}")


def _uncounted_unit_findings(raw: Features, rewrite: Features) -> Iterator[Finding]:
    """``over a year`` and ``the last few years`` do not become months of which the raw text says nothing."""
    before = {unit for unit, _ in _uncounted_units(raw.prose)}
    known = {UNITS[word] for word in raw.words if word in UNITS} | {q.unit for q in raw.quantities}
    for unit, shown in _uncounted_units(rewrite.prose):
        if before and unit not in known:
            yield Finding("unit_changed", shown)


def _kin_findings(raw: Features, rewrite: Features) -> Iterator[Finding]:
    """``a container for bytes`` does not become one for characters of which the raw text says nothing."""
    known = {stem(word) for word in raw.vocabulary}
    for kin in _KIN:
        units = [t for t in raw.tokens if t.stem in kin - _AMBIGUOUS][:_MAX_COMPARED]
        old = [stems_around(raw, token.start, token.start) for token in units]
        new = [t for t in rewrite.tokens if t.stem in kin and t.stem not in known][:_MAX_COMPARED]
        for token in new:
            here = stems_around(rewrite, token.start, token.start) - kin
            if any(len(here & there) >= _MIN_KIN for there in old):
                yield Finding("unit_changed", f"{token.stem} where the raw text has none")


def _uncounted_units(text: str) -> Iterator[tuple[str, str]]:
    for found in _UNCOUNTED_UNIT.finditer(text):
        yield UNITS[found[1].lower().replace("ie", "y")], found[0]


def _scales(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    for found in _SCALE.finditer(text):
        yield found[1].lower(), counted_in(text, found.end())


def _rates(text: str) -> Iterator[tuple[str, str]]:
    for found in _RATE.finditer(text):
        yield found["per"] or found["in"], (found["what"] or found["name"]).lower()


def _wrong_unit(raw: Features, olds: list[Quantity], rewrite: Features, new: Quantity) -> str:
    """The unit or the noun that the raw text never has beside this number; empty if there is none."""
    if new.unit:
        known = any(q.unit == new.unit or _names_unit(raw, q, new.unit) for q in olds)
        unknown = not known and not (new.unit == "×" and new.form == "word")
        return new.unit if unknown else _wrong_whole(raw, olds, rewrite, new)
    if _is_summary(raw, new) or _is_joined(raw, rewrite, new):
        return ""
    near = {stem for q in olds for stem in raw.around(q.start - _UNIT_WINDOW, q.end + _UNIT_WINDOW)}
    if new.counted and any(_does(q, new.counted, near) for q in olds):
        return ""
    bare = [q for q in olds if not q.unit]
    if bare and new.counted and all(q.counted and not _alike(q.counted, new.counted) for q in bare):
        return min(new.counted)
    return ""


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sets of counted nouns have one in common, or two by which the same things may be called."""
    return bool(one & other) or any(one & nouns and other & nouns for nouns in _SAME_THINGS)


def _wrong_whole(raw: Features, olds: list[Quantity], rewrite: Features, new: Quantity) -> str:
    """What a share is of, or a measure is per, if each raw place says something else: ``5 s per token``, ``5 % of words``."""
    whole = _whole(rewrite, new)
    every = [_whole(raw, old) for old in olds]
    near = {stem for q in olds for stem in raw.around(q.start - _UNIT_WINDOW, q.end + _UNIT_WINDOW)}
    return min(whole) if whole and all(every) and not near & whole else ""


def _whole(features: Features, quantity: Quantity) -> frozenset[str]:
    """The stems of the commonly counted nouns behind the unit and ``of`` or ``per``."""
    found = _OF_WHOLE.match(features.prose, quantity.end)
    return counted_in(features.prose, found.end()) if found else frozenset()


def _does(old: Quantity, counted: frozenset[str], near: set[str]) -> bool:
    """Whether people became who they are by what they do: ``spoken by 40 people`` and ``40 speakers``."""
    return bool(_PEOPLE & set(old.phrase)) and any(near & _DOERS.get(noun, set()) for noun in counted)


def _is_summary(raw: Features, new: Quantity) -> bool:
    """Whether a small number in words may count what the raw text only lists: ``in two steps``."""
    return new.form == "word" and new.value <= _SMALL_COUNT and new.counted <= raw.stems.keys()


def _is_joined(raw: Features, rewrite: Features, new: Quantity) -> bool:
    """Whether a compound of the rewrite is one word in the raw text: ``two-liners`` and twoliners."""
    tail = _COMPOUND_TAIL.match(rewrite.prose, new.end)
    return tail is not None and f"{rewrite.prose[new.start : new.end]}{tail[1]}".lower() in raw.vocabulary


def _names_unit(features: Features, quantity: Quantity, unit: str) -> bool:
    """Whether the unit stands somewhere near the number, in a form that the quantity itself does not show."""
    near = features.prose[max(0, quantity.start - _UNIT_WINDOW) : quantity.end + _UNIT_WINDOW].lower()
    if unit in {"%", "pp"}:
        return ("%" in near and unit == "%") or ("percentage" in near and unit == "pp") or ("percent" in near and unit == "%" and "point" not in near)  # fmt: skip
    if unit == "×":
        return bool(re.search(r"times|fold|factor|×|\bx\b", near))
    return any(UNITS.get(word) == unit for word in re.findall(r"[^\W\d_]+", near)) or unit in near.split()


def _shown_unit(raw: Features, quantity: Quantity, unit: str) -> str:
    shown = raw.prose[quantity.start : quantity.end + 30].split("\n")[0].strip()
    return f"{shown!r}: {unit}"


# --- acronyms -----------------------------------------------------------------------------------------------------


def acronyms_missing(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """Every acronym comes back, or its long form."""
    places = [
        (acronym, offset, offset + len(acronym))
        for acronym, offset in raw.acronyms.items()
        if not (_has_acronym(rewrite, acronym) and not _is_only_in_code(rewrite, acronym))
        and not _names_itself(raw, acronym)
        and not _has_long_form(raw, rewrite, acronym)
        and not _is_misspelled(raw, rewrite, acronym)
    ]
    return _missing("acronym_missing", raw, rewrite, places, "name")


def acronyms_invented(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """Every acronym is in the raw text, or abbreviates words of it."""
    return [
        Finding("acronym_invented", acronym)
        for acronym in dict.fromkeys(acronyms(rewrite.prose))
        if not (
            _has_acronym(raw, acronym) or _abbreviates_raw(raw, rewrite, acronym) or _is_mark_of(raw, acronym)
        )
    ]


def _has_acronym(features: Features, acronym: str) -> bool:
    if acronym.lower() in features.vocabulary or acronym.lower().rstrip("s") in features.vocabulary:
        return True
    if re.search(rf"\d{re.escape(acronym)}(?![^\W_])", features.known_prose):  # 5.48GB
        return True
    if not acronym.isalnum() or len(acronym) == 2:  # Q&A, C++, U.S.
        return bool(re.search(rf"(?<![^\W_]){'.?'.join(map(re.escape, acronym))}", features.known_prose))
    return False


def _is_only_in_code(features: Features, acronym: str) -> bool:
    """Whether small letters in inline code are all there is of it: ``std::tls`` does not mention TLS."""
    return acronym.lower() in _words_of_code(features) and acronym not in features.prose


@lru_cache(maxsize=4)
def _words_of_code(features: Features) -> frozenset[str]:
    """The words, in lower case, that stand in inline code and nowhere else."""
    spoken, code = _CODE.sub(" ", features.prose), " ".join(_CODE.findall(features.prose))
    return frozenset(_PART.findall(code.lower())) - frozenset(_PART.findall(spoken.lower()))


def _names_itself(raw: Features, acronym: str) -> bool:
    """Whether the text only calls itself so: ``this RFC``, a mark or a verb behind it, but not ``this NLP task``."""
    places = re.findall(rf"([Tt]his )?(?<![^\W_]){re.escape(acronym)}(?![^\W_])\s*(\w*)", raw.bare)
    return bool(places) and all(
        this and (not word or word.endswith("s") or word in STOP_WORDS) for this, word in places
    )


def _has_long_form(raw: Features, rewrite: Features, acronym: str) -> bool:
    """Whether the rewrite spells out what the raw text does not; where that does, both forms are its facts."""
    introduced = acronym in raw.definitions or f"({acronym}" in raw.prose
    return not introduced and is_spelled_out(acronym, rewrite.initials)


def _is_misspelled(raw: Features, rewrite: Features, acronym: str) -> bool:
    """Whether it is another acronym of the raw text with two letters exchanged, which the rewrite has: PTDB is PDTB."""
    alike = [other for other in raw.acronyms if other != acronym and sorted(other) == sorted(acronym)]
    return len(acronym) > 2 and any(_has_acronym(rewrite, other) for other in alike)


def _is_mark_of(raw: Features, mark: str) -> bool:
    """Whether it is a citation mark of the raw text, where scraping may have joined it to a word."""
    return bool(_CITATION_MARK.fullmatch(mark)) and bool(re.search(rf"{mark}(?!\d)", raw.prose))


def _abbreviates_raw(raw: Features, rewrite: Features, acronym: str) -> bool:
    long_form = rewrite.definitions.get(acronym, "")
    if long_form and all(word in raw.vocabulary for word in long_form.split()):
        return True
    return is_spelled_out(acronym, raw.initials)


# --- names --------------------------------------------------------------------------------------------------------


def names_missing(raw: Features, rewrite: Features, options: GateOptions) -> list[Finding]:
    """Coined names come back all, other names for the most part: compression turns some into common nouns."""
    lost = [name for name in raw.names if not _has_name(rewrite, name)]
    coined = [name for name in lost if any(is_coined(part) and not _has_part(rewrite, part) and not _is_misspelled_name(raw, rewrite, part) for part in _compound(name))]  # fmt: skip
    too_many = len(lost) > 1 and len(lost) > (1 - options.min_names_kept) * len(raw.names)
    places = [_place_of(raw, name) for name in (lost if too_many else coined)]
    return _missing("entity_missing", raw, rewrite, places, "name")


def names_invented(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """Every word of a name is in the raw text, or spells out one of its acronyms."""
    findings = []
    for name in rewrite.names:
        parts = [part for part in _parts(name) if not _is_known_name(raw, part)]
        if parts and not _spells_out(raw, name) and not all(acronyms(part) for part in parts):
            findings.append(Finding("entity_invented", name))
    return findings


def _is_misspelled_name(raw: Features, rewrite: Features, part: str) -> bool:
    """Whether it is another name of the raw text with a letter too much or too few, which the rewrite has."""
    if len(part) < _MIN_SPELLED or part[-1].isdigit() or raw.words.count(part.lower()) > 1:
        return False
    others = [other for name in raw.names for other in _compound(name) if other != part]
    return any(
        is_coined(other) and abs(len(other) - len(part)) == 1 and _has_part(rewrite, other)
        for other in get_close_matches(part, others[:_MAX_COMPARED], 2, 0.92)
    )


def _is_known_name(raw: Features, part: str) -> bool:
    """Whether the raw text has the word, perhaps misspelled; in a compound only what is written large is a name."""
    if _has_part(raw, part) or part.lower() in STOP_WORDS or (part.islower() and part.isalpha()):
        return True
    if len(part) < 5 or not part[1:].islower() or not part.isalpha():
        return False
    if any(_is_derived(part.lower(), word) for word in raw.vocabulary):
        return True
    alike = [
        word for word in raw.vocabulary if word[:2] == part[:2].lower() and abs(len(word) - len(part)) < 3
    ]
    return bool(get_close_matches(part.lower(), alike[:_MAX_ALIKE], 1, 0.87))


def _is_derived(one: str, other: str) -> bool:
    """Whether two words are one name as noun and adjective: Bible and Biblical, Bayes and Bayesian."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return common >= 4 and bool(_ENDING.fullmatch(one, common) and _ENDING.fullmatch(other, common))


def _parts(name: str) -> list[str]:
    """The words of a name that say something: two characters or more, no numbers."""
    return [part for part in _words_of(name) if len(part) > 1 and not part.isdigit()]


def _words_of(name: str) -> list[str]:
    return _PART.findall(_POSSESSIVE.sub("", name))


def _compound(name: str) -> list[str]:
    return [word for word in re.split(r"[\s/]+", name) if word]


def _has_name(features: Features, name: str) -> bool:
    parts = [part for part in _parts(name) if part.lower() not in STOP_WORDS]
    return not parts or sum(_has_part(features, part) for part in parts) * 2 >= len(parts)


def _has_part(features: Features, part: str) -> bool:
    """Whether a word stands in a text, inflected or as part of a compound."""
    parts = [word.lower() for word in _words_of(part)]
    known = features.vocabulary
    return all(
        word in known or word.rstrip("s") in known or word + "s" in known or stem(word) in features.stems for word in parts
    )  # fmt: skip


def _spells_out(raw: Features, name: str) -> bool:
    initials = "".join(part[0] for part in _parts(name)).lower()
    return len(initials) > 1 and any(initials == acronym.lower() for acronym in raw.acronyms)


def _place_of(raw: Features, text: str) -> tuple[str, int, int]:
    start = max(raw.prose.find(text), 0)
    return text, start, start + len(text)


def _missing(
    code: str, raw: Features, rewrite: Features, places: list[tuple[str, int, int]], kind: FactKind
) -> list[Finding]:
    """A finding for each lost fact, given as what is shown of it and its offsets."""
    can_heal = len(places) <= _MAX_HEALED
    return [
        Finding(code, shown, healing_sources(raw, rewrite, start, end, kind) if can_heal else ())
        for shown, start, end in places
    ]


# --- inline code and math, addresses, references ------------------------------------------------------------------


def inline(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """Inline code and math stay letter by letter, blanks and markup apart, and none is made up."""
    before, after = _squeezed(raw.prose), _squeezed(rewrite.prose)
    missing = [span for span in raw.inline if _squeezed(span) not in after and not _is_prose(span)]
    invented = [span for span in rewrite.inline if _squeezed(span) not in before and not _is_prose(span)]
    return [
        *_missing("inline_missing", raw, rewrite, [_place_of(raw, span) for span in missing], "inline"),
        *(Finding("inline_invented", span) for span in invented),
    ]


def _is_prose(span: str) -> bool:
    """Whether two dollar signs that mean something else enclose a piece of a sentence."""
    if span.startswith("`"):  # the quotation marks of LaTeX: `one' and `two'
        return bool(re.search(r"['’][\s.,;:)]", span))
    return span.startswith("$") and len(re.findall(r"(?<![\\\\{])\b[a-z]{3,}(?= )", span)) > 2


def _squeezed(text: str) -> str:
    return re.sub(r"[\s$`{}\\_^,]|\\[()]", "", text).lower()


def pointers(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """No address and no reference to a table, figure, section, equation or lost formula that the raw text lacks."""
    return [
        *(Finding("url_invented", url) for url in _URL.findall(rewrite.prose) if url not in raw.known_prose),
        *_new_references(raw, rewrite),
    ]


def _new_references(raw: Features, rewrite: Features) -> Iterator[Finding]:
    known = {number for reference in raw.references for number in re.findall(r"\d+", reference)}
    for reference in sorted(rewrite.references - raw.references):
        if not known.issuperset(re.findall(r"\d+", reference)):
            yield Finding("reference_invented", reference)
