"""The paper's experiment: every representation under every pipeline, over one corpus and one set of queries.

A cell is one representation under one pipeline. Vectors are searched by the build's retriever in the place of its own, so
that all cells share lexical arms, fusion and reranking.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from prime_pipeline.baselines.pooled_vectors import PooledVectors
from prime_pipeline.baselines.representations import RECIPES
from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.evaluation.cost import TokenCounter, embedded_tokens
from prime_pipeline.evaluation.measures import CONVENTIONS, evaluate
from prime_pipeline.evaluation.statistics import PerQuery, mean_intervals
from prime_pipeline.models.embedder import Embedder
from prime_pipeline.progress import Progress, silent
from prime_pipeline.refresh.evaluation import MEASURES
from prime_pipeline.reports.content import Cell, Comparison, SystemCost
from prime_pipeline.retrieval.options import Arm, RetrievalOptions
from prime_pipeline.retrieval.retriever import Rankings, Retriever, as_run
from prime_pipeline.studies.findings import (
    Findings,
    comparisons,
    few_clusters_note,
    measured,
    measured_cells,
    part,
)
from prime_pipeline.studies.retrieval import resampling_convention

Pipeline = Literal["dense", "hybrid", "hybrid-sections", "hybrid+rerank"]
PIPELINES: Final[tuple[Pipeline, ...]] = get_args(Pipeline)
COMPARED: Final = "ndcg@5"
"""The measure of comparisons."""
BASELINES: Final = ("chunk-256", "structure-chunks")
CONTROLS: Final = (
    ("control-identity", "prime-offline"),
    ("control-random-terms", "prime-offline"),
    ("control-shuffled", "prime-full"),
)
"""Each control with the representation that it must not equal, but for the first, which must."""
RERANKED: Final = "hybrid+rerank"
"""The pipeline with section scoring; its cells are broken down by type of question, too."""
_ARMS: Final[Mapping[Pipeline, tuple[Arm, ...]]] = {
    "dense": ("metadata_vector",),
    "hybrid": ("document_bm25", "metadata_vector"),
    "hybrid-sections": ("document_bm25", "section_bm25", "metadata_vector"),
    "hybrid+rerank": ("document_bm25", "metadata_vector"),
}
_UNUSED: Final = RetrievalOptions()
_FLOAT_BYTES: Final = 4

CellName = tuple[str, str]
"""A representation, and a pipeline."""


def pipeline_options(pipeline: Pipeline, options: RetrievalOptions) -> RetrievalOptions:
    """How a pipeline retrieves, given the configured options; those that change nothing there are at their defaults.

    ``dense`` is vectors alone; ``hybrid`` fuses them with BM25 over documents, as the paper does; ``hybrid-sections`` with
    BM25 over sections, too; ``hybrid+rerank`` is ``hybrid`` with section scoring.
    """
    arms = _ARMS[pipeline]
    if pipeline == RERANKED:
        cut = options if options.scorer == "late_interaction" else _UNUSED
        return replace(options, arms=arms, top_k=_UNUSED.top_k, windows_per_section=cut.windows_per_section)
    rrf_k = options.rrf_k if len(arms) > 1 else _UNUSED.rrf_k
    return RetrievalOptions(arms, options.arm_depth, rrf_k, scorer="none")


@dataclass(frozen=True, slots=True)
class Embedded:
    """A representation, ready to be searched.

    Attributes:
        vectors: Of its units.
        amounts: What it costs, see :class:`~prime_pipeline.reports.content.SystemCost`.
        embedder: The one that made the vectors, where it is not that of the index.
    """

    vectors: PooledVectors
    amounts: Mapping[str, float]
    embedder: Embedder | None = None


@dataclass(frozen=True, slots=True)
class CellPlace:
    """Where a cell stands in the tables."""

    representation: str
    pipeline: Pipeline
    restructurer: str = ""
    reranker: str = ""

    @property
    def bare(self) -> Cell:
        """A cell for a measure and a result to be put in."""
        return Cell(
            self.representation,
            self.pipeline,
            measure="",
            result=None,
            restructurer=self.restructurer,
            reranker=self.reranker if self.pipeline == RERANKED else "",
        )


def cell_findings(
    place: CellPlace,
    embedded: Embedded,
    retriever: Retriever,
    query_set: QuerySet,
    progress: Progress = silent,
) -> Findings:
    """Rank all queries by one representation under one pipeline, and measure; what a query excludes leaves its ranking.

    Args:
        place: Which cell.
        embedded: The representation.
        retriever: Over the text that goes with it.
        query_set: The queries.
        progress: Told of every query.
    """
    options = pipeline_options(place.pipeline, retriever.options)
    started = time.monotonic()
    rankings: dict[str, Rankings] = {}
    for position, query in enumerate(query_set.queries, start=1):
        rankings[query.query_id] = retriever.rank(
            query.text,
            options,
            embedded.vectors,
            embedded.embedder,
            query_set.excluded.get(query.query_id, frozenset()),
        )
        progress(f"{place.representation}, {place.pipeline}", position, len(query_set.queries))
    query_ms = 1000 * (time.monotonic() - started) / len(query_set.queries)
    run = as_run({query_id: found.documents for query_id, found in rankings.items()})
    per_query = evaluate(run, query_set.qrels, MEASURES).per_query
    costs = [
        SystemCost(place.representation, embedded.amounts, restructurer=place.restructurer),
        SystemCost(
            place.representation,
            {"query_ms": round(query_ms, 1)},
            place.pipeline,
            place.restructurer,
            place.bare.reranker,
        ),
    ]
    return Findings(
        part(
            cells=tuple(_cells(place, per_query, query_set)),
            costs=tuple(costs),
            known_item=query_set.known_item,
            conventions=CONVENTIONS,
        )
    )


def unavailable(place: CellPlace, reason: str) -> Findings:
    """A cell that cannot be measured here."""
    cells = tuple(replace(place.bare, measure=measure, reason=reason) for measure in MEASURES)
    return Findings(part(cells=cells))


def comparison_findings(
    cells: Mapping[CellName, PerQuery], restructurer: str, reranker: str, query_set: QuerySet
) -> Findings:
    """Each representation against both baselines under the same pipeline, one family; and the controls, another.

    Args:
        cells: Representation and pipeline to the values of :data:`COMPARED`.
        restructurer: As in a report.
        reranker: Name of what scores sections.
        query_set: The queries.
    """
    against = [
        ((name, pipeline), (base, pipeline))
        for pipeline in PIPELINES
        for base in BASELINES
        for name in RECIPES
        if name != base and not name.startswith("control") and (name, base) != BASELINES
        if {(name, pipeline), (base, pipeline)} <= cells.keys()
    ]
    controls = [
        ((control, pipeline), (name, pipeline))
        for pipeline in PIPELINES
        for control, name in CONTROLS
        if {(control, pipeline), (name, pipeline)} <= cells.keys()
    ]
    found = [
        *_compared("representations", against, cells, restructurer, reranker, query_set),
        *_compared("controls", controls, cells, restructurer, reranker, query_set),
    ]
    n_clusters = len(set((query_set.clusters or {}).values()))
    return Findings(
        part(
            comparisons=tuple(found),
            conventions=(resampling_convention(query_set),),
            notes=few_clusters_note("Comparisons", n_clusters),
        )
    )


def _compared(
    name: str,
    pairs: Sequence[tuple[CellName, CellName]],
    cells: Mapping[CellName, PerQuery],
    restructurer: str,
    reranker: str,
    query_set: QuerySet,
) -> Iterator[Comparison]:
    if not pairs:
        return
    labels = {cell: ", ".join(cell) for pair in pairs for cell in pair}
    named = [(labels[left], labels[right]) for left, right in pairs]
    values = {labels[cell]: cells[cell] for cell in labels}
    found = comparisons(name, COMPARED, named, values, query_set.clusters)
    for (left, right), compared in zip(pairs, found, strict=True):
        is_rewritten = any(RECIPES[side[0]].text == "restructured" for side in (left, right))
        yield replace(
            compared,
            pipeline=left[1],
            left=left[0],
            right=right[0],
            restructurer=restructurer if is_rewritten else "",
            reranker=reranker if left[1] == RERANKED else "",
        )


def _cells(place: CellPlace, per_query: Mapping[str, PerQuery], query_set: QuerySet) -> Iterator[Cell]:
    yield from measured_cells(place.bare, mean_intervals(per_query, query_set.clusters), per_query)
    if place.pipeline != RERANKED or place.representation.startswith("control"):
        return
    for kind in sorted(set(query_set.types.values())):
        of_kind = {q: v for q, v in per_query[COMPARED].items() if query_set.types.get(q) == kind}
        interval = mean_intervals({COMPARED: of_kind}, query_set.clusters)[COMPARED]
        yield replace(place.bare, measure=COMPARED, result=measured(interval), question_type=kind)


def amounts(
    texts: Sequence[str],
    tokenizer: TokenCounter,
    dimensions: int,
    lexical_bytes: int,
    build_seconds: float,
) -> dict[str, float]:
    """What vectors of texts cost, and the lexical index beside them.

    Args:
        texts: Of the units, one vector each.
        tokenizer: Of the encoder.
        dimensions: Of a vector.
        lexical_bytes: Size of the lexical index.
        build_seconds: What encoding all of them takes.
    """
    found = embedded_tokens(texts, tokenizer)
    return {
        "embedded_tokens_text": found.in_texts,
        "embedded_tokens_read": found.read,
        "vectors": found.n_texts,
        "index_bytes": lexical_bytes + found.n_texts * dimensions * _FLOAT_BYTES,
        "build_seconds": round(build_seconds, 2),
    }
