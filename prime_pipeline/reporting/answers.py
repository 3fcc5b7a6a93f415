"""Answers generated on request, from what the evaluation ranked: what they would cost, and what they are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.errors import NothingToStudy
from prime_pipeline.evaluation.answering import AnswerGenerator
from prime_pipeline.evaluation.passages import Condition, Sections, sections_by_id
from prime_pipeline.indexes.builds import read_manifest
from prime_pipeline.llm.budget import Prices
from prime_pipeline.records import Document, Section, Spending, document_of
from prime_pipeline.refresh.spending import note_spending
from prime_pipeline.reporting.studies import STUDIES_VERSION, evaluated, kept, loaded, restructurer, versions
from prime_pipeline.restructuring.rewriting import rough_tokens
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.studies.answers import (
    AnswerEstimate,
    Asked,
    answer_findings,
    estimate_answers,
    generate_answers,
    questions,
)
from prime_pipeline.studies.findings import Findings, Study, read_study
from prime_pipeline.workspace import Workspace

ANSWERS: Final = "generated_answers"


def estimate_generated_answers(workspace: Workspace) -> AnswerEstimate:
    """What :func:`generated_answers` would cost at most. Nothing is asked.

    Raises:
        NothingToStudy: See :func:`generated_answers`.
    """
    asked, _ = _asked(workspace, _answerable(workspace))
    with workspace.chat(workspace.settings.answer_options.model) as chat:
        generator = AnswerGenerator(chat, workspace.settings.answer_options, rough_tokens)
        return estimate_answers(asked, generator, answer_price(workspace))


def generated_answers(workspace: Workspace) -> tuple[Study, Spending]:
    """Have the language model answer all questions with references under each condition, and score the answers.

    This spends money on what is not in the cache, within the budget, and notes it in the ledger, also if it is
    interrupted. It is never part of a refresh.

    Returns:
        The study, and what this run cost.

    Raises:
        NothingToStudy: No endpoint is set, no question has a reference answer, or nothing was evaluated.
        AnswersIncomplete: The endpoint failed or the budget is spent; answers are kept, and another run goes on.
    """
    queries = _answerable(workspace)
    asked, sections = _asked(workspace, queries)
    options, llm = workspace.settings.answer_options, workspace.settings.llm
    with workspace.chat(workspace.settings.answer_options.model) as chat:
        generator = AnswerGenerator(chat, options, rough_tokens)
        try:
            answered = generate_answers(asked, generator, llm.concurrency, workspace.progress)
        finally:
            chat.close()  # what is under way after an interruption shall not be paid behind the note
            _note_spending(workspace, generator.spending)
    if answered.incomplete:
        raise answered.incomplete

    def make() -> Findings:
        return answer_findings(answered, queries, sections, options.model, restructurer(workspace))

    return kept(workspace, ANSWERS, _determinants(workspace, queries), make), answered.spending


def answer_price(workspace: Workspace) -> Prices | None:
    """What the model costs that answers; None if it is not in the table."""
    model = workspace.settings.answer_options.model
    return workspace.settings.llm.model_copy(update={"model": model}).price


def conditions_left_out(workspace: Workspace) -> tuple[str, ...]:
    """Why the conditions that need restructured text cannot be asked in full mode, and what to do; empty if they can."""
    variants = {report.variant for report, runs in evaluated(workspace) if "default" in runs.sections}
    if workspace.mode != "full" or variants != {"offline"}:
        return ()
    left_out = " and ".join(c.value for c in Condition if c is not Condition.RAW_TO_RAW)
    return (f"{left_out} are left out: {_reason_without_full(workspace)}",)


def kept_answers(workspace: Workspace) -> tuple[Study | None, bool]:
    """The study of answers as it is kept, and whether it is of what is published now. Nothing is asked."""
    study, queries = read_study(workspace.home.study(ANSWERS)), workspace.query_set
    if study is None or queries is None:
        return study, False
    wanted = fingerprint({"version": STUDIES_VERSION, **_determinants(workspace, queries)})
    return study, study.fingerprint == wanted


def _answerable(workspace: Workspace) -> QuerySet:
    queries = workspace.query_set
    if not workspace.settings.answer_options.base_url:
        raise NothingToStudy("answers need a language model: set llm.base_url and llm.model")
    if queries is None or not queries.references:
        raise NothingToStudy(
            "no question has a reference answer: set queries to a data set with answers, such as a QASPER file"
        )
    return queries


def _asked(workspace: Workspace, queries: QuerySet) -> tuple[Asked, Sections]:
    """The questions under each condition, and the sections that are read."""
    rankings = _rankings(workspace)
    top_k = workspace.settings.retrieval.top_k
    by_query = (of_query for found in rankings.values() for of_query in found.values())
    read = {document_of(section) for ids in by_query for section in ids[:top_k]}
    variants = ("offline", "full") if Condition.FULL_TO_FULL in rankings else ("offline",)
    sections: dict[str, tuple[Document, Section]] = {}
    for variant in variants:  # what is not restructured yet is read raw
        sections |= sections_by_id(loaded(workspace, variant, versions(workspace, variant, read)))
    return questions(queries, rankings, sections, top_k), sections


def _rankings(workspace: Workspace) -> dict[Condition, Mapping[str, Sequence[str]]]:
    found = {report.variant: runs.sections.get("default") for report, runs in evaluated(workspace)}
    offline, full = found.get("offline"), found.get("full")
    if offline is None:
        raise NothingToStudy(
            "answers are read from the sections that the evaluated system `default` found: run `prime refresh` with "
            "queries set and `default` in evaluate"
        )
    rankings = {Condition.RAW_TO_RAW: offline}
    if full is not None:
        rankings |= {Condition.RAW_TO_RESTRUCTURED: offline, Condition.FULL_TO_FULL: full}
    return rankings


def _reason_without_full(workspace: Workspace) -> str:
    live = workspace.builds("full").live_path
    if live is None:
        return "no restructured index is published yet: run `prime refresh --mode full`"
    made_by = read_manifest(live).restructuring
    if workspace.has_corpus("full"):
        return "the evaluation is not of the restructured index that is published: run `prime refresh`"
    by_rules = 'set restructuring.method = "extractive"'
    back = "return to the settings that made it" if made_by.startswith("llm:") else by_rules
    return (
        f"the settings ask for another restructuring ({workspace.strategy.label}) than that of the published index "
        f"({made_by}): run `prime refresh --mode full`, or {back}"
    )


def _determinants(workspace: Workspace, queries: QuerySet) -> dict[str, Any]:
    options = asdict(workspace.settings.answer_options)
    return {
        "evaluations": [report.fingerprint for report, _ in evaluated(workspace)],
        "options": options,
        "top_k": workspace.settings.retrieval.top_k,
        "questions": [[query.query_id, query.text] for query in queries.queries],
        "references": {q: [asdict(each) for each in found] for q, found in queries.references.items()},
    }


def _note_spending(workspace: Workspace, spent: Spending) -> None:
    """Write into the ledger what answers cost, as a run of its own that belongs to no document; nothing where all was known."""
    if spent.calls:
        label = f"answers:{workspace.settings.answer_options.model}"
        note_spending(workspace.ledger, "answers", "", label, {"": spent}, answer_price(workspace))
