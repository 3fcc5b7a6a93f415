"""What an event costs in SQLite and in Postgres: alternating rounds in one process, on a server of its own.

    PYTHONPATH=. python benchmarks/event_storage.py

Prints milliseconds per event and round, and the ratio of medians. Needs Debian's packages of Postgres, and dagster-postgres.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

import dagster as dg

from prime_pipeline.defs.documents import RAW_DOCUMENTS
from prime_pipeline.defs.instance import open_instance
from prime_pipeline.storage.home import Home
from prime_pipeline_tests.servers import Database, postgres

EXAMPLE = Path(__file__).parent.parent / "deployment" / "postgres" / "dagster.yaml"
N_EVENTS = 200
N_ROUNDS = 5
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

took_ms: list[float] = []


@dg.op
def log_events(context: dg.OpExecutionContext) -> None:
    """Log as a scan does, and note the time of each event."""
    started = time.perf_counter()
    for number in range(N_EVENTS):
        event = dg.AssetMaterialization(
            RAW_DOCUMENTS, partition=str(number), tags={"dagster/data_version": "v"}
        )
        context.log_event(event)
    took_ms.append(1000 * (time.perf_counter() - started) / N_EVENTS)


@dg.job
def logging_job() -> None:
    """Runs it."""
    log_events()


def home_in(folder: Path, database: Database | None) -> Home:
    """An empty home, on SQLite or on a database."""
    home = Home.at(folder)
    home.prepare()
    if database:
        os.environ.update(
            DAGSTER_POSTGRES_HOST="127.0.0.1",
            DAGSTER_POSTGRES_DB=database.name,
            DAGSTER_POSTGRES_USER=database.user,
            DAGSTER_POSTGRES_PASSWORD=database.password,
        )
        settings = EXAMPLE.read_text(encoding="utf-8").replace("port: 5432", f"port: {database.port}")
        home.dagster_settings.write_text(settings, encoding="utf-8")
    return home


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, postgres() as database:
        homes = {
            "SQLite": home_in(Path(folder, "a"), None),
            "Postgres": home_in(Path(folder, "b"), database),
        }
        for _ in range(N_ROUNDS):
            for home in homes.values():
                with open_instance(home) as instance:
                    logging_job.execute_in_process(instance=instance, run_config=QUIET)
    medians = {}
    for position, name in enumerate(homes):
        rounds = took_ms[position :: len(homes)]
        medians[name] = statistics.median(rounds)
        print(f"{name}: {', '.join(f'{value:.1f}' for value in rounds)} ms an event")
    print(f"ratio of medians: {medians['Postgres'] / medians['SQLite']:.2f}")


if __name__ == "__main__":
    main()
