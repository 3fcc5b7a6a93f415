"""Raw text against its rewrite, as data: what was cut, what was written, what was appended. How it looks is not decided here."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final, Literal

from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document, DocumentOutcome, OutcomeKind, Section, SectionOutcome
from prime_pipeline.text.stop_words import STOP_WORDS

PieceKind = Literal["kept", "cut", "written", "patched"]
Match = tuple[int, int, int]
"""A run of equal words: where it starts in the one text, where in the other, how long it is."""

VERDICTS: Final[dict[OutcomeKind, str]] = {
    "accepted": "the first rewrite passed",
    "repaired": "the second rewrite passed, told what the first one lacked",
    "patched": "rewritten, with raw sentences appended for what was missing",
    "unchanged": "rewriting left the text as it was",
    "routed": "raw by choice: rewriting would gain nothing, or is known to harm such text",
    "raw": "no rewrite passed: the raw text stands",
    "deferred": "raw for now: the next run tries again",
}
"""What each outcome means, as the end of a sentence."""

# Han, Hiragana and Katakana are written without blanks: each character counts as a word.
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PART: Final = rf"[^\W{_UNSPACED}]+"
_TOKEN: Final = re.compile(rf"\A\s+|(?:{_PART}(?:[-'’.,:/]{_PART})*|\S)\s*")
# Pairs of equal words up to which difflib itself is quick enough.
_MAX_PAIRS: Final = 400_000
_ANCHOR_LENGTHS: Final = (1, 2, 4, 8)
_MAX_LEVELS: Final = 8
_ISLAND_WORDS: Final = 2


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of one side of a diff; the pieces of a side, joined, are its text, character for character.

    Attributes:
        kind: ``kept`` stands on both sides, ``cut`` only in the raw text, ``written`` only in the rewrite; ``patched``
            is a raw sentence appended to the rewrite.
        text: Words with the white space behind them.
    """

    kind: PieceKind
    text: str

    @property
    def words(self) -> str:
        """The text up to the white space at its end, which is not worth a mark."""
        return self.text.rstrip()

    @property
    def blanks(self) -> str:
        """The white space at the end."""
        return self.text[len(self.words) :]


