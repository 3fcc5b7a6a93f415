"""What the UI shows before anything has run."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
import yaml

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.automation import corpus_changes, nightly_refresh, refresh_after_backfill
from prime_pipeline.defs.instance import INSTANCE_SETTINGS
from prime_pipeline.errors import CorpusNotFound
from prime_pipeline.reporting.experiment import CELLS
from prime_pipeline.reporting.studies import STUDIES

defs = definitions()

ROOT = Path(__file__).parent.parent
SPECS = [spec for assets in defs.assets or () for spec in assets.specs]  # type: ignore[union-attr]


PUBLISHED = {"offline/published_index", "full/published_index"}
EVALUATED = ("retrieval_quality", "evidence_localisation", "index_costs")


def test_definitions_load() -> None:
    dg.Definitions.validate_loadable(defs)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.key.to_user_string())
def test_every_asset_introduces_itself(spec: dg.AssetSpec) -> None:
    assert len(spec.description or "") > 40
    assert spec.group_name
    assert spec.kinds
    assert spec.owners


def test_the_graph_is_the_documented_one() -> None:
    graph = {
        spec.key.to_user_string(): {dep.asset_key.to_user_string() for dep in spec.deps} for spec in SPECS
    }
    assert graph == {
        "corpus_scan": set(),
        "raw_documents": set(),
        "raw_corpus": {"corpus_scan", "raw_documents"},
        "offline/document_metadata": {"raw_corpus"},
        "offline/lexical_index": {"raw_corpus"},
        "offline/vector_index": {"offline/document_metadata"},
        "offline/published_index": {"offline/lexical_index", "offline/vector_index"},
        "restructured_documents": {"raw_documents"},
        "restructuring": {"raw_corpus"},
        "restructured_corpus": {"restructuring", "restructured_documents"},
        "full/document_metadata": {"restructured_corpus"},
        "full/lexical_index": {"restructured_corpus"},
        "full/vector_index": {"full/document_metadata"},
        "full/published_index": {"full/lexical_index", "full/vector_index"},
        "retrieval_runs": PUBLISHED,
        **dict.fromkeys(("corpus_profile", "text_density", "fidelity_audit"), PUBLISHED),
        **{name: PUBLISHED | {"retrieval_runs"} for name in EVALUATED},
        "generated_answers": PUBLISHED | {"retrieval_runs"},
        "report": PUBLISHED | set(STUDIES) | {"generated_answers"},
        "warehouse": PUBLISHED | set(STUDIES) | {"retrieval_runs", "restructuring"},
        "release": PUBLISHED | {"warehouse", "report"},
        **dict.fromkeys(("experiment_cells", "experiment"), PUBLISHED),
        "experiment_report": {"experiment_cells", "experiment"} | set(STUDIES),
    }


def test_the_refresh_job_leaves_partitions_to_the_scan() -> None:
    job = defs.resolve_job_def("refresh")
    assert job.partitions_def is None
    assert not {"raw_documents", "restructured_documents"} & {node.name for node in job.nodes}


def made_by(job: str) -> set[str]:
    layer = defs.resolve_job_def(job).asset_layer
    return {key.to_user_string() for key in layer.executable_asset_keys}


def test_only_a_job_of_its_own_generates_answers() -> None:
    assert "generated_answers" not in made_by("refresh")
    assert made_by("answer") == {"generated_answers", "report"}


def test_only_a_job_of_its_own_reproduces_the_experiment() -> None:
    assert made_by("reproduce") == {"experiment", "experiment_report"}
    assert not {"experiment_cells", "experiment", "experiment_report"} & made_by("refresh")
    assert defs.resolve_job_def("reproduce").partitions_def is None


def test_the_cells_of_the_experiment_are_static_partitions() -> None:
    (cells,) = [spec for spec in SPECS if spec.key == dg.AssetKey("experiment_cells")]
    assert isinstance(cells.partitions_def, dg.StaticPartitionsDefinition)
    assert cells.partitions_def.get_partition_keys() == [key.name for key in CELLS]


def test_nothing_starts_by_itself() -> None:
    assert nightly_refresh.default_status == dg.DefaultScheduleStatus.STOPPED
    for sensor in (corpus_changes, refresh_after_backfill):
        assert sensor.default_status == dg.DefaultSensorStatus.STOPPED


def test_the_root_dagster_yaml_agrees_with_every_other_instance() -> None:
    root = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    assert {name: root[name] for name in INSTANCE_SETTINGS} == dict(INSTANCE_SETTINGS)
    where = {"storage", "compute_logs", "local_artifact_storage"}
    assert set(root) == where | set(INSTANCE_SETTINGS)


def test_the_schedule_skips_while_a_refresh_runs() -> None:
    with dg.instance_for_test() as instance:
        context = dg.build_schedule_context(instance=instance)
        assert isinstance(nightly_refresh(context), dg.RunRequest)
        instance.create_run_for_job(defs.resolve_job_def("refresh"), status=dg.DagsterRunStatus.STARTED)
        assert isinstance(nightly_refresh(context), dg.SkipReason)


def test_the_sensor_asks_once_per_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n")
    monkeypatch.setenv("PRIME_CORPUS", str(folder))
    with dg.instance_for_test() as instance:
        first = corpus_changes(dg.build_sensor_context(instance=instance))
        assert isinstance(first, dg.SensorResult)
        assert len(first.run_requests or ()) == 1
        same = corpus_changes(dg.build_sensor_context(instance=instance, cursor=first.cursor))
        assert isinstance(same, dg.SkipReason)
        (folder / "b.md").write_text("# B\n")
        changed = corpus_changes(dg.build_sensor_context(instance=instance, cursor=first.cursor))
        assert isinstance(changed, dg.SensorResult)
        monkeypatch.setenv("PRIME_CORPUS", str(folder / "gone"))
        with pytest.raises(CorpusNotFound):
            corpus_changes(dg.build_sensor_context(instance=instance))
