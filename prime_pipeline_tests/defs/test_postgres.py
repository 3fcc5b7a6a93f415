"""A home whose runs and events lie in a real Postgres, by the file that docs/deployment.md tells to copy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.documents import RAW_DOCUMENTS
from prime_pipeline.defs.partitions import partitions_definition
from prime_pipeline.defs.runs import run_refresh
from prime_pipeline_tests.defs.conftest import PAGES, OpenWorkspace
from prime_pipeline_tests.servers import Database, postgres

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "docs" / "deployment" / "postgres" / "dagster.yaml"

# A refresh in a process of its own, with an embedder that needs no weights.
REFRESH = """
import sys
from prime_pipeline.definitions import definitions
from prime_pipeline.defs.runs import run_refresh
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.fakes import HashingEmbedder
settings = load_settings({"home": sys.argv[1], "corpus": sys.argv[2]})
summary = run_refresh(definitions(), Workspace(settings, embedder=HashingEmbedder()))
print(len(summary.scan.changed), summary.scan.unchanged)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    pytest.importorskip("dagster_postgres")
    with postgres() as database:
        yield database


@pytest.fixture
def database(server: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database for the home of the test, which is told of it as docs/deployment.md says."""
    (tmp_path / "home").mkdir()
    settings = EXAMPLE.read_text().replace("port: 5432", f"port: {server.port}")
    (tmp_path / "home" / "dagster.yaml").write_text(settings)
    monkeypatch.setenv("DAGSTER_POSTGRES_HOST", "127.0.0.1")
    monkeypatch.setenv("DAGSTER_POSTGRES_DB", server.name)
    monkeypatch.setenv("DAGSTER_POSTGRES_USER", server.user)
    monkeypatch.setenv("DAGSTER_POSTGRES_PASSWORD", server.password)
    return server


def test_refreshes_land_in_postgres_two_at_once_too(
    database: Database, open_workspace: OpenWorkspace, corpus: Path
) -> None:
    workspace = open_workspace()
    home = workspace.home
    summary = run_refresh(definitions(), workspace)
    assert sorted(summary.scan.added) == sorted(PAGES)

    (corpus / "more.md").write_text("# More\n\n## Retries\n\nNever.\n")
    command = [sys.executable, "-c", REFRESH, str(home.root), str(corpus)]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        counts = [process.communicate(timeout=120)[0].strip() for process in both]
    finally:
        for process in both:
            process.kill()
    # One of them took the change; the other one waited for it and found nothing.
    assert sorted(counts) == [f"0 {len(PAGES)}", f"1 {len(PAGES) - 1}"]

    # As the UI reads it: by DAGSTER_HOME, and without a class of ours.
    with dg.DagsterInstance.from_config(str(home.dagster)) as instance:
        assert type(instance.event_log_storage).__name__ == "PostgresEventLogStorage"
        runs = instance.get_runs(dg.RunsFilter(job_name="refresh"))
        assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 3
        keys = instance.get_dynamic_partitions("documents")
        assert len(keys) == len(PAGES)
        statuses = instance.get_status_by_partition(RAW_DOCUMENTS, keys, partitions_definition("document"))
        assert set((statuses or {}).values()) == {dg.AssetPartitionStatus.MATERIALIZED}
        events = instance.fetch_materializations(RAW_DOCUMENTS, limit=100).records
        assert len(events) == len(PAGES) + 1
    assert not (home.dagster / "history").exists()
    written = b"".join(path.read_bytes() for path in home.root.rglob("*") if path.is_file())
    assert database.password.encode() not in written
