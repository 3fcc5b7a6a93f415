"""The summary of a report: sentences written by rule, none of which claims more than the intervals allow.

A difference is stated only where its interval excludes zero and, if p-values were adjusted, the adjusted one is below
:data:`ALPHA`; everything else is said not to be told apart, with the effect that would have been seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from prime_pipeline.reports import wording
from prime_pipeline.reports.content import EXTRACTIVE, Comparison, Contrast, Measured, ReportContent
from prime_pipeline.reports.tables import report_tables, system_label

ALPHA: Final = 0.05
"""An adjusted p-value from here on claims nothing."""
MAX_COMPARISONS: Final = 10
"""Comparisons that get a sentence of their own; the others are counted."""
_HIGHER: Final = "Higher for the restructured text than for the raw"
_LOWER: Final = "Lower for the restructured text than for the raw"
_SAME: Final = "No change from raw to restructured can be told"


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
        "Text density": _contrasts(content.density),
        "Evidence": _contrasts(content.evidence),
        "Fidelity": _audit(content),
        "Answers": _answers(content),
        "Corpus": _profile(content),
        "Missing": _missing(content),
    }
    written = {topic: tuple(sentences) for topic, sentences in topics.items()}
    return {topic: sentences for topic, sentences in written.items() if sentences}


def _data(content: ReportContent) -> Iterator[Sentence]:
    counts = sorted(
        {
            cell.result.n
            for cell in content.cells_of(content.dataset)
            if cell.result and cell.result.n and not cell.question_type
        }
    )
    documents = (
        "" if content.n_documents is None else f" over {wording.plural(content.n_documents, 'document')}"
    )
    if not counts:
        yield Sentence(f"No queries were measured on {content.dataset}{documents}.")
    elif len(counts) == 1:
        yield Sentence(f"{wording.plural(counts[0], 'query', 'queries')}{documents} of {content.dataset}.")
    else:
        yield Sentence(
            f"{wording.count(counts[0])} to {wording.plural(counts[-1], 'query', 'queries')}{documents} of {content.dataset}, depending "
            "on the measure."
        )
    if content.known_item:
        yield Sentence(
            "The queries are known-item queries: each was made from the document that it asks for. They tell systems apart on "
            "this corpus and do not say how well questions of users are answered."
        )


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
    """A sentence for each of the first comparisons on the report's own data; the others are counted."""
    own = [c for c in content.comparisons if c.dataset in {"", content.dataset}][:MAX_COMPARISONS]
    yield from map(comparison_sentence, own)
    if any(c.minimum_detectable_effect is not None and not is_told_apart(c) for c in own):
        yield Sentence(
            "Where no difference can be told, one below the minimum detectable effect (MDE) would often go unseen."
        )
    if more := [c for c in content.comparisons if c not in own]:
        n_told = sum(map(is_told_apart, more))
        told = f"in {n_told}" if n_told else "in none"
        yield Sentence(
            f"Of {wording.plural(len(more), 'further comparison')}, {told} the two can be told apart; the table lists them all."
        )


def is_told_apart(comparison: Comparison) -> bool:
    """Whether the interval excludes zero, and the adjusted p-value, if there is one, agrees."""
    p_adjusted = comparison.p_adjusted
    return comparison.difference.excludes_zero and (p_adjusted is None or p_adjusted < ALPHA)


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
    """Difference, interval, adjusted p-value, and for what is not told apart the effect that would have been seen."""
    difference, p_adjusted = comparison.difference, comparison.p_adjusted
    effect = None if is_told_apart(comparison) else comparison.minimum_detectable_effect
    parts = [
        f"difference {wording.signed(difference.value)}",
        wording.between(difference, wording.signed),
        "p not adjusted" if p_adjusted is None else f"adjusted p {_equals(p_adjusted)}",
        "" if effect is None else f"MDE {wording.fine(effect)}",
        "" if difference.n is None else wording.plural(difference.n, "query", "queries"),
    ]
    return "; ".join(filter(None, parts))


def _equals(p_adjusted: float) -> str:
    shown = wording.p_value(p_adjusted)
    return shown if shown.startswith("<") else f"= {shown}"


def _why(comparison: Comparison) -> str:
    if comparison.difference.low is None:
        return " Without an interval nothing is claimed."
    if comparison.difference.excludes_zero:
        return " Its interval excludes zero, but the p-value adjusted for the family is too large."
    return ""


def _contrasts(contrasts: Sequence[Contrast]) -> Iterator[Sentence]:
    """One sentence for what is higher in the restructured text, one for what is lower, one for what cannot be told."""
    changes = [(c.measure, c.relative) for c in contrasts if c.relative is not None and not c.question_type]
    ways: dict[str, list[str]] = {_HIGHER: [], _LOWER: [], _SAME: []}
    for name, change in changes:
        way = _SAME if not change.excludes_zero else _HIGHER if change.value > 0 else _LOWER
        ways[way].append(_listed(name, change, wording.signed_percent))
    for way, found in ways.items():
        if found:
            yield Sentence(f"{way}: {'; '.join(found)}.")


# --- the rest ---------------------------------------------------------------------------------------------------


def _listed(name: str, measured: Measured, form: wording.Format) -> str:
    return f"{wording.measure_label(name)} {form(measured.value)} {wording.interval(measured, form)}"


def _audit(content: ReportContent) -> Iterator[Sentence]:
    panels = {"A": "Evidence", "B": "Facts", "C": "Contradiction", "D": "Router"}
    for panel, what in panels.items():
        if rows := [row for row in content.audit if row.panel == panel]:
            shares = "; ".join(_listed(row.dimension, row.share, wording.percent) for row in rows)
            yield Sentence(f"{what}: {shares}.")


def _answers(content: ReportContent) -> Iterator[Sentence]:
    rows = [row for row in content.answers if not row.question_type]
    if rows:
        yield Sentence(
            f"Answer-F1: {'; '.join(_listed(row.condition, row.f1, wording.fine) for row in rows)}."
        )
    if len(rows) > 1:
        yield Sentence(
            "Whether two conditions differ cannot be read off these intervals; a paired comparison says so."
        )


def _profile(content: ReportContent) -> Iterator[Sentence]:
    if profile := content.profile:
        yield Sentence(
            f"Properties measured before retrieval point to this regime: {profile.regime}. Recommended mode: "
            f"{profile.recommended_mode}."
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
