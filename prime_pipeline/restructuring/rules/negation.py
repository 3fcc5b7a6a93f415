"""The rule on negations: cues of both texts are matched by what they negate, each with one of the other text.

A dropped negation is reported where the rewrite says the negated words without one, not where it lost them: a
paraphrase that this module cannot read should pass. An added one is reported unless a word of the raw text explains it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.rules.features import Features, Sentence
from prime_pipeline.restructuring.rules.healing import cues_in
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.text.negations import NegationCue
from prime_pipeline.text.stems import stem

_REACH: Final = 70
"""Characters behind a cue in which the words that it negates begin."""
_BACK: Final = 45
"""Characters before a cue that belong to its context: subject and verb."""
_ELLIPSIS_BACK: Final = 120
"""The same for a cue that ends its sentence: ``and sometimes it does not``."""
_MARK: Final = re.compile(r"[,;:()–—]|\.(?=[A-Z])")
_GLUED_END: Final = re.compile(r"\.(?=[A-Z][\w-]*)")
_SECOND: Final = re.compile(r"\bnor\b")
"""What follows is negated by this word."""
_STOP: Final = re.compile(r"[;:()]")
_COORDINATION: Final = re.compile(r"\b(?:nor|or|and(?! [a-z]+(?:s|ed) (?:the|an?|our|its|their|this)\b))\b")
"""What carries a negation on; in ``no longer suffers and matches the best`` a verb begins anew."""
_BE: Final = re.compile(r"\b(?:is|are|was|were|be|been)\s(?:\w+ly\s)?\Z")
_CONTRARIES: Final = {
    "reject": "accept",
    "refus": "accept",
    "prohibit": "allow",
    "preclud": "allow",
    "rul": "allow",
    "prevent": "allow",
    "fail": "succeed",
    "exclud": "include",
    "omit": "include",
    "ignor": "consider",
    "disregard": "consider",
}
"""What a cue, known by how it begins, says that somebody or something does not do."""
_LIGHT: Final = frozenset({stem("able")})
"""What stands between a negation and the verb that it negates."""
_MAX_CANDIDATES: Final = 40
"""Cues with one stem in their context that are looked at for each cue."""
_MAX_UNANSWERED: Final = 60
_MAX_CUES: Final = 1_500
"""Cues of one text that are read: those of some 60,000 characters of dense prose, more than any model rewrites."""
_NOWHERE: Final = "the rewrite does not say it at all"
_MIN_SHARE_WITHOUT_HEAD: Final = 0.65
"""Where the very word that is negated is gone, a paraphrase has mostly put the negation into another word."""
_MIN_REWORDED: Final = 3
"""Stems around a weak cue that it has in common with a lost ``fails``, which many words can stand for."""
_MIN_IN_PLACE: Final = 3
"""Stems in common of two places where one word stands, with a negating prefix and without one."""
_MIN_BARE: Final = 5
"""Letters of a word behind its negating prefix."""
_MIN_LIKENESS: Final = 0.5
_MIN_MIXED_LIKENESS: Final = 0.7


@dataclass(frozen=True, slots=True)
class _Context:
    """A cue with the stems around it.

    Attributes:
        cue: The cue.
        scope: Stems behind it, in its sentence: what it negates.
        near: These and the stems before it.
        tight: The few stems on either side.
        object: Those behind it.
        heads: The first two of these that are no ``able to``, among which is mostly the verb or noun that is negated.
        sentence: Where it stands; None in a gap between sentences.
    """

    cue: NegationCue
    scope: frozenset[str]
    near: frozenset[str]
    tight: frozenset[str]
    object: frozenset[str]
    heads: tuple[str, ...]
    sentence: Sentence | None


def negations(raw: Features, rewrite: Features, _: GateOptions) -> list[Finding]:
    """What the raw text negates, the rewrite says, and negates it too; and it negates nothing else."""
    before, after = _contexts(raw), _contexts(rewrite)
    return [*_missing(raw, rewrite, before, after), *_added(raw, rewrite, before, after)]


def _missing(
    raw: Features, rewrite: Features, before: list[_Context], after: list[_Context]
) -> Iterator[Finding]:
    for word, bare in [*_bared(before, raw, after, rewrite), *_bared_in_place(before, raw, after, rewrite)]:
        yield Finding("negation_missing", f"{word!r} became {bare!r}")
    unanswered, free = _matched(before, after, rewrite, ("strong", "verb"))
    for context in unanswered:
        if context.sentence is None or context.sentence.is_road_map or _is_reworded(context, free, rewrite):
            continue
        if place := _said_without(context, before, rewrite):
            detail = f"{context.cue.word!r} of {context.sentence.text[:100]!r}: {place}"
            # Where the rewrite says the contrary, no sentence appended to it would make it true.
            sources = (context.sentence.text,) if place == _NOWHERE else ()
            yield Finding("negation_missing", detail, sources)


def _added(
    raw: Features, rewrite: Features, before: list[_Context], after: list[_Context]
) -> Iterator[Finding]:
    for word, bare in [*_bared(after, rewrite, before, raw), *_bared_in_place(after, rewrite, before, raw)]:
        yield Finding("negation_added", f"{bare!r} became {word!r}")
    told = _contexts(raw.context) if raw.context else []
    known = [*before, *(context for context in told if context.cue.strength in {"strong", "verb"})]
    unanswered, free = _matched(after, known, raw, ("strong", "verb"))
    for context in unanswered:
        explained = (
            _is_explained(context, free) if context.cue.strength == "strong" else not _is_plain(context, raw)
        )
        if context.sentence and not explained:
            yield Finding("negation_added", f"{context.cue.word!r} in {context.sentence.text[:100]!r}")


def _is_plain(context: _Context, raw: Features) -> bool:
    """Whether the raw text says, amid no negation however weak, all that ``fails to`` negates."""
    return len(context.object) > 1 and any(
        sentence.stems >= context.object
        and not cues_in(raw, sentence.start, sentence.end, {"strong", "verb", "weak"})
        for sentence in raw.sentences
    )


def _bared(
    left: list[_Context], one: Features, right: list[_Context], other: Features
) -> Iterator[tuple[str, str]]:
    """Words such as ``unsupervised`` that one text alone has, where the other alone has the bare word, unnegated."""
    written = other.prose.lower().replace("-", "")
    negated = {word for context in right if context.cue.strength != "prefix" for word in context.tight}
    for cue in {context.cue.word: context.cue for context in left}.values():
        bare, full = _bare_stem(cue), _bare_word(cue)
        if (
            cue.strength in {"strong", "hint"}
            or not _has_prefix(cue)
            or len(full) < _MIN_BARE
            or stem(cue.word) in other.stems
        ):
            continue
        if bare not in other.stems or bare in negated or _has_word(one, full) or not _has_word(other, full):
            continue
        if cue.word not in written:  # in some texts it is divided, as at the end of a line
            yield cue.word, bare


def _has_word(features: Features, bare: str) -> bool:
    """Whether a text has the word or another form of it; a stem alone is that of ``like`` and of ``likely``."""
    return any(word[:5] == bare[:5] and stem(word) == stem(bare) for word in features.vocabulary)


def _bared_in_place(
    left: list[_Context], one: Features, right: list[_Context], other: Features
) -> Iterator[tuple[str, str]]:
    """Words such as ``non-linear`` of a text that has ``linear``, too, where the other has that amid the same words."""
    for context in left:
        bare = _bare_stem(context.cue)
        if context.cue.strength not in {"weak", "prefix"} or not _has_prefix(context.cue) or len(bare) < 4:
            continue
        own, around = _bare_places(one, bare), context.near - {bare, "non"}
        negated = [
            c.near for c in right if bare in c.heads or (_has_prefix(c.cue) and bare == _bare_stem(c.cue))
        ]
        for place in _bare_places(other, bare) if own else ():
            likeness = len(place & around)
            rivals = [len(place & o) for o in own] + [len(around & n) for n in negated]
            if likeness >= _MIN_IN_PLACE and likeness > max(rivals, default=0):
                yield context.cue.word, bare


def _bare_places(features: Features, bare: str) -> list[frozenset[str]]:
    """The stems around each place of a word that has no negating prefix there; the first ones of very many."""
    found = []
    for start in _starts(features).get(bare, ())[:_MAX_CANDIDATES]:
        sentence = features.sentence_at(start)
        if sentence and not features.bare.endswith(("non-", "un-", "Non-"), 0, start):
            low, high = max(sentence.start, start - _BACK), min(sentence.end, start + _REACH)
            found.append(frozenset(features.around(low, high)) - {bare})
    return found


@lru_cache(maxsize=4)
def _starts(features: Features) -> Mapping[str, list[int]]:
    """Where words begin, by their stem."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for token in features.tokens:
        found[token.stem].append(token.start)
    return found


