"""Evaluating what is published with the configured queries, and writing what was ranked where other tools can read it."""

from __future__ import annotations

from pathlib import Path

from prime_pipeline.errors import NothingToStudy
from prime_pipeline.evaluation.trec import write_qrels, write_run
from prime_pipeline.refresh.evaluation import EvaluationReport, evaluate_build
from prime_pipeline.reporting.studies import evaluated, relevant_sections
from prime_pipeline.retrieval.retriever import as_run
from prime_pipeline.retrieval.systems import systems_of
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


def write_runs(workspace: Workspace, folder: Path) -> list[Path]:
    """Write the rankings of documents and sections as TREC runs, and the judgements; returns the files.

    Names are ``<variant>.<system>.documents.run`` and ``….sections.run``, ``qrels.txt``, and ``qrels.sections.txt`` where it is
    known which sections are relevant.

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
        judgements = {"qrels.txt": queries.qrels, "qrels.sections.txt": relevant_sections(workspace)}
        for name, qrels in judgements.items():
            if qrels:
                files.append(folder / name)
                write_qrels(files[-1], qrels)
    return files
