"""Asking the configured queries before a build is published."""

from __future__ import annotations

from pathlib import Path

from prime_pipeline.errors import EvaluationError, IndexingError, QualityDropped, SchemaMismatch
from prime_pipeline.evaluation.statistics import PerQuery
from prime_pipeline.refresh.evaluation import read_report
from prime_pipeline.refresh.veto import (
    MEASURE,
    SYSTEM,
    BuildComparison,
    compared,
    comparison_fingerprint,
    read_veto,
    values_of,
    write_veto,
)
from prime_pipeline.workspace import Workspace


class QualityGuard:
    """Compares a build with the served one, and refuses it if it finds less by more than ``index.max_ndcg_drop``.

    Args:
        workspace: Of the home.
        variant: Of the builds.
        accept_drop: Compare, and refuse nothing.

    Attributes:
        comparison: What was found; None before the guard was asked, or where there was nothing to compare.
        note: Why there was not, where that should be known.
    """

    def __init__(self, workspace: Workspace, variant: str, *, accept_drop: bool = False) -> None:
        self._workspace = workspace
        self._variant = variant
        self._accept_drop = accept_drop
        self.comparison: BuildComparison | None = None
        self.note = ""

    def __call__(self, candidate: Path, served: Path) -> None:
        """See :data:`~prime_pipeline.indexes.builds.Approve`.

        Raises:
            QualityDropped: The build should not be published; why is kept for ``prime status``.
        """
        allowed = self._workspace.settings.index.max_ndcg_drop
        if allowed is None or not self._workspace.settings.queries:
            return
        path = self._workspace.home.veto(self._variant)
        self.comparison = self._compared(candidate, served, path)
        if self.comparison is None:
            return
        if self.comparison.drops_by_more_than(allowed) and not self._accept_drop:
            write_veto(path, self.comparison)
            raise QualityDropped(candidate.name, self.comparison.sentence(allowed), candidate)

    def published(self) -> None:
        """Forget an earlier refusal: what is wanted is served."""
        self._workspace.home.veto(self._variant).unlink(missing_ok=True)

    def _compared(self, candidate: Path, served: Path, path: Path) -> BuildComparison | None:
        workspace = self._workspace
        try:
            queries = workspace.query_set
        except EvaluationError as error:
            self.note = f"not compared with the served build: {error}"
            return None
        if queries is None:
            return None
        with workspace.retriever_of(candidate) as retriever:
            earlier = workspace.retriever_fingerprint(served.name)
            known_by = comparison_fingerprint(retriever.fingerprint, earlier, queries)
            kept = read_veto(path)
            if kept is not None and kept.fingerprint == known_by:
                return kept
            before = self._served_values(served)
            if before is None:
                return None
            values = values_of(retriever, queries, workspace.progress)
        return compared(known_by, candidate.name, served.name, queries, values, before)

    def _served_values(self, served: Path) -> PerQuery | None:
        """What the served build finds: as it was evaluated when it was published, else asked now."""
        workspace, queries = self._workspace, self._workspace.query_set
        report = read_report(workspace.home.measures(self._variant))
        is_of_it = (
            report is not None
            and queries is not None
            and report.build_id == served.name
            and report.query_set_fingerprint == queries.fingerprint
        )
        if report is not None and is_of_it and report in workspace.evaluations() and SYSTEM in report.systems:
            return report.systems[SYSTEM].per_query[MEASURE]
        try:
            with workspace.retriever_of(served) as retriever:
                return None if queries is None else values_of(retriever, queries, workspace.progress)
        except (IndexingError, SchemaMismatch) as error:
            # Another embedder made it: what it found when it was published is still what it finds.
            if report is not None and is_of_it and SYSTEM in report.systems:
                return report.systems[SYSTEM].per_query[MEASURE]
            self.note = f"not compared with the served build, which cannot be asked: {error}"
            return None
