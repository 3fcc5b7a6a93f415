"""Assets made from the published index: the evaluation of it, and the warehouse."""

import dagster as dg

from prime_pipeline.datasets.queries import load_query_set
from prime_pipeline.defs.index_assets import published_index_key
from prime_pipeline.refresh.evaluation import (
    EvaluationReport,
    evaluate_build,
    read_report,
)
from prime_pipeline.refresh.warehouse import DOCUMENTS, refresh_warehouse
from prime_pipeline.workspace import Workspace

_GROUP = "reports"
_OWNERS = ["team:search"]
_PUBLISHED = published_index_key("offline")


@dg.asset(group_name=_GROUP, deps=[_PUBLISHED], kinds={"python"}, owners=_OWNERS, code_version="1")
def retrieval_runs(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """What the published index finds of the configured queries, system by system.

    Without queries (the setting `queries`) nothing is evaluated.
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
    with workspace.home.lock("evaluation"), workspace.retriever() as retriever:
        unknown = sorted(query_set.relevant_documents.difference(retriever.lexical.doc_ids))
        report = evaluate_build(
            retriever,
            query_set,
            workspace.settings.evaluate,
            workspace.paper_literal_vectors,
            workspace.home.measures,
            workspace.progress,
        )
    metadata = _measures(report)
    if unknown:
        metadata["notes"] = (
            f"{len(unknown)} documents that the queries call relevant are not in the index, the first is {unknown[0]!r}: "
            "what asks for them counts as not found"
        )
    return dg.MaterializeResult(data_version=dg.DataVersion(report.fingerprint), metadata=metadata)


@dg.asset(
    group_name=_GROUP, deps=[_PUBLISHED, retrieval_runs], kinds={"duckdb"}, owners=_OWNERS, code_version="1"
)
def warehouse(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """A DuckDB snapshot of documents, sections, metadata and measures, for queries of your own.

    It is built beside the old one and renamed over it: whoever reads it neither waits nor is waited for.
    """
    build = workspace.builds("offline").live_path
    if build is None:
        raise dg.Failure(
            "nothing is published: materialise offline/published_index first", allow_retries=False
        )
    report = read_report(workspace.home.measures) if workspace.settings.queries else None
    with workspace.home.lock("warehouse"):
        outcome = refresh_warehouse(workspace.home.warehouse, build, workspace.store.catalogue(), report)
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


def _measures(report: EvaluationReport) -> dict[str, dg.MetadataValue | int | float | str]:
    names = next(iter(report.systems.values())).means if report.systems else {}
    header = "| system | " + " | ".join(names) + " |\n| --- |" + " ---: |" * len(names)
    rows = [
        f"| {system} | " + " | ".join(f"{value:.3f}" for value in measured.means.values()) + " |"
        for system, measured in report.systems.items()
    ]
    flat = {
        f"{system} {name}": value
        for system, run in report.systems.items()
        for name, value in run.means.items()
    }
    kind = "known-item queries" if report.known_item else "judged queries"
    return {
        "changed": int(report.changed),
        "queries": report.n_queries,
        "query set": f"{report.queries} ({kind})",
        "seconds": round(report.seconds, 3),
        "measures": dg.MetadataValue.md("\n".join([header, *rows])),
        **flat,
    }
