"""Which documents lose most in restructuring, what they have in common, and whether the router would have spared them.

The counts come from the fidelity audit, and the router's reasons from the caller: nothing here reads a text.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from prime_pipeline.evaluation.fidelity_audit import FidelityAudit, Measure, Scope, SectionAudit, Share
from prime_pipeline.evaluation.statistics import Interval, share_interval

LOW_RETENTION: Final = 0.5
"""The paper's line: 25.7 % of its documents keep less of their evidence (section 4, Table 6)."""

Flags = Mapping[str, frozenset[str]]
"""The router's reasons to leave a section raw, by section id; sections without a reason may be left out."""


@dataclass(frozen=True, slots=True)
class LosingDocuments:
    """The documents that keep least of their evidence.

    Attributes:
        doc_ids: In ascending order.
        others: The other documents with evidence, in ascending order.
        rule: ``below_half``, or ``worst_decile`` where no document keeps less than half.
        below_half: Documents under 50 % among those with evidence.
    """

    doc_ids: tuple[str, ...]
    others: tuple[str, ...]
    rule: Literal["below_half", "worst_decile"]
    below_half: Share


@dataclass(frozen=True, slots=True)
class Contrast:
    """The mean of a property over the losing documents and over the others; None of no document."""

    losing: float | None
    others: float | None


@dataclass(frozen=True, slots=True)
class RouterScore:
    """How well the router's reasons tell which sections restructuring harms.

    A section is harmed if it lost a gold span (normalised) or is contradicted. Only rewritten sections can be, so the
    score is about a run without the router: of one that obeyed it, no flagged section is rewritten, and ``recall`` is 0.

    Attributes:
        recall: Share of the harmed sections that are flagged; None if none is harmed.
        precision: Share of the flagged sections among the rewritten ones that are harmed; None if none is flagged.
        flagged: Share of all sections that are flagged: what routing costs. None of no section.
    """

    recall: Interval | None
    precision: Interval | None
    flagged: Interval | None


def losing_documents(
    audit: FidelityAudit, measure: Measure = "evidence_normalised", scope: Scope = "served"
) -> LosingDocuments:
    """Documents that keep less than half of their gold spans, or, where there are none, the tenth that keeps least.

    A tenth is rounded up, ties are broken by id, and a document that keeps everything is never among them. Documents
    without evidence are not looked at.
    """
    kept = {doc_id: share.hits / share.n for doc_id, share in audit.document_shares(measure, scope).items()}
    below = [doc_id for doc_id, value in kept.items() if value < LOW_RETENTION]
    worst = sorted(kept, key=lambda doc_id: (kept[doc_id], doc_id))[: math.ceil(len(kept) / 10)]
    losing = below or [doc_id for doc_id in worst if kept[doc_id] < 1]
    return LosingDocuments(
        doc_ids=tuple(sorted(losing)),
        others=tuple(sorted(kept.keys() - set(losing))),
        rule="below_half" if below else "worst_decile",
        below_half=Share(len(below), len(kept)),
    )


def profile(audit: FidelityAudit, losing: LosingDocuments, flags: Flags) -> dict[str, Contrast]:
    """What losing documents have more or less of than the other documents with evidence.

    Returns:
        By property: ``n_words`` and ``n_sections``; ``words_kept``, words after restructuring over words before;
        ``numbers_per_100_words``, distinct in their section; ``flagged``, the share of sections with any reason; and
        ``flagged:<reason>`` for each reason that occurs, in alphabetical order. Each is a mean over documents.
    """
    reasons = sorted(set().union(*flags.values()))
    by_document: defaultdict[str, list[SectionAudit]] = defaultdict(list)
    for section in audit.sections:
        by_document[section.doc_id].append(section)
    rows, other_rows = (
        [dict(_properties(by_document[doc_id], flags, reasons)) for doc_id in doc_ids]
        for doc_ids in (losing.doc_ids, losing.others)
    )
    names = dict.fromkeys(name for row in rows + other_rows for name in row)
    return {name: Contrast(_mean(rows, name), _mean(other_rows, name)) for name in names}


def router_score(audit: FidelityAudit, flags: Flags) -> RouterScore:
    """See :class:`RouterScore`; intervals are Wilson's, with sections as trials."""
    rewritten = [section for section in audit.sections if section.is_rewritten]
    harmed = [section for section in rewritten if section.has_lost]
    flagged = [section for section in rewritten if flags.get(section.section_id)]
    n_found = sum(section.has_lost for section in flagged)
    n_flagged = sum(bool(flags.get(section.section_id)) for section in audit.sections)
    return RouterScore(
        recall=share_interval(n_found, len(harmed)),
        precision=share_interval(n_found, len(flagged)),
        flagged=share_interval(n_flagged, len(audit.sections)),
    )


def _properties(
    sections: Sequence[SectionAudit], flags: Flags, reasons: Sequence[str]
) -> Iterator[tuple[str, float]]:
    n_words = sum(section.n_words for section in sections)
    n_numbers = sum(section.shares.get("numbers_kept", Share()).n for section in sections)
    yield "n_words", n_words
    yield "n_sections", len(sections)
    yield "words_kept", sum(section.n_words_restructured for section in sections) / max(1, n_words)
    yield "numbers_per_100_words", 100 * n_numbers / max(1, n_words)
    found = [flags.get(section.section_id, frozenset()) for section in sections]
    yield "flagged", fmean(map(bool, found))
    for reason in reasons:
        yield f"flagged:{reason}", fmean(reason in of_section for of_section in found)


def _mean(rows: Sequence[Mapping[str, float]], name: str) -> float | None:
    return fmean(row[name] for row in rows) if rows else None
