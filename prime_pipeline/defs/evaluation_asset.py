"""The evaluation of the published indexes: what every system finds of the configured queries."""

from collections.abc import Sequence

import dagster as dg

from prime_pipeline.defs.describing import tags
from prime_pipeline.defs.index_assets import published_index_key
from prime_pipeline.evaluation.statistics import Interval
from prime_pipeline.indexes.builds import VARIANTS
from prime_pipeline.refresh.evaluation import EvaluationReport
from prime_pipeline.reporting.evaluating import evaluate_published
from prime_pipeline.reporting.studies import query_faults
from prime_pipeline.workspace import Workspace

_GROUP = "reports"
_OWNERS = ["team:search"]
_PUBLISHED = [published_index_key(variant) for variant in VARIANTS]


@dg.asset(
    group_name=_GROUP,
    deps=_PUBLISHED,
    kinds={"python"},
    owners=_OWNERS,
    tags=tags("evaluation"),
    code_version="3",
)
def retrieval_runs(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """What the published indexes find of the configured queries, system by system.

    In full mode the offline track is measured beside the full one. Without queries (the setting `queries`) nothing is
    evaluated. `ndcg@5` is that of the system that answers searches: plotted over time it shows whether they get better.

    If red: the queries cannot be read, or name documents that do not exist; the message says which line to mend.
    """
    if workspace.query_set is None:
        return dg.MaterializeResult(
            data_version=dg.DataVersion("no queries"),
            metadata={
                "changed": 0,
                "note": "no queries are configured: set `queries` to have a refresh evaluate",
            },
        )
    if not workspace.published_variants():
        return dg.MaterializeResult(
            data_version=dg.DataVersion("nothing"), metadata={"changed": 0, "note": "nothing is published"}
        )
    reports = evaluate_published(workspace)
    metadata = _measures(reports)
    served = reports[-1].systems.get("default")  # the variant of the mode is the last one
    if served and "ndcg@5" in served.means:
        metadata["ndcg@5"] = served.means["ndcg@5"]
    if faults := query_faults(workspace):
        metadata["notes"] = " ".join(faults)
    version = "+".join(report.fingerprint for report in reports)
    return dg.MaterializeResult(data_version=dg.DataVersion(version), metadata=metadata)


def _measures(reports: Sequence[EvaluationReport]) -> dict[str, dg.MetadataValue | int | float | str]:
    rows = {
        (
            name if report.variant == "offline" else f"{name} ({report.variant}, {report.restructuring})"
        ): measured
        for report in reports
        for name, measured in report.systems.items()
    }
    names = list(next(iter(rows.values())).means) if rows else []
    lines = [
        "| system | " + " | ".join(names) + " |",
        "| --- |" + " ---: |" * len(names),
        *(
            f"| {system} | " + " | ".join(map(_with_bounds, measured.intervals.values())) + " |"
            for system, measured in rows.items()
        ),
    ]
    flat = {
        f"{'' if report.variant == 'offline' else report.variant + ' '}{system} {name}": value
        for report in reports
        for system, run in report.systems.items()
        for name, value in run.means.items()
    }
    kind = "known-item queries" if reports[0].known_item else "judged queries"
    return {
        "changed": int(any(report.changed for report in reports)),
        "queries": reports[0].n_queries,
        "query set": f"{reports[0].queries} ({kind})",
        "seconds": round(sum(report.seconds for report in reports), 3),
        "measures": dg.MetadataValue.md("\n".join(lines)),
        **flat,
    }


def _with_bounds(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return f"{interval.value:.3f}"
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
