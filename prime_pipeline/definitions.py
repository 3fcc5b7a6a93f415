"""Where Dagster finds everything: the one Definitions object."""

from functools import cache

import dagster as dg

from prime_pipeline.defs.automation import (
    answer,
    corpus_changes,
    nightly_refresh,
    refresh,
    refresh_after_backfill,
    reproduce,
)
from prime_pipeline.defs.checks import CHECKS
from prime_pipeline.defs.corpus_assets import corpus_scan, raw_corpus, raw_documents
from prime_pipeline.defs.evaluation_asset import retrieval_runs
from prime_pipeline.defs.experiment_assets import experiment, experiment_cells, experiment_report
from prime_pipeline.defs.index_assets import index_assets
from prime_pipeline.defs.release_asset import release
from prime_pipeline.defs.report_assets import generated_answers_asset, report, study_assets
from prime_pipeline.defs.resources import WorkspaceResource
from prime_pipeline.defs.restructuring_assets import (
    restructured_corpus,
    restructured_documents,
    restructuring,
)
from prime_pipeline.defs.warehouse_asset import warehouse
from prime_pipeline.settings import Partitioning, load_settings


@cache
def definitions(partitioning: Partitioning = "document") -> dg.Definitions:
    """All of it, with documents as partitions, or buckets of them."""
    return dg.Definitions(
        assets=[
            corpus_scan,
            raw_documents(partitioning),
            raw_corpus,
            restructured_documents(partitioning),
            restructuring,
            restructured_corpus,
            *index_assets("offline", raw_corpus.key),
            *index_assets("full", restructured_corpus.key),
            retrieval_runs,
            *study_assets,
            generated_answers_asset,
            report,
            warehouse,
            release,
            experiment_cells,
            experiment,
            experiment_report,
        ],
        asset_checks=CHECKS,
        jobs=[refresh, answer, reproduce],
        schedules=[nightly_refresh],
        sensors=[corpus_changes, refresh_after_backfill],
        resources={"workspace": WorkspaceResource()},
        # In process: a run costs a second instead of a dozen, and the model stays loaded from step to step.
        executor=dg.in_process_executor,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads: as the settings say that are in force when it does."""
    return definitions(load_settings().partitioning)
