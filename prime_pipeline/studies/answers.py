"""Answers generated from retrieved sections, and what they are worth: raw to raw, raw to restructured, full to full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.errors import AnswersIncomplete
from prime_pipeline.evaluation.answer_f1 import answer_f1
from prime_pipeline.evaluation.answering import Answer, AnswerGenerator, Question, answer_all
from prime_pipeline.evaluation.gold_evidence import evidence_f1, evidence_paragraphs
from prime_pipeline.evaluation.passages import Condition, Sections, passages
from prime_pipeline.evaluation.statistics import PerQuery, mean_intervals
from prime_pipeline.llm.budget import Prices
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Spending
from prime_pipeline.reports import wording
from prime_pipeline.reports.content import AnswerRow, Comparison, Measured
from prime_pipeline.studies.findings import Findings, comparisons, few_clusters_note, measured, part

PAIRS: Final = (
    (Condition.RAW_TO_RESTRUCTURED, Condition.RAW_TO_RAW),
    (Condition.FULL_TO_FULL, Condition.RAW_TO_RAW),
)
"""The comparisons of conditions; declared once, as one family."""

Asked = Mapping[Condition, Sequence[Question]]
"""The questions under each condition, with what is read to answer them."""


@dataclass(frozen=True, slots=True)
class AnswerEstimate:
    """What answering would take.

    Attributes:
        n_questions: Under all conditions together.
        n_calls: Those that are not answered yet; equal questions are asked once.
        prompt_tokens: To be read in them, as far as tokens are counted here as the endpoint does.
        completion_tokens: To be generated at most.
        cost: At most, in the currency of the prices; None without a price.
        n_unreadable: Questions for which nothing was found, or nothing fits: nobody is asked, and they count as 0.
    """

    n_questions: int
    n_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    n_unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """All answers under each condition.

    Attributes:
        answers: In the order of the questions; of the conditions that were finished.
        spending: What they cost in this run, unfinished ones included.
        incomplete: Why some have no answer for the time being, so that no mean may be taken; None if all are done.
    """

    answers: Mapping[Condition, Sequence[Answer]]
    spending: Spending
    incomplete: AnswersIncomplete | None = None


def questions(
    query_set: QuerySet,
    rankings: Mapping[Condition, Mapping[str, Sequence[str]]],
    sections: Sections,
    top_k: int,
) -> dict[Condition, list[Question]]:
    """The questions that have reference answers, with the passages that are read under each condition.

    Args:
        query_set: With references.
        rankings: By condition and query id: section ids, best first, from the index that the condition searches.
        sections: Those that may have been found, with rewritten bodies where there are some.
        top_k: Sections that are read.
    """
    asked = [query for query in query_set.queries if query.query_id in query_set.references]
    return {
        condition: [
            Question(query, passages(found.get(query.query_id, ())[:top_k], sections, condition))
            for query in asked
        ]
        for condition, found in rankings.items()
    }


def estimate_answers(asked: Asked, generator: AnswerGenerator, prices: Prices | None) -> AnswerEstimate:
    """What answering would take; no call is made."""
    requests = [request for found in asked.values() for q in found if (request := generator.planned(q))]
    planned = {request.key: request for request in requests}.values()
    read = sum(generator.prompt_tokens(request) for request in planned)
    generated = sum(request.max_tokens for request in planned)
    cost = prices.cost(read, generated) if prices else None
    n_unreadable = sum(not generator.can_read(question) for found in asked.values() for question in found)
    return AnswerEstimate(sum(map(len, asked.values())), len(planned), read, generated, cost, n_unreadable)


def generate_answers(
    asked: Asked, generator: AnswerGenerator, n_workers: int, progress: Progress = silent
) -> Answered:
    """Answer all questions, several at once. What is answered stays in the cache, so that another run goes on from there."""
    found: dict[Condition, Sequence[Answer]] = {}
    spending = Spending()
    for condition, of_condition in asked.items():
        answers = answer_all(of_condition, generator, n_workers, progress)
        spending += answers.spending
        lost = [answer for answer in answers.answers if answer.is_open]
        if answers.stopped or lost:
            n_done = len(answers.answers) - len(lost)
            reason = answers.stopped or lost[0].detail
            incomplete = AnswersIncomplete(condition.value, n_done, len(of_condition), reason)
            return Answered(found, spending, incomplete)
        found[condition] = answers.answers
    return Answered(found, spending)


def answer_findings(
    answered: Answered, query_set: QuerySet, sections: Sections, model: str, restructurer: str
) -> Findings:
    """Answer-F1 and Evidence-F1 by condition and type of question, and the paired differences of conditions.

    Args:
        answered: The answers.
        query_set: With the references.
        sections: As in :func:`questions`; evidence is that of the raw paragraphs.
        model: Who answered, for the report.
        restructurer: As in a report.
    """
    f1, evidence = {}, {}
    for condition, answers in answered.answers.items():
        predictions = {answer.query_id: answer.text for answer in answers if answer.failure is None}
        f1[condition] = answer_f1(predictions, query_set.references).per_query
        evidence[condition] = _evidence(answers, query_set, sections)
    types = {query_set.types.get(query_id, "") for per_query in f1.values() for query_id in per_query}
    kinds = ["", *sorted(types - {""})] if len(types) > 1 else [""]
    return Findings(
        part(
            answers=tuple(row for kind in kinds for row in _rows(f1, evidence, query_set, kind)),
            comparisons=tuple(_comparisons(f1, query_set, restructurer)),
            restructurer=restructurer,
            notes=(*_notes(answered, model), *few_clusters_note("Answers", _n_clusters(f1, query_set))),
        )
    )


def _n_clusters(f1: Mapping[Condition, PerQuery], query_set: QuerySet) -> int:
    queries = {query_id for per_query in f1.values() for query_id in per_query}
    return len({query_set.clusters[query_id] for query_id in queries}) if query_set.clusters else 0


def _evidence(answers: Sequence[Answer], query_set: QuerySet, sections: Sections) -> PerQuery:
    """Evidence F1 of the paragraphs read; nothing where no annotator marked any."""
    references = {
        query_id: [reference.evidence for reference in found]
        for query_id, found in query_set.references.items()
    }
    if not any(evidence for found in references.values() for evidence in found):
        return {}
    predictions = {
        answer.query_id: evidence_paragraphs(sections[found][1] for found in answer.section_ids)
        for answer in answers
    }
    return evidence_f1(predictions, references).per_query


def _rows(
    f1: Mapping[Condition, PerQuery],
    evidence: Mapping[Condition, PerQuery],
    query_set: QuerySet,
    kind: str,
) -> Iterator[AnswerRow]:
    def intervals(values: Mapping[Condition, PerQuery]) -> dict[str, Measured]:
        chosen = {
            condition.value: {
                q: v for q, v in per_query.items() if not kind or query_set.types.get(q) == kind
            }
            for condition, per_query in values.items()
        }
        found = {name: per_query for name, per_query in chosen.items() if per_query}
        return {name: measured(i) for name, i in mean_intervals(found, query_set.clusters).items()}

    of_evidence = intervals(evidence)
    for condition, value in intervals(f1).items():
        yield AnswerRow(condition, value, kind, of_evidence.get(condition))


def _comparisons(
    f1: Mapping[Condition, PerQuery], query_set: QuerySet, restructurer: str
) -> Iterator[Comparison]:
    pairs = [(left.value, right.value) for left, right in PAIRS if {left, right} <= f1.keys()]
    if not pairs:
        return
    values = {condition.value: per_query for condition, per_query in f1.items()}
    for found in comparisons("answers", "answer-f1", pairs, values, query_set.clusters):
        yield replace(found, level="answer", restructurer=restructurer)


def _notes(answered: Answered, model: str) -> Iterator[str]:
    yield f"Answers were generated by {model}, and only on request."
    for condition, answers in answered.answers.items():
        failed = [answer for answer in answers if answer.failure is not None]
        if failed:
            yield (
                f"Answers, {condition.value}: {len(failed):,} of {len(answers):,} questions have none and count as 0 "
                f"(the first: {failed[0].failure}, {failed[0].detail})."
            )
        if n_cut := sum(answer.n_cut > 0 for answer in answers):
            yield f"Answers, {condition.value}: the sections read were cut to fit the prompt of {wording.plural(n_cut, 'question')}."
