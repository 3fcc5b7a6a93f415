"""The persistent Dagster instance of a home folder, and the web UI on it.

What a home's own ``dagster.yaml`` says stands over our settings, so that runs, events and schedules may lie in Postgres, and the
daemon may launch runs elsewhere. DAGSTER_HOME is not read: it may well be that of another project, and two corpora in one
instance would delete one another's partitions.
"""

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from dagster._check import CheckError
from dagster._core.instance.ref import InstanceRef  # public nowhere, and the only way to override a setting
from dagster._utils.merger import deep_merge_dicts
from sqlalchemy.exc import SQLAlchemyError

from prime_pipeline.errors import DagsterDatabaseUnusable, DagsterStorageUnusable, SettingsError
from prime_pipeline.storage.atomic import atomic_path, write_text
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


def open_instance(home: Home) -> dg.DagsterInstance:
    """The instance whose runs the UI shows, for runs in this process.

    What such a run prints stays on the terminal: Dagster would otherwise send it through a file and back, and a
    progress bar would be seen when everything is over.

    Raises:
        SettingsError: The home's ``dagster.yaml`` is none, or Dagster cannot do what it says.
        DagsterStorageUnusable, DagsterDatabaseUnusable: The databases cannot be opened.
    """
    own = _own_settings(home)
    _write_settings(home, own)
    with storage_errors(home):
        try:
            reference = InstanceRef.from_dir(str(home.dagster), overrides=_in_process(home, own))
            instance = dg.DagsterInstance.from_ref(reference)
        except (dg.DagsterInvalidConfigError, CheckError) as error:
            # The latter where the module that a class is in is not installed. The first line says what, and no value.
            raise _refused(home, str(error).splitlines()[0]) from error
        # Keeps a connection open, with no limit for a statement. Dagster would connect anew for each of the several of an event.
        instance.optimize_for_webserver(statement_timeout=0, pool_recycle=3600, max_overflow=20)
        return instance


@contextmanager
def storage_errors(home: Home) -> Iterator[None]:
    """Tell failures of Dagster's databases as what they are, with what to do about them.

    Raises:
        DagsterStorageUnusable, DagsterDatabaseUnusable: The block raised one.
    """
    try:
        yield
    except Exception as error:
        cause = (
            error if isinstance(error, SQLAlchemyError) else error.__cause__
        )  # dagster-postgres wraps them
        if not isinstance(cause, SQLAlchemyError):
            raise
        if has_own_storage(home):
            raise DagsterDatabaseUnusable(home.dagster_settings, cause) from error
        raise DagsterStorageUnusable(home.dagster, cause) from error


def has_own_storage(home: Home) -> bool:
    """Whether the home's own ``dagster.yaml`` says where runs and events lie, which is in no file of the home then."""
    return _names_storage(_own_settings(home))


def _names_storage(own: Mapping[str, Any]) -> bool:
    names = ("storage", "run_storage", "event_log_storage", "schedule_storage")
    return any(name in own for name in names)


def _in_process(home: Home, own: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for runs in this process: nothing is captured, and SQLite events are logged by our own class into the same files."""
    settings: dict[str, Any] = {
        "compute_logs": {
            "module": "dagster._core.storage.noop_compute_log_manager",
            "class": "NoOpComputeLogManager",
            "config": {},
        }
    }
    if not _names_storage(own):
        settings["event_log_storage"] = {
            "module": "prime_pipeline.defs.event_log",
            "class": "SqliteEventLog",
            "config": {"base_dir": str(home.dagster.absolute() / "history" / "runs")},
        }
    return settings


def _own_settings(home: Home) -> Mapping[str, Any]:
    """What the home's own ``dagster.yaml`` says; empty where there is none."""
    try:
        own = yaml.safe_load(home.dagster_settings.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        # Without the line that YAML shows, which may be that of a password.
        raise _refused(home, getattr(error, "problem", None) or "it cannot be read as YAML") from error
    if not isinstance(own or {}, dict):
        raise _refused(home, "it holds no settings by name")
    return own or {}


def _refused(home: Home, reason: str) -> SettingsError:
    return SettingsError(
        f"Dagster cannot be set up as {home.dagster_settings} says: {reason}. docs/deployment.md has an example; Postgres needs the "
        "extra postgres"
    )


def _write_settings(home: Home, own: Mapping[str, Any]) -> None:
    """Write the ``dagster.yaml`` that Dagster's own processes read, unless it says the same already.

    Nobody may read it who cannot read the home's own, since that may hold a password.
    """
    path = home.dagster / "dagster.yaml"
    text = yaml.safe_dump(deep_merge_dicts(INSTANCE_SETTINGS, own), sort_keys=True)
    mode = _mode(home.dagster_settings) if own else None
    if path.is_file() and path.read_text(encoding="utf-8") == text and mode in {None, _mode(path)}:
        return
    with atomic_path(path) as temporary:
        if mode is not None:
            temporary.chmod(mode)
        temporary.write_text(text, encoding="utf-8")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def ui_command(home: Home, host: str, port: int) -> tuple[list[str], dict[str, str]]:
    """Command and environment that serve the UI, with its daemon, on a home folder."""
    open_instance(home).dispose()
    workspace = {
        "load_from": [
            {"python_module": {"module_name": "prime_pipeline.definitions", "location_name": LOCATION_NAME}}
        ]
    }
    path = home.dagster / "workspace.yaml"
    text = yaml.safe_dump(workspace)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(path), "-h", host, "-p", str(port)]
    environment = {**os.environ, "DAGSTER_HOME": str(home.dagster), "PRIME_HOME": str(home.root)}
    return command, environment
