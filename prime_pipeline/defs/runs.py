"""Running the refresh job from a program: one function, one run in the instance that the UI shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError  # public nowhere

from prime_pipeline.corpus.scan import ScanReport
from prime_pipeline.defs.instance import open_instance, storage_errors
from prime_pipeline.defs.liveness import pool_holder, process_tags, refresh_is_live
from prime_pipeline.defs.restructuring_assets import POOL
from prime_pipeline.indexes.builds import VARIANTS
from prime_pipeline.refresh.evaluation import EvaluationReport
from prime_pipeline.workspace import Workspace


@dataclass(frozen=True, slots=True)
class RefreshSummary:
    """What a refresh did.

    Attributes:
        run_id: Dagster's id of the run.
        scan: The scan's report.
        steps: Numbers and short texts of each asset's event, by asset.
        failed_checks: Names of asset checks that did not pass.
        evaluations: Measures by variant, where queries are configured; the variant of the mode last.
    """

    run_id: str
    scan: ScanReport
    steps: Mapping[str, Mapping[str, Any]]
    failed_checks: tuple[str, ...]
    evaluations: tuple[EvaluationReport, ...]

    @property
    def n_queries(self) -> int:
        """Judged queries; 0 where none are configured."""
        return self.evaluations[-1].n_queries if self.evaluations else 0

    @property
    def published(self) -> Mapping[str, Any]:
        """What was said about the index that is served: that of the full track if it was published."""
        full = self.steps["full/published_index"]
        return full if "documents" in full else self.steps["offline/published_index"]

    @property
    def is_partial(self) -> bool:
        """Whether some source failed or a check did not pass (documents that were put off fail one)."""
        return bool(self.scan.failed or self.failed_checks)


def run_refresh(
    definitions: dg.Definitions,
    workspace: Workspace,
    *,
    allow_removals: bool = False,
    republish: bool = False,
    accept_drop: bool = False,
) -> RefreshSummary:
    """Run the refresh job in this process.

    Args:
        definitions: Holds the job.
        workspace: The job's resource, so that its models stay loaded for what the caller does next.
        allow_removals: Remove documents even if more than a fifth would go.
        republish: Publish a build even if a rollback took it back.
        accept_drop: Publish a build even if NDCG fell by more than ``index.max_ndcg_drop``.

    Raises:
        QualityDropped: NDCG fell by more.
        PrimeError: A step failed; what was published before is served on. The run is in the UI with its trace.
        KeyboardInterrupt: Somebody interrupted it. What was finished by then stays.
    """
    workspace.home.prepare()
    published = [f"{variant}__published_index" for variant in VARIANTS]
    config = {
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        "ops": {
            "corpus_scan": {"config": {"allow_removals": allow_removals}},
            **{name: {"config": {"republish": republish, "accept_drop": accept_drop}} for name in published},
        },
    }
    result = _executed(definitions, workspace, "refresh", config)
    scan = workspace.last_scan
    if scan is None:
        raise RuntimeError("the refresh job ended well without a scan")
    return RefreshSummary(
        run_id=result.run_id,
        scan=scan,
        steps=_steps(result),
        failed_checks=tuple(
            sorted(e.check_name for e in result.get_asset_check_evaluations() if not e.passed)
        ),
        evaluations=tuple(workspace.evaluations()),
    )


def run_experiment(definitions: dg.Definitions, workspace: Workspace) -> Mapping[str, Mapping[str, Any]]:
    """Run the job that reproduces the paper's experiment in this process, over what its home publishes.

    Returns:
        Numbers and short texts of each asset's event, by asset.

    Raises:
        PrimeError: A step failed; cells that were finished are kept.
        KeyboardInterrupt: Somebody interrupted it, likewise.
    """
    config = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    return _steps(_executed(definitions, workspace, "reproduce", config))


def _executed(
    definitions: dg.Definitions, workspace: Workspace, job: str, config: Mapping[str, Any]
) -> dg.ExecuteInProcessResult:
    try:
        with open_instance(workspace.home) as instance, storage_errors(workspace.home):
            refresh_is_live(instance)  # ends what a killed process left open
            if workspace.settings.mode != "offline" and (holder := pool_holder(instance, POOL)):
                workspace.progress(f"waiting for run {holder[:8]}", 0, None)
            return definitions.resolve_job_def(job).execute_in_process(
                run_config=config,
                instance=instance,
                resources={"workspace": workspace},
                tags=process_tags(),
            )
    except DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None


def _steps(result: dg.ExecuteInProcessResult) -> dict[str, Mapping[str, Any]]:
    events = result.get_asset_materialization_events()
    return {_name(event): _plain(event) for event in events if not event.partition}


def _name(event: dg.DagsterEvent) -> str:
    key = event.asset_key
    return key.to_user_string() if key else ""


def _plain(event: dg.DagsterEvent) -> dict[str, Any]:
    metadata = event.step_materialization_data.materialization.metadata
    return {name: item.value for name, item in metadata.items() if isinstance(item.value, str | int | float)}
