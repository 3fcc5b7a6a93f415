"""Steps of our jobs on a real Celery worker behind a real Redis, with the module that docs/deployment.md tells to start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from prime_pipeline.defs.instance import open_instance
from prime_pipeline.storage.home import Home
from prime_pipeline_tests.servers import redis

ROOT = Path(__file__).parent.parent.parent
STEPS = {"corpus_scan", "raw_corpus"}


@contextmanager
def worker(environment: Mapping[str, str], log: Path) -> Iterator[None]:
    """A Celery worker until the block ends."""
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "prime_celery",
        "worker",
        "--queues",
        "dagster",
        "--pool",
        "solo",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def test_a_worker_takes_the_steps_and_the_ui_shows_what_it_made(tmp_path: Path, corpus: Path) -> None:
    pytest.importorskip("dagster_celery")
    home, log = Home.at(tmp_path / "home"), tmp_path / "worker.log"
    home.prepare()
    open_instance(home).dispose()
    with redis() as address:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                map(str, [ROOT / "docs" / "deployment" / "celery", ROOT, *sys.path[1:]])
            ),
            "PRIME_HOME": str(home.root),
            "PRIME_CORPUS": str(corpus),
            "DAGSTER_HOME": str(home.dagster),
            "CELERY_BROKER_URL": address,
            "CELERY_RESULT_BACKEND": address,
        }
        command = [sys.executable, "-m", "dagster", "asset", "materialize", "-m", "prime_celery"]
        with worker(environment, log):
            try:
                subprocess.run(
                    [*command, "--select", ",".join(sorted(STEPS))],
                    env=environment,
                    check=True,
                    timeout=150,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
                pytest.fail(f"{error}\n{str(error.stderr)[-2000:]}\nThe worker:\n{log.read_text()[-2000:]}")
    with open_instance(home) as instance:
        (run,) = instance.get_runs()
        said = {entry.message for entry in instance.all_logs(run.run_id)}
        assert run.status == dg.DagsterRunStatus.SUCCESS
        assert {f"[CeleryExecutor] Executing steps {step} in celery worker" for step in STEPS} <= said
        assert all(instance.get_latest_materialization_event(dg.AssetKey(step)) for step in STEPS)
