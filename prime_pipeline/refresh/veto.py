"""Whether a build may take the place of the served one: what both find of the same queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.evaluation.statistics import PerQuery, paired_difference
from prime_pipeline.indexes.vectors import VectorSearch
from prime_pipeline.progress import Progress, silent
from prime_pipeline.retrieval.comparison import run_system
from prime_pipeline.retrieval.retriever import Retriever, as_run
from prime_pipeline.retrieval.systems import System
from prime_pipeline.storage.atomic import write_text
from prime_pipeline.storage.fingerprint import fingerprint

SYSTEM: Final[System] = "default"
MEASURE: Final = "ndcg@5"
"""What is compared, as the report compares it: chosen beforehand, and not by what came out."""


@dataclass(frozen=True, slots=True)
class BuildComparison:
    """Two builds over the same queries.

    Attributes:
        fingerprint: Hash of all that determines the values: both builds, options, models, queries.
        build_id: The build that was to be published.
        served_id: The one that is served.
        queries: Name of the query set.
        n_queries: Judged queries.
        candidate: Mean of the measure over them, from 0 to 1, of the former.
        served: Likewise of the latter.
        difference: Former minus latter.
        low: Lower bound of its 95 % interval; None with one query.
        high: Upper bound, likewise.
    """

    fingerprint: str
    build_id: str
    served_id: str
    queries: str
    n_queries: int
    candidate: float
    served: float
    difference: float
    low: float | None
    high: float | None

    def drops_by_more_than(self, allowed: float) -> bool:
        """Whether the mean fell by more; rounding does not count."""
        return -self.difference > allowed + 1e-12

    def sentence(self, allowed: float) -> str:
        """What was found, for people."""
        interval = (
            "no interval from a single query"
            if self.low is None or self.high is None
            else f"95% interval {self.low:+.4f} to {self.high:+.4f}"
        )
        return (
            f"its NDCG@5 is {self.candidate:.4f}, that of the served build {self.served_id} {self.served:.4f}, over "
            f"{self.n_queries:,} queries of {self.queries}: a difference of {self.difference:+.4f} ({interval}), where a drop of "
            f"{allowed:g} is allowed"
        )


def comparison_fingerprint(candidate: str, served: str, query_set: QuerySet) -> str:
    """Hash of all that a comparison depends on, given the fingerprints of two retrievers."""
    return fingerprint([candidate, served, query_set.fingerprint, SYSTEM, MEASURE])


def values_of(retriever: Retriever, query_set: QuerySet, progress: Progress = silent) -> PerQuery:
    """The measure by query id of the system that is compared."""
    rankings = run_system(SYSTEM, retriever, query_set.queries, _no_vectors, progress, query_set.excluded)
    documents = {query_id: found.documents for query_id, found in rankings.items()}
    return evaluate(as_run(documents), query_set.qrels, (MEASURE,)).per_query[MEASURE]


def compared(
    known_by: str,
    build_id: str,
    served_id: str,
    query_set: QuerySet,
    candidate: PerQuery,
    served: PerQuery,
) -> BuildComparison:
    """Compare two builds query by query; where queries nest in documents, documents are resampled.

    Args:
        known_by: See :func:`comparison_fingerprint`.
        build_id: Of the candidate.
        served_id: Of the served build.
        query_set: That both answered.
        candidate: Values of the former by query id.
        served: Of the latter.
    """
    found = paired_difference(candidate, served, query_set.clusters)
    return BuildComparison(
        known_by,
        build_id,
        served_id,
        query_set.name,
        found.n,
        found.left,
        found.right,
        found.difference,
        found.low,
        found.high,
    )


def write_veto(path: Path, comparison: BuildComparison) -> None:
    """Keep why a build is not served."""
    write_text(path, json.dumps(asdict(comparison), indent=2) + "\n")


def read_veto(path: Path) -> BuildComparison | None:
    """Why the newest build is not served; None where that is not the case, or cannot be read (it is found out again)."""
    try:
        fields: Mapping[str, object] = json.loads(path.read_bytes())
        return BuildComparison(**fields)  # type: ignore[arg-type]
    except (OSError, ValueError, TypeError):
        return None


def _no_vectors() -> VectorSearch:
    raise AssertionError(f"the system {SYSTEM} searches the vectors of the build")
