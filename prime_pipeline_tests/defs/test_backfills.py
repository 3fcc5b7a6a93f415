"""Backfills over document partitions, launched as the UI launches them: over GraphQL."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_test_daemon_workspace_context  # internal: Dagster is pinned
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.backfill import execute_backfill_iteration
from dagster_webserver.app import create_app_from_workspace_process_context
from starlette.testclient import TestClient

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.defs.documents import RAW_DOCUMENTS
from prime_pipeline_tests.defs.conftest import PAGES, OpenWorkspace

LAUNCH = """
mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }
"""
RETRY = """
mutation($p: ReexecutionParams!) { reexecutePartitionBackfill(reexecutionParams: $p) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }
"""
IN_PROCESS = {
    "run_launcher": {
        "module": "dagster._core.launcher.sync_in_memory_run_launcher",
        "class": "SyncInMemoryRunLauncher",
    },
    "run_coordinator": {
        "module": "dagster._core.run_coordinator.default_run_coordinator",
        "class": "DefaultRunCoordinator",
    },
}


class Daemon:
    """The web server's GraphQL and the backfill daemon, in this process."""

    def __init__(self, instance: dg.DagsterInstance, context: Any) -> None:
        self.instance = instance
        self._context = context
        self._client = TestClient(create_app_from_workspace_process_context(context))

    def launch(self, mutation: str, params: dict[str, Any]) -> dg.BulkActionStatus | Any:
        """Launch a backfill and run it to its end."""
        response = self._client.post("/graphql", json={"query": mutation, "variables": {"p": params}}).json()
        (answer,) = response["data"].values()
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        self.backfill_id = answer["backfillId"]
        for _ in range(10):
            errors = [
                e for e in execute_backfill_iteration(self._context, logging.getLogger("backfill")) if e
            ]
            assert not errors
            backfill = self.instance.get_backfill(self.backfill_id)
            if backfill and backfill.status.value not in ("REQUESTED", "CANCELING", "FAILING"):
                return backfill.status.value
        pytest.fail("the backfill did not end")


@contextmanager
def daemon() -> Iterator[Daemon]:
    target = ModuleTarget(
        module_name="prime_pipeline.definitions",
        attribute="defs",
        working_directory=".",
        location_name="prime_pipeline",
    )
    with (
        dg.instance_for_test(overrides=IN_PROCESS) as instance,
        create_test_daemon_workspace_context(target, instance) as context,
    ):
        yield Daemon(instance, context)


def test_a_backfill_keeps_what_finished_and_retries_only_what_failed(
    open_workspace: OpenWorkspace, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = open_workspace()
    workspace.home.prepare()
    monkeypatch.setenv("PRIME_HOME", str(workspace.home.root))
    monkeypatch.setenv("PRIME_CORPUS", str(corpus))
    scan(open_corpus(str(corpus)), workspace.store)
    broken = corpus / "more.md"
    text = broken.read_text()
    broken.write_bytes(b"\xff\xff\xff")
    keys = [entry.partition_key for entry in workspace.store.catalogue().values()]
    selection = {
        "assetSelection": [{"path": ["raw_documents"]}],
        "partitionNames": keys,
        "title": "all",
        "tags": [],
    }
    with daemon() as running:
        running.instance.add_dynamic_partitions("documents", keys)
        assert running.launch(LAUNCH, selection) == "COMPLETED_FAILED"
        kept = running.instance.get_materialized_partitions(RAW_DOCUMENTS)
        assert len(kept) == len(PAGES) - 1
        assert "more.md" not in kept

        broken.write_text(text)
        retry = {"parentRunId": running.backfill_id, "strategy": "FROM_FAILURE"}
        assert running.launch(RETRY, retry) == "COMPLETED_SUCCESS"
        assert running.instance.get_materialized_partitions(RAW_DOCUMENTS) == set(keys)
        newest = running.instance.get_runs(limit=1)[0]
        assert newest.tags["dagster/asset_partition_range_start"] == "more.md"
