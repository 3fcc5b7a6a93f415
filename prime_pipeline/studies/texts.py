"""What restructuring did to the text: its density, and what it kept, added and contradicted (PRIME paper, Tables 5 A and 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from prime_pipeline.evaluation.density import (
    DENSITY_CONVENTIONS,
    Density,
    ReferenceIdf,
    by_measure,
    density,
)
from prime_pipeline.evaluation.fidelity_audit import (
    FIDELITY_CONVENTIONS,
    FidelityAudit,
    Measure,
    Share,
    with_intervals,
)
from prime_pipeline.evaluation.fidelity_profile import (
    Flags,
    losing_documents,
    profile,
    router_score,
)
from prime_pipeline.evaluation.statistics import Interval, share_interval
from prime_pipeline.records import Document
from prime_pipeline.reports import wording
from prime_pipeline.reports.content import AuditRow, Panel
from prime_pipeline.studies.findings import Findings, Row, contrast, few_clusters_note, measured, part
from prime_pipeline.text.words import term_words

_DENSITY_LABELS: Final = {
    "stop_word_ratio": "stop-word ratio",
    "technical_term_density": "technical term density",
    "mean_idf": "mean IDF",
    "semantic_density": "semantic density",
}
_AUDITED: Final[Mapping[Measure, tuple[Panel, str]]] = {
    "evidence_verbatim": ("A", "evidence retained, verbatim"),
    "evidence_normalised": ("A", "evidence retained, but for citation marks and blanks"),
    "evidence_only_restructured": ("A", "spans only in the restructured text"),
    "numbers_kept": ("B", "numbers"),
    "acronyms_kept": ("B", "acronyms"),
    "entities_kept": ("B", "named entities"),
    "numbers_invented": ("B", "numbers that the document lacks"),
    "acronyms_invented": ("B", "acronyms that the document lacks"),
    "entities_invented": ("B", "named entities that the document lacks"),
    "contradicted_sentences": ("C", "contradiction"),
    "contradicted_sections": ("C", "sections with a contradiction"),
}
_PROPERTIES: Final = {
    "n_words": "words",
    "n_sections": "sections",
    "words_kept": "words kept, as a share",
    "numbers_per_100_words": "numbers per 100 words",
    "flagged": "share of sections that the router would keep raw",
}
_MAX_NAMED: Final = 10


def density_findings(raw: Sequence[Document], restructured: Sequence[Document]) -> Findings:
    """How dense raw and restructured text are, by the IDF of the raw one.

    Args:
        raw: The raw documents.
        restructured: The same with their rewritten bodies; none in the offline mode, and then there is no contrast.
    """
    if not any(term_words(document.text) for document in raw):
        return Findings()
    idf = ReferenceIdf(document.text for document in raw)
    texts = {"raw": raw, "restructured": [document.restructured for document in restructured]}
    found = {name: _densities(documents, idf) for name, documents in texts.items()}
    contrasts = []
    for measure, label in _DENSITY_LABELS.items():
        before, after = (by_measure(found[name])[measure] for name in ("raw", "restructured"))
        if both := before.keys() & after.keys():
            contrasts.append(contrast(label, {d: before[d] for d in both}, {d: after[d] for d in both}))
    n_documents = max((contrast.n_clusters or 0 for contrast in contrasts), default=0)
    content = part(
        density=tuple(contrasts),
        conventions=DENSITY_CONVENTIONS,
        notes=few_clusters_note("Text density", n_documents),
    )
    return Findings(content, {"text_density": list(_density_rows(found))})


def _densities(documents: Sequence[Document], idf: ReferenceIdf) -> dict[str, Density]:
    found = {document.doc_id: density(document.text, idf) for document in documents}
    return {doc_id: each for doc_id, each in found.items() if each is not None}


def _density_rows(found: Mapping[str, Mapping[str, Density]]) -> Iterator[Row]:
    for text, densities in found.items():
        for measure, values in by_measure(densities).items():
            for doc_id, value in values.items():
                yield {"doc_id": doc_id, "text": text, "measure": measure, "value": value}


def audit_findings(
    audit: FidelityAudit,
    flags: Flags,
    restructurer: str,
    *,
    obeys_router: bool,
    evidence: Mapping[str, Sequence[str]],
) -> Findings:
    """What an audit found, over the text that is served: sections that were left as they were keep everything.

    Args:
        audit: Of the documents.
        flags: The router's reasons by section id, for how well it would have spared what was harmed.
        restructurer: As in a report.
        obeys_router: Whether what the router flags was left raw: then how well it spares cannot be told.
        evidence: The gold spans that were looked for, by document or section.
    """
    rows = (*_shares(audit), *_document_shares(audit), *_router_rows(audit, flags, obeys_router=obeys_router))
    content = part(
        audit=rows,
        restructurer=restructurer,
        conventions=FIDELITY_CONVENTIONS,
        notes=tuple(_audit_notes(audit, flags, evidence, obeys_router=obeys_router)),
    )
    return Findings(content, {"fidelity_audit": list(_section_rows(audit))})


def _shares(audit: FidelityAudit) -> Iterator[AuditRow]:
    for measure, interval in with_intervals(audit, "served").items():
        panel, label = _AUDITED[measure]
        yield AuditRow(panel, label, measured(interval), interval.n_clusters)


def _document_shares(audit: FidelityAudit) -> Iterator[AuditRow]:
    below = losing_documents(audit, "evidence_verbatim").below_half
    contradicted = audit.contradicted_documents()
    yield from _share_row("A", "documents under 50% retention", below)
    if contradicted is not None:
        yield from _share_row("C", "documents with a contradiction", contradicted)


def _share_row(panel: Panel, label: str, share: Share) -> Iterator[AuditRow]:
    if interval := share_interval(share.hits, share.n):
        yield AuditRow(panel, label, measured(interval), interval.n_clusters)


def _router_rows(audit: FidelityAudit, flags: Flags, *, obeys_router: bool) -> Iterator[AuditRow]:
    score = router_score(audit, flags)
    if obeys_router:
        found: dict[str, Interval | None] = {"sections that the router kept raw": score.flagged}
    else:
        found = {
            "sections that the router would keep raw": score.flagged,
            "harmed sections that it would have kept raw": score.recall,
            "rewritten sections that it would have kept raw, harmed ones among them": score.precision,
        }
    for label, interval in found.items():
        if interval is not None:
            yield AuditRow("D", label, measured(interval), interval.n_clusters)


def _audit_notes(
    audit: FidelityAudit, flags: Flags, evidence: Mapping[str, Sequence[str]], *, obeys_router: bool
) -> Iterator[str]:
    yield f"Fidelity: named entities were found by {audit.entity_finder}."
    if audit.nli_model is None:
        yield "Fidelity: contradictions were not looked for, as no NLI model is set (nli_model)."
    else:
        cut = (
            f"; it read only the beginning of {audit.n_cut_sentences:,} sentences"
            if audit.n_cut_sentences
            else ""
        )
        yield f"Fidelity: contradictions were looked for by {audit.nli_model}{cut}."
    if obeys_router:
        yield "Fidelity: the router was obeyed, so that nothing tells what rewriting would have done to what it kept raw."
    if spans := [span for found in evidence.values() for span in found]:
        n_words = fmean(len(span.split()) for span in spans)
        yield f"Fidelity: a gold span is kept whole or not at all; on average it has {n_words:,.0f} words."
    n_documents = len({section.doc_id for section in audit.sections})
    yield from few_clusters_note("Fidelity", n_documents)
    if (n_with_evidence := len(audit.document_shares("evidence_verbatim", "served"))) < n_documents:
        yield from few_clusters_note("Fidelity of evidence", n_with_evidence)
    if audit.n_spans_nowhere:
        spans_nowhere = wording.plural(audit.n_spans_nowhere, "gold span")
        yield f"Fidelity: no share counts {spans_nowhere} that neither text holds."
    losing = losing_documents(audit, "evidence_verbatim")
    if not losing.doc_ids:
        return
    rule = {
        "below_half": "with less than half of their gold spans kept verbatim",
        "worst_decile": "in the tenth that keeps least of its gold spans verbatim, though half or more",
    }[losing.rule]
    named = ", ".join(losing.doc_ids[:_MAX_NAMED]) + (", …" if len(losing.doc_ids) > _MAX_NAMED else "")
    yield f"Fidelity: {wording.plural(len(losing.doc_ids), 'document')} {rule}: {named}."
    told = "; ".join(
        _told(name, found.losing, found.others)
        for name, found in profile(audit, losing, flags).items()
        if found.losing is not None and found.others is not None and (found.losing, found.others) != (0, 0)
    )
    if told:
        yield f"Fidelity: means over these documents, and over the others with evidence: {told}."


def _told(name: str, losing: float, others: float) -> str:
    reason = name.removeprefix("flagged:")
    label = _PROPERTIES.get(name, f"share of sections with the router's reason {reason}")
    return f"{label} {_shown(losing)} and {_shown(others)}"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _section_rows(audit: FidelityAudit) -> Iterator[Row]:
    for section in audit.sections:
        for measure, share in section.shares.items():
            yield {
                "section_id": section.section_id,
                "doc_id": section.doc_id,
                "measure": measure,
                "hits": share.hits,
                "n": share.n,
            }
