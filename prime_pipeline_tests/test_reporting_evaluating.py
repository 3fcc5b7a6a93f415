"""Evaluating what is published, and the same rankings in files that other tools read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.errors import EvaluationError, NothingToStudy
from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.evaluation.trec import read_qrels, read_run
from prime_pipeline.refresh.evaluation import MEASURES
from prime_pipeline.reporting.evaluating import evaluate_published, write_runs
from prime_pipeline.reporting.studies import evaluated, unknown_documents
from prime_pipeline_tests.papers import OpenPapers, opening, publish, write_papers

SYSTEMS = ("bm25", "paper_literal", "stage1", "default")


@pytest.fixture
def open_papers(tmp_path: Path) -> Iterator[OpenPapers]:
    """Opens workspaces on one home, each as a new process would."""
    papers = write_papers(tmp_path / "papers.json")
    with opening(tmp_path / "home", papers) as open_one:
        yield open_one


def query_file(folder: Path, *queries: dict[str, Any], name: str = "mine.jsonl") -> str:
    path = folder / name
    path.write_text("".join(f"{json.dumps(query)}\n" for query in queries))
    return str(path)


# --- evaluating ---------------------------------------------------------------------------------------------------


def test_every_published_variant_is_evaluated(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full", evaluate=SYSTEMS)
    publish(workspace)
    offline, full = evaluate_published(workspace)
    assert (offline.variant, full.variant) == ("offline", "full")
    assert tuple(offline.systems) == SYSTEMS
    assert "paper_literal" not in full.systems  # whose metadata is that of the raw text only
    assert (offline.n_queries, offline.queries, offline.known_item) == (4, "papers", True)
    assert full.restructuring == "extractive-1"


def test_an_evaluation_is_kept_until_something_changes(open_papers: OpenPapers) -> None:
    publish(open_papers())
    assert [report.changed for report in evaluate_published(open_papers())] == [False]
    assert [report.changed for report in evaluate_published(open_papers(evaluate=["bm25"]))] == [True]
    assert [report.changed for report in evaluate_published(open_papers(evaluate=["bm25"]))] == [False]


def test_evaluating_needs_queries_and_something_published(open_papers: OpenPapers, tmp_path: Path) -> None:
    with pytest.raises(NothingToStudy, match=r"`prime refresh --queries FILE`, or .* --run and --qrels"):
        evaluate_published(open_papers(queries=None))
    with pytest.raises(NothingToStudy, match="`prime refresh --corpus DIR` first"):
        evaluate_published(open_papers())
    with pytest.raises(EvaluationError, match="no query set at"):
        evaluate_published(open_papers(queries=str(tmp_path / "gone.jsonl")))
    assert not (tmp_path / "home").exists()


def test_documents_that_only_the_judgements_know(open_papers: OpenPapers, tmp_path: Path) -> None:
    queries = query_file(tmp_path, {"query": "oven", "relevant": ["zeta", "beta", "gone"]})
    workspace = open_papers(queries=queries)
    publish(workspace)
    assert unknown_documents(workspace) == ["gone", "zeta"]
    assert unknown_documents(open_papers()) == []
    assert unknown_documents(open_papers(queries=None)) == []


# --- files --------------------------------------------------------------------------------------------------------


def test_runs_of_every_variant_system_and_level_are_written(open_papers: OpenPapers, tmp_path: Path) -> None:
    workspace = open_papers(mode="full", evaluate=["bm25", "default"])
    publish(workspace)
    files = write_runs(workspace, tmp_path / "new" / "out")
    expected = [
        f"{variant}.{system}.{level}.run"
        for variant in ("offline", "full")
        for level in ("documents", "sections")
        for system in ("bm25", "default")
    ]
    assert [path.name for path in files] == [*expected, "qrels.txt", "qrels.sections.txt"]
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == sorted(
        path.name for path in files
    )
    assert {read_run(path).tag for path in files[:2]} == {"offline-bm25", "offline-default"}


def test_files_give_the_measures_of_the_report(open_papers: OpenPapers, tmp_path: Path) -> None:
    queries = query_file(
        tmp_path,
        {"query": "workers in the queue of bread", "relevant": "beta"},
        {"query": "heat the oven", "relevant": ["beta", "gone"]},
        {"query": "zebra", "relevant": "alpha"},  # nothing is found for it by words
    )
    workspace = open_papers(queries=queries, evaluate=SYSTEMS)
    publish(workspace)
    write_runs(workspace, tmp_path)
    (report,) = evaluate_published(workspace)
    qrels = read_qrels(tmp_path / "qrels.txt")
    assert workspace.query_set is not None
    assert qrels == workspace.query_set.qrels
    values = set()
    for system, measured in report.systems.items():
        found = read_run(tmp_path / f"offline.{system}.documents.run")
        assert found.warnings == ()
        evaluation = evaluate(found.run, qrels, MEASURES)
        assert evaluation.per_query == measured.per_query, system
        values |= {round(value, 6) for of_one in measured.per_query.values() for value in of_one.values()}
    assert len(values) > 3  # or any order would do


def test_sections_are_written_in_the_order_of_their_ranks(open_papers: OpenPapers, tmp_path: Path) -> None:
    workspace = open_papers()
    publish(workspace)
    write_runs(workspace, tmp_path)
    ((_, runs),) = evaluated(workspace)
    found = read_run(tmp_path / "offline.default.sections.run").run
    assert {query_id: list(ids) for query_id, ids in found.items()} == runs.sections["default"]
    assert next(iter(found["a2"])) == "alpha#2"


def test_without_queries_there_is_nothing_to_write(open_papers: OpenPapers, tmp_path: Path) -> None:
    publish(open_papers())
    assert write_runs(open_papers(queries=None), tmp_path / "out") == []
    assert not (tmp_path / "out").exists()


def test_ids_with_blanks_are_refused_with_a_remedy(open_papers: OpenPapers, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "my notes.md").write_text("# Notes\n\n## Ovens\n\nHeat the oven.\n")
    queries = query_file(tmp_path, {"query": "oven", "relevant": "my notes.md"})
    workspace = open_papers(corpus=str(docs), queries=queries)
    publish(workspace)
    with pytest.raises(EvaluationError, match=r"document id 'my notes\.md' holds a blank .*: rename it"):
        write_runs(workspace, tmp_path / "out")
    assert list((tmp_path / "out").glob("*")) == []


def test_query_ids_with_blanks_are_refused_too(open_papers: OpenPapers, tmp_path: Path) -> None:
    queries = query_file(tmp_path, {"query": "oven", "relevant": "beta"}, name="my queries.jsonl")
    workspace = open_papers(queries=queries)
    publish(workspace)
    with pytest.raises(EvaluationError, match=r"query id 'my queries:1' holds a blank .*: rename it"):
        write_runs(workspace, tmp_path / "out")
