"""The summary of a report: sentences written by rule, none of which claims more than the intervals allow.

What may be claimed is decided in ``claims``. Everything else is said not to be told, with the effect that would have been
seen, or with the reason why none would have been. Behind each claim stands what its intervals rest on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from prime_pipeline.evaluation.statistics import ALPHA, are_few
from prime_pipeline.reports import wording
from prime_pipeline.reports.claims import (
    could_be_told_apart,
    could_change_be_told,
    is_change_told,
    is_told_apart,
    least_p_adjusted,
)
from prime_pipeline.reports.content import EXTRACTIVE, AuditRow, Comparison, Contrast, Measured, ReportContent
from prime_pipeline.reports.tables import report_tables, system_label

MAX_COMPARISONS: Final = 10
"""Comparisons that get a sentence of their own; the others are counted."""
_HIGHER: Final = "Higher for the restructured text than for the raw"
_LOWER: Final = "Lower for the restructured text than for the raw"
_SAME: Final = "No change from raw to restructured can be told"
_CARRIED_OVER: Final = "by the evidence of the raw text, carried over"
_PAPER: Final = "by the paper's protocol"

Counted = Callable[[int, int], str]
"""Words a number of values, and of the clusters that they nest in."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A claim, and in brackets behind it what it rests on."""

    claim: str
    evidence: str = ""

    def __str__(self) -> str:
        return f"{self.claim} ({self.evidence})" if self.evidence else self.claim


def summary(content: ReportContent) -> Mapping[str, tuple[Sentence, ...]]:
    """Sentences by topic, in the order of reading; a topic without sentences is left out."""
    topics = {
        "Data": _data(content),
        "Text": _restructured(content),
        "Retrieval": _comparisons(content),
        "Text density": _contrasts(content.density, _documents),
        "Evidence": _contrasts(content.evidence, wording.queries_about),
        "Fidelity": _audit(content),
        "Answers": _answers(content),
        "Corpus": _profile(content),
        "Missing": _missing(content),
    }
    written = {topic: tuple(sentences) for topic, sentences in topics.items()}
    return {topic: sentences for topic, sentences in written.items() if sentences}


def _data(content: ReportContent) -> Iterator[Sentence]:
    cells = content.cells_of(content.dataset) or content.cells  # those of the tasks, in a report on several
    counts = sorted({c.result.n for c in cells if c.result and c.result.n and not c.question_type})
    documents = [] if content.n_documents is None else [wording.plural(content.n_documents, "document")]
    if not counts:
        yield Sentence("; ".join([*documents, f"no queries were measured on “{content.dataset}”"]) + ".")
    else:
        queries = f"{_from_to(counts, 'query', 'queries')} from “{content.dataset}”"
        on_what = "measure" if content.cells_of(content.dataset) else "task and the measure"
        depending = f", depending on the {on_what}" if len(counts) > 1 else ""
        yield Sentence("; ".join([*documents, queries]) + f"{depending}.")
    if content.known_item:
        yield Sentence(
            "The queries are known-item queries: each was made from the document that it asks for. They tell systems apart on "
            "this corpus and do not say how well questions of users are answered."
        )


def _from_to(counts: Sequence[int], one: str, many: str = "") -> str:
    """The least and the largest of counts in ascending order, which may be one, with their noun."""
    least = "" if counts[0] == counts[-1] else f"{wording.count(counts[0])} to "
    return f"{least}{wording.plural(counts[-1], one, many)}"


def _restructured(content: ReportContent) -> Iterator[Sentence]:
    for restructurer in content.restructurers:
        if restructurer == EXTRACTIVE:
            yield Sentence(
                "The restructured text is extractive: rules cut it, and no language model took part. What is measured on it "
                "says nothing about rewriting by a language model."
            )
        else:
            yield Sentence(f"Semantic restructuring (SR) was done by {restructurer}.")
    if not content.restructurers:
        yield Sentence("No restructured text was measured.")


# --- differences ------------------------------------------------------------------------------------------------


def _comparisons(content: ReportContent) -> Iterator[Sentence]:
    """A sentence for each of ten comparisons on the report's own data, those first that tell something; others are counted."""
    own = [c for c in content.comparisons if c.dataset in {"", content.dataset}]
    own = sorted(own, key=lambda c: not is_told_apart(c))[:MAX_COMPARISONS]
    yield from dict.fromkeys(_hopeless(c) for c in own if not could_be_told_apart(c))
    yield from map(comparison_sentence, own)
    if any(_detectable(c) is not None for c in own):
        yield Sentence(
            "Where no difference can be told, one below the minimum detectable effect (MDE) would often go unseen; the "
            "adjustment for the family asks for a larger one still."
        )
    if more := [c for c in content.comparisons if c not in own]:
        n_told = sum(map(is_told_apart, more))
        told = f"in {n_told}" if n_told else "in none"
        yield Sentence(
            f"Of {wording.plural(len(more), 'further comparison' if own else 'comparison')}, {told} the two can be told apart; the "
            "table lists them all."
        )