@dataclass(frozen=True, slots=True)
class SectionDiff:
    """One section as it was, with what became of it.

    Attributes:
        section: With its raw text.
        outcome: What restructuring made of it.
    """

    section: Section
    outcome: SectionOutcome

    @property
    def label(self) -> str:
        """The headings down to the section's own; its kind where it has none."""
        return " › ".join(self.section.heading_path) or self.section.heading or self.section.kind.capitalize()

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Code, in words, and detail of every finding."""
        return [(finding.code.replace("_", " "), finding.detail) for finding in self.outcome.findings]

    @property
    def served(self) -> tuple[list[Piece], list[Piece]] | None:
        """Raw body against the rewrite that is served; None where the raw body stands."""
        rewritten = self.outcome.rewritten
        return None if rewritten is None else diff(self.section.body, rewritten, self.outcome.appended)

    @property
    def refused(self) -> tuple[list[Piece], list[Piece]] | None:
        """Raw body against the rewrite that was refused; None if there was none."""
        return None if self.outcome.refused is None else diff(self.section.body, self.outcome.refused)

    @property
    def n_words(self) -> tuple[int, int]:
        """Words of the body, cut at white space, before and after."""
        rewritten = self.outcome.rewritten
        before = len(self.section.body.split())
        return before, before if rewritten is None else len(rewritten.split())


def section_diffs(document: Document, outcome: DocumentOutcome) -> list[SectionDiff]:
    """Every section worth a search row with its outcome, in order.

    Raises:
        DocumentError: The outcome is of another document, or of another version of this one.
    """
    outcomes = {section.ordinal: section for section in outcome.sections}
    shown = {section.ordinal for section in document.content_sections}
    if outcome.doc_id != document.doc_id or not shown <= outcomes.keys() <= {
        s.ordinal for s in document.sections
    }:
        raise DocumentError(
            document.source_path,
            "what restructuring made of it belongs to other sections than it has now: restructure it again",
        )
    return [SectionDiff(section, outcomes[section.ordinal]) for section in document.content_sections]


def words_summary(diffs: Sequence[SectionDiff]) -> str:
    """Words of all bodies before and after, and the share that was saved, as a phrase."""
    before, after = (sum(diff.n_words[side] for diff in diffs) for side in (0, 1))
    if before == after:
        return f"{before:,} words"
    phrase = f"{before:,} → {after:,} words"
    if not before:
        return phrase
    return f"{phrase}, {abs(before - after) / before:.0%} {'saved' if after < before else 'longer'}"


def outcome_counts(diffs: Sequence[SectionDiff]) -> dict[OutcomeKind, int]:
    """Sections by outcome, in the order of :data:`VERDICTS`; outcomes without a section are left out."""
    counts = Counter(diff.outcome.kind for diff in diffs)
    return {kind: counts[kind] for kind in VERDICTS if counts[kind]}


def diff(raw: str, rewritten: str, appended: tuple[str, ...] = ()) -> tuple[list[Piece], list[Piece]]:
    """The pieces of the raw text (kept or cut) and of the rewrite (kept, written or patched).

    Words are compared, letter by letter but without the white space around them. A stop word that stands alone between
    changes counts as changed. Texts of many thousand words are first aligned at words that occur once in both, so
    that the time stays bounded; what cannot be aligned counts as changed.

    Args:
        raw: The raw body.
        rewritten: The rewrite.
        appended: Raw sentences at the end of the rewrite, in any order: ``patched`` there and ``kept`` in the raw text.
    """
    left, right = _TOKEN.findall(raw), _TOKEN.findall(rewritten)
    a, b = [token.strip() for token in left], [token.strip() for token in right]
    sentences = [[token.strip() for token in _TOKEN.findall(sentence.strip())] for sentence in appended]
    n_written = _start_of_appended(b, sentences)
    kept_left, kept_right = [False] * len(a), [False] * n_written
    for i, j, n in _without_islands(_matches(a, b[:n_written]), a, n_written):
        kept_left[i : i + n] = kept_right[j : j + n] = [True] * n
    for sentence in sentences:
        for i in _occurrences(sentence, a):
            kept_left[i : i + len(sentence)] = [True] * len(sentence)
    patched = [Piece("patched", "".join(right[n_written:]))] if n_written < len(right) else []
    return _pieces(left, kept_left, "cut"), _pieces(right[:n_written], kept_right, "written") + patched


def _pieces(tokens: list[str], kept: list[bool], otherwise: PieceKind) -> list[Piece]:
    runs = groupby(zip(tokens, kept, strict=True), key=lambda pair: pair[1])
    return [Piece("kept" if same else otherwise, "".join(token for token, _ in run)) for same, run in runs]


def _start_of_appended(words: list[str], sentences: list[list[str]]) -> int:
    """Where the sentences begin that the text ends with; its length if it ends with none of them."""
    end, remaining = len(words), [sentence for sentence in sentences if sentence]
    while last := next((s for s in remaining if words[max(0, end - len(s)) : end] == s), None):
        remaining.remove(last)
        end -= len(last)
    return end


def _occurrences(sentence: list[str], words: list[str]) -> Iterator[int]:
    n = len(sentence)
    return (i for i in range(len(words) - n + 1) if n and words[i : i + n] == sentence)


def _matches(a: list[str], b: list[str], i: int = 0, j: int = 0, level: int = 0) -> Iterator[Match]:
    """Runs of equal words, in order, counted from i and j; some are empty."""
    head = _n_common(a, b)
    tail = _n_common(a[head:][::-1], b[head:][::-1])
    yield i, j, head
    yield from _inner_matches(a[head : len(a) - tail], b[head : len(b) - tail], i + head, j + head, level)
    yield i + len(a) - tail, j + len(b) - tail, tail


def _inner_matches(a: list[str], b: list[str], i: int, j: int, level: int) -> Iterator[Match]:
    counts_a, counts_b = Counter(a), Counter(b)
    if sum(n * counts_b[word] for word, n in counts_a.items()) <= _MAX_PAIRS:
        for match in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
            yield i + match.a, j + match.b, match.size
        return
    anchors = next(filter(None, (_anchors(a, b, n) for n in _ANCHOR_LENGTHS)), [])
    if not anchors or level == _MAX_LEVELS:
        return
    for (i_0, j_0), (i_1, j_1) in pairwise([(0, 0), *anchors, (len(a), len(b))]):
        yield from _matches(a[i_0:i_1], b[j_0:j_1], i + i_0, j + j_0, level + 1)


def _n_common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words both begin with."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _anchors(a: list[str], b: list[str], n: int) -> list[tuple[int, int]]:
    """Where runs of n words begin that occur once in each, as many as stand in the same order (patience diff)."""
    in_a, in_b = _unique_runs(a, n), _unique_runs(b, n)
    pairs = [(i, in_b[run]) for run, i in in_a.items() if run in in_b]
    return _longest_increasing(pairs)


def _unique_runs(words: list[str], n: int) -> dict[tuple[str, ...], int]:
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    counts = Counter(runs)
    return {run: i for i, run in enumerate(runs) if counts[run] == 1}


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest chain of pairs in which the second numbers rise; the first ones rise already."""
    smallest: list[int] = []  # the smallest last number of a chain of each length
    ends: list[int] = []  # and the pair it belongs to
    before: list[int] = []  # the pair before each in its chain, -1 for none
    for k, (_, j) in enumerate(pairs):
        length = bisect_left(smallest, j)
        smallest[length : length + 1], ends[length : length + 1] = [j], [k]
        before.append(ends[length - 1] if length else -1)
    chain = []
    k = ends[-1] if ends else -1
    while k >= 0:
        chain.append(pairs[k])
        k = before[k]
    return chain[::-1]


def _without_islands(matches: Iterable[Match], a: list[str], n_b: int) -> Iterator[Match]:
    """The matches but stop words and marks that stand alone between replaced words: they only make it hard to read."""
    joined = _joined(matches)
    for (i_0, j_0, n_0), (i, j, n), (i_1, j_1, _) in zip(
        [(0, 0, 0), *joined], joined, [*joined[1:], (len(a), n_b, 0)], strict=False
    ):
        is_replaced_around = i > i_0 + n_0 and j > j_0 + n_0 and i_1 > i + n and j_1 > j + n
        if n > _ISLAND_WORDS or not is_replaced_around or any(map(_has_content, a[i : i + n])):
            yield i, j, n


def _joined(matches: Iterable[Match]) -> list[Match]:
    """Matches that touch on both sides as one; empty ones vanish."""
    joined: list[Match] = []
    for i, j, n in filter(itemgetter(2), matches):
        i_0, j_0, n_0 = joined[-1] if joined else (0, 0, 0)
        if joined and (i, j) == (i_0 + n_0, j_0 + n_0):
            joined[-1] = (i_0, j_0, n_0 + n)
        else:
            joined.append((i, j, n))
    return joined


def _has_content(word: str) -> bool:
    return any(map(str.isalnum, word)) and word.lower() not in STOP_WORDS