def _matched(
    left: list[_Context], right: list[_Context], other: Features, required: tuple[str, ...]
) -> tuple[list[_Context], list[_Context]]:
    """Cues on the left, of the strengths required, that none on the right answers; and those on the right left over.

    Each cue answers once. Pairs are taken by likeness of their contexts, equal words first; ties by position. Of very
    many, the first ones are returned.
    """
    used_left: set[int] = set()
    used_right: set[int] = set()
    pairs = chain(_pairs(left, right, other), _lone_pairs(left, right))
    for _, i, j in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if i not in used_left and j not in used_right:
            used_left.add(i)
            used_right.add(j)
    rest = [c for i, c in enumerate(left) if i not in used_left and c.cue.strength in required]
    return rest[:_MAX_UNANSWERED], [c for j, c in enumerate(right) if j not in used_right]


@lru_cache(maxsize=4)
def _contexts(features: Features) -> list[_Context]:
    return [_context(features, cue) for cue in features.cues[:_MAX_CUES]]


def _context(features: Features, cue: NegationCue) -> _Context:
    sentence = features.sentence_at(cue.start)
    start, end = (sentence.start, sentence.end) if sentence else (cue.start, cue.end)
    end = min(end, cue.end + 2 * _REACH)
    if second := _SECOND.search(features.bare, cue.end, end):
        end = second.start()
    if glued := _GLUED_END.search(features.bare, cue.end, end):
        end = glued.start()
    start = max((m.end() for m in _GLUED_END.finditer(features.bare, start, cue.start)), default=start)
    scope = features.around(cue.end, min(cue.end + _REACH, end))
    before = features.around(max(cue.start - (_BACK if scope else _ELLIPSIS_BACK), start), cue.start)
    clause_start = max(
        (m.end() for m in _MARK.finditer(features.bare, max(cue.start - _BACK, start), cue.start)),
        default=start,
    )
    clause_end = found.start() if (found := _MARK.search(features.bare, cue.end, end)) else end
    behind = features.around(cue.end, clause_end)[:3]
    # A predicate (``enumeration of the space is impossible``) says it of the whole subject.
    is_predicate = not behind and _BE.search(features.bare, clause_start, cue.start)
    n_before = 4 if is_predicate else 2
    tight = frozenset(features.around(clause_start, cue.start)[-n_before:] + behind[:2] + _own_stems(cue))
    return _Context(
        cue,
        frozenset(scope),
        frozenset(scope + before),
        tight,
        frozenset(behind),
        tuple(word for word in behind if word not in _LIGHT)[:2],
        sentence,
    )