def _hopeless(comparison: Comparison) -> Sentence:
    """Why no comparison of a family could have told anything."""
    least = wording.p_value(least_p_adjusted(comparison))
    return Sentence(
        f"With {_clusters(comparison)} and {_family(comparison)} no difference could have been told apart, however large.",
        f"the least that an adjusted p could have been is {least}",
    )


def _family(comparison: Comparison) -> str:
    n = comparison.n_family or 1
    return f"a family of {wording.plural(n, 'comparison')}" if n > 1 else "one comparison"


def _clusters(comparison: Comparison) -> str:
    """What was resampled."""
    n, n_clusters = comparison.difference.n, comparison.n_clusters or 0
    return (
        wording.plural(n_clusters, "query", "queries")
        if n == n_clusters
        else wording.plural(n_clusters, "document")
    )


def _detectable(comparison: Comparison) -> float | None:
    """The effect that would have been seen; None where there is nothing to say of it."""
    is_of_use = could_be_told_apart(comparison) and not is_told_apart(comparison)
    return comparison.minimum_detectable_effect if is_of_use else None


def comparison_sentence(comparison: Comparison) -> Sentence:
    """What may be said of two systems."""
    left, right = (system_label(comparison, side) for side in (comparison.left, comparison.right))
    level = " of sections" if comparison.level == "section" else ""
    pipeline = wording.pipeline_label(comparison.pipeline, comparison.reranker)
    where = f"in {wording.measure_label(comparison.measure)}{level}{f', {pipeline}' if pipeline else ''}"
    if is_told_apart(comparison):
        way = "higher" if comparison.difference.value > 0 else "lower"
        by = f"{wording.fine(abs(comparison.difference.value))}{_relative(comparison)}"
        return Sentence(f"{_capital(left)} is {way} than {right} by {by} {where}.", _evidence(comparison))
    return Sentence(
        f"No difference between {left} and {right} can be told {where}.{_why(comparison)}",
        _evidence(comparison),
    )


def _relative(comparison: Comparison) -> str:
    if comparison.relative is None:
        return ""
    return f", or {wording.signed_percent(comparison.relative.value)},"


def _evidence(comparison: Comparison) -> str:
    """Difference, interval, adjusted p-value, what they rest on, and the effect that would have been seen."""
    difference, p_adjusted = comparison.difference, comparison.p_adjusted
    effect = _detectable(comparison)
    n, n_clusters = difference.n, comparison.n_clusters
    if not could_be_told_apart(comparison):
        so_few = f", too few to tell any difference in {_family(comparison)}"
    else:
        so_few = ", so few that the interval is too narrow" if are_few(n_clusters) else ""
    parts = [
        f"difference {wording.signed(difference.value)}",
        wording.between(difference, wording.signed),
        "p not adjusted" if p_adjusted is None else f"adjusted p {_equals(p_adjusted)}",
        "" if effect is None else f"MDE {wording.fine(effect)}",
        "" if n is None else f"{wording.queries_about(n, n_clusters)}{so_few}",
    ]
    return "; ".join(filter(None, parts))


def _equals(p_adjusted: float) -> str:
    shown = wording.p_value(p_adjusted)
    return shown if shown.startswith("<") else f"= {shown}"


def _why(comparison: Comparison) -> str:
    if comparison.difference.low is None:
        return " Without an interval nothing is claimed."
    if comparison.difference.excludes_zero:
        if comparison.p_value is not None and comparison.p_value >= ALPHA:
            return (
                f" Its interval excludes zero, but the test of it does not (p {_equals(comparison.p_value)})."
            )
        return " Its interval excludes zero, but the p-value adjusted for the family is too large."
    return ""


def _contrasts(contrasts: Sequence[Contrast], counted: Counted) -> Iterator[Sentence]:
    """By protocol a sentence for what is higher in the restructured text, for what is lower, for what cannot be told."""
    for protocol, members in _protocols(contrasts).items():
        ways: dict[str, list[str]] = {_HIGHER: [], _LOWER: [], _SAME: []}
        for contrast, change in members:
            way = _SAME if not is_change_told(contrast) else _HIGHER if change.value > 0 else _LOWER
            ways[way].append(_listed(contrast.measure, change, wording.signed_percent))
        rests_on = _rests_on([contrast for contrast, _ in members], counted)
        for way, found in ways.items():
            if found:
                yield Sentence(f"{', '.join(filter(None, (way, protocol)))}: {'; '.join(found)}.", rests_on)


