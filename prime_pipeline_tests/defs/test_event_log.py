"""The event log of runs in this process: what it writes is Dagster's own."""

from pathlib import Path

import dagster as dg

from prime_pipeline.defs.documents import RAW_DOCUMENTS
from prime_pipeline.defs.event_log import SqliteEventLog
from prime_pipeline.defs.instance import open_instance
from prime_pipeline.storage.home import Home


@dg.op
def say_so(context: dg.OpExecutionContext) -> None:
    """Logs one event."""
    context.log_event(
        dg.AssetMaterialization(RAW_DOCUMENTS, partition="a", tags={"dagster/data_version": "v1"})
    )


@dg.job
def saying() -> None:
    """Runs it."""
    say_so()


def test_what_a_run_in_this_process_logs_is_read_by_any_other_instance(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "it's a home")
    with open_instance(home) as instance:
        assert isinstance(instance.event_log_storage, SqliteEventLog)
        run_ids = [saying.execute_in_process(instance=instance).run_id for _ in range(2)]
    with dg.DagsterInstance.from_config(str(home.dagster)) as plain:
        assert not isinstance(plain.event_log_storage, SqliteEventLog)
        assert {run.run_id for run in plain.get_runs()} == set(run_ids)
        for run_id in run_ids:
            kinds = {e.dagster_event.event_type for e in plain.all_logs(run_id) if e.dagster_event}
            assert {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.RUN_SUCCESS} <= kinds
        assert plain.get_materialized_partitions(RAW_DOCUMENTS) == {"a"}
        assert len(plain.fetch_materializations(RAW_DOCUMENTS, limit=5).records) == 2
