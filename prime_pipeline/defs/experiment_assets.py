"""Assets of the paper's experiment: a partition for each cell, all cells in one run, and the report on them."""

from collections.abc import Iterator

import dagster as dg

from prime_pipeline.defs.describing import tags
from prime_pipeline.defs.index_assets import published_index_key
from prime_pipeline.defs.report_assets import study_assets
from prime_pipeline.indexes.builds import VARIANTS
from prime_pipeline.reporting.experiment import CELLS, CellKey, Experiment, publish_experiment_report
from prime_pipeline.reports.content import Cell
from prime_pipeline.reports.markdown import report_markdown
from prime_pipeline.studies.findings import Study
from prime_pipeline.workspace import Workspace

_GROUP = "experiment"
_OWNERS = ["team:search"]
_PUBLISHED = [published_index_key(variant) for variant in VARIANTS]
_BY_NAME = {key.name: key for key in CELLS}
_PARTITIONS = dg.StaticPartitionsDefinition(list(_BY_NAME))
_DATA_VERSION = "dagster/data_version"


@dg.asset(
    group_name=_GROUP,
    deps=_PUBLISHED,
    partitions_def=_PARTITIONS,
    kinds={"python"},
    owners=_OWNERS,
    tags=tags("evaluation"),
    code_version="1",
    backfill_policy=dg.BackfillPolicy.single_run(),
    output_required=False,
)
def experiment_cells(
    context: dg.AssetExecutionContext, workspace: dg.ResourceParam[Workspace]
) -> Iterator[dg.Output[None]]:
    """What one representation finds under one pipeline: a partition for each, kept until something that it depends on changes.

    Names are `representation.pipeline`, such as `chunk-256.hybrid-sections`.

    If red: a model cannot be loaded or queries are missing, see the message. Cells that were finished are kept: backfill
    the failed ones.
    """
    with Experiment(workspace) as experiment:
        for name in context.partition_keys:
            _log(context, _BY_NAME[name], experiment.cell(_BY_NAME[name]))
    yield from ()  # no output: each cell has had its own event, and Dagster must not add a second one


@dg.asset(
    group_name=_GROUP,
    deps=_PUBLISHED,
    kinds={"python"},
    owners=_OWNERS,
    tags=tags("evaluation"),
    code_version="1",
)
def experiment(
    context: dg.AssetExecutionContext, workspace: dg.ResourceParam[Workspace]
) -> dg.MaterializeResult[None]:
    """All cells in one run, those that are kept included, and what they say of one another.

    Each cell that is new, or whose event was lost, logs an event of `experiment_cells`.

    If red: a cell could not be measured, see the message. The job `reproduce` goes on with the cells that are missing.
    """
    known = context.instance.event_log_storage.get_latest_tags_by_partition(  # the instance offers none for all at once
        dg.AssetKey("experiment_cells"), dg.DagsterEventType.ASSET_MATERIALIZATION, [_DATA_VERSION]
    )
    n_changed = 0
    with Experiment(workspace) as made:
        for position, key in enumerate(CELLS, start=1):
            cell = made.cell(key)
            n_changed += cell.changed
            if known.get(key.name, {}).get(_DATA_VERSION) != cell.fingerprint:
                _log(context, key, cell)
            workspace.progress("cells", position, len(CELLS))
        made.within_documents()
        comparisons = made.comparisons()
    return dg.MaterializeResult(
        data_version=dg.DataVersion(comparisons.fingerprint),
        metadata={"changed": n_changed, "cells": len(CELLS)},
    )


@dg.asset(
    group_name=_GROUP,
    deps=[experiment_cells, experiment, *study_assets],
    kinds={"html"},
    owners=_OWNERS,
    tags=tags("delivery"),
    code_version="1",
)
def experiment_report(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """The report on the experiment: every cell with its interval, adjusted comparisons, costs, and the studies of the texts.

    Open the page at the path that the event names. If red: the folder cannot be written, or a study is missing; run the job
    `reproduce` again.
    """
    published = publish_experiment_report(workspace)
    return dg.MaterializeResult(
        metadata={
            "changed": int(published.changed),
            "page": dg.MetadataValue.path(str(published.files.page)),
            "report": dg.MetadataValue.md(report_markdown(published.content)),
        }
    )


def _log(context: dg.AssetExecutionContext, key: CellKey, study: Study) -> None:
    metadata: dict[str, dg.MetadataValue | int | float | str] = {
        "representation": key.representation,
        "pipeline": key.pipeline,
        "seconds": round(study.seconds, 3),
    }
    for cell in study.findings.content.cells:
        if not cell.question_type:
            metadata[cell.measure] = _shown(cell)
    event = dg.AssetMaterialization(
        asset_key=dg.AssetKey("experiment_cells"),
        partition=key.name,
        metadata=metadata,
        tags={_DATA_VERSION: study.fingerprint},
    )
    context.log_event(event)


def _shown(cell: Cell) -> float | str:
    return f"unavailable: {cell.reason}" if cell.result is None else cell.result.value
