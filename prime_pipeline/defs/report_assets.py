"""Assets made from the published index: the evaluation of it, and the warehouse."""

from collections.abc import Sequence

import dagster as dg

from prime_pipeline.datasets.queries import QuerySet, load_query_set
from prime_pipeline.defs.index_assets import published_index_key
from prime_pipeline.defs.restructuring_assets import restructuring
from prime_pipeline.evaluation.statistics import Interval
from prime_pipeline.indexes.builds import VARIANTS
from prime_pipeline.refresh.evaluation import EvaluationReport, evaluate_build
from prime_pipeline.refresh.warehouse import DOCUMENTS, refresh_warehouse
from prime_pipeline.workspace import Workspace

_GROUP = "reports"
_OWNERS = ["team:search"]
_PUBLISHED = [published_index_key(variant) for variant in VARIANTS]


@dg.asset(group_name=_GROUP, deps=_PUBLISHED, kinds={"python"}, owners=_OWNERS, code_version="3")
def retrieval_runs(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """What the published indexes find of the configured queries, system by system.

    In full mode the offline track is measured beside the full one. Without queries (the setting `queries`) nothing is
    evaluated.
    """
    if not workspace.settings.queries:
        return dg.MaterializeResult(
            data_version=dg.DataVersion("no queries"),
            metadata={
                "changed": 0,
                "note": "no queries are configured: set `queries` to have a refresh evaluate",
            },
        )
    query_set = load_query_set(workspace.settings.queries)
    with workspace.home.lock("evaluation"):
        evaluated = [_evaluated(workspace, variant, query_set) for variant in workspace.published_variants()]
    reports = [report for report, _ in evaluated]
    metadata = _measures(reports)
    if unknown := max((unknown for _, unknown in evaluated), default=[], key=len):
        metadata["notes"] = (
            f"{len(unknown)} documents that the queries call relevant are not in the index, the first is {unknown[0]!r}: "
            "what asks for them counts as not found"
        )
    version = "+".join(report.fingerprint for report in reports)
    return dg.MaterializeResult(data_version=dg.DataVersion(version or "nothing"), metadata=metadata)


@dg.asset(
    group_name=_GROUP,
    deps=[*_PUBLISHED, retrieval_runs, restructuring],
    kinds={"duckdb"},
    owners=_OWNERS,
    code_version="2",
)
def warehouse(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """A DuckDB snapshot of documents, sections, restructurings, costs, metadata and measures, for queries of your own.

    It is built beside the old one and renamed over it: whoever reads it neither waits nor is waited for.
    """
    served = next(reversed(workspace.published_variants()), None)
    build = workspace.builds(served).live_path if served else None
    if build is None:
        raise dg.Failure(
            "nothing is published: materialise offline/published_index first", allow_retries=False
        )
    with workspace.home.lock("warehouse"):
        outcome = refresh_warehouse(
            workspace.home.warehouse,
            build,
            workspace.store.catalogue(),
            workspace.evaluations(),
            workspace.restructuring_facts(),
        )
    schema = dg.TableSchema([dg.TableColumn(name, kind) for name, kind in DOCUMENTS.items()])
    return dg.MaterializeResult(
        metadata={
            "changed": int(outcome.changed),
            "seconds": round(outcome.seconds, 3),
            **{f"{table}_rows": rows for table, rows in outcome.rows.items()},
            "path": dg.MetadataValue.path(str(workspace.home.warehouse)),
            "dagster/column_schema": schema,
        }
    )


def _evaluated(workspace: Workspace, variant: str, query_set: QuerySet) -> tuple[EvaluationReport, list[str]]:
    """The evaluation of a variant, and the ids that the queries know and the index does not."""
    with workspace.retriever(variant) as retriever:
        unknown = sorted(query_set.relevant_documents.difference(retriever.lexical.doc_ids))
        report = evaluate_build(
            retriever,
            query_set,
            workspace.settings.evaluate,
            workspace.paper_literal_vectors,
            workspace.home,
            workspace.progress,
        )
    return report, unknown


def _measures(reports: Sequence[EvaluationReport]) -> dict[str, dg.MetadataValue | int | float | str]:
    if not reports:
        return {"changed": 0, "note": "nothing is published"}
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
