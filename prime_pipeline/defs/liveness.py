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
    """Whether a refresh is queued or running; runs whose process has died are marked as failed first."""
    runs = instance.get_runs(dg.RunsFilter(job_name="refresh", statuses=_LIVE))
    dead = [run for run in runs if _has_died(run)]
    for run in dead:
        instance.report_run_failed(
            run, "The process of this run has died. The next refresh goes on where it stopped."
        )
    return len(dead) < len(runs)


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
