"""Systems side by side over one build: what plain BM25, the paper's stage 1 and ours find of the same queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from prime_pipeline.indexes.vectors import VectorSearch
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Query, Run
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.retriever import Retriever

System = Literal["bm25", "paper_literal", "stage1", "default"]
SYSTEMS: tuple[System, ...] = get_args(System)


def system_options(system: System, options: RetrievalOptions) -> RetrievalOptions:
    """How a system retrieves, given the configured options.

    ``bm25`` is BM25 over whole documents; ``paper_literal`` the PRIME paper's stage 1 (section 3.4: document BM25 and
    metadata vectors); ``stage1`` all configured arms; ``default`` these with section scoring.
    """
    if system == "bm25":
        return replace(options, arms=("document_bm25",), scorer="none")
    if system == "paper_literal":
        return options.paper_literal().without_reranking()
    return options.without_reranking() if system == "stage1" else options


def run_system(
    system: System,
    retriever: Retriever,
    queries: Sequence[Query],
    literal_vectors: Callable[[], VectorSearch],
    progress: Progress = silent,
) -> Run:
    """Rank documents for every query.

    Args:
        system: Which system.
        retriever: Over the build in question.
        queries: In any order.
        literal_vectors: Gives vectors of the metadata as the paper has it; called for ``paper_literal`` only.
        progress: Told of every query.
    """
    options = system_options(system, retriever.options)
    vectors = literal_vectors() if system == "paper_literal" else None
    activity = f"queries, {system}" if retriever.manifest.variant == "offline" else f"queries, {system}, full"
    run = {}
    for position, query in enumerate(queries, start=1):
        run[query.query_id] = dict(retriever.rank_documents(query.text, options, vectors))
        progress(activity, position, len(queries))
    return run
