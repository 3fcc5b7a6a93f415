"""Verdicts of restructuring beside what a search returned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_pipeline.reporting.explaining import Verdict, verdicts
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.papers import SHORT, OpenPapers, opening, publish, reworded, write_papers


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    return write_papers(tmp_path / "papers.json")


@pytest.fixture
def open_papers(tmp_path: Path, papers: Path) -> Iterator[OpenPapers]:
    """Opens workspaces on one home, each as a new process would."""
    with opening(tmp_path / "home", papers, queries="") as open_one:
        yield open_one


def found(workspace: Workspace, query: str = "workers and jobs in the queue") -> dict[str, Verdict]:
    """Verdicts by section."""
    with workspace.retriever() as retriever:
        hits = retriever.search(query, top_k=9)
        return dict(zip((hit.section_id for hit in hits), verdicts(workspace, retriever, hits), strict=True))


def test_sections_of_the_offline_index_are_raw(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    publish(workspace)
    judged = found(workspace)
    assert len(judged) == 4
    assert {verdict.status for verdict in judged.values()} == {"raw"}
    assert {verdict.reason for verdict in judged.values()} == {
        "the offline index serves every section as it was read"
    }
    assert not (workspace.home.root / "restructured").exists()


def test_sections_of_the_full_index_have_the_verdict_on_them(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    judged = found(workspace)
    assert judged["alpha#1"] == Verdict("accepted", "the first rewrite passed")
    assert judged["alpha#2"].status in {"routed", "unchanged"}
    outcome = workspace.restructured.outcome("alpha")
    assert outcome is not None
    assert judged["alpha#2"].findings == outcome.sections[1].findings


def test_the_verdict_on_another_text_than_the_served_one_is_not_told(
    open_papers: OpenPapers, papers: Path
) -> None:
    publish(open_papers(mode="full"))
    with open_papers(mode="full").retriever() as retriever:
        hits = retriever.search("workers and jobs in the queue", top_k=9)
        write_papers(papers, reworded(SHORT, "The queue of Alpha holds 50 jobs."))
        workspace = open_papers(mode="full")
        publish(workspace)
        judged = dict(
            zip((hit.section_id for hit in hits), verdicts(workspace, retriever, hits), strict=True)
        )
    assert {name: verdict.status == "unknown" for name, verdict in judged.items()} == {
        "alpha#1": True,
        "alpha#2": True,
        "beta#1": False,
        "beta#2": False,
    }
    assert "prime refresh" in judged["alpha#1"].reason


def test_what_another_strategy_made_is_not_looked_for(open_papers: OpenPapers) -> None:
    publish(open_papers(mode="full"))
    workspace = open_papers(
        mode="full", restructuring={"entities": "rule", "gate": {"max_length_ratio": 1.2}}
    )
    assert {verdict.status for verdict in found(workspace).values()} == {"unknown"}
    assert workspace.home.strategies() == [open_papers(mode="full").strategy.fingerprint]
