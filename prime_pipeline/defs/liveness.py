"""Whether a refresh is running: what Dagster has written down, corrected by whether the process still lives.

A run in a process of its own (``prime refresh``) that is killed has no chance to say so. Left as it is, it would look
alive for ever, and the schedule would skip every night.
"""

import os
import socket

import dagster as dg

_PROCESS_TAG = "prime/process"
_HOST_TAG = "prime/host"
_LIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


def process_tags() -> dict[str, str]:
    """Tags by which a run in this process can be told to have died with it."""
    return {_PROCESS_TAG: str(os.getpid()), _HOST_TAG: socket.gethostname()}


def refresh_is_live(instance: dg.DagsterInstance) -> bool:
    """Whether a refresh is queued or running; runs whose process has died are ended first, in pools, too."""
    dead, n_alive = dead_runs(instance)
    for run in dead:
        instance.report_run_failed(
            run, "The process of this run has died. The next refresh goes on where it stopped."
        )
    _free_slots(instance)
    return n_alive > 0


def dead_runs(instance: dg.DagsterInstance) -> tuple[list[dg.DagsterRun], int]:
    """Refreshes that are noted as running and whose process has died, and how many others are noted so."""
    runs = list(instance.get_runs(dg.RunsFilter(job_name="refresh", statuses=_LIVE)))
    dead = [run for run in runs if _has_died(run)]
    return dead, len(runs) - len(dead)


def pool_holder(instance: dg.DagsterInstance, pool: str) -> str | None:
    """The run that works in a pool now, which others wait for; None if the pool is free."""
    storage = instance.event_log_storage
    claimed = (
        storage.get_concurrency_info(pool).claimed_slots if pool in storage.get_concurrency_keys() else []
    )
    return claimed[0].run_id if claimed else None


def _free_slots(instance: dg.DagsterInstance) -> None:
    """Give back the places in pools of runs that are over: a killed one cannot, and all later ones would wait for it."""
    storage = instance.event_log_storage
    for run_id in storage.get_concurrency_run_ids():
        run = instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            storage.free_concurrency_slots_for_run(run_id)


def _has_died(run: dg.DagsterRun) -> bool:
    if run.tags.get(_HOST_TAG) != socket.gethostname():
        return False  # another machine's, or not of this kind: Dagster's own monitoring looks after it
    try:
        os.kill(int(run.tags[_PROCESS_TAG]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it lives, and belongs to somebody else
        return False
    return False
