"""Running the systems side by side over one build."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from prime_pipeline.indexes.vectors import VectorSearch
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Query
from prime_pipeline.retrieval.retriever import Rankings, Retriever
from prime_pipeline.retrieval.systems import System, system_options

_NOTHING: Final[Mapping[str, AbstractSet[str]]] = {}


def run_system(
    system: System,
    retriever: Retriever,
    queries: Sequence[Query],
    literal_vectors: Callable[[], VectorSearch],
    progress: Progress = silent,
    excluded: Mapping[str, AbstractSet[str]] = _NOTHING,
) -> dict[str, Rankings]:
    """Rank documents and sections for every query, by query id.

    Args:
        system: Which system.
        retriever: Over the build in question.
        queries: In any order.
        literal_vectors: Gives vectors of the metadata as the paper has it; called for ``paper_literal`` only.
        progress: Told of every query.
        excluded: Documents by query id that are treated as if they were not there.
    """
    options = system_options(system, retriever.options)
    vectors = literal_vectors() if system == "paper_literal" else None
    activity = f"queries, {system}" if retriever.manifest.variant == "offline" else f"queries, {system}, full"
    rankings = {}
    for position, query in enumerate(queries, start=1):
        without = excluded.get(query.query_id, frozenset())
        rankings[query.query_id] = retriever.rank(query.text, options, vectors, excluded=without)
        progress(activity, position, len(queries))
    return rankings
