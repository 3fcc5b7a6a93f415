"""The assets of the report: made by a refresh and by the job of answers, checked, and without running text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from prime_pipeline.definitions import definitions
from prime_pipeline.errors import AnswersIncomplete, NothingToStudy
from prime_pipeline.reporting.answers import ANSWERS
from prime_pipeline.reporting.studies import STUDIES, corpus_profile
from prime_pipeline.reports.writing import read_report
from prime_pipeline.storage.warehouse import warehouse_fingerprint
from prime_pipeline.studies.findings import read_study
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.chat_endpoint import Endpoint, answer, fault
from prime_pipeline_tests.papers import OpenPapers, opening, publish, write_papers

defs = definitions()

Metadata = dict[str, dict[str, Any]]


@pytest.fixture
def open_papers(tmp_path: Path) -> Iterator[OpenPapers]:
    """Opens workspaces on one home, each as a new process would."""
    papers = write_papers(tmp_path / "papers.json")
    with opening(tmp_path / "home", papers) as open_one:
        yield open_one


@pytest.fixture
def open_asking(open_papers: OpenPapers, endpoint: Endpoint) -> OpenPapers:
    """Opens them with an endpoint that answers every question alike; restructuring is by rules."""
    endpoint.responds(lambda request: answer("12 workers"))
    llm = {"base_url": endpoint.url, "model": "m", "concurrency": 1}
    by_rules = {"entities": "rule", "method": "extractive"}

    return lambda **options: open_papers(**{"llm": llm, "restructuring": by_rules, **options})


def run(job: str, workspace: Workspace, *, raise_on_error: bool = True) -> dg.ExecuteInProcessResult:
    return defs.resolve_job_def(job).execute_in_process(
        instance=dg.DagsterInstance.ephemeral(),
        resources={"workspace": workspace},
        raise_on_error=raise_on_error,
    )


def metadata(result: dg.ExecuteInProcessResult) -> Metadata:
    """The values of every event, by asset."""
    return {
        event.asset_key.to_user_string(): {
            name: item.value
            for name, item in event.step_materialization_data.materialization.metadata.items()
        }
        for event in result.get_asset_materialization_events()
        if event.asset_key
    }


def checks(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {found.check_name: found.passed for found in result.get_asset_check_evaluations()}


# --- a refresh ----------------------------------------------------------------------------------------------------


def test_a_refresh_makes_studies_report_and_warehouse(open_asking: OpenPapers, endpoint: Endpoint) -> None:
    workspace = open_asking(mode="full")
    result = run("refresh", workspace)
    events = metadata(result)
    assert [events[name]["changed"] for name in (*STUDIES, "report")] == [1] * 7
    assert ANSWERS not in events
    assert checks(result)["numbers_have_intervals"]
    content = read_report(workspace.home.reports)
    assert all(
        (content.cells, content.density, content.evidence, content.audit, content.costs, content.profile)
    )
    assert events["report"]["page"] == str(workspace.home.reports / "report.html")
    assert events["report"]["report"].startswith("# Retrieval report: papers")
    for name in STUDIES:
        assert len(events[name]["findings"]) > 100, name
        assert events[name]["seconds"] >= 0
    assert "| our default" in events["retrieval_quality"]["findings"]
    assert events["corpus_profile"]["encoded"] > 0
    with duckdb.connect(str(workspace.home.warehouse), read_only=True) as connection:
        tables = ("text_density", "fidelity_audit", "corpus_properties")
        n_rows = [connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in tables]
    assert all(n and n[0] > 0 for n in n_rows)
    assert endpoint.requests == []  # no refresh pays for answers


def test_a_refresh_with_nothing_to_do_keeps_all_of_them(open_papers: OpenPapers) -> None:
    run("refresh", open_papers())
    workspace = open_papers()
    before = warehouse_fingerprint(workspace.home.warehouse)
    events = metadata(run("refresh", workspace))
    assert {events[name]["changed"] for name in (*STUDIES, "report", "warehouse")} == {0}
    assert "encoded" not in events["corpus_profile"]
    assert warehouse_fingerprint(workspace.home.warehouse) == before
    assert workspace.embedder.texts_encoded == []  # type: ignore[attr-defined]


def test_what_a_study_found_is_its_data_version(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    result = run("refresh", workspace)
    versions = {
        event.asset_key.to_user_string(): (event.step_materialization_data.materialization.tags or {}).get(
            "dagster/data_version"
        )
        for event in result.get_asset_materialization_events()
        if event.asset_key
    }
    for name in STUDIES:
        study = read_study(workspace.home.study(name))
        assert study is not None
        assert versions[name] == study.fingerprint


def test_without_queries_the_studies_of_them_say_so(open_papers: OpenPapers) -> None:
    result = run("refresh", open_papers(queries=None))
    events = metadata(result)
    for name in ("retrieval_quality", "evidence_localisation", "fidelity_audit", "text_density"):
        assert "|" not in events[name]["findings"], name
    for name in ("retrieval_quality", "evidence_localisation", "fidelity_audit"):
        assert events[name]["findings"] == "Nothing to look at."
    assert all(checks(result).values())


# --- the check ----------------------------------------------------------------------------------------------------


def test_a_report_with_a_bare_number_fails_its_check(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    publish(workspace)
    corpus_profile(workspace)
    path = workspace.home.study("corpus_profile")
    kept = json.loads(path.read_text())
    kept["content"]["profile"]["properties"][0]["result"] |= {
        "low": None,
        "high": None,
        "reason": "",
    }
    path.write_text(json.dumps(kept))
    result = run("refresh", open_papers())
    (check,) = [c for c in result.get_asset_check_evaluations() if c.check_name == "numbers_have_intervals"]
    assert not check.passed
    assert check.metadata["without interval"].value == ["report.profile.properties[0].result"]


# --- the job of answers -------------------------------------------------------------------------------------------


def test_the_job_of_answers_answers_and_reports(open_asking: OpenPapers, endpoint: Endpoint) -> None:
    workspace = open_asking(retrieval={"top_k": 1})
    publish(workspace)
    result = run("answer", workspace)
    events = metadata(result)
    assert set(events) == {ANSWERS, "report"}
    assert (events[ANSWERS]["changed"], events[ANSWERS]["calls"], events[ANSWERS]["tokens"]) == (1, 4, 40)
    assert "| raw-to-raw | all |" in events[ANSWERS]["findings"]
    assert events["report"]["changed"] == 1
    assert read_report(workspace.home.reports).answers != ()
    assert checks(result) == {"numbers_have_intervals": True}
    again = metadata(run("answer", open_asking(retrieval={"top_k": 1})))
    assert (again[ANSWERS]["changed"], again[ANSWERS]["calls"], again["report"]["changed"]) == (0, 0, 0)
    assert len(endpoint.requests) == 4


def test_a_refresh_keeps_answers_in_the_report(open_asking: OpenPapers, endpoint: Endpoint) -> None:
    workspace = open_asking()
    publish(workspace)
    run("answer", workspace)
    n_requests = len(endpoint.requests)
    again = open_asking()
    run("refresh", again)
    assert read_report(again.home.reports).answers != ()
    assert len(endpoint.requests) == n_requests


def test_incomplete_answers_fail_the_run_and_leave_the_report_alone(
    open_asking: OpenPapers, endpoint: Endpoint
) -> None:
    endpoint.responds(
        lambda request: answer("12 workers") if len(endpoint.requests) < 3 else fault(401, "no such key")
    )
    workspace = open_asking(retrieval={"top_k": 1})
    publish(workspace)
    with pytest.raises(AnswersIncomplete, match="2 of 4"):
        run("answer", workspace)
    result = run("answer", open_asking(retrieval={"top_k": 1}), raise_on_error=False)
    assert not result.success
    assert metadata(result) == {}
    assert not (workspace.home.reports / "report.json").exists()
    endpoint.responds(lambda request: answer("12 workers"))
    assert metadata(run("answer", open_asking(retrieval={"top_k": 1})))[ANSWERS]["calls"] == 2


def test_without_an_endpoint_the_job_of_answers_names_the_setting(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    publish(workspace)
    with pytest.raises(NothingToStudy, match=r"llm\.base_url"):
        run("answer", workspace)


# --- events -------------------------------------------------------------------------------------------------------


def test_events_carry_no_running_text(open_asking: OpenPapers) -> None:
    workspace = open_asking(mode="full")
    results = [run("refresh", workspace), run("answer", workspace)]
    events = [metadata(result) for result in results]
    assert set(events[0]) > set(STUDIES)
    shown = json.dumps(
        [of_run[name] for of_run in events for name in (*STUDIES, ANSWERS, "report") if name in of_run]
    )
    assert "alpha" in shown  # ids may be named
    for text in (
        "Knead",
        "Heat the oven",
        "keeps 12 workers",
        "holds 40 jobs",
        "How many workers",
        "an hour",
    ):
        assert not re.search(text, shown), text


def test_every_study_is_an_asset_with_a_description() -> None:
    graph = defs.resolve_asset_graph()
    for name in (*STUDIES, ANSWERS, "report"):
        node = graph.get(dg.AssetKey(name))
        assert (node.group_name, bool(node.description)) == ("reports", True)
        assert dg.AssetKey(["offline", "published_index"]) in node.parent_keys
    report = graph.get(dg.AssetKey("report"))
    assert {dg.AssetKey(name) for name in (*STUDIES, ANSWERS)} <= set(report.parent_keys)
    for name in ("retrieval_quality", "evidence_localisation", "index_costs", ANSWERS):
        assert dg.AssetKey("retrieval_runs") in graph.get(dg.AssetKey(name)).parent_keys
