"""The refresh job from corpus to published index, in a persistent instance."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest
from rich.console import Console

from prime_pipeline.console.operating import refresh_view
from prime_pipeline.definitions import definitions
from prime_pipeline.defs.automation import refresh_after_backfill
from prime_pipeline.defs.corpus_assets import raw_documents
from prime_pipeline.defs.documents import RAW_DOCUMENTS
from prime_pipeline.defs.instance import open_instance
from prime_pipeline.defs.liveness import process_tags, refresh_is_live
from prime_pipeline.defs.runs import RefreshSummary, run_refresh
from prime_pipeline.errors import DagsterStorageUnusable, EmptyCorpus, PrimeError, TooManyRemovals
from prime_pipeline_tests.defs.conftest import PAGES, OpenWorkspace

defs = definitions()

FULL_TRACK = {
    "restructuring",
    "restructured_corpus",
    "full/document_metadata",
    "full/lexical_index",
    "full/vector_index",
    "full/published_index",
}


def partitions(workspace_home: Path) -> tuple[set[str], set[str]]:
    """(partition keys, keys with a materialisation) as the UI would show them."""
    with dg.DagsterInstance.from_config(str(workspace_home / "dagster")) as instance:
        return set(instance.get_dynamic_partitions("documents")), instance.get_materialized_partitions(
            RAW_DOCUMENTS
        )


def n_events(workspace_home: Path) -> int:
    with dg.DagsterInstance.from_config(str(workspace_home / "dagster")) as instance:
        records = instance.fetch_materializations(RAW_DOCUMENTS, limit=1_000).records
        return len(records)


def changed(summary: RefreshSummary) -> dict[str, int]:
    return {name: step["changed"] for name, step in summary.steps.items()}


def test_a_first_refresh_publishes_everything(open_workspace: OpenWorkspace) -> None:
    workspace = open_workspace()
    summary = run_refresh(defs, workspace)
    assert sorted(summary.scan.added) == sorted(PAGES)
    assert not summary.is_partial
    published = summary.steps["offline/published_index"]
    assert (published["documents"], published["vectors"]) == (len(PAGES), len(PAGES))
    assert {name for name, n in changed(summary).items() if n == 0} == {
        *FULL_TRACK,
        "retrieval_runs",
        "release",
    }
    keys, materialised = partitions(workspace.home.root)
    assert len(keys) == len(PAGES)
    assert keys == materialised
    with workspace.retriever() as retriever:
        hit = retriever.search("exponential backoff")[0]
    assert (hit.doc_id, hit.heading_path) == ("more.md", ("Retries",))
    assert (hit.start_line, hit.source_path) == (3, "more.md")


def test_a_refresh_with_nothing_to_do_changes_and_logs_nothing(open_workspace: OpenWorkspace) -> None:
    run_refresh(defs, open_workspace())
    workspace = open_workspace()
    before = n_events(workspace.home.root)
    summary = run_refresh(defs, workspace)
    assert set(changed(summary).values()) == {0}
    assert summary.scan.unchanged == len(PAGES)
    assert n_events(workspace.home.root) == before
    assert workspace.embedder.texts_encoded == []  # type: ignore[attr-defined]


def test_a_refresh_follows_the_corpus_profile_and_says_why(
    open_workspace: OpenWorkspace, corpus: Path
) -> None:
    for number in range(60):  # no headings in any of these
        (corpus / f"loose{number}.txt").write_text(f"A loose note, number {number}, on the wind.\n")
    workspace = open_workspace(mode="auto")
    summary = run_refresh(defs, workspace)
    decided = summary.steps["raw_corpus"]
    assert decided["mode"] == workspace.mode_label
    assert decided["mode"] == "auto: offline, vectors of full texts (structure-absent)"
    assert "Metadata will not help" in decided["because"]
    with workspace.retriever() as retriever:
        assert retriever.manifest.mode == decided["mode"]
    console = Console(file=io.StringIO(), width=120)
    console.print(refresh_view(summary))
    assert decided["mode"] in console.file.getvalue()  # type: ignore[attr-defined]
    assert decided["mode"] in workspace.home.reports.joinpath("report.md").read_text(encoding="utf-8")
    again = run_refresh(defs, open_workspace(mode="auto"))
    assert set(changed(again).values()) == {0}


def test_one_changed_document_costs_one_event_and_its_own_embedding(
    open_workspace: OpenWorkspace, corpus: Path
) -> None:
    run_refresh(defs, open_workspace())
    before = n_events(open_workspace().home.root)
    page = corpus / "guide" / "partitions.md"
    page.write_text(page.read_text() + "\n## Buckets\n\nHashes of ids.\n")
    workspace = open_workspace()
    summary = run_refresh(defs, workspace)
    assert summary.scan.changed == ("guide/partitions.md",)
    assert n_events(workspace.home.root) == before + 1
    assert summary.steps["offline/lexical_index"]["documents_written"] <= len(PAGES)
    encoded = workspace.embedder.texts_encoded  # type: ignore[attr-defined]
    assert sum(step.get("encoded", 0) for step in summary.steps.values()) == len(encoded)
    assert any("Buckets" in text for text in encoded)
    with workspace.retriever() as retriever:
        assert retriever.search("buckets hashes")[0].heading_path == ("Buckets",)


def test_a_removed_document_leaves_every_store(open_workspace: OpenWorkspace, corpus: Path) -> None:
    run_refresh(defs, open_workspace())
    (corpus / "notes.txt").unlink()
    workspace = open_workspace()
    summary = run_refresh(defs, workspace)
    assert summary.scan.removed == ("notes.txt",)
    keys, _ = partitions(workspace.home.root)
    assert "notes.txt" not in keys
    with workspace.retriever() as retriever:
        assert retriever.search("loose notes about backfills and lineage") == [] or all(
            hit.doc_id != "notes.txt" for hit in retriever.search("loose notes about backfills and lineage")
        )
    connection = duckdb.connect(str(workspace.home.warehouse), read_only=True)
    assert connection.execute("SELECT count(*) FROM documents WHERE doc_id = 'notes.txt'").fetchone() == (0,)
    connection.close()


def test_an_unreadable_file_fails_alone_and_comes_up_again(
    open_workspace: OpenWorkspace, corpus: Path
) -> None:
    (corpus / "bad.md").write_bytes(b"# Title\n\n\xff\xfe\xfa stray\x80 bytes")
    (corpus / "empty.md").write_bytes(b"")
    workspace = open_workspace()
    summary = run_refresh(defs, workspace)
    assert set(summary.scan.failed) == {"bad.md", "empty.md"}
    assert "every_source_is_readable" in summary.failed_checks
    assert summary.is_partial
    assert summary.steps["offline/published_index"]["documents"] == len(PAGES)
    keys, materialised = partitions(workspace.home.root)
    assert keys - materialised == {"bad.md", "empty.md"}  # shown as missing, not hidden

    (corpus / "bad.md").write_text("# Repaired\n\nNow it reads.\n")
    (corpus / "empty.md").unlink()
    summary = run_refresh(defs, open_workspace())
    assert summary.scan.added == ("bad.md",)
    assert not summary.scan.failed


def test_a_file_that_becomes_unreadable_is_served_from_before(
    open_workspace: OpenWorkspace, corpus: Path
) -> None:
    run_refresh(defs, open_workspace())
    (corpus / "more.md").write_bytes(b"\x00\x01\x02")
    workspace = open_workspace()
    summary = run_refresh(defs, workspace)
    assert summary.scan.served_from_before == ("more.md",)
    with workspace.retriever() as retriever:
        assert retriever.search("exponential backoff")[0].doc_id == "more.md"


def test_an_emptied_folder_removes_nothing_unless_allowed(
    open_workspace: OpenWorkspace, corpus: Path
) -> None:
    first = run_refresh(defs, open_workspace())
    shutil.rmtree(corpus / "guide")
    with pytest.raises(TooManyRemovals, match="--allow-removals"):
        run_refresh(defs, open_workspace())
    workspace = open_workspace()
    assert workspace.builds("offline").live_id == first.steps["offline/published_index"]["build"]
    summary = run_refresh(defs, workspace, allow_removals=True)
    assert summary.steps["offline/published_index"]["documents"] == len(PAGES) - 2


def test_a_failing_run_leaves_what_was_published(
    open_workspace: OpenWorkspace, corpus: Path, tmp_path: Path
) -> None:
    served = run_refresh(defs, open_workspace()).steps["offline/published_index"]["build"]
    corpus.rename(tmp_path / "unmounted")
    with pytest.raises(PrimeError, match="does not exist"):
        run_refresh(defs, open_workspace())
    workspace = open_workspace()
    assert workspace.builds("offline").live_id == served
    with workspace.retriever() as retriever:
        assert retriever.search("pip")
    with open_instance(workspace.home) as instance:
        assert instance.get_runs(limit=1)[0].status == dg.DagsterRunStatus.FAILURE


def test_a_corpus_without_documents_says_so(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    (tmp_path / "hollow").mkdir()
    with pytest.raises(EmptyCorpus, match="holds no readable document"):
        run_refresh(defs, open_workspace(corpus=str(tmp_path / "hollow")))


def test_losing_dagsters_storage_costs_history_only(open_workspace: OpenWorkspace) -> None:
    workspace = open_workspace()
    run_refresh(defs, workspace)
    shutil.rmtree(workspace.home.dagster)
    workspace = open_workspace()
    summary = run_refresh(defs, workspace)
    assert set(changed(summary).values()) == {0}
    keys, materialised = partitions(workspace.home.root)
    assert len(keys) == len(PAGES)
    assert keys == materialised
    assert workspace.embedder.texts_encoded == []  # type: ignore[attr-defined]


def test_configured_queries_are_evaluated_once_per_build(
    open_workspace: OpenWorkspace, tmp_path: Path
) -> None:
    queries = tmp_path / "queries.jsonl"
    lines = [
        {"query": "exponential backoff", "relevant": "more.md"},
        {"query": "slugs", "relevant": "guide/partitions.md"},
    ]
    queries.write_text("\n".join(map(json.dumps, lines)) + "\n")
    systems = ("bm25", "paper_literal", "stage1", "default")
    summary = run_refresh(defs, open_workspace(queries=str(queries), evaluate=systems))
    (evaluation,) = summary.evaluations
    assert set(evaluation.systems) == set(systems)
    assert evaluation.systems["bm25"].means["mrr"] == 1.0
    assert summary.steps["retrieval_runs"]["bm25 mrr"] == 1.0
    assert "notes" not in summary.steps["retrieval_runs"]
    again = run_refresh(defs, open_workspace(queries=str(queries), evaluate=systems))
    assert again.steps["retrieval_runs"]["changed"] == 0


def test_events_carry_counts_and_no_running_text(open_workspace: OpenWorkspace) -> None:
    workspace = open_workspace()
    run_refresh(defs, workspace)
    with open_instance(workspace.home) as instance:
        records = instance.fetch_materializations(RAW_DOCUMENTS, limit=100).records
    metadata = [record.asset_materialization.metadata for record in records if record.asset_materialization]
    assert len(metadata) == len(PAGES)
    assert all({"document", "source", "sections"} <= set(of_one) for of_one in metadata)
    shown = " ".join(str(item.value) for of_one in metadata for item in of_one.values())
    assert "more.md" in shown
    assert "Exponential" not in shown


def test_refreshes_at_once_report_their_own_scan(open_workspace: OpenWorkspace, corpus: Path) -> None:
    first, second = open_workspace(), open_workspace()
    summary = run_refresh(defs, first)
    again = run_refresh(defs, second)
    assert (len(summary.scan.added), summary.scan.unchanged) == (len(PAGES), 0)
    assert (len(again.scan.added), again.scan.unchanged) == (0, len(PAGES))


def test_an_interrupted_refresh_is_no_error(
    open_workspace: OpenWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = open_workspace()

    def interrupt(activity: str, done: int, total: int | None) -> None:
        if activity == "lexical index":
            os.kill(os.getpid(), signal.SIGINT)

    workspace.progress = interrupt
    with pytest.raises(KeyboardInterrupt):
        run_refresh(defs, workspace)
    summary = run_refresh(defs, open_workspace())
    assert summary.steps["offline/published_index"]["documents"] == len(PAGES)


def test_damaged_databases_of_dagster_name_the_folder(open_workspace: OpenWorkspace) -> None:
    workspace = open_workspace()
    run_refresh(defs, workspace)
    (workspace.home.dagster / "history" / "runs.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(DagsterStorageUnusable, match="move that folder away"):
        run_refresh(defs, open_workspace())


def test_a_run_whose_process_has_died_does_not_look_alive(open_workspace: OpenWorkspace) -> None:
    workspace = open_workspace()
    workspace.home.prepare()
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    job = defs.resolve_job_def("refresh")
    with open_instance(workspace.home) as instance:
        tags = process_tags()
        alive = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)
        assert refresh_is_live(instance)
        instance.report_run_failed(alive)
        killed = tags | {"prime/process": str(child.pid)}
        dead = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=killed)
        assert not refresh_is_live(instance)
        run = instance.get_run_by_id(dead.run_id)
        assert run is not None
        assert run.status == dg.DagsterRunStatus.FAILURE
        instance.create_run_for_job(
            job, status=dg.DagsterRunStatus.STARTED
        )  # a run of the UI: not ours to judge
        assert refresh_is_live(instance)


def test_judged_documents_that_are_not_there_are_reported(
    open_workspace: OpenWorkspace, tmp_path: Path
) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text(
        json.dumps({"query": "exponential backoff", "relevant": ["more.md", "mistyped.md"]}) + "\n"
    )
    summary = run_refresh(defs, open_workspace(queries=str(queries)))
    assert "mistyped.md" in summary.steps["retrieval_runs"]["notes"]


def test_a_backfill_asks_for_a_refresh(open_workspace: OpenWorkspace) -> None:
    workspace = open_workspace()
    run_refresh(defs, workspace)
    with open_instance(workspace.home) as instance:
        result = dg.materialize(
            [raw_documents("document")],
            partition_key="more.md",
            instance=instance,
            resources={"workspace": workspace},
        )
        refreshed = instance.get_runs(dg.RunsFilter(job_name="refresh"))[0]
        requests: list[list[Any]] = []
        for run in (result.dagster_run, refreshed):
            context = dg.build_run_status_sensor_context(
                sensor_name="refresh_after_backfill",
                dagster_event=result.get_run_success_event(),
                dagster_instance=instance,
                dagster_run=run,
            )
            answer: Any = refresh_after_backfill(context)
            requests.append([request.run_key for request in answer])
    assert requests == [[result.run_id], []]
