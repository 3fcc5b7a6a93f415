"""Evaluating what is served, where queries with judgements are configured."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.evaluation.statistics import Interval, mean_intervals
from prime_pipeline.indexes.embedding import embed_texts
from prime_pipeline.indexes.vectors import ExactVectors, VectorSearch
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.synthesis import synthesise
from prime_pipeline.models.embedder import Embedder
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document
from prime_pipeline.retrieval.comparison import run_system
from prime_pipeline.retrieval.retriever import Retriever, as_run
from prime_pipeline.retrieval.systems import System
from prime_pipeline.storage.atomic import write_text
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.home import Home

EVALUATION_VERSION = 3
MEASURES = ("ndcg@5", "ndcg@10", "p@5", "r@5", "mrr", "map")


@dataclass(frozen=True, slots=True)
class SystemMeasures:
    """What a system reached.

    Attributes:
        intervals: Mean over every judged query with its interval, by measure. Where queries nest in documents,
            documents are resampled.
        per_query: Value by measure and query id.
    """

    intervals: Mapping[str, Interval]
    per_query: Mapping[str, Mapping[str, float]]

    @property
    def means(self) -> dict[str, float]:
        """Mean over every judged query, by measure."""
        return {measure: interval.value for measure, interval in self.intervals.items()}


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The evaluation of one build.

    Attributes:
        fingerprint: Hash of all that determines it: build, options, models, queries, systems, measures.
        build_id: The build.
        variant: ``offline`` or ``full``.
        restructuring: How sections were rewritten; empty in ``offline``.
        queries: Name of the query set.
        query_set_fingerprint: Its hash.
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
    query_set_fingerprint: str
    known_item: bool
    n_queries: int
    systems: Mapping[str, SystemMeasures]
    changed: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class SystemRuns:
    """What the systems of one evaluation ranked: by system, then by query id, ids best first."""

    documents: Mapping[str, Mapping[str, Sequence[str]]]
    sections: Mapping[str, Mapping[str, Sequence[str]]]


def evaluate_build(
    retriever: Retriever,
    query_set: QuerySet,
    systems: Sequence[System],
    literal_vectors: Callable[[], VectorSearch],
    home: Home,
    progress: Progress = silent,
) -> EvaluationReport:
    """Evaluate systems over a build, unless the home holds just this evaluation already; then write it there.

    What a query excludes is in none of its rankings. Rankings are written before the measures, so that there are never measures without them.
    """
    started = time.monotonic()
    variant = retriever.manifest.variant
    wanted = evaluation_fingerprint(retriever.fingerprint, query_set, systems)
    before = read_report(home.measures(variant))
    if before is not None and before.fingerprint == wanted and read_runs(home.rankings(variant), wanted):
        return before
    rankings = {
        system: run_system(
            system, retriever, query_set.queries, literal_vectors, progress, query_set.excluded
        )
        for system in systems
    }
    runs = SystemRuns(
        documents={name: {q: r.documents for q, r in found.items()} for name, found in rankings.items()},
        sections={name: {q: r.sections for q, r in found.items()} for name, found in rankings.items()},
    )
    report = EvaluationReport(
        fingerprint=wanted,
        build_id=retriever.manifest.build_id,
        variant=variant,
        restructuring=retriever.manifest.restructuring,
        queries=query_set.name,
        query_set_fingerprint=query_set.fingerprint,
        known_item=query_set.known_item,
        n_queries=sum(1 for judged in query_set.qrels.values() if judged),
        systems={name: _measured(found, query_set) for name, found in runs.documents.items()},
        changed=True,
        seconds=time.monotonic() - started,
    )
    write_text(home.rankings(variant), json.dumps({"fingerprint": wanted, **asdict(runs)}) + "\n")
    write_text(home.measures(variant), json.dumps(asdict(report), indent=2) + "\n")
    return report


def evaluation_fingerprint(retriever: str, query_set: QuerySet, systems: Sequence[System]) -> str:
    """Hash of all that an evaluation depends on, given that of the retriever."""
    return fingerprint(
        {
            "version": EVALUATION_VERSION,
            "retriever": retriever,
            "query_set": query_set.fingerprint,
            "systems": list(systems),
            "measures": MEASURES,
        }
    )


def _measured(rankings: Mapping[str, Sequence[str]], query_set: QuerySet) -> SystemMeasures:
    per_query = evaluate(as_run(rankings), query_set.qrels, MEASURES).per_query
    return SystemMeasures(mean_intervals(per_query, query_set.clusters), per_query)


def read_report(path: Path) -> EvaluationReport | None:
    """The evaluation written last, or None where there is none that can be read (it can always be made again)."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        systems = {name: _read_measures(measures) for name, measures in fields.pop("systems").items()}
        return EvaluationReport(**{**fields, "systems": systems, "changed": False})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _read_measures(fields: Mapping[str, Any]) -> SystemMeasures:
    intervals = {measure: Interval(**interval) for measure, interval in fields["intervals"].items()}
    return SystemMeasures(intervals, fields["per_query"])


def read_runs(path: Path, wanted: str) -> SystemRuns | None:
    """The rankings of the evaluation with this fingerprint, or None where they cannot be read."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return SystemRuns(**fields) if fields.pop("fingerprint") == wanted else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def paper_literal_vectors(
    documents: Iterable[Document], embedder: Embedder, cache: BlobCache, progress: Progress = silent
) -> ExactVectors:
    """Vectors of the metadata as the PRIME paper has it (section 3.4): title, raw top-5 terms and headings."""
    result = synthesise(documents, MetadataOptions(reading="paper_literal"), embedder.tokenizer)
    vectors, _ = embed_texts([item.text for item in result.metadata], embedder, cache, progress)
    return ExactVectors([item.doc_id for item in result.metadata], vectors)
