"""What the UI shows before anything has run."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import dagster as dg
import pytest
import yaml

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.automation import corpus_changes, nightly_refresh, refresh_after_backfill
from prime_pipeline.defs.checks import CHECKS
from prime_pipeline.defs.describing import Layer
from prime_pipeline.defs.instance import INSTANCE_SETTINGS
from prime_pipeline.errors import CorpusNotFound
from prime_pipeline.indexes.builds import VARIANTS
from prime_pipeline.reporting.experiment import CELLS
from prime_pipeline.reporting.studies import STUDIES
from prime_pipeline.settings import Partitioning

defs = definitions()

ROOT = Path(__file__).parent.parent
SPECS = [spec for assets in defs.assets or () for spec in assets.specs]  # type: ignore[union-attr]


PUBLISHED = {"offline/published_index", "full/published_index"}
EVALUATED = ("retrieval_quality", "evidence_localisation", "index_costs")


def test_definitions_load() -> None:
    dg.Definitions.validate_loadable(defs)


@pytest.mark.parametrize("partitioning", get_args(Partitioning))
def test_every_asset_introduces_itself(partitioning: Partitioning) -> None:
    assets = definitions(partitioning).assets or ()
    specs = [spec for asset in assets for spec in asset.specs]  # type: ignore[union-attr]
    assert {spec.key for spec in specs} == {spec.key for spec in SPECS}
    for spec in specs:
        name = spec.key.to_user_string()
        told, _, if_red = (spec.description or "").partition("If red: ")
        assert len(told) > 40, name
        assert len(if_red) > 40, name
        assert spec.group_name, name
        assert spec.kinds, name
        assert spec.owners, name
        assert spec.tags["prime/layer"] in get_args(Layer), name
        assert spec.tags.get("prime/variant", "full") in VARIANTS, name


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.check_specs_by_output_name.keys())
def test_every_check_says_what_to_do(check: dg.AssetChecksDefinition) -> None:
    for spec in check.check_specs:
        told, _, if_red = (spec.description or "").partition("If red: ")
        assert min(len(told), len(if_red)) > 20, spec.name


@pytest.mark.parametrize(
    "name",
    [
        "raw_documents",
        "restructured_documents",
        "raw_corpus",
        "restructured_corpus",
        "warehouse",
        *(f"{variant}/{part}" for variant in VARIANTS for part in ("document_metadata", "lexical_index")),
    ],
)
def test_tables_show_their_columns(name: str) -> None:
    (spec,) = [spec for spec in SPECS if spec.key.to_user_string() == name]
    schema = spec.metadata["dagster/column_schema"]
    assert isinstance(schema, dg.TableSchema)
    assert len({column.name for column in schema.columns}) == len(schema.columns) > 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_columns_are_followed_to_columns_that_exist(variant: str) -> None:
    shown = {
        spec.key: {column.name for column in spec.metadata["dagster/column_schema"].columns}
        for spec in SPECS
        if "dagster/column_schema" in spec.metadata
    }
    for part in ("document_metadata", "lexical_index"):
        key = dg.AssetKey([variant, part])
        (spec,) = [spec for spec in SPECS if spec.key == key]
        lineage = spec.metadata["dagster/column_lineage"]
        assert isinstance(lineage, dg.TableColumnLineage)
        assert set(lineage.deps_by_column) <= shown[key]
        for deps in lineage.deps_by_column.values():
            assert all(dep.column_name in shown[dep.asset_key] for dep in deps)


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
