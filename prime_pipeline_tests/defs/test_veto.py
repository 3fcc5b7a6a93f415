"""The refresh job with queries that may veto a build."""

from __future__ import annotations

import json
import math
from pathlib import Path

import dagster as dg
import pytest

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.index_assets import published_index_key
from prime_pipeline.defs.instance import open_instance
from prime_pipeline.defs.runs import run_refresh
from prime_pipeline.errors import QualityDropped
from prime_pipeline.refresh.veto import read_veto
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.defs.conftest import OpenWorkspace
from prime_pipeline_tests.fakes import HashingEmbedder

defs = definitions()

DECOY = "# Exponential backoff\n\n## Exponential backoff\n\nExponential backoff, exponential backoff.\n"


@pytest.fixture
def queries(tmp_path: Path) -> str:
    path = tmp_path / "queries.jsonl"
    lines = [
        {"query": "exponential backoff", "relevant": "more.md"},
        {"query": "slugs", "relevant": "guide/partitions.md"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return str(path)


def test_a_build_that_finds_less_is_not_published_until_that_is_accepted(
    open_workspace: OpenWorkspace, corpus: Path, queries: str
) -> None:
    options = {"queries": queries, "index": {"max_ndcg_drop": 0.05}}
    served = run_refresh(defs, open_workspace(**options)).published["served"]
    (corpus / "decoy.md").write_text(DECOY)
    workspace = open_workspace(**options)
    with pytest.raises(QualityDropped, match=r"0\.8155, .* 1\.0000, over 2 queries .* -0\.1845 \(95%"):
        run_refresh(defs, workspace)
    builds, veto = workspace.builds("offline"), read_veto(workspace.home.veto("offline"))
    assert veto is not None
    assert (veto.served_id, veto.served, builds.live_id) == (served, 1.0, served)
    assert veto.candidate == pytest.approx(
        (1 / math.log2(3) + 1) / 2
    )  # the decoy comes first, for one of two queries
    assert builds.path(veto.build_id).is_dir()  # for inspection
    with open_instance(workspace.home) as instance:
        (record,) = instance.fetch_observations(published_index_key("offline"), limit=5).records
        run = instance.get_runs(limit=1)[0]
    assert record.asset_observation is not None
    assert record.asset_observation.metadata["ndcg@5 difference"].value == veto.difference
    assert run.status == dg.DagsterRunStatus.FAILURE

    again = open_workspace(**options)
    with pytest.raises(QualityDropped):
        run_refresh(defs, again)
    assert again.embedder.texts_encoded == []  # type: ignore[attr-defined]
    accepted = run_refresh(defs, open_workspace(**options), accept_drop=True)
    assert accepted.published["served"] == veto.build_id
    assert accepted.published["ndcg@5 difference"] == veto.difference
    (evaluation,) = accepted.evaluations
    assert evaluation.systems["default"].means["ndcg@5"] == pytest.approx(veto.candidate)
    assert read_veto(workspace.home.veto("offline")) is None


def test_a_build_of_another_embedder_is_compared_with_what_was_measured_before(
    open_workspace: OpenWorkspace, corpus: Path, queries: str
) -> None:
    options = {"queries": queries, "index": {"max_ndcg_drop": 0.05}}
    first = open_workspace(**options)
    served = run_refresh(defs, first).published["served"]
    (corpus / "decoy.md").write_text(DECOY)
    changed = Workspace(first.settings, embedder=HashingEmbedder("another", dimensions=32))
    with pytest.raises(QualityDropped):
        run_refresh(defs, changed)
    changed.home.measures("offline").unlink()
    changed.home.veto("offline").unlink()
    summary = run_refresh(defs, changed)  # nothing to compare with any more: published, and said so
    assert summary.published["served"] != served
    assert "cannot be asked" in summary.published["not compared"]
    changed.close()
