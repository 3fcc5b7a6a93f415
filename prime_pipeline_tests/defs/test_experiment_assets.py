"""The experiment in Dagster: a partition for each cell, all cells in one run, and the report on them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.experiment_assets import experiment_cells
from prime_pipeline.defs.instance import open_instance
from prime_pipeline.defs.runs import run_experiment
from prime_pipeline.errors import NothingToStudy
from prime_pipeline.refresh.evaluation import MEASURES
from prime_pipeline.reporting.experiment import CELLS, publish_experiment_report
from prime_pipeline.reports.writing import read_report
from prime_pipeline.studies.findings import read_study
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.papers import OpenPapers, opened, opening, publish, write_papers

defs = definitions()

CELLS_KEY = dg.AssetKey("experiment_cells")
NAMES = [key.name for key in CELLS]


@dataclass(frozen=True, slots=True)
class FirstRun:
    folder: Path
    result: dg.ExecuteInProcessResult


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two papers and a home that publishes both texts of them."""
    folder = tmp_path_factory.mktemp("published")
    workspace = opened(folder / "home", write_papers(folder / "papers.json"), mode="full")
    publish(workspace)
    workspace.close()
    return folder


@pytest.fixture(scope="module")
def first_run(published: Path, tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    """A copy of it in which the job has run, in the instance of the home."""
    folder = shutil.copytree(published, tmp_path_factory.mktemp("reproduced"), dirs_exist_ok=True)
    workspace = opened(folder / "home", folder / "papers.json", mode="full")
    workspace.home.prepare()
    with open_instance(workspace.home) as instance:
        result = reproduce(workspace, instance)
        assert instance.get_materialized_partitions(CELLS_KEY) == set(NAMES)
    workspace.close()
    return FirstRun(folder, result)


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    """The copy that a test works on: of what is published."""
    return shutil.copytree(published, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def reproduced(first_run: FirstRun, tmp_path: Path) -> Path:
    """The same with all cells, and the events of the run that made them."""
    return shutil.copytree(first_run.folder, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def open_papers(tmp_path: Path) -> Iterator[OpenPapers]:
    """Opens workspaces on that copy, each as a new process would, in full mode unless told."""
    with opening(tmp_path / "home", tmp_path / "papers.json", mode="full") as open_one:
        yield open_one


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """One that knows of no run."""
    with dg.instance_for_test() as instance:
        yield instance


def reproduce(workspace: Workspace, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    return defs.resolve_job_def("reproduce").execute_in_process(
        instance=instance, resources={"workspace": workspace}
    )


def materialize(
    workspace: Workspace, instance: dg.DagsterInstance, **given: Any
) -> dg.ExecuteInProcessResult:
    """Materialize cells, as the UI does for chosen partitions."""
    return dg.materialize([experiment_cells], instance=instance, resources={"workspace": workspace}, **given)


def cell_events(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetMaterialization]:
    """Events of cells by partition, each of which has one at most."""
    found = [e for e in result.get_asset_materialization_events() if e.asset_key == CELLS_KEY]
    events = {str(e.partition): e.step_materialization_data.materialization for e in found}
    assert len(events) == len(found)
    return events


def metadata(result: dg.ExecuteInProcessResult, name: str) -> dict[str, Any]:
    (event,) = [e for e in result.get_asset_materialization_events() if e.asset_key == dg.AssetKey(name)]
    found = event.step_materialization_data.materialization.metadata
    return {name: item.value for name, item in found.items()}


def data_versions(workspace: Workspace) -> dict[str, str]:
    """Fingerprints of the kept cells."""
    studies = {name: read_study(workspace.home.study(f"cell-{name}")) for name in NAMES}
    return {name: study.fingerprint for name, study in studies.items() if study is not None}


def test_partitions_are_the_cells() -> None:
    assert isinstance(experiment_cells.partitions_def, dg.StaticPartitionsDefinition)
    assert experiment_cells.partitions_def.get_partition_keys() == NAMES


def test_the_job_makes_every_cell_and_the_report(
    first_run: FirstRun, reproduced: Path, open_papers: OpenPapers
) -> None:
    workspace = open_papers()
    events = cell_events(first_run.result)
    assert set(events) == set(NAMES)
    versions = {name: (event.tags or {})["dagster/data_version"] for name, event in events.items()}
    assert versions == data_versions(workspace)
    assert metadata(first_run.result, "experiment") == {"changed": 56, "cells": 56}
    of_report = metadata(first_run.result, "experiment_report")
    assert of_report["changed"] == 1
    assert of_report["page"] == str(first_run.folder / "home" / "reports" / "experiment" / "report.html")
    assert of_report["report"].startswith("# Retrieval report: papers")
    content = read_report(workspace.home.experiment_report)
    assert {(c.representation, c.pipeline) for c in content.cells if c.level == "document"} == {
        (key.representation, key.pipeline) for key in CELLS
    }
    assert content.comparisons != ()


def test_events_carry_no_running_text(first_run: FirstRun) -> None:
    events = cell_events(first_run.result).values()
    told = [{name: item.value for name, item in event.metadata.items()} for event in events]
    told += [metadata(first_run.result, name) for name in ("experiment", "experiment_report")]
    shown = json.dumps(told)
    assert "chunk-256" in shown
    for text in ("Knead", "Heat the oven", "keeps 12 workers", "How many workers", "an hour"):
        assert text not in shown


def test_a_run_with_nothing_to_do_logs_no_cell(reproduced: Path, open_papers: OpenPapers) -> None:
    publish_experiment_report(open_papers())  # a report names the corpus, and the copy lies elsewhere
    workspace = open_papers()
    written = (workspace.home.experiment_report / "report.json").read_bytes()
    with open_instance(workspace.home) as instance:
        again = reproduce(workspace, instance)
    assert cell_events(again) == {}
    assert metadata(again, "experiment") == {"changed": 0, "cells": 56}
    assert metadata(again, "experiment_report")["changed"] == 0
    assert (workspace.home.experiment_report / "report.json").read_bytes() == written
    assert workspace.embedder.texts_encoded == []  # type: ignore[attr-defined]


def test_lost_events_are_logged_anew_and_nothing_is_made(
    first_run: FirstRun, reproduced: Path, open_papers: OpenPapers, instance: dg.DagsterInstance
) -> None:
    result = reproduce(open_papers(), instance)
    before, after = cell_events(first_run.result), cell_events(result)
    assert {name: e.tags for name, e in after.items()} == {name: e.tags for name, e in before.items()}
    assert metadata(result, "experiment")["changed"] == 0


def test_a_changed_setting_logs_the_cells_that_depend_on_it(
    reproduced: Path, open_papers: OpenPapers
) -> None:
    workspace = open_papers(retrieval={"rerank_budget": 1})
    with open_instance(workspace.home) as instance:
        result = reproduce(workspace, instance)
    reranked = {name for name in NAMES if name.endswith(".hybrid+rerank")}
    assert set(cell_events(result)) == reranked - {"bge-m3-chunk-256.hybrid+rerank"}
    assert metadata(result, "experiment")["changed"] == 13


@pytest.mark.parametrize("name", ["chunk-256.dense", "prime-full.hybrid"])
def test_a_partition_makes_its_cell_only_and_tells_its_measures(
    folder: Path, open_papers: OpenPapers, instance: dg.DagsterInstance, name: str
) -> None:
    workspace = open_papers()
    ((partition, event),) = cell_events(materialize(workspace, instance, partition_key=name)).items()
    assert partition == name
    assert data_versions(workspace) == {name: (event.tags or {})["dagster/data_version"]}
    assert instance.get_materialized_partitions(CELLS_KEY) == {name}
    told = {key: item.value for key, item in event.metadata.items()}
    kept = read_study(workspace.home.study(f"cell-{name}"))
    assert kept is not None
    values = {cell.measure: cell.result.value for cell in kept.findings.content.cells if cell.result}
    assert len(values) == 6
    assert told.items() >= values.items()
    assert f"{told['representation']}.{told['pipeline']}" == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("prime-full.dense", "unavailable: nothing is restructured: mode = full"),
        ("bge-m3-chunk-256.hybrid", "unavailable: BGE-M3 "),
    ],
)
def test_a_partition_that_cannot_be_made_tells_why(
    folder: Path, open_papers: OpenPapers, instance: dg.DagsterInstance, name: str, reason: str
) -> None:
    (event,) = cell_events(materialize(open_papers(mode="offline"), instance, partition_key=name)).values()
    assert all(str(event.metadata[measure].value).startswith(reason) for measure in MEASURES)


def test_a_range_of_partitions_is_one_run(
    folder: Path, open_papers: OpenPapers, instance: dg.DagsterInstance
) -> None:
    ends = {
        "dagster/asset_partition_range_start": "prime-offline.dense",
        "dagster/asset_partition_range_end": "prime-full-text.dense",
    }
    events = cell_events(materialize(open_papers(), instance, tags=ends))
    at = NAMES.index("prime-offline.dense")
    assert list(events) == NAMES[at : at + 5]
    assert len(instance.get_runs()) == 1
    # The job takes these cells as they are.
    assert metadata(reproduce(open_papers(), instance), "experiment")["changed"] == 56 - 5


def test_without_queries_the_job_names_the_setting(
    folder: Path, open_papers: OpenPapers, instance: dg.DagsterInstance
) -> None:
    with pytest.raises(NothingToStudy, match="set queries"):
        reproduce(open_papers(queries=None), instance)


def test_a_program_runs_the_job_in_the_instance_of_the_home(
    reproduced: Path, open_papers: OpenPapers
) -> None:
    workspace = open_papers()
    workspace.home.study("cell-full-text.dense").unlink()
    told = run_experiment(defs, workspace)
    assert set(told) == {"experiment", "experiment_report"}
    assert told["experiment"] == {"changed": 1, "cells": 56}
    with open_instance(workspace.home) as instance:
        assert [run.job_name for run in instance.get_runs()] == ["reproduce", "reproduce"]