def _own_stems(cue: NegationCue) -> list[str]:
    """What a cue negates within itself (``unavailable``), or says in the superlative (``largest``)."""
    if contrary := next((word for start, word in _CONTRARIES.items() if cue.word.startswith(start)), ""):
        return [stem(cue.word), stem(contrary)]
    if cue.strength in {"strong", "verb"}:
        return []
    return [stem(cue.word), _bare_stem(cue)] if cue.word.replace("-", "").isalpha() else []


def _has_prefix(cue: NegationCue) -> bool:
    return _bare_stem(cue) != stem(cue.word)


def _bare_stem(cue: NegationCue) -> str:
    return stem(_bare_word(cue))


def _bare_word(cue: NegationCue) -> str:
    return re.sub(r"\A(?:un|non-?|in|im|il|ir|dis|mis|de)(?=\w{4})|less\Z", "", cue.word)


def _pairs(left: list[_Context], right: list[_Context], other: Features) -> Iterator[tuple[float, int, int]]:
    by_stem: defaultdict[str, list[int]] = defaultdict(list)
    for j, context in enumerate(right):
        for word in context.near:
            by_stem[word].append(j)
    for i, context in enumerate(left):
        scores: defaultdict[int, float] = defaultdict(float)
        for word in sorted(context.near):
            for j in by_stem[word][:_MAX_CANDIDATES]:
                both_scopes = word in context.scope and word in right[j].scope
                scores[j] += (1.5 if both_scopes else 1.0) / (1 + other.stems.get(word, 0)) ** 0.5
        for j, score in scores.items():
            if score >= _MIN_LIKENESS and (bonus := _likeness(context, right[j], score)):
                yield score * bonus, i, j


