"""What a refresh takes when one of many documents changed, beside building everything; prints Markdown tables.

    python benchmarks/refreshing.py --data DIR/qasper-mini/qasper-mini.json --documents 10000

    python benchmarks/refreshing.py --data DIR/qasper-mini/qasper-mini.json --documents 100000 --max-sections 1 --partitioning bucket

Runs `prime refresh` in processes of its own over a folder of synthetic documents (see ``synthetic.py``) in a fresh home: everything, then
with nothing changed, one document changed (its abstract, so that its metadata text has to be embedded), one that the studies read
changed, one added, one removed. Seconds by step are those of Dagster's events; ``start`` is measured beside in processes that do nothing
else: the interpreter with everything that a refresh imports, and the model with one text encoded, where a refresh encodes any. At last the web server of
the home is asked for the status of all partitions of each asset, as the UI asks for it.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from synthetic import SyntheticCorpus, doc_id_of

from prime_pipeline.defs.instance import open_instance, ui_command
from prime_pipeline.storage.home import Home
from prime_pipeline.studies.findings import drawn

IMPORTS = (
    "import prime_pipeline.definitions, prime_pipeline.defs.runs, prime_pipeline.defs.event_log, prime_pipeline.cli, "
    "alembic.config, duckdb, jinja2, markdown_it, numpy, rich.console, tokenizers"
)
ENCODES = (
    "from prime_pipeline.settings import load_settings; from prime_pipeline.workspace import Workspace; "
    "Workspace(load_settings()).embedder.encode(['one text'])"
)
START_ROUNDS = 3
STATUS_ROUNDS = 5
STATUS_QUERY = """
query Status($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  partitionKeys assetPartitionStatuses { ... on DefaultPartitionStatuses {
    materializedPartitions failedPartitions unmaterializedPartitions materializingPartitions } } } } }
"""
ASSETS_QUERY = "{ assetNodes { assetKey { path } isPartitioned } }"
SHOWN_SHARE = 0.01
"""Steps that take less than this share of every refresh are shown together."""


@dataclass(frozen=True)
class Refresh:
    """One refresh: what was done before it, wall time, seconds by step, texts encoded, and the process's peak."""

    what: str
    wall_s: float
    by_step_s: Mapping[str, float]
    n_encoded: int
    peak_bytes: int


def refreshed(what: str, home: Path, corpus: Path) -> Refresh:
    command = [sys.executable, "-m", "prime_pipeline", "refresh", "--json", "--home", str(home)]
    wall_s, peak_bytes, output = run([*command, "--corpus", str(corpus)])
    summary = json.loads(output)
    n_encoded = sum(values.get("encoded", 0) for values in summary["steps"].values())
    print(f"{what}: {wall_s:.1f} s", file=sys.stderr, flush=True)
    return Refresh(what, wall_s, step_seconds(home, summary["run_id"]), n_encoded, peak_bytes)


