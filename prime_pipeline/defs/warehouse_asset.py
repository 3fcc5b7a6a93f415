"""The warehouse: what is published, and what was measured of it, as tables."""

import dagster as dg

from prime_pipeline.defs.describing import tags
from prime_pipeline.defs.evaluation_asset import retrieval_runs
from prime_pipeline.defs.index_assets import published_index_key
from prime_pipeline.defs.report_assets import study_assets
from prime_pipeline.defs.restructuring_assets import restructuring
from prime_pipeline.defs.table_columns import WAREHOUSE_COLUMNS
from prime_pipeline.indexes.builds import VARIANTS, read_manifest
from prime_pipeline.refresh.warehouse import refresh_warehouse
from prime_pipeline.reporting.studies import study_rows
from prime_pipeline.workspace import Workspace

_PUBLISHED = [published_index_key(variant) for variant in VARIANTS]


@dg.asset(
    group_name="reports",
    deps=[*_PUBLISHED, retrieval_runs, restructuring, *study_assets],
    kinds={"duckdb"},
    owners=["team:search"],
    tags=tags("delivery"),
    metadata=WAREHOUSE_COLUMNS,
    code_version="3",
)
def warehouse(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """A DuckDB snapshot of documents, sections, restructurings, costs, metadata, measures and studies, for queries of your own.

    It is built beside the old one and renamed over it: whoever reads it neither waits nor is waited for.

    If red: nothing is published yet, or the disk is full. The snapshot of before stays.
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
            study_rows(workspace),
        )
    return dg.MaterializeResult(
        metadata={
            "changed": int(outcome.changed),
            "documents": read_manifest(build).n_documents,
            "sections": read_manifest(build).n_sections,
            "seconds": round(outcome.seconds, 3),
            **{f"{table}_rows": rows for table, rows in outcome.rows.items()},
            "path": dg.MetadataValue.path(str(workspace.home.warehouse)),
        }
    )