def _lone_pairs(left: list[_Context], right: list[_Context]) -> Iterator[tuple[float, int, int]]:
    """Equal cues of which one has no word around it (``Do nothing.``): less alike than all of :func:`_pairs`."""
    by_word: defaultdict[str, list[int]] = defaultdict(list)
    for j, context in enumerate(right):
        by_word[context.cue.word].append(j)
    for i, context in enumerate(left):
        for j in by_word[context.cue.word][:_MAX_CANDIDATES]:
            if not (context.near and right[j].near):
                yield _MIN_LIKENESS, i, j


def _likeness(one: _Context, other: _Context, score: float) -> float:
    """How well one cue stands for the other; 0 if it cannot."""
    strengths = {one.cue.strength, other.cue.strength}
    same_word = one.cue.word[:4] == other.cue.word[:4]
    if strengths <= {"strong", "second"}:
        if not one.scope and not other.scope and one.near & other.near:
            return 3.0
        if one.tight & other.tight:
            return 4.0 if one.cue.word == other.cue.word else 3.0
        return 1.6 if len(one.near & other.near) > 1 else 0.0
    if strengths.isdisjoint({"strong", "verb"}) or (same_word and "strong" not in strengths):
        return 2.0 if same_word else 0.0
    if "prefix" in strengths:
        prefixed, plain = (one, other) if one.cue.strength == "prefix" else (other, one)
        return 2.5 if _bare_stem(prefixed.cue) in plain.tight else 0.0
    if score < _MIN_MIXED_LIKENESS:
        return 0.0
    negated = one.object if one.cue.strength in {"strong", "verb"} else other.object
    common = one.tight & other.tight
    return 1.0 if common & negated and len(common) > ("hint" in strengths) else 0.0


def _said_without(context: _Context, before: list[_Context], rewrite: Features) -> str:
    """Where the rewrite says the negated words without a negation, or that it does not say them at all; else empty."""
    if context.sentence is None:
        return ""
    spots = [
        (len(context.near & stems) + len(context.scope & stems) + 2 * len(context.object & stems), stems, s)
        for s, stems in _parts(rewrite)
    ]
    score, stems, best = max(spots, key=lambda spot: spot[0], default=(0, frozenset[str](), None))
    if best is None or score <= 1 < len(context.near):
        coverage = len(context.sentence.stems & rewrite.stems.keys()) / max(len(context.sentence.stems), 1)
        return _NOWHERE if coverage < 0.5 else ""
    if _is_coordinated(context, rewrite):
        return ""
    share = max(
        _share(context.scope, stems),
        _share(context.near, stems) - 0.2,
        _share(context.object, stems) - 0.1 if len(context.object) > 1 else 0.0,
    )
    # A verb follows ``not``, but often an adjective follows ``no``, and the noun behind it.
    heads = context.heads[: 2 if context.cue.word in {"no", "without"} else 1]
    has_head = any(word.startswith(head[:4]) for head in heads for word in stems)
    if _is_said_twice(context, context.object & stems, before, best, rewrite, has_head=has_head):
        return ""
    wanted = 0.5 if has_head or len(context.object) < 2 else _MIN_SHARE_WITHOUT_HEAD
    return f"the rewrite says {best.text[:100]!r}" if share >= wanted else ""