def run(command: Sequence[str]) -> tuple[float, int, str]:
    """(seconds, peak bytes, what it printed) of a process of its own."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        output.seek(0)
        return seconds, 1024 * usage.ru_maxrss, output.read()


def step_seconds(home: Path, run_id: str) -> dict[str, float]:
    with open_instance(Home.at(home)) as instance:
        found = instance.get_run_step_stats(run_id)
    return {
        step.step_key: step.end_time - step.start_time
        for step in found
        if step.start_time is not None and step.end_time is not None
    }


def start_seconds(home: Path) -> tuple[float, float]:
    """(interpreter with all imports, what loading the home's model and encoding one text takes beside these)."""
    os.environ["PRIME_HOME"] = str(home)
    interpreter = median(run([sys.executable, "-c", IMPORTS])[0] for _ in range(START_ROUNDS))
    both = median(run([sys.executable, "-c", f"{IMPORTS}; {ENCODES}"])[0] for _ in range(START_ROUNDS))
    return interpreter, both - interpreter


def changes(corpus: SyntheticCorpus, folder: Path, n_documents: int) -> dict[str, Callable[[], object]]:
    """What is done to the folder before each refresh, by name."""
    ids = [doc_id_of(number) for number in range(n_documents)]
    read = drawn(ids)
    others = [number for number in range(n_documents) if ids[number] not in read] or [0]
    studied = next(number for number in range(n_documents) if ids[number] in read)

    def edit(number: int) -> None:
        text, other = corpus.text(number), corpus.text(n_documents + number)
        (folder / ids[number]).write_text(
            text.markdown.replace(text.abstract, other.abstract, 1), encoding="utf-8"
        )

    return {
        "everything": lambda: corpus.write(folder, n_documents),
        "nothing": lambda: None,
        "one changed": lambda: edit(others[len(others) // 2]),
        "one changed that studies read": lambda: edit(studied),
        "one added": lambda: corpus.write(folder, n_documents + 1, n_documents),
        "one removed": (folder / ids[others[0]]).unlink,
    }


def status_seconds(home: Path, data_folder: Path) -> dict[str, list[float]]:
    """Seconds of each answer of the home's web server about the partitions of each partitioned asset."""
    command, environment = ui_command(Home.at(home), "127.0.0.1", port := free_port())
    command = [*command[:2], "dagster_webserver", *command[4:]]  # without the daemon
    address = f"http://127.0.0.1:{port}/graphql"
    process = subprocess.Popen(command, env=environment, cwd=data_folder, stderr=subprocess.DEVNULL)
    try:
        assets = asked(address, {"query": ASSETS_QUERY}, patience_s=120)["assetNodes"]
        found: dict[str, list[float]] = {}
        for path in sorted(asset["assetKey"]["path"] for asset in assets if asset["isPartitioned"]):
            for _ in range(STATUS_ROUNDS):
                started = time.perf_counter()
                asked(address, {"query": STATUS_QUERY, "variables": {"key": {"path": path}}})
                found.setdefault("/".join(path), []).append(time.perf_counter() - started)
        return found
    finally:
        process.terminate()
        process.wait()


def asked(address: str, question: Mapping[str, object], patience_s: float = 0.0) -> Any:
    """The data of a GraphQL answer; waits as long for the server to come up."""
    end = time.monotonic() + patience_s
    while True:
        try:
            return httpx.post(address, json=question, timeout=120).raise_for_status().json()["data"]
        except httpx.TransportError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def print_status(found: Mapping[str, Sequence[float]]) -> None:
    print("\n| status of the partitions of | first, s | median of the others, s |\n| --- | ---: | ---: |")
    for asset, seconds in found.items():
        print(f"| {asset} | {seconds[0]:.2f} | {median(seconds[1:]):.2f} |")


def print_refreshes(refreshes: Sequence[Refresh], start: tuple[float, float]) -> None:
    interpreter, model = start
    print(f"Start: {interpreter:.1f} s for the interpreter and all imports, {model:.1f} s for the model.\n")
    print(
        "| what changed | seconds | of them start | ratio to everything | ratio apart from start | texts embedded | peak, MB |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    started = [interpreter + (model if refresh.n_encoded else 0.0) for refresh in refreshes]
    whole, whole_apart = refreshes[0].wall_s, refreshes[0].wall_s - started[0]
    for refresh, start_s in zip(refreshes, started, strict=True):
        apart = refresh.wall_s - start_s
        print(
            f"| {refresh.what} | {refresh.wall_s:.1f} | {start_s:.1f} | {refresh.wall_s / whole:.2%} "
            f"| {apart / whole_apart:.2%} | {refresh.n_encoded:,} | {refresh.peak_bytes / 1e6:,.0f} |"
        )


def print_steps(refreshes: Sequence[Refresh]) -> None:
    steps = {step for refresh in refreshes for step in refresh.by_step_s}
    shown = [
        step
        for step in sorted(steps, key=lambda step: -refreshes[0].by_step_s.get(step, 0.0))
        if any(r.by_step_s.get(step, 0.0) > SHOWN_SHARE * sum(r.by_step_s.values()) for r in refreshes)
    ]
    print("\n| step, seconds | " + " | ".join(refresh.what for refresh in refreshes) + " |")
    print("| --- |" + " ---: |" * len(refreshes))
    for step in shown:
        print(f"| {step} | " + " | ".join(f"{r.by_step_s.get(step, 0.0):.2f}" for r in refreshes) + " |")
    rest = [sum(s for step, s in r.by_step_s.items() if step not in shown) for r in refreshes]
    print(f"| {len(steps) - len(shown)} others | " + " | ".join(f"{s:.2f}" for s in rest) + " |")
    between = [r.wall_s - sum(r.by_step_s.values()) for r in refreshes]
    print("| outside of steps | " + " | ".join(f"{s:.2f}" for s in between) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="qasper-mini.json")
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--max-sections", type=int, help="of a document; by default as many as papers have")
    parser.add_argument("--partitioning", choices=["document", "bucket"], default="document")
    parser.add_argument(
        "--folder", type=Path, help="where all is made; by default below the system's temporary folder"
    )
    given = parser.parse_args()
    os.environ["PRIME_PARTITIONING"] = given.partitioning
    corpus = SyntheticCorpus(given.data, max_sections=given.max_sections)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder, home = Path(name) / "corpus", Path(name) / "home"
        refreshes = []
        for what, change in changes(corpus, folder, given.documents).items():
            change()
            refreshes.append(refreshed(what, home, folder))
        status = status_seconds(home, folder)
        start = start_seconds(home)
    print_refreshes(refreshes, start)
    print_steps(refreshes)
    print_status(status)


if __name__ == "__main__":
    main()
