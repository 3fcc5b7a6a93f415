"""How well sections that hold gold evidence are found, in the raw and in the restructured text (PRIME paper, Table 5 B)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from prime_pipeline.evaluation.gold_evidence import (
    EvidenceMap,
    GoldEvidence,
    evidence_text,
    kept,
    section_qrels,
    section_texts,
    shared_queries,
    token_recall,
)
from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.evaluation.statistics import PerQuery, mean_intervals
from prime_pipeline.records import Document, Qrels, Run
from prime_pipeline.reports import wording
from prime_pipeline.reports.content import Cell, Contrast
from prime_pipeline.retrieval.retriever import as_run
from prime_pipeline.studies.findings import Findings, contrast, few_clusters_note, measured_cells, part
from prime_pipeline.studies.retrieval import unmeasured
from prime_pipeline.text.words import literal_words

MEASURES: Final = ("ndcg@5", "p@5", "r@5", "mrr", "map")
PAPER_PROTOCOL: Final = "evidence word for word in both texts"
"""The questions of the paper's protocol, as the table names them."""
WITHIN: Final = "within-document"
"""The pipeline that orders the sections of one document by BM25."""
WITHIN_RERANKED: Final = "within-document+rerank"
"""The one that scores all of them."""
_SECTIONS: Final = "sections"
_READ: Final = 5

Contrasted = Callable[[str, PerQuery, PerQuery], Contrast]
"""Makes a contrast of a measure over the raw and the restructured text."""

SectionRuns = Mapping[str, Mapping[str, Sequence[str]]]
"""System to query id to section ids, best first."""


@dataclass(frozen=True, slots=True)
class Track:
    """One text of the corpus, and what was ranked over it.

    Attributes:
        documents: By id; with rewritten bodies in the ``full`` track.
        runs: Of every system.
        restructurer: As in a report's cells; empty for the raw text.
    """

    documents: Mapping[str, Document]
    runs: SectionRuns
    restructurer: str = ""


def localisation_findings(
    evidence: Mapping[str, GoldEvidence],
    raw: Track,
    restructured: Track | None,
    clusters: Mapping[str, str] | None,
    reranker: str,
) -> Findings:
    """Section-level cells of every system; and of the default one the contrast of raw and restructured text.

    Judgements are those of the raw text, carried over by section id, so that what restructuring lost counts against it.
    Beside them stands the paper's protocol: queries with evidence word for word in both texts, each text judged by its own.

    Args:
        evidence: Query id to gold evidence; queries about documents that are not in the corpus are left out, and counted.
        raw: The raw text.
        restructured: The restructured one, if there is one.
        clusters: Query id to what is resampled together.
        reranker: Name of what scores sections.
    """
    known = _about(evidence, raw.documents)
    judged = section_qrels(known, raw.documents)
    notes = tuple(_notes(judged, len(evidence) - len(known)))
    if clusters is not None:
        notes += few_clusters_note(
            "Evidence localisation", len({clusters[query_id] for query_id in judged.qrels})
        )
    if not judged.qrels:
        return Findings(part(notes=notes))
    cells = list(_cells(judged.qrels, raw, clusters, reranker))
    contrasts: list[Contrast] = []
    if restructured is not None:
        cells += _cells(judged.qrels, restructured, clusters, reranker)
        contrasts = list(_contrasts(known, judged, raw, restructured, clusters))
    return Findings(part(cells=tuple(cells), evidence=tuple(contrasts), notes=notes))


def named_section_findings(
    qrels: Qrels, tracks: Sequence[Track], clusters: Mapping[str, str] | None, reranker: str
) -> Findings:
    """Section-level cells of every system, where it is named which sections are relevant.

    Args:
        qrels: Query id to section ids with their grades.
        tracks: The raw text, and the restructured one if there is one.
        clusters: Query id to what is resampled together.
        reranker: Name of what scores sections.
    """
    cells = tuple(cell for track in tracks for cell in _cells(qrels, track, clusters, reranker))
    named = wording.plural(len(qrels), "query", "queries")
    return Findings(part(cells=cells, notes=(f"Relevant sections are named for {named}.",)))


