"""What restructuring lost, added and contradicted, counted section by section (PRIME paper, Table 6).

Shares are counted here and summed over sections and documents; which documents lose, and whether the router would have
known, is the business of the fidelity profile. Texts come in as documents with raw and rewritten bodies side by side.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from prime_pipeline.evaluation.evidence_retention import (
    is_rewritten,
    normalised_form,
    served_body,
    span_fates,
    verbatim_form,
)
from prime_pipeline.evaluation.statistics import (
    DEFAULT_RESAMPLING,
    Interval,
    Resampling,
    share_interval,
)
from prime_pipeline.records import Document, Section, section_id
from prime_pipeline.text.acronyms import acronyms
from prime_pipeline.text.entities import EntityFinder
from prime_pipeline.text.normal_form import lexical_form
from prime_pipeline.text.protected import PLACEHOLDER_LINE, protect
from prime_pipeline.text.quantities import quantities
from prime_pipeline.text.references import without_references
from prime_pipeline.text.sentences import sentences
from prime_pipeline.text.words import term_words

if TYPE_CHECKING:
    from prime_pipeline.models.nli import ContradictionModel  # which imports numpy

Scope = Literal["rewritten", "served"]
"""``rewritten``: the sections that restructuring changed. ``served``: all sections, of which the others keep all."""

Measure = Literal[
    "evidence_verbatim",
    "evidence_normalised",
    "evidence_only_restructured",
    "numbers_kept",
    "acronyms_kept",
    "entities_kept",
    "numbers_invented",
    "acronyms_invented",
    "entities_invented",
    "contradicted_sentences",
    "contradicted_sections",
]

MEASURES: Final[Mapping[Measure, str]] = {
    "evidence_verbatim": "Gold spans of the raw text that stand in the restructured text character for character",
    "evidence_normalised": "The same, but for white space, case, quotation marks and citation marks",
    "evidence_only_restructured": "Gold spans found that stand in the restructured text only (normalised)",
    "numbers_kept": "Distinct numbers of a raw section that its restructured text holds",
    "acronyms_kept": "Distinct acronyms of a raw section that its restructured text holds",
    "entities_kept": "Distinct named entities of a raw section that its restructured text holds",
    "numbers_invented": "Distinct numbers of a restructured section that the raw document lacks",
    "acronyms_invented": "Distinct acronyms of a restructured section that the raw document lacks",
    "entities_invented": "Distinct named entities of a restructured section that the raw document lacks",
    "contradicted_sentences": "Sentences of restructured sections that the raw section contradicts (NLI)",
    "contradicted_sections": "Sections with at least one such sentence",
}
"""Every measure with what it is a share of, for reports."""

FIDELITY_CONVENTIONS: Final = (
    "Headings stay as they were, so bodies alone are compared.",
    "A span given for a document is kept if any of its sections holds it, one given for a section if that section does.",
    "Numbers are compared by value, in digits or words; ordinals and words such as both or half are not asked for.",
    "Citation marks and references to sections, figures and tables are no numbers, acronyms or entities.",
    "An entity is kept if its words stand side by side in the restructured text, in whatever case.",
    "What a section takes over from elsewhere in its document, the title included, is not invented.",
    "A sentence that stands in the raw section word for word contradicts nothing and is not shown to the model.",
    "A sentence is contradicted from a probability above one half on.",
    "Intervals of audited shares are 95 % BCa bootstrap intervals of 10,000 resamples, and documents are resampled.",
    "Shares of 0 % and 100 %, of which all resamples are alike, have Wilson's interval, each document counting as one trial.",
    "Shares of documents, and those of panel D, have Wilson's interval, with documents or sections as trials.",
)
"""What the measures mean, for reports."""

_CONTRADICTED_ABOVE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Share:
    """Hits among n."""

    hits: int = 0
    n: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.hits + other.hits, self.n + other.n)

    @property
    def value(self) -> float | None:
        """From 0 to 1; None of nothing."""
        return self.hits / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class SectionAudit:
    """One section beside its restructured text.

    Attributes:
        section_id: See :func:`~prime_pipeline.records.section_id`.
        doc_id: The document.
        is_rewritten: Whether restructuring changed it.
        n_words: Of the raw body.
        n_words_restructured: Of the body that is served.
        shares: By measure, those of which there was something to count.
    """

    section_id: str
    doc_id: str
    is_rewritten: bool
    n_words: int
    n_words_restructured: int
    shares: Mapping[Measure, Share]

    def in_scope(self, scope: Scope) -> bool:
        """Whether the section counts in a scope."""
        return scope == "served" or self.is_rewritten

    @property
    def has_lost(self) -> bool:
        """Whether it lost a gold span (normalised), or holds a sentence that contradicts the raw text."""
        evidence = self.shares.get("evidence_normalised", Share())
        return evidence.hits < evidence.n or self.shares.get("contradicted_sections", Share()).hits > 0


@dataclass(frozen=True, slots=True)
class FidelityAudit:
    """An audit, section by section.

    Attributes:
        sections: In the order of the documents; all with content.
        entity_finder: Name of what found the entities.
        nli_model: Name of what looked for contradictions; None if nothing did, and then the measures are absent.
        n_cut_sentences: Sentences of which the NLI model read the beginning only.
        n_spans_nowhere: Distinct gold spans that neither raw nor restructured text holds (normalised); no share
            counts them.
        unmatched: Ids with evidence that no audited document or section has, in order; their spans are not counted.
    """

    sections: tuple[SectionAudit, ...]
    entity_finder: str
    nli_model: str | None
    n_cut_sentences: int
    n_spans_nowhere: int
    unmatched: tuple[str, ...]

    def document_shares(self, measure: Measure, scope: Scope) -> dict[str, Share]:
        """By document id, in ascending order, documents with something to count: what intervals resample."""
        found: defaultdict[str, Share] = defaultdict(Share)
        for section in self.sections:
            if measure in section.shares and section.in_scope(scope):
                found[section.doc_id] += section.shares[measure]
        return dict(sorted(found.items()))

    def pooled(self, measure: Measure, scope: Scope) -> Share:
        """Over all sections of the scope, each item counting once."""
        return sum(self.document_shares(measure, scope).values(), Share())

    def contradicted_documents(self, scope: Scope = "served") -> Share | None:
        """Documents with at least one contradiction among those that were asked about; None without an NLI model."""
        if self.nli_model is None:
            return None
        found = self.document_shares("contradicted_sections", scope)
        return Share(sum(share.hits > 0 for share in found.values()), len(found))


def audit(
    documents: Iterable[Document],
    finder: EntityFinder,
    evidence: Mapping[str, Sequence[str]] | None = None,
    nli: ContradictionModel | None = None,
) -> FidelityAudit:
    """Compare raw and restructured text of documents.

    The documents are read one at a time, so that a caller may load them lazily and tell progress.

    Args:
        documents: With the rewritten bodies beside the raw ones.
        finder: Of named entities, for both texts.
        evidence: Gold spans by document id or section id. A span stands within one section; spans that name a figure or
            table are for the caller to map to its caption.
        nli: Finds contradictions; without one these measures are absent, not zero.
    """
    auditor = _Auditor(_kinds(finder), evidence or {}, nli)
    sections = tuple(section for document in documents for section in auditor.sections(document))
    known = {section.section_id for section in sections} | {section.doc_id for section in sections}
    return FidelityAudit(
        sections=sections,
        entity_finder=finder.name,
        nli_model=nli.name if nli else None,
        n_cut_sentences=auditor.n_cut_sentences,
        n_spans_nowhere=auditor.n_spans_nowhere,
        unmatched=tuple(sorted((evidence or {}).keys() - known)),
    )


def joined(audits: Sequence[FidelityAudit], entity_finder: str, nli_model: str | None) -> FidelityAudit:
    """One audit of what several found in distinct documents, in their order; made by the same finder and model."""
    return FidelityAudit(
        sections=tuple(section for each in audits for section in each.sections),
        entity_finder=entity_finder,
        nli_model=nli_model,
        n_cut_sentences=sum(each.n_cut_sentences for each in audits),
        n_spans_nowhere=sum(each.n_spans_nowhere for each in audits),
        unmatched=tuple(sorted(unmatched for each in audits for unmatched in each.unmatched)),
    )


def with_intervals(
    audit: FidelityAudit, scope: Scope, resampling: Resampling = DEFAULT_RESAMPLING
) -> dict[Measure, Interval]:
    """The pooled share of every measure with something to count, with its interval.

    Documents are resampled, and the statistic is hits over items of the resampled documents; ``n`` counts items. Shares
    of 0 and 1, of which all resamples are alike, have Wilson's interval instead, with documents as its trials: the items
    of a document are not independent, and as many documents as there are is the least that they can be worth.
    """
    found = {measure: audit.document_shares(measure, scope) for measure in MEASURES}
    return {
        measure: _interval(list(shares.values()), resampling) for measure, shares in found.items() if shares
    }


def _interval(shares: Sequence[Share], resampling: Resampling) -> Interval:
    import numpy as np

    from prime_pipeline.evaluation.resampling import ratio_bounds

    total = sum(shares, Share())
    of_trials = share_interval(len(shares) if total.hits else 0, len(shares), resampling.confidence)
    if total.hits in {0, total.n} and of_trials is not None and len(shares) > 1:
        return replace(of_trials, n=total.n)
    hits, ns = np.array([[share.hits, share.n] for share in shares], dtype=np.float64).T[:, :, None]
    ((low, high, method),) = ratio_bounds(hits.sum(axis=0) / ns.sum(axis=0), hits, ns, resampling)
    return Interval(total.hits / total.n, low, high, total.n, len(shares), method)


class _Kind(NamedTuple):
    """One kind of fact.

    Attributes:
        kept: The measure of what is kept.
        invented: The measure of what is new.
        named: The distinct facts of a text.
        standing: What a text holds, which is never less: ``fact in standing(text)`` tells whether it keeps a fact.
    """

    kept: Measure
    invented: Measure
    named: Callable[[str], frozenset[Any]]
    standing: Callable[[str], Container[Any]]


def _kinds(finder: EntityFinder) -> tuple[_Kind, ...]:
    def entities(text: str) -> frozenset[str]:
        return frozenset(words for name in finder.find(text) if (words := _side_by_side(name)).strip())

    return (
        _Kind("numbers_kept", "numbers_invented", _numbers, _numbers_in_any_form),
        _Kind("acronyms_kept", "acronyms_invented", _acronyms, _acronyms),
        _Kind("entities_kept", "entities_invented", entities, _side_by_side),
    )


def _numbers(text: str) -> frozenset[Any]:
    return frozenset(quantity.value for quantity in quantities(text) if quantity.form in {"digits", "word"})


def _numbers_in_any_form(text: str) -> frozenset[Any]:
    return frozenset(quantity.value for quantity in quantities(text))


def _acronyms(text: str) -> frozenset[Any]:
    return frozenset(acronyms(text))


def _side_by_side(text: str) -> str:
    """The words with one blank around each, so that a name is found as a substring, and only at the bounds of words."""
    return f" {' '.join(''.join(c if c.isalnum() else ' ' for c in lexical_form(text)).split())} "


_Shares = dict[int, defaultdict[Measure, Share]]
"""By ordinal of the section."""


class _Auditor:
    """Audits documents one by one, and keeps the counts that belong to no section."""

    def __init__(
        self, kinds: Sequence[_Kind], evidence: Mapping[str, Sequence[str]], nli: ContradictionModel | None
    ) -> None:
        self._kinds, self._evidence, self._nli = kinds, evidence, nli
        self.n_cut_sentences = self.n_spans_nowhere = 0

    def sections(self, document: Document) -> Iterator[SectionAudit]:
        content = document.content_sections
        shares: _Shares = {section.ordinal: defaultdict(Share) for section in content}
        self._count_evidence(document, shares)
        self._count_facts(document, shares)
        self._count_contradictions(content, shares)
        for section in content:
            yield SectionAudit(
                section_id=section_id(document.doc_id, section.ordinal),
                doc_id=document.doc_id,
                is_rewritten=is_rewritten(section),
                n_words=len(term_words(section.body)),
                n_words_restructured=len(term_words(served_body(section))),
                shares={measure: share for measure, share in shares[section.ordinal].items() if share.n},
            )

    def _count_evidence(self, document: Document, shares: _Shares) -> None:
        content, doc_id = document.content_sections, document.doc_id
        places = [(doc_id, content)] + [(section_id(doc_id, s.ordinal), (s,)) for s in content]
        for sections, spans in ((sections, self._evidence.get(place)) for place, sections in places):
            if spans:
                self._count_spans(sections, spans, shares)

    def _count_spans(self, sections: Sequence[Section], spans: Sequence[str], shares: _Shares) -> None:
        for fate in span_fates(sections, spans, verbatim_form):
            if fate.ordinal is not None and fate.in_raw:
                shares[fate.ordinal]["evidence_verbatim"] += _one(fate.in_restructured)
        for fate in span_fates(sections, spans, normalised_form):
            if fate.ordinal is None:
                self.n_spans_nowhere += 1
                continue
            shares[fate.ordinal]["evidence_only_restructured"] += _one(not fate.in_raw)
            if fate.in_raw:
                shares[fate.ordinal]["evidence_normalised"] += _one(fate.in_restructured)

    def _count_facts(self, document: Document, shares: _Shares) -> None:
        everywhere = without_references(f"{document.title}\n\n{document.text}")
        for kind in self._kinds:
            in_document = kind.standing(everywhere)
            for section in document.content_sections:
                body = without_references(served_body(section))
                raw = kind.named(without_references(section.body))
                restructured = kind.named(body) if is_rewritten(section) else raw
                standing = kind.standing(body)
                n_kept = sum(fact in standing for fact in raw)
                n_new = sum(fact not in in_document for fact in restructured - raw)
                shares[section.ordinal][kind.kept] += Share(n_kept, len(raw))
                shares[section.ordinal][kind.invented] += Share(n_new, len(restructured))

    def _count_contradictions(self, content: Sequence[Section], shares: _Shares) -> None:
        if self._nli is None:
            return
        told = {section.ordinal: _prose_sentences(served_body(section)) for section in content}
        asked = [(s, new) for s in content for new in _new_sentences(s, told[s.ordinal])]
        probabilities = self._nli.contradiction_probabilities([(s.body, new) for s, new in asked])
        self.n_cut_sentences += sum(self._nli.is_cut(new) for _, new in asked)
        contradicted = Counter(
            s.ordinal for (s, _), p in zip(asked, probabilities, strict=True) if p > _CONTRADICTED_ABOVE
        )
        for ordinal, all_told in told.items():
            n = contradicted[ordinal]
            if all_told:
                shares[ordinal]["contradicted_sentences"] += Share(n, len(all_told))
                shares[ordinal]["contradicted_sections"] += _one(n > 0)


def _one(is_hit: bool) -> Share:
    return Share(int(is_hit), 1)


def _prose_sentences(body: str) -> list[str]:
    """The sentences outside of code, tables and display math; an NLI model has nothing to say of those."""
    found = sentences(protect(body).text)
    return [s for s in found if not PLACEHOLDER_LINE.fullmatch(s) and any(map(str.isalpha, s))]


def _new_sentences(section: Section, told: Sequence[str]) -> list[str]:
    if not is_rewritten(section):
        return []
    raw = set(_prose_sentences(section.body))
    return [sentence for sentence in told if sentence not in raw]