def _protocols(contrasts: Sequence[Contrast]) -> dict[str, list[tuple[Contrast, Measured]]]:
    """Contrasts over all queries, by the name of the protocol; the paper's may take a part of the queries only."""
    has_two = any(not contrast.follows_paper for contrast in contrasts)
    found: dict[str, list[tuple[Contrast, Measured]]] = {}
    for contrast in contrasts:
        of_part = contrast.question_type
        if contrast.relative is None or (of_part and not (has_two and contrast.follows_paper)):
            continue
        paper = f"{_PAPER} ({of_part})" if of_part else _PAPER
        protocol = "" if not has_two else paper if contrast.follows_paper else _CARRIED_OVER
        found.setdefault(protocol, []).append((contrast, contrast.relative))
    return found


def _rests_on(contrasts: Sequence[Contrast], counted: Counted) -> str:
    """What the intervals of changes rest on, and how far they go."""
    counts = sorted({(c.raw.n, c.n_clusters or c.raw.n) for c in contrasts if c.raw.n is not None})
    ends = dict.fromkeys((*counts[:1], *counts[-1:]))
    too_few = [
        "the intervals are too narrow" if any(are_few(c.n_clusters) for c in contrasts) else "",
        "" if all(map(could_change_be_told, contrasts)) else "no change could be told",
    ]
    so_few = f"so few that {' and '.join(filter(None, too_few))}" if any(too_few) else ""
    parts = [
        ", ".join(filter(None, (" to ".join(counted(*end) for end in ends), so_few))),
        "95% bootstrap intervals, each for one change alone",
        f"not adjusted for the {len(contrasts)} measures" if len(contrasts) > 1 else "",
    ]
    return "; ".join(filter(None, parts))


# --- the rest ---------------------------------------------------------------------------------------------------


def _listed(name: str, measured: Measured, form: wording.Format) -> str:
    return f"{wording.measure_label(name)} {form(measured.value)} {wording.interval(measured, form)}"


def _documents(n: int, _: int) -> str:
    return wording.plural(n, "document")


def _audit(content: ReportContent) -> Iterator[Sentence]:
    panels = {"A": "Evidence", "B": "Facts", "C": "Contradiction", "D": "Router"}
    for panel, what in panels.items():
        if rows := [row for row in content.audit if row.panel == panel]:
            yield Sentence(f"{what}: {'; '.join(map(_share, rows))}.", _audited(rows))


def _share(row: AuditRow) -> str:
    n = "" if row.share.n is None else f" of {wording.count(row.share.n)}"
    return f"{row.dimension} {wording.percent(row.share.value)}{n} {wording.interval(row.share, wording.percent)}"


def _audited(rows: Sequence[AuditRow]) -> str:
    """What the intervals of shares rest on: documents, where items nest in them."""
    nested = [row for row in rows if row.n_clusters not in {None, row.share.n}]
    counts = sorted({row.n_clusters for row in nested if row.n_clusters is not None})
    resampled = [row.n_clusters for row in nested if 0 < row.share.value < 1]  # else the interval is Wilson's
    parts = [
        "95% intervals, each for one share alone",
        f"items in {_from_to(counts, 'document')}" if counts else "",
        "so few that the intervals of what was resampled are too narrow"
        if any(map(are_few, resampled))
        else "",
    ]
    return "; ".join(filter(None, parts))


def _answers(content: ReportContent) -> Iterator[Sentence]:
    rows = [row for row in content.answers if not row.question_type]
    if rows:
        counts = sorted({row.f1.n for row in rows if row.f1.n is not None})
        asked = f"{_from_to(counts, 'question')}; " if counts else ""
        yield Sentence(
            f"Answer-F1: {'; '.join(_listed(row.condition, row.f1, wording.fine) for row in rows)}.",
            f"{asked}95% bootstrap intervals, each for one mean alone",
        )
    if len(rows) > 1:
        yield Sentence(
            "Whether two conditions differ cannot be read off these intervals; a paired comparison says so."
        )


def _profile(content: ReportContent) -> Iterator[Sentence]:
    if profile := content.profile:
        told = (
            "are inconclusive"
            if profile.regime == "inconclusive"
            else f"point to this regime: {profile.regime}"
        )
        yield Sentence(
            f"Properties measured before retrieval {told}. Recommended: {wording.recommendation(profile.recommended_mode)}."
        )


def _missing(content: ReportContent) -> Iterator[Sentence]:
    unavailable = Counter(
        cell.reason or "no reason was given" for cell in content.cells if cell.result is None
    )
    if unavailable:
        reasons = "; ".join(f"{reason} ({n})" for reason, n in sorted(unavailable.items()))
        yield Sentence(
            f"{wording.count(unavailable.total())} of {wording.plural(len(content.cells), 'cell')} could not be measured: {reasons}."
        )
    if empty := [table.title for table in report_tables(content) if not table.rows]:
        yield Sentence(f"Nothing was measured for: {'; '.join(empty)}.")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