def _is_said_twice(
    context: _Context,
    words: frozenset[str],
    before: list[_Context],
    sentence: Sentence,
    rewrite: Features,
    *,
    has_head: bool,
) -> bool:
    """Whether the raw text negates the words elsewhere too, and the sentence does whenever it says them.

    Without the very word that is negated, the others may stand farther from the negation.
    """

    def negates(other: _Context) -> bool:
        return other.cue.strength == "strong" and words <= (other.object if has_head else other.scope)

    if not words or not any(negates(other) for other in before if other is not context):
        return False
    places = Counter(rewrite.around(sentence.start, sentence.end))
    n_negated = sum(negates(other) for other in _contexts(rewrite) if other.sentence is sentence)
    return n_negated >= min(places[word] for word in words)


@lru_cache(maxsize=4)
def _parts(features: Features) -> list[tuple[Sentence, frozenset[str]]]:
    """The sentences, cut at semicolons, with the stems of each part."""
    found = []
    for sentence in features.sentences:
        stops = [sentence.start + stop.start() for stop in re.finditer(";", sentence.text)]
        for start, end in pairwise([sentence.start, *stops, sentence.end]):
            found.append((sentence, frozenset(features.around(start, end))))
    return found


def _is_reworded(context: _Context, free: list[_Context], rewrite: Features) -> bool:
    """Whether a weak cue that answers nothing else says it in other words: ``transfers poorly`` for not generalizing."""
    weak = [other for other in free if other.cue.strength in {"weak", "verb"} and other.sentence]
    if context.cue.strength == "verb" and any(len(o.near & context.near) >= _MIN_REWORDED for o in weak):
        return True
    if any(s.stems.issuperset(context.heads) for s in rewrite.sentences):
        return False
    return any(
        len(other.near & context.near) > 1
        and other.sentence is not None
        and other.sentence.stems.isdisjoint(context.heads)
        for other in weak
    )


def _is_coordinated(context: _Context, rewrite: Features) -> bool:
    """Whether a negation of the rewrite reaches the negated words over an ``or``: ``no A, no B`` is ``no A or B``."""
    return any(len(context.object & reached) > 1 for reached in _coordinated_reaches(rewrite))


@lru_cache(maxsize=4)
def _coordinated_reaches(features: Features) -> frozenset[frozenset[str]]:
    """The stems that stand behind each strong negation, where an ``or`` stands behind it, too."""
    found = set()
    for cue in features.cues[:_MAX_CUES]:
        if cue.strength == "strong" and (sentence := features.sentence_at(cue.start)):
            end = min(cue.end + 2 * _REACH, sentence.end)
            if stop := _STOP.search(features.bare, cue.end, end):
                end = stop.start()
            if _COORDINATION.search(features.bare, cue.end, end):
                found.add(frozenset(features.around(cue.end, end)))
    return frozenset(found)


def _share(stems: frozenset[str], of: frozenset[str]) -> float:
    return len(stems & of) / len(stems) if stems else 0.0


def _is_explained(context: _Context, free: list[_Context]) -> bool:
    """Whether a weaker cue of the raw text, amid the same words, may have become this negation."""
    return any(
        len(other.tight & context.object) > (other.cue.strength == "hint")
        for other in free
        if other.cue.strength not in {"strong", "prefix"}
        and (other.cue.strength != "hint" or other.tight.intersection(context.heads[:1]))
    )