def within_document_findings(
    evidence: Mapping[str, GoldEvidence], tracks: Sequence[Track], clusters: Mapping[str, str], reranker: str
) -> Findings:
    """How well sections with gold evidence are found where the document is known and only its sections are ranked.

    Questions that were written for a known document say more about this task than about finding the document.

    Args:
        evidence: Query id to gold evidence in a known document.
        tracks: The raw text, which also tells which sections hold evidence, and the restructured one if there is one. In
            their runs the systems are pipelines of this task.
        clusters: Query id to what is resampled together.
        reranker: Name of what scores sections.
    """
    documents = tracks[0].documents
    qrels = section_qrels(_about(evidence, documents), documents).qrels
    cells: list[Cell] = []
    for track in tracks:
        for pipeline, rankings in track.runs.items():
            bare = Cell(
                _SECTIONS,
                pipeline,
                measure="",
                result=None,
                level="section",
                restructurer=track.restructurer,
                reranker=reranker if pipeline == WITHIN_RERANKED else "",
            )
            per_query = evaluate(as_run(rankings), qrels, MEASURES).per_query if qrels else {}
            cells += measured_cells(bare, mean_intervals(per_query, clusters), per_query)
    return Findings(part(cells=tuple(cells)))


def _about(
    evidence: Mapping[str, GoldEvidence], documents: Mapping[str, Document]
) -> dict[str, GoldEvidence]:
    """The evidence that is in one of the documents, or may be in any."""
    return {q: gold for q, gold in evidence.items() if gold.doc_id is None or gold.doc_id in documents}


def _notes(judged: EvidenceMap, n_unknown: int) -> Iterator[str]:
    yield (
        f"Gold evidence: {judged.n_found:,} of {judged.n_spans:,} spans stand in a section of the raw text, for "
        f"{wording.plural(len(judged.qrels), 'query', 'queries')}."
    )
    if n_unknown:
        queries = wording.plural(n_unknown, "query", "queries")
        yield f"Gold evidence of {queries} is about documents that are not indexed, and is left out."


def _cells(qrels: Qrels, track: Track, clusters: Mapping[str, str] | None, reranker: str) -> Iterator[Cell]:
    for system, rankings in track.runs.items():
        bare = replace(unmeasured(system, track.restructurer, reranker), level="section")
        per_query = evaluate(as_run(rankings), qrels, MEASURES).per_query
        yield from measured_cells(bare, mean_intervals(per_query, clusters), per_query)


def _contrasts(
    evidence: Mapping[str, GoldEvidence],
    judged: EvidenceMap,
    raw: Track,
    restructured: Track,
    clusters: Mapping[str, str] | None,
) -> Iterator[Contrast]:
    shared = raw.runs.keys() & restructured.runs.keys()
    system = "default" if "default" in shared else max(shared, default="")
    if not system:
        return
    before, after = as_run(raw.runs[system]), as_run(restructured.runs[system])
    texts = (
        section_texts(raw.documents.values()),
        section_texts(document.restructured for document in restructured.documents.values()),
    )
    carried_over = partial(contrast, clusters=clusters, follows_paper=False)
    yield from _of_measures(before, after, judged.qrels, judged.qrels, carried_over)
    yield from _of_reading(before, after, evidence, texts, carried_over)
    served = _about(evidence, restructured.documents)
    both = shared_queries(judged, kept(served, restructured.documents))
    if both[0]:
        by_paper = partial(contrast, clusters=clusters, question_type=PAPER_PROTOCOL)
        shared_evidence = {query_id: evidence[query_id] for query_id in both[0]}
        yield from _of_measures(before, after, *both, by_paper)
        yield from _of_reading(before, after, shared_evidence, texts, by_paper)


def _of_measures(
    before: Run, after: Run, raw_qrels: Qrels, restructured_qrels: Qrels, contrasted: Contrasted
) -> Iterator[Contrast]:
    old, new = evaluate(before, raw_qrels, MEASURES), evaluate(after, restructured_qrels, MEASURES)
    for measure in MEASURES:
        yield contrasted(measure, old.per_query[measure], new.per_query[measure])


def _of_reading(
    before: Run,
    after: Run,
    evidence: Mapping[str, GoldEvidence],
    texts: tuple[Mapping[str, str], Mapping[str, str]],
    contrasted: Contrasted,
) -> Iterator[Contrast]:
    """What is read in the best sections; nothing where no evidence has a token."""
    spans = (evidence_text(span) for gold in evidence.values() for span in gold.spans)
    if not any(map(literal_words, spans)):
        return
    old, new = (
        token_recall(run, evidence, of_sections, _READ)
        for run, of_sections in zip((before, after), texts, strict=True)
    )
    yield contrasted(f"token-recall@{_READ}", old.per_query, new.per_query)
    read, read_after = _as_floats(old.tokens_per_query), _as_floats(new.tokens_per_query)
    yield contrasted("evidence tokens per query", read, read_after)


def _as_floats(values: Mapping[str, int]) -> PerQuery:
    return {query_id: float(value) for query_id, value in values.items()}
