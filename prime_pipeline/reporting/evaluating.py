"""Evaluating what is published with the configured queries, and writing what was ranked where other tools can read it."""

from __future__ import annotations

from pathlib import Path

from prime_pipeline.errors import NothingToStudy
from prime_pipeline.evaluation.trec import write_qrels, write_run
from prime_pipeline.refresh.evaluation import EvaluationReport, evaluate_build
from prime_pipeline.reporting.studies import evaluated
from prime_pipeline.retrieval.retriever import as_run
from prime_pipeline.retrieval.systems import systems_of
from prime_pipeline.storage.seal import read_seal
from prime_pipeline.workspace import Workspace


def evaluate_published(workspace: Workspace) -> list[EvaluationReport]:
    """The evaluations of every variant that is published, as they are kept or made now.

    Raises:
        NothingToStudy: No queries are configured, or nothing is published.
        EvaluationError: The queries cannot be read.
    """
    queries = workspace.query_set
    if queries is None:
        raise NothingToStudy(
            "no queries are configured: run `prime refresh --queries FILE`, or score rankings of files with --run and --qrels"
        )
    variants = workspace.published_variants()
    if not variants:
        raise NothingToStudy("nothing is published to evaluate: run `prime refresh --corpus DIR` first")
    reports = []
    with workspace.home.lock("evaluation"):
        for variant in variants:
            with workspace.retriever(variant) as retriever:
                report = evaluate_build(
                    retriever,
                    queries,
                    systems_of(variant, workspace.settings.evaluate),
                    workspace.paper_literal_vectors,
                    workspace.home,
                    workspace.progress,
                )
            reports.append(report)
    return reports


def unknown_documents(workspace: Workspace) -> list[str]:
    """Ids that the queries call relevant and the corpus does not have, in order."""
    queries = workspace.query_set
    known = {doc_id for doc_id, _ in read_seal(workspace.home.seal("raw")).documents}
    return sorted(queries.relevant_documents - known) if queries else []


def write_runs(workspace: Workspace, folder: Path) -> list[Path]:
    """Write the rankings of documents and sections as TREC runs, and the judgements; returns the files.

    Names are ``<variant>.<system>.documents.run`` and ``….sections.run``, and ``qrels.txt``.

    Raises:
        EvaluationError: An id holds a blank, which this format cannot hold.
    """
    queries = workspace.query_set
    files = []
    for report, runs in evaluated(workspace):
        for level, systems in (("documents", runs.documents), ("sections", runs.sections)):
            for system, rankings in systems.items():
                path = folder / f"{report.variant}.{system}.{level}.run"
                write_run(path, as_run(rankings), f"{report.variant}-{system}")
                files.append(path)
    if queries is not None:
        files.append(folder / "qrels.txt")
        write_qrels(files[-1], queries.qrels)
    return files
