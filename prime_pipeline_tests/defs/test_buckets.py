"""Buckets of documents as partitions: what Dagster is told of a large corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.corpus_assets import raw_documents
from prime_pipeline.defs.documents import RAW_DOCUMENTS, RESTRUCTURED_DOCUMENTS
from prime_pipeline.defs.partitions import BUCKETS, partition_key_of, partitions
from prime_pipeline.defs.runs import RefreshSummary, run_refresh
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.defs.conftest import PAGES, OpenWorkspace

Refresh = Callable[..., RefreshSummary]


@pytest.fixture
def refresh(open_workspace: OpenWorkspace) -> Refresh:
    def one(partitioning: str = "bucket", **options: Any) -> RefreshSummary:
        workspace = open_workspace(partitioning=partitioning, **options)
        return run_refresh(definitions(workspace.settings.partitioning), workspace, allow_removals=True)

    return one


def buckets_of(workspace: Workspace) -> dict[str, tuple[str, ...]]:
    """Documents by bucket, without the empty ones."""
    found = partitions(workspace.store.catalogue().values(), "bucket")
    return {
        key: tuple(e.doc_id for e in partition.entries)
        for key, partition in found.items()
        if partition.entries
    }


def events(workspace: Workspace, asset: dg.AssetKey) -> dict[str, list[dict[str, Any]]]:
    """Metadata of the events of each partition, newest first."""
    found: dict[str, list[dict[str, Any]]] = {}
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        for record in instance.fetch_materializations(asset, limit=1_000).records:
            event = record.asset_materialization
            assert event is not None
            assert event.partition is not None
            found.setdefault(event.partition, []).append({k: v.value for k, v in event.metadata.items()})
    return found


def statuses(workspace: Workspace) -> dict[str, StaleStatus]:
    """Status of restructured buckets that hold documents, as the UI shows it."""
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        graph = definitions("bucket").resolve_asset_graph()
        resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        return {key: resolver.get_status(RESTRUCTURED_DOCUMENTS, key) for key in buckets_of(workspace)}


def test_a_bucket_depends_on_the_id_alone_and_every_bucket_is_a_partition(
    open_workspace: OpenWorkspace,
) -> None:
    workspace = open_workspace(partitioning="bucket")
    run_refresh(definitions("bucket"), workspace)
    entry = workspace.store.catalogue()["more.md"]
    assert partition_key_of(entry, "bucket") == "03"  # sha256("more.md") = 03...
    assert partition_key_of(entry, "document") == "more.md"
    assert len(BUCKETS) == 256
    assert list(partitions([], "bucket")) == list(BUCKETS)
    assert not partitions([], "document")


def test_each_bucket_that_holds_documents_has_one_event(
    refresh: Refresh, open_workspace: OpenWorkspace
) -> None:
    first = refresh()
    workspace = open_workspace()
    held = buckets_of(workspace)
    assert sum(map(len, held.values())) == len(PAGES)
    told = events(workspace, RAW_DOCUMENTS)
    assert {key: [event["documents"] for event in found] for key, found in told.items()} == {
        key: [len(ids)] for key, ids in held.items()
    }
    assert first.steps["corpus_scan"]["events"] == len(held)
    again = refresh()
    assert (again.steps["corpus_scan"]["events"], again.scan.n_changes) == (0, 0)


def test_a_change_and_a_removal_are_events_of_their_buckets(
    refresh: Refresh, open_workspace: OpenWorkspace, corpus: Path
) -> None:
    refresh()
    held = buckets_of(open_workspace())
    of = {doc_id: key for key, ids in held.items() for doc_id in ids}
    (corpus / "more.md").write_text("# More\n\n## Retries\n\nNone at all.\n")
    (corpus / "notes.txt").unlink()
    assert refresh().steps["corpus_scan"]["events"] == len({of["more.md"], of["notes.txt"]})
    told = events(open_workspace(), RAW_DOCUMENTS)
    assert len(told[of["more.md"]]) == 2
    assert told[of["notes.txt"]][0]["documents"] == len(held[of["notes.txt"]]) - 1
    assert refresh().steps["corpus_scan"]["events"] == 0


def test_switching_makes_nothing_anew(refresh: Refresh, open_workspace: OpenWorkspace) -> None:
    options = {"mode": "full"}
    before = refresh("document", **options)
    switched = refresh("bucket", **options)
    back = refresh("document", **options)
    for summary in (switched, back):
        assert summary.scan.n_changes == 0
        assert summary.published["build"] == before.published["build"]
        assert summary.steps["restructuring"]["restructured"] == 0
        made = {name for name, step in summary.steps.items() if step["changed"]}
        assert made <= {"retrieval_runs"}
    held = buckets_of(open_workspace())
    assert switched.steps["corpus_scan"]["events"] == len(held)
    assert switched.steps["restructuring"]["events"] == len(held)
    assert (back.steps["corpus_scan"]["events"], back.steps["restructuring"]["events"]) == (0, 0)


def test_only_the_bucket_of_a_changed_document_turns_stale(
    refresh: Refresh, open_workspace: OpenWorkspace, corpus: Path
) -> None:
    refresh(mode="full")
    workspace = open_workspace(mode="full", partitioning="bucket")
    assert set(statuses(workspace).values()) == {StaleStatus.FRESH}
    (corpus / "more.md").write_text("# More\n\n## Retries\n\nNone at all.\n")
    key = partition_key_of(workspace.store.catalogue()["more.md"], "bucket")
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        result = dg.materialize(
            [raw_documents("bucket")],
            instance=instance,
            resources={"workspace": workspace},
            partition_key=key,
        )
    assert result.success
    found = statuses(workspace)
    assert found.pop(key) is StaleStatus.STALE
    assert set(found.values()) == {StaleStatus.FRESH}
    refresh(mode="full")
    assert set(statuses(workspace).values()) == {StaleStatus.FRESH}


def test_a_bucket_with_an_unreadable_document_fails_and_keeps_the_others(
    refresh: Refresh, open_workspace: OpenWorkspace, corpus: Path
) -> None:
    refresh()
    workspace = open_workspace(partitioning="bucket")
    held = buckets_of(workspace)
    broken = next(key for key, ids in held.items() if "more.md" in ids)
    (corpus / "more.md").write_bytes(b"\xff\xff\xff")
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        tags = {
            "dagster/asset_partition_range_start": BUCKETS[0],
            "dagster/asset_partition_range_end": BUCKETS[-1],
        }
        result = dg.materialize(
            [raw_documents("bucket")],
            instance=instance,
            resources={"workspace": workspace},
            tags=tags,
            raise_on_error=False,
        )
    assert not result.success
    told = events(workspace, RAW_DOCUMENTS)
    assert {key: len(found) for key, found in told.items() if key in held} == {
        key: 1 if key == broken else 2 for key in held
    }
