"""Evaluating what is served, where queries with judgements are configured."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.indexes.embedding import embed_texts
from prime_pipeline.indexes.vectors import ExactVectors, VectorSearch
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.synthesis import synthesise
from prime_pipeline.models.embedder import Embedder
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document
from prime_pipeline.retrieval.comparison import System, run_system
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.storage.atomic import write_text
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.fingerprint import fingerprint

EVALUATION_VERSION = 1
MEASURES = ("ndcg@5", "ndcg@10", "mrr", "r@5")


@dataclass(frozen=True, slots=True)
class SystemMeasures:
    """What a system reached.

    Attributes:
        means: Mean over every judged query, by measure.
        per_query: Value by measure and query id.
    """

    means: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The evaluation of one build.

    Attributes:
        fingerprint: Hash of all that determines it: build, options, models, queries, systems, measures.
        build_id: The build.
        variant: ``offline`` or ``full``.
        restructuring: How sections were rewritten; empty in ``offline``.
        queries: Name of the query set.
        known_item: Whether the queries were made from the documents themselves, which is easier than real questions.
        n_queries: Judged queries, all of which count.
        systems: By name.
        changed: Whether it was computed now.
        seconds: Wall time.
    """

    fingerprint: str
    build_id: str
    variant: str
    restructuring: str
    queries: str
    known_item: bool
    n_queries: int
    systems: Mapping[str, SystemMeasures]
    changed: bool
    seconds: float


def evaluate_build(
    retriever: Retriever,
    query_set: QuerySet,
    systems: Sequence[System],
    literal_vectors: Callable[[], VectorSearch],
    target: Path,
    progress: Progress = silent,
) -> EvaluationReport:
    """Evaluate systems over a build, unless ``target`` holds just this evaluation already; then write it there."""
    started = time.monotonic()
    determinants = {
        "version": EVALUATION_VERSION,
        "retriever": retriever.fingerprint,
        "query_set": [query_set.name, query_set.known_item],
        "queries": [[query.query_id, query.text] for query in query_set.queries],
        "qrels": {query_id: dict(judged) for query_id, judged in query_set.qrels.items()},
        "systems": list(systems),
        "measures": MEASURES,
    }
    wanted = fingerprint(determinants)
    before = read_report(target)
    if before is not None and before.fingerprint == wanted:
        return before
    results: dict[str, SystemMeasures] = {}
    for system in systems:
        run = run_system(system, retriever, query_set.queries, literal_vectors, progress)
        evaluation = evaluate(run, query_set.qrels, MEASURES)
        results[system] = SystemMeasures(evaluation.means, evaluation.per_query)
    report = EvaluationReport(
        fingerprint=wanted,
        build_id=retriever.manifest.build_id,
        variant=retriever.manifest.variant,
        restructuring=retriever.manifest.restructuring,
        queries=query_set.name,
        known_item=query_set.known_item,
        n_queries=sum(1 for judged in query_set.qrels.values() if judged),
        systems=results,
        changed=True,
        seconds=time.monotonic() - started,
    )
    write_text(target, json.dumps(asdict(report), indent=2) + "\n")
    return report


def read_report(path: Path) -> EvaluationReport | None:
    """The evaluation written last, or None where there is none that can be read (it can always be made again)."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        systems = {name: SystemMeasures(**measures) for name, measures in fields.pop("systems").items()}
        return EvaluationReport(**{**fields, "systems": systems, "changed": False})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def paper_literal_vectors(
    documents: Iterable[Document], embedder: Embedder, cache: BlobCache, progress: Progress = silent
) -> ExactVectors:
    """Vectors of the metadata as the PRIME paper has it (section 3.4): title, raw top-5 terms and headings."""
    result = synthesise(documents, MetadataOptions(reading="paper_literal"), embedder.tokenizer)
    vectors, _ = embed_texts([item.text for item in result.metadata], embedder, cache, progress)
    return ExactVectors([item.doc_id for item in result.metadata], vectors)
