"""What the UI plots, links and filters by."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.corpus_assets import raw_documents
from prime_pipeline.defs.describing import spending_metadata, tag_value
from prime_pipeline.defs.documents import RAW_DOCUMENTS
from prime_pipeline.defs.forgetting import scrub_history
from prime_pipeline.defs.runs import run_refresh
from prime_pipeline.defs.table_columns import LEXICAL_TABLES, METADATA_TABLES
from prime_pipeline.indexes.builds import LEXICAL_FILE, METADATA_FILE
from prime_pipeline.llm.budget import Prices
from prime_pipeline.records import Spending
from prime_pipeline.refresh.warehouse import TABLES
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.defs.conftest import OpenWorkspace

defs = definitions()
PLOTTED = {
    "corpus_scan": {"changed", "failed", "added", "removed", "seconds"},
    "raw_corpus": {"documents", "sections", "changed", "seconds"},
    "restructuring": {"sections", "tokens", "calls", "changed", "seconds", "accepted share", "raw share"},
    "restructured_corpus": {"documents", "sections", "changed", "seconds", "deferred share"},
    "retrieval_runs": {"queries", "ndcg@5", "changed", "seconds"},
    "warehouse": {"documents", "sections", "changed", "seconds"},
    **{
        f"{variant}/{part}": {"documents", "changed", "seconds"}
        for variant in ("offline", "full")
        for part in ("document_metadata", "lexical_index", "published_index")
    },
}


@pytest.fixture
def queries(tmp_path: Path) -> str:
    path = tmp_path / "queries.jsonl"
    path.write_text(json.dumps({"query": "exponential backoff", "relevant": "more.md"}) + "\n")
    return str(path)


def numeric(facts: Any) -> set[str]:
    return {name for name, value in facts.items() if isinstance(value, int | float)}


def test_what_matters_is_plotted_after_every_refresh(open_workspace: OpenWorkspace, queries: str) -> None:
    first = run_refresh(defs, open_workspace(mode="full", queries=queries))
    again = run_refresh(defs, open_workspace(mode="full", queries=queries))
    for summary in (first, again):
        for asset, names in PLOTTED.items():
            assert names <= numeric(summary.steps[asset]), asset
    last = again.steps
    assert last["full/published_index"]["documents"] == last["warehouse"]["documents"] == 6
    assert last["raw_corpus"]["sections"] == last["warehouse"]["sections"]
    assert last["retrieval_runs"]["ndcg@5"] == last["retrieval_runs"]["full default ndcg@5"]


def test_a_name_is_of_one_kind_everywhere(open_workspace: OpenWorkspace, queries: str) -> None:
    summary = run_refresh(defs, open_workspace(mode="full", queries=queries))
    kinds: dict[str, set[bool]] = {}
    for facts in summary.steps.values():
        for name, value in facts.items():
            kinds.setdefault(name, set()).add(isinstance(value, str))
    assert {name for name, found in kinds.items() if len(found) > 1} == set()


def test_money_is_told_where_there_is_a_price() -> None:
    spending = Spending(calls=1, prompt_tokens=1_000_000, completion_tokens=500_000)
    told = spending_metadata(spending, Prices(1.0, 2.0, "EUR"))
    assert (told["cost EUR"], told["tokens"]) == (2.0, 1_500_000)
    assert not [name for name in spending_metadata(spending, None) if name.startswith("cost")]


def columns_of(path: Path, tables: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({table})")}
            for table in tables
        }


def test_the_shown_columns_are_those_of_the_files(open_workspace: OpenWorkspace) -> None:
    workspace = open_workspace()
    run_refresh(defs, workspace)
    build = workspace.builds("offline").live_path
    assert build
    assert columns_of(build / LEXICAL_FILE, LEXICAL_TABLES) == LEXICAL_TABLES
    assert columns_of(build / METADATA_FILE, METADATA_TABLES) == METADATA_TABLES
    with duckdb.connect(str(workspace.home.warehouse), read_only=True) as connection:
        for table, columns in TABLES.items():
            found = connection.execute(f"DESCRIBE {table}").fetchall()
            assert {row[0]: row[1] for row in found} == columns


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Keys", "Keys"),
        (" two\nlines\x1b[31m\u202e ", "two lines [31m"),
        ("\udc80", ""),
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 99 + "…"),
    ],
)
def test_titles_are_tamed_for_tags(text: str, value: str) -> None:
    assert tag_value(text) == value


def read_again(workspace: Workspace, *names: str) -> dict[str, str]:
    """Tags of the run that reads documents again."""
    catalogue = workspace.store.catalogue()
    keys = sorted(catalogue[name].partition_key for name in names)
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        tags = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
        result = dg.materialize(
            [raw_documents("document")], instance=instance, resources={"workspace": workspace}, tags=tags
        )
        run = instance.get_run_by_id(result.run_id)
        assert run
        return {name: value for name, value in run.tags.items() if name.startswith("prime/")}


def test_a_run_about_one_document_is_found_by_its_title(open_workspace: OpenWorkspace) -> None:
    workspace = open_workspace()
    run_refresh(defs, workspace)
    assert read_again(workspace, "more.md") == {"prime/document": "more.md", "prime/title": "More"}
    assert read_again(workspace, *workspace.store.catalogue()) == {}
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        event = instance.get_latest_materialization_event(RAW_DOCUMENTS)
        assert event
        assert event.asset_materialization
        assert "title" in event.asset_materialization.metadata


def test_a_title_that_was_cut_for_a_tag_is_forgotten(open_workspace: OpenWorkspace, corpus: Path) -> None:
    title = "A secret " + "very " * 30 + "long title"
    (corpus / "more.md").write_text(f"# {title}\n\n## Part\n\nText.\n")
    workspace = open_workspace()
    run_refresh(defs, workspace)
    assert read_again(workspace, "more.md")["prime/title"].startswith("A secret")
    scrub_history(workspace.home.dagster, ["more.md", title])
    for path in workspace.home.dagster.rglob("*.db"):
        assert b"A secret" not in path.read_bytes(), path
