"""What could be wrong with the Dagster instance of a home; looked at, and left as it is."""

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from prime_pipeline.defs.automation import corpus_changes, nightly_refresh, refresh_after_backfill
from prime_pipeline.defs.instance import has_own_storage, storage_errors
from prime_pipeline.defs.liveness import dead_runs
from prime_pipeline.reporting.health import Check, examine, guarded, ok
from prime_pipeline.storage.home import Home
from prime_pipeline.workspace import Workspace

_DAEMON_IS_OLD_S = 120.0


def examine_all(workspace: Workspace) -> Iterator[Check]:
    """All checks of a home and of its Dagster instance."""
    yield from examine(workspace)
    yield from guarded("dagster", lambda: _instance(workspace.home))


def _instance(home: Home) -> Iterator[Check]:
    if not (home.dagster / "history").is_dir() and not has_own_storage(home):  # opening it would make it
        yield ok("dagster", "instance", "none yet: the first refresh makes it")
        return
    with storage_errors(home), dg.DagsterInstance.from_config(str(home.dagster)) as instance:
        yield from _runs(instance)
        yield from _automation(instance)


def _runs(instance: dg.DagsterInstance) -> Iterator[Check]:
    dead, n_live = dead_runs(instance)
    if dead:
        found = (
            f"{len(dead)} are noted as running and their process is gone, the first is {dead[0].run_id[:8]}"
        )
        yield Check("dagster", "runs", "warning", found, "prime refresh notes their end")
    else:
        yield ok("dagster", "runs", f"{n_live} under way, none stuck")
    last = next(iter(instance.get_runs(dg.RunsFilter(job_name="refresh"), limit=1)), None)
    if last is not None and last.status == dg.DagsterRunStatus.FAILURE:
        found = f"the last refresh, run {last.run_id[:8]}, failed"
        yield Check(
            "dagster", "last refresh", "warning", found, "see the run in prime ui, or run prime refresh"
        )
    elif last is not None:
        yield ok("dagster", "last refresh", f"run {last.run_id[:8]}: {last.status.value.lower()}")


def _automation(instance: dg.DagsterInstance) -> Iterator[Check]:
    states = {state.instigator_name: state for state in instance.all_instigator_state()}
    names = (nightly_refresh.name, corpus_changes.name, refresh_after_backfill.name)
    is_on = [name for name in names if name in states and states[name].is_running]
    yield ok("dagster", "automation", f"on: {', '.join(is_on) or 'nothing'}")
    beats = instance.get_daemon_heartbeats().values()
    newest = max((beat.timestamp for beat in beats), default=None)
    if newest is None:
        age = None
        found = "never ran"
    else:
        age = datetime.now(UTC).timestamp() - newest
        found = f"last heard of {age:,.0f} s ago"
    if is_on and (age is None or age > _DAEMON_IS_OLD_S):
        yield Check(
            "dagster", "daemon", "problem", f"{found}, so that nothing starts by itself", "prime ui runs it"
        )
    else:
        yield ok("dagster", "daemon", found)
