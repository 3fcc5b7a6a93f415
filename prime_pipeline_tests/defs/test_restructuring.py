"""The full track: sections restructured by rules or by a language model, indexed, and shown in Dagster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.corpus_assets import corpus_scan
from prime_pipeline.defs.documents import RESTRUCTURED_DOCUMENTS
from prime_pipeline.defs.instance import open_instance
from prime_pipeline.defs.liveness import pool_holder, refresh_is_live
from prime_pipeline.defs.restructuring_assets import POOL, restructured_documents
from prime_pipeline.defs.runs import run_refresh
from prime_pipeline.errors import MethodChanged
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.chat_endpoint import Endpoint, answer, fault
from prime_pipeline_tests.defs.conftest import OpenWorkspace

defs = definitions()

PROSE = (
    "Moreover, the scheduler of the Alpha project keeps 12 workers alive. It is worth noting that each worker reads "
    "the queue every 250 ms and never sleeps for longer. Furthermore, a job that fails three times is not tried again, "
    "and its record is kept for 30 days in order to let somebody look at it. In addition, the API of the scheduler "
    "answers within 20 ms."
)
PAGE = "# {name}\n\nA short opening.\n\n## Scheduling\n\n{prose}\n\n## Short\n\nToo short to rewrite.\n"
KEY = "sk-very-secret-0123456789"

OpenFull = Callable[..., Workspace]


@pytest.fixture
def pages(corpus: Path) -> Path:
    """The corpus, with two pages that are worth restructuring instead of the six that are not."""
    for path in sorted(corpus.rglob("*.*")):
        path.unlink()
    for name in ("one", "two"):
        text = PAGE.format(name=name.title(), prose=PROSE.replace("Alpha", f"Alpha {name.title()}"))
        (corpus / f"{name}.md").write_text(text)
    return corpus


@pytest.fixture
def open_full(open_workspace: OpenWorkspace, pages: Path) -> OpenFull:
    return lambda **options: open_workspace(mode="full", **options)


@pytest.fixture
def open_llm(open_full: OpenFull, endpoint: Endpoint) -> OpenFull:
    def open_one(**llm: Any) -> Workspace:
        price = {"m": {"prompt": 1.0, "completion": 2.0}}
        model = {"base_url": endpoint.url, "model": "m", "api_key": KEY, "prices": price, "concurrency": 2}
        return open_full(llm={**model, **llm})

    return open_one


def faithful(request: dict[str, Any]) -> dict[str, Any]:
    """A rewrite that says the same in fewer words."""
    name = "Two" if "Alpha Two" in request["messages"][1]["content"] else "One"
    text = (
        f"The scheduler of the Alpha {name} project keeps 12 workers alive. Each worker reads the queue every 250 ms and "
        "never sleeps for longer. A job that fails three times is not tried again; its record is kept for 30 days so "
        "that somebody can look at it. The API of the scheduler answers within 20 ms."
    )
    return answer(text, usage={"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150})


def false(request: dict[str, Any]) -> dict[str, Any]:
    """A rewrite with another number, whatever is asked."""
    reply = faithful(request)
    message = reply["choices"][0]["message"]
    message["content"] = message["content"].replace("250 ms", "520 ms")
    return reply


def stale(workspace: Workspace) -> dict[str, StaleStatus]:
    """Status of every partition of restructured_documents, as the UI shows it."""
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        graph = defs.resolve_asset_graph()
        resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        keys = instance.get_dynamic_partitions("documents")
        return {key: resolver.get_status(RESTRUCTURED_DOCUMENTS, key) for key in keys}


def metadata(workspace: Workspace, asset: dg.AssetKey, partition: str | None = None) -> dict[str, Any]:
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        filtered = dg.AssetRecordsFilter(asset, asset_partitions=[partition] if partition else None)
        record = instance.fetch_materializations(filtered, limit=1).records[0]
        assert record.asset_materialization is not None
        return {name: item.value for name, item in record.asset_materialization.metadata.items()}


def backfill(workspace: Workspace, *keys: str) -> dg.ExecuteInProcessResult:
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        tags = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
        return dg.materialize(
            [restructured_documents("document")],
            instance=instance,
            resources={"workspace": workspace},
            tags=tags,
            raise_on_error=False,
        )


def test_offline_mode_builds_no_full_track(open_workspace: OpenWorkspace, pages: Path) -> None:
    workspace = open_workspace()
    summary = run_refresh(defs, workspace)
    full = [step for name, step in summary.steps.items() if name.startswith(("full", "restruct"))]
    assert len(full) == 6
    assert all(step["changed"] == 0 for step in full)
    assert not (workspace.home.root / "restructured").exists()


def test_the_job_of_the_ui_runs_in_offline_mode_too(open_workspace: OpenWorkspace, pages: Path) -> None:
    workspace = open_workspace()
    result = defs.resolve_job_def("refresh").execute_in_process(
        instance=dg.DagsterInstance.ephemeral(), resources={"workspace": workspace}
    )
    assert result.success
    assert all(evaluation.passed for evaluation in result.get_asset_check_evaluations())
    assert workspace.published_variants() == ["offline"]


def test_extracts_are_indexed_beside_raw_text(open_full: OpenFull) -> None:
    workspace = open_full()
    summary = run_refresh(defs, workspace)
    step = summary.steps["restructuring"]
    assert step["strategy"].startswith("extractive-")
    assert (step["restructured"], step["calls"], step["put off documents"]) == (2, 0, 0)
    assert step["words saved"] > 0.05
    assert not summary.is_partial
    with workspace.retriever() as retriever:
        hit = retriever.search("how often does a worker read the queue")[0]
    assert retriever.manifest.variant == "full"
    assert retriever.manifest.restructuring == step["strategy"]
    assert "It is worth noting that" in hit.text
    assert hit.restructured is not None
    assert "250 ms" in hit.restructured
    assert "It is worth noting that" not in hit.restructured
    assert hit.restructured.startswith("## Scheduling")
    with workspace.retriever("offline") as offline:
        assert offline.search("queue")[0].restructured is None


def test_a_refresh_with_nothing_to_do_restructures_nothing(open_full: OpenFull) -> None:
    run_refresh(defs, open_full())
    again = run_refresh(defs, open_full())
    assert {name: step["changed"] for name, step in again.steps.items()} == dict.fromkeys(again.steps, 0)


def test_only_the_changed_document_turns_stale(open_full: OpenFull, pages: Path) -> None:
    run_refresh(defs, open_full())
    workspace = open_full()
    assert set(stale(workspace).values()) == {StaleStatus.FRESH}
    (pages / "one.md").write_text((pages / "one.md").read_text().replace("12 workers", "14 workers"))
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        dg.materialize([corpus_scan], instance=instance, resources={"workspace": workspace})
    statuses = stale(workspace)
    assert {key.split("-")[0]: status for key, status in statuses.items()} == {
        "one.md": StaleStatus.STALE,
        "two.md": StaleStatus.FRESH,
    }
    run_refresh(defs, open_full())
    assert set(stale(workspace).values()) == {StaleStatus.FRESH}


def test_an_edited_section_is_one_call_and_a_renamed_file_none(
    open_llm: OpenFull, endpoint: Endpoint, pages: Path
) -> None:
    endpoint.responds(faithful)
    first = run_refresh(defs, open_llm()).steps["restructuring"]
    assert (first["calls"], first["prompt tokens"], first["completion tokens"]) == (2, 200, 100)
    assert first["cost USD"] == pytest.approx(0.0004)
    text = (pages / "one.md").read_text()
    (pages / "one.md").write_text(text.replace("Too short", "Much too short"))
    edited = run_refresh(defs, open_llm()).steps["restructuring"]
    assert (edited["restructured"], edited["calls"], edited["cache hits"]) == (1, 0, 1)
    (pages / "one.md").write_text(text.replace("fails three times", "fails three times in a row"))
    assert run_refresh(defs, open_llm()).steps["restructuring"]["calls"] >= 1
    (pages / "two.md").rename(pages / "renamed.md")
    n_requests = len(endpoint.requests)
    renamed = run_refresh(defs, open_llm(), allow_removals=True).steps["restructuring"]
    assert (renamed["restructured"], renamed["calls"]) == (1, 0)
    assert len(endpoint.requests) == n_requests


def test_what_the_gate_refuses_is_never_served(open_llm: OpenFull, endpoint: Endpoint) -> None:
    endpoint.responds(false)
    workspace = open_llm()
    summary = run_refresh(defs, workspace)
    assert not summary.is_partial
    step = summary.steps["restructuring"]
    assert step["raw share"] == pytest.approx(2 / 6, abs=1e-3)
    with workspace.retriever() as retriever:
        hit = retriever.search("how often does a worker read the queue")[0]
    assert hit.restructured is None
    assert "520" not in (workspace.home.indexes("full") / "CURRENT").read_text()
    document, outcome = workspace.restructured_document("one.md")
    (refused,) = [section for section in outcome.sections if section.refused]
    assert refused.kind == "raw"
    assert {finding.code for finding in refused.findings} & {"number_missing", "number_invented"}
    assert refused.refused is not None
    assert "520 ms" in refused.refused
    assert document.doc_id == "one.md"


def test_a_failing_endpoint_puts_documents_off_and_the_next_refresh_goes_on(
    open_llm: OpenFull, endpoint: Endpoint
) -> None:
    endpoint.responds(lambda request: fault(401, "no such key"))
    workspace = open_llm()
    summary = run_refresh(defs, workspace)
    assert summary.is_partial
    assert "nothing_is_put_off" in summary.failed_checks
    assert workspace.published_variants() == ["offline"]
    assert summary.steps["restructured_corpus"]["note"]
    assert "no such key" in summary.steps["restructuring"]["put off because"]
    with workspace.retriever() as retriever:  # what was published in offline mode answers on
        assert retriever.manifest.variant == "offline"
    assert KEY not in json.dumps(summary.steps)
    endpoint.responds(faithful)
    healed = open_llm()
    assert not run_refresh(defs, healed).is_partial
    assert healed.published_variants() == ["offline", "full"]


def test_what_was_published_stays_while_too_much_is_put_off(
    open_llm: OpenFull, endpoint: Endpoint, pages: Path
) -> None:
    endpoint.responds(faithful)
    first = open_llm()
    run_refresh(defs, first)
    served = first.builds("full").served_id
    for name in ("one", "two"):
        path = pages / f"{name}.md"
        path.write_text(path.read_text().replace("12 workers", "16 workers"))
    endpoint.responds(lambda request: fault(401, "no such key"))
    second = open_llm()
    assert run_refresh(defs, second).is_partial
    assert second.builds("full").served_id == served


def test_a_budget_stops_between_calls_and_a_later_run_goes_on(open_llm: OpenFull, endpoint: Endpoint) -> None:
    endpoint.responds(faithful)
    short = run_refresh(defs, open_llm(max_tokens=1, concurrency=1))
    assert short.steps["restructuring"]["put off documents"] == 2
    assert endpoint.requests == []
    whole = run_refresh(defs, open_llm(concurrency=1))
    assert whole.steps["restructuring"]["calls"] == 2
    assert not whole.is_partial


def test_money_is_in_the_warehouse_with_what_was_expected(open_llm: OpenFull, endpoint: Endpoint) -> None:
    endpoint.responds(faithful)
    workspace = open_llm()
    summary = run_refresh(defs, workspace)
    assert summary.steps["restructuring"]["expected calls"] == 2
    with duckdb.connect(str(workspace.home.warehouse), read_only=True) as connection:
        spent = connection.execute(
            "SELECT expected_calls, sum(calls), sum(prompt_tokens), sum(cost)"
            " FROM restructuring_runs JOIN spending USING (run_id) GROUP BY ALL"
        ).fetchall()
        outcomes = connection.execute(
            "SELECT outcome, count(*) FROM restructurings GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    assert spent == [(2, 2, 200, pytest.approx(0.0004))]
    assert dict(outcomes)["accepted"] == 2


def test_an_estimate_costs_nothing_and_a_sample_costs_the_sample(
    open_llm: OpenFull, endpoint: Endpoint
) -> None:
    endpoint.responds(faithful)
    offline = open_llm()
    run_refresh(
        defs, Workspace(offline.settings.model_copy(update={"mode": "offline"}), embedder=offline.embedder)
    )
    quote = offline.quote()
    assert quote.estimate is not None
    assert (quote.estimate.n_calls, quote.estimate.n_cached, quote.estimate.n_routed) == (2, 0, 4)
    assert quote.cost is not None
    assert quote.cost > 0
    assert endpoint.requests == []
    sampled = open_llm().quote(1)
    assert len(endpoint.requests) == 1
    assert sampled.sample is not None
    assert [s.outcome.kind for s in sampled.sample.sections] == ["accepted"]
    assert sampled.estimate is not None
    assert (sampled.estimate.n_calls, sampled.estimate.n_cached) == (1, 1)
    assert sampled.prompt_tokens == round(sampled.estimate.prompt_tokens * sampled.sample.prompt_factor)
    workspace = open_llm()
    again = workspace.quote(1)
    assert [spent.calls for spent in workspace.ledger.totals().values()] in ([1, 0], [0, 1])
    assert len(endpoint.requests) == 1
    assert again.estimate == sampled.estimate


def test_a_backfill_restructures_the_chosen_documents_and_one_that_fails_fails_alone(
    open_llm: OpenFull, endpoint: Endpoint
) -> None:
    endpoint.responds(faithful)
    workspace = open_llm(deadline_s=0.1)
    offline = workspace.settings.model_copy(update={"mode": "offline"})
    run_refresh(defs, Workspace(offline, embedder=workspace.embedder))
    endpoint.responds(lambda r: fault(500) if "Alpha Two" in r["messages"][1]["content"] else faithful(r))
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        one, two = instance.get_dynamic_partitions("documents")
    assert not backfill(workspace, one, two).success
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        assert instance.get_materialized_partitions(RESTRUCTURED_DOCUMENTS) == {one}
    endpoint.responds(faithful)
    assert backfill(open_llm(), two, two).success
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        assert instance.get_materialized_partitions(RESTRUCTURED_DOCUMENTS) == {one, two}


def test_a_document_links_its_page_and_says_what_it_cost(open_llm: OpenFull, endpoint: Endpoint) -> None:
    endpoint.responds(faithful)
    workspace = open_llm()
    run_refresh(defs, workspace)
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        key = instance.get_dynamic_partitions("documents")[0]
    facts = metadata(workspace, RESTRUCTURED_DOCUMENTS, key)
    assert facts["accepted sections"] == 1
    assert (facts["calls"], facts["prompt tokens"], facts["tokens"]) == (1, 100, 150)
    assert facts["cost USD"] == pytest.approx(200 / 1_000_000)
    page = Path(facts["diff page"])
    assert "Scheduling" in page.read_text()
    assert KEY not in page.read_text()


def test_a_document_follows_its_sections_to_their_lines(open_full: OpenFull) -> None:
    workspace = open_full()
    run_refresh(defs, workspace)
    with dg.DagsterInstance.from_config(str(workspace.home.dagster)) as instance:
        event = instance.get_latest_materialization_event(RESTRUCTURED_DOCUMENTS)
        assert event
        assert event.asset_materialization
        table = event.asset_materialization.metadata["section lineage"]
    assert isinstance(table, dg.TableMetadataValue)
    shown = [column.name for column in table.schema.columns]
    assert shown == ["section", "heading", "verdict", "codes", "lines"]
    rows = [tuple(record.data[column] for column in shown) for record in table.records]
    name = str(rows[0][0]).rpartition("#")[0]
    assert rows == [
        (f"{name}#0", "", "unchanged", "", "1-4"),
        (f"{name}#1", "Scheduling", "accepted", "", "5-8"),
        (f"{name}#2", "Short", "unchanged", "", "9-11"),
    ]


def test_a_long_document_lists_its_first_sections(open_full: OpenFull, pages: Path) -> None:
    text = "# Long\n\n" + "".join(f"## Part {i}\n\nFew words.\n\n" for i in range(120))
    (pages / "one.md").write_text(text)
    (pages / "two.md").unlink()
    workspace = open_full()
    run_refresh(defs, workspace)
    facts = metadata(workspace, RESTRUCTURED_DOCUMENTS)
    assert facts["sections not listed"] == facts["sections"] - 100 > 0


def test_lost_dagster_storage_costs_history_and_no_call(open_llm: OpenFull, endpoint: Endpoint) -> None:
    endpoint.responds(faithful)
    workspace = open_llm()
    run_refresh(defs, workspace)
    workspace.close()
    shutil.rmtree(workspace.home.dagster)
    n_requests = len(endpoint.requests)
    summary = run_refresh(defs, open_llm())
    assert len(endpoint.requests) == n_requests
    assert summary.steps["restructuring"]["events"] == 2
    assert set(stale(workspace).values()) == {StaleStatus.FRESH}


def test_the_key_is_nowhere_in_the_home(open_llm: OpenFull, endpoint: Endpoint) -> None:
    endpoint.responds(lambda request: fault(401, f"bad key {KEY}"))
    workspace = open_llm()
    run_refresh(defs, workspace)
    workspace.close()
    holders = [p for p in workspace.home.root.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    assert holders == []


def test_a_removed_document_leaves_no_text_behind(open_full: OpenFull, pages: Path) -> None:
    workspace = open_full()
    run_refresh(defs, workspace)
    workspace.close()
    (pages / "one.md").unlink()
    later = open_full()
    step = run_refresh(defs, later, allow_removals=True).steps["restructuring"]
    assert (step["removed"], step["changed"]) == (1, 1)
    later.builds("offline").collect_garbage(0)
    later.builds("full").collect_garbage(0)
    later.close()
    holders = [p for p in later.home.root.rglob("*") if p.is_file() and b"Alpha One" in p.read_bytes()]
    assert holders == []


def test_a_killed_run_does_not_hold_the_pool(open_full: OpenFull) -> None:
    workspace = open_full()
    workspace.home.prepare()
    with open_instance(workspace.home) as instance:
        storage = instance.event_log_storage
        storage.initialize_concurrency_limit_to_default(POOL)
        storage.claim_concurrency_slot(POOL, "a-run-that-is-gone", "restructuring")
        assert pool_holder(instance, POOL) == "a-run-that-is-gone"
        refresh_is_live(instance)
        assert pool_holder(instance, POOL) is None
    assert not run_refresh(defs, workspace).is_partial
    with open_instance(workspace.home) as instance:
        assert pool_holder(instance, POOL) is None


def test_another_strategy_leaves_nothing_of_a_removed_document_either(
    open_llm: OpenFull, open_full: OpenFull, endpoint: Endpoint, pages: Path
) -> None:
    endpoint.responds(faithful)
    run_refresh(defs, open_llm())
    # The endpoint is gone, and nobody asked for extracts.
    with pytest.raises(MethodChanged, match="llm:m/full-1"):
        run_refresh(defs, open_full())
    extractive = open_full(restructuring={"method": "extractive"})
    run_refresh(defs, extractive)
    assert len(extractive.home.strategies()) == 2
    extractive.close()
    (pages / "one.md").unlink()
    offline = Workspace(
        extractive.settings.model_copy(update={"mode": "offline"}), embedder=extractive.embedder
    )
    run_refresh(defs, offline, allow_removals=True)
    folders = [offline.home.root / "restructured", offline.home.diffs, offline.home.documents]
    texts = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert texts
    assert [path for path in texts if b"Alpha One" in path.read_bytes()] == []
    assert offline.collect_restructured_garbage() > 0
    assert offline.home.strategies() == []
    offline.close()
