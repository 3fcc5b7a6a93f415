"""The persistent Dagster instance of a home folder, and the web UI on it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from dagster._core.instance.ref import InstanceRef  # public nowhere, and the only way to override a setting

from prime_pipeline.storage.atomic import write_text
from prime_pipeline.storage.home import Home

LOCATION_NAME = "prime_pipeline"

INSTANCE_SETTINGS: Mapping[str, object] = {
    "telemetry": {"enabled": False},
    "nux": {"enabled": False},  # no sign-up form over the first page
    "concurrency": {"pools": {"default_limit": 1}, "runs": {"max_concurrent_runs": 2}},
    "run_monitoring": {"enabled": True, "free_slots_after_run_end_seconds": 60},
    "retention": {"sensor": {"purge_after_days": {"skipped": 7}}},
}
"""Settings of every instance. The root ``dagster.yaml`` says the same, plus where storage lies (a test compares them)."""


def _in_process(home: Home) -> dict[str, Any]:
    """Settings for runs in this process: nothing is captured, and events are logged by our own class into the same files."""
    return {
        "compute_logs": {
            "module": "dagster._core.storage.noop_compute_log_manager",
            "class": "NoOpComputeLogManager",
            "config": {},
        },
        "event_log_storage": {
            "module": "prime_pipeline.defs.event_log",
            "class": "SqliteEventLog",
            "config": {"base_dir": str(home.dagster.absolute() / "history" / "runs")},
        },
    }


def open_instance(home: Home) -> dg.DagsterInstance:
    """The instance whose runs the UI shows, for runs in this process.

    What such a run prints stays on the terminal: Dagster would otherwise send it through a file and back, and a
    progress bar would be seen when everything is over.
    """
    _write_if_other(home.dagster / "dagster.yaml", yaml.safe_dump(dict(INSTANCE_SETTINGS), sort_keys=True))
    return dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home.dagster), overrides=_in_process(home)))


def ui_command(home: Home, host: str, port: int) -> tuple[list[str], dict[str, str]]:
    """Command and environment that serve the UI, with its daemon, on a home folder."""
    open_instance(home).dispose()
    workspace = {
        "load_from": [
            {"python_module": {"module_name": "prime_pipeline.definitions", "location_name": LOCATION_NAME}}
        ]
    }
    path = home.dagster / "workspace.yaml"
    _write_if_other(path, yaml.safe_dump(workspace))
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(path), "-h", host, "-p", str(port)]
    environment = {**os.environ, "DAGSTER_HOME": str(home.dagster), "PRIME_HOME": str(home.root)}
    return command, environment


def _write_if_other(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
