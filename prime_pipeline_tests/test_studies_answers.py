"""Answers as a study: what is asked, what it would cost, and what a report has of the answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.errors import AnswersIncomplete, EvaluationError
from prime_pipeline.evaluation.answer_f1 import AnswerReference
from prime_pipeline.evaluation.answering import Answer, AnswerGenerator, AnswerOptions, Question
from prime_pipeline.evaluation.passages import Condition, sections_by_id
from prime_pipeline.llm.budget import Budget, Prices
from prime_pipeline.llm.cached import CachedChat
from prime_pipeline.llm.client import ChatClient
from prime_pipeline.llm.limiter import ConcurrencyLimiter
from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.records import Document, Query, Spending
from prime_pipeline.reports import published
from prime_pipeline.reports.content import Measured, ReportContent, bare_numbers, check
from prime_pipeline.studies.answers import (
    Answered,
    AnswerEstimate,
    answer_findings,
    estimate_answers,
    generate_answers,
    questions,
)
from prime_pipeline_tests.chat_endpoint import Endpoint, Step, answer, fault
from prime_pipeline_tests.documents import make_document

RAW, MIXED, FULL = Condition.RAW_TO_RAW, Condition.RAW_TO_RESTRUCTURED, Condition.FULL_TO_FULL
PAID = Spending(calls=1, prompt_tokens=7, completion_tokens=3)


def rewritten(document: Document, *bodies: str | None) -> Document:
    """The document with new bodies, in the order of its sections."""
    sections = [replace(s, rewritten=body) for s, body in zip(document.sections, bodies, strict=True)]
    return replace(document, sections=tuple(sections))


PAPER = rewritten(
    make_document("a", "Data: We use a lexicon.\n", "Model: It is a BERT.\n", "End: We are done.\n"),
    "A lexicon serves.",
    None,
    "Done.",
)
SECTIONS = sections_by_id([PAPER])
QUERIES = QuerySet(
    "mine",
    (Query("q0", "What of q0?"), Query("q1", "What of q1?"), Query("q2", "What of q2?")),
    {"q0": {"a": 1}, "q1": {"a": 1}, "q2": {"a": 1}},
    known_item=False,
    references={
        "q0": (AnswerReference("a lexicon", "extractive"),),
        "q2": (AnswerReference("Yes", "boolean"),),
    },
)
RANKINGS = {
    RAW: {"q0": ["a#1", "a#2"], "q1": ["a#3"], "q2": ["a#2"]},
    MIXED: {"q0": ["a#1", "a#2"], "q1": ["a#3"], "q2": ["a#2"]},
    FULL: {"q0": ["a#3"], "q2": ["a#2", "a#1"]},
}


def asked(top_k: int = 5) -> dict[Condition, list[Question]]:
    return questions(QUERIES, RANKINGS, SECTIONS, top_k)


# --- what is asked ------------------------------------------------------------------------------------------------


def read(found: Mapping[Condition, Sequence[Question]]) -> dict[Condition, dict[str, list[str]]]:
    """What is read to answer each question under each condition."""
    return {
        condition: {q.query.query_id: [passage.text for passage in q.passages] for q in of_condition}
        for condition, of_condition in found.items()
    }


def test_every_condition_searches_and_reads_its_own_text() -> None:
    raw = ["We use a lexicon.", "It is a BERT.", "We are done."]
    assert read(asked()) == {
        RAW: {"q0": raw[:2], "q2": raw[1:2]},
        MIXED: {"q0": ["A lexicon serves.", raw[1]], "q2": raw[1:2]},
        FULL: {"q0": ["Done."], "q2": [raw[1], "A lexicon serves."]},
    }


def test_only_the_best_sections_are_read() -> None:
    assert {len(q.passages) for found in asked(top_k=1).values() for q in found} == {1}
    assert read(asked(top_k=1))[FULL]["q2"] == ["It is a BERT."]


def test_a_question_without_a_ranking_has_nothing_to_read() -> None:
    assert read(questions(QUERIES, {RAW: {"q0": []}}, SECTIONS, 5)) == {RAW: {"q0": [], "q2": []}}


def test_a_section_of_another_state_is_named() -> None:
    with pytest.raises(EvaluationError, match="section 'b#1' was retrieved"):
        questions(QUERIES, {RAW: {"q0": ["b#1"]}}, SECTIONS, 5)


# --- asking -------------------------------------------------------------------------------------------------------


def generator(endpoint: Endpoint, folder: Path, budget: Budget | None = None) -> AnswerGenerator:
    client = ChatClient(
        endpoint.url, "", ConcurrencyLimiter(8), n_words, deadline_s=20.0, sleep=lambda seconds: None
    )
    chat = CachedChat(client, ReplyCache(folder / "llm.sqlite"), budget or Budget())
    return AnswerGenerator(chat, AnswerOptions("http://endpoint/v1", "m", max_answer_tokens=100), n_words)


def n_words(text: str) -> int:
    return len(text.split())


def query_of(body: Mapping[str, Any]) -> str:
    """The id of the question in a request."""
    found = re.search(r"What of (\w+)\?", body["messages"][1]["content"])
    assert found
    return found[1]


def sent(endpoint: Endpoint) -> int:
    """Words of all requests so far."""
    return sum(n_words(m["content"]) for request in endpoint.requests for m in request["messages"])


def test_an_estimate_counts_what_will_be_sent(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.plays(answer("x"))
    asking = generator(endpoint, tmp_path)
    before = estimate_answers(asked(), asking, Prices(1e6, 2e6))
    assert endpoint.requests == []
    generate_answers(asked(), asking, 1)
    # q2 reads the same raw section under two conditions, which is one call.
    n_calls, n_read = len(endpoint.requests), sent(endpoint)
    assert n_calls == 5
    assert before == AnswerEstimate(6, 5, n_read, 500, n_read + 2 * 500)


def test_an_estimate_leaves_out_what_is_answered_or_refused(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.responds(
        lambda body: fault(400, "no", "content_filter") if query_of(body) == "q2" else answer("x")
    )
    asking = generator(endpoint, tmp_path)
    whole = estimate_answers(asked(), asking, None)
    assert whole.cost is None
    generate_answers({RAW: asked()[RAW]}, asking, 1)
    rest = estimate_answers(asked(), asking, None)
    assert (rest.n_questions, rest.n_calls, rest.completion_tokens) == (6, 3, 300)
    assert rest.prompt_tokens == whole.prompt_tokens - sent(endpoint)
    generate_answers(asked(), asking, 1)
    assert estimate_answers(asked(), asking, Prices(1.0, 1.0)) == AnswerEstimate(6, 0, 0, 0, 0.0)


def test_an_estimate_leaves_out_what_nobody_is_asked(endpoint: Endpoint, tmp_path: Path) -> None:
    nothing_read = questions(QUERIES, {RAW: {}}, SECTIONS, 5)
    found = estimate_answers(nothing_read, generator(endpoint, tmp_path), Prices(1.0, 1.0))
    assert found == AnswerEstimate(2, 0, 0, 0, 0.0, 2)


def test_all_conditions_are_answered(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.responds(lambda body: answer(f"answer to {query_of(body)}"))
    told: list[tuple[str, int, int | None]] = []
    found = generate_answers(asked(), generator(endpoint, tmp_path), 2, lambda *state: told.append(state))
    assert found.incomplete is None
    assert {condition: [a.text for a in answers] for condition, answers in found.answers.items()} == {
        condition: ["answer to q0", "answer to q2"] for condition in (RAW, MIXED, FULL)
    }
    assert found.spending == Spending(calls=5, cache_hits=1, prompt_tokens=35, completion_tokens=15)
    assert [state for state in told if state[1] == 2] == [("answering", 2, 2)] * 3


def fails_in_restructured(step: Step) -> Any:
    """Answers what is read raw, and fails where the rewritten section is read."""

    def respond(body: dict[str, Any]) -> Step:
        return step if "A lexicon serves." in body["messages"][1]["content"] else answer("x")

    return respond


@pytest.mark.parametrize(
    ("step", "n_calls", "n_done", "reason"),
    [
        (answer(""), 2 + 3, 1, "an empty answer"),  # asked three times, and q2 is known
        (fault(401, "wrong key"), 2, 0, "wrong key"),
    ],
)
def test_an_endpoint_that_fails_leaves_a_condition_unfinished(
    endpoint: Endpoint, tmp_path: Path, step: Step, n_calls: int, n_done: int, reason: str
) -> None:
    endpoint.responds(fails_in_restructured(step))
    found = generate_answers(asked(), generator(endpoint, tmp_path), 1)
    assert list(found.answers) == [RAW]
    assert found.spending.calls == n_calls
    assert isinstance(found.incomplete, AnswersIncomplete)
    message = str(found.incomplete)
    assert message.startswith(f"{n_done} of 2 questions are answered under raw-to-restructured: ")
    assert reason in message
    assert message.endswith("Answers are kept: run again to go on")


def test_another_run_goes_on_where_one_ended(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.responds(fails_in_restructured(fault(401, "wrong key")))
    generate_answers(asked(), generator(endpoint, tmp_path), 1)
    endpoint.responds(lambda body: answer("x"))
    found = generate_answers(asked(), generator(endpoint, tmp_path), 1)
    assert (found.incomplete, list(found.answers)) == (None, [RAW, MIXED, FULL])
    assert (found.spending.calls, found.spending.cache_hits) == (3, 3)


def test_a_spent_budget_leaves_a_condition_unfinished(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.plays(answer("x"))
    alike = asked(top_k=1)  # one section of four words each
    (first, _) = alike[RAW]
    plain = generator(endpoint, tmp_path)
    request = plain.planned(first)
    assert request is not None
    room = plain.prompt_tokens(request) + request.max_tokens
    found = generate_answers(alike, generator(endpoint, tmp_path, Budget(max_tokens=room)), 1)
    assert found.answers == {}
    assert found.spending == PAID
    assert str(found.incomplete).startswith("1 of 2 questions are answered under raw-to-raw: ")


def test_a_refusal_is_an_answer_that_counts_as_none(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.responds(
        lambda body: fault(400, "blocked", "content_filter") if query_of(body) == "q2" else answer("x")
    )
    found = generate_answers(asked(), generator(endpoint, tmp_path), 2)
    assert found.incomplete is None
    assert [a.failure for a in found.answers[FULL]] == [None, "content_filter"]


# --- what a report has of them ------------------------------------------------------------------------------------

IDS = tuple(f"q{at}" for at in range(6))
SIX = QuerySet(
    "mine",
    tuple(Query(q, q) for q in IDS),
    {q: {"a": 1} for q in IDS},
    known_item=False,
    types={"q0": "boolean", "q1": "boolean", "q2": "none", "unasked": "extractive"},
    references={q: (AnswerReference("Yes", "boolean"),) for q in IDS},
)
NESTED = replace(SIX, known_item=True)
NEVER, THRICE, ALWAYS = ("No",) * 6, ("Yes",) * 3 + ("No",) * 3, ("Yes",) * 6


def answered(**texts: Sequence[str]) -> Answered:
    """Answers by the name of the condition, which were read from one section."""
    return Answered(
        {
            Condition[name]: [
                Answer(q, text, ("a#1",), 0, PAID) for q, text in zip(IDS, of_condition, strict=True)
            ]
            for name, of_condition in texts.items()
        },
        Spending(),
    )


def content(found: Answered, query_set: QuerySet = SIX) -> ReportContent:
    part = answer_findings(found, query_set, SECTIONS, "gpt", "extractive").content
    check(part)
    assert bare_numbers(part) == []
    return part


def test_a_row_for_every_type_and_condition() -> None:
    found = content(answered(RAW_TO_RAW=THRICE, FULL_TO_FULL=("Yes", "Yes", "yes, no", "no", "No", "a yes")))
    rows = [(row.question_type, row.condition, row.f1.value, row.f1.n) for row in found.answers]
    # Of "yes, no" and "yes" one token of two and one is common; articles are no tokens.
    assert rows == [
        ("", "raw-to-raw", 1 / 2, 6),
        ("", "full-to-full", pytest.approx((1 + 1 + 2 / 3 + 0 + 0 + 1) / 6), 6),
        ("boolean", "raw-to-raw", 1.0, 2),
        ("boolean", "full-to-full", 1.0, 2),
        ("none", "raw-to-raw", 1.0, 1),
        ("none", "full-to-full", pytest.approx(2 / 3), 1),
    ]
    assert found.answers[4].f1.reason == "one query or document only, which says nothing about others"
    assert found.restructurer == "extractive"


def test_conditions_have_the_names_that_published_numbers_go_by() -> None:
    found = content(answered(RAW_TO_RAW=NEVER, RAW_TO_RESTRUCTURED=NEVER, FULL_TO_FULL=NEVER))
    assert [row.condition for row in found.answers[:3]] == list(published.ANSWERS)


def test_comparisons_worked_by_hand() -> None:
    found = content(answered(RAW_TO_RAW=NEVER, RAW_TO_RESTRUCTURED=ALWAYS, FULL_TO_FULL=THRICE))
    assert {(c.family, c.measure, c.level, c.restructurer) for c in found.comparisons} == {
        ("answers", "answer-f1", "answer", "extractive")
    }
    # Six gains of one sign: 2 of 64 patterns of signs are as extreme. Three gains: 2 of 8. Holm: the least counts twice.
    assert [(c.left, c.right, c.difference.value, c.p_value, c.p_adjusted) for c in found.comparisons] == [
        ("raw-to-restructured", "raw-to-raw", 1.0, 2 / 64, 2 * 2 / 64),
        ("full-to-full", "raw-to-raw", 0.5, 2 / 8, 2 / 8),
    ]
    assert [c.relative for c in found.comparisons] == [None, None]  # the base is zero


def test_a_relative_difference_has_a_base() -> None:
    (comparison,) = content(answered(RAW_TO_RAW=THRICE, FULL_TO_FULL=ALWAYS)).comparisons
    assert comparison.relative is not None
    assert comparison.relative.value == 1.0
    assert (comparison.difference.value, comparison.difference.n) == (0.5, 6)


@pytest.mark.parametrize("name", ["RAW_TO_RAW", "FULL_TO_FULL"])
def test_one_condition_is_compared_with_nothing(name: str) -> None:
    found = content(answered(**{name: ALWAYS}))
    assert found.comparisons == ()
    assert found.answers[0].f1 == Measured(1.0, 1.0, 1.0, 6)


def test_questions_about_one_document_have_no_interval() -> None:
    found = content(answered(RAW_TO_RAW=THRICE, FULL_TO_FULL=ALWAYS), NESTED)
    (comparison,) = found.comparisons
    shown = [*(row.f1 for row in found.answers), comparison.difference, comparison.relative]
    assert {(m.low, m.reason) for m in shown if m} == {
        (None, "one query or document only, which says nothing about others")
    }
    assert (comparison.p_value, comparison.p_adjusted) == (1.0, 1.0)


def test_evidence_is_that_of_the_raw_paragraphs_read() -> None:
    references = {
        "q0": (AnswerReference("Yes", "boolean", ("We use a lexicon.",)),),
        "q1": (
            AnswerReference("Yes", "boolean", ("Other.",)),
            AnswerReference("No", "boolean", ("It is a BERT.",)),
        ),
        "q2": (AnswerReference("Unanswerable", "none"),),
    }
    read = {"q0": ("a#1",), "q1": ("a#1", "a#2"), "q2": ("a#3",)}
    answers = [Answer(q, "Yes", found, 0, PAID) for q, found in read.items()]
    found = content(Answered({FULL: answers}, Spending()), replace(SIX, references=references))
    # q1: one of the two paragraphs read is the only one of an annotator. q2: none was the right answer.
    values = {row.question_type: row.evidence_f1 for row in found.answers}
    assert values[""] is not None
    assert values[""].n == 3
    assert values[""].value == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert values["boolean"] is not None
    assert values["boolean"].value == pytest.approx((1 + 2 / 3) / 2)
    assert found.answers[0].f1.value == pytest.approx(2 / 3)


def test_without_marked_evidence_there_is_no_evidence_f1() -> None:
    found = content(answered(RAW_TO_RAW=ALWAYS))
    assert [row.evidence_f1 for row in found.answers] == [None] * 3


def test_failures_are_told_and_count_as_nothing() -> None:
    (first, second, *others) = answered(RAW_TO_RAW=ALWAYS).answers[RAW]
    failed = [
        replace(first, text="", failure="content_filter", detail="blocked"),
        replace(second, text="", section_ids=(), failure="no_passage", detail="nothing"),
    ]
    whole = answered(FULL_TO_FULL=ALWAYS).answers[FULL]
    found = content(Answered({RAW: [*failed, *others], FULL: whole}, Spending()))
    assert found.answers[0].f1.n == 6
    assert found.answers[0].f1.value == pytest.approx(4 / 6)
    assert found.notes == (
        "Answers were generated by gpt, and only on request.",
        "Answers, raw-to-raw: 2 of 6 questions have none and count as 0 (the first: content_filter, blocked).",
    )


def test_sections_that_were_cut_are_told() -> None:
    (first, *others) = answered(FULL_TO_FULL=ALWAYS).answers[FULL]
    found = content(Answered({FULL: [replace(first, n_cut=3), *others]}, Spending()))
    assert found.notes[1:] == (
        "Answers, full-to-full: the sections read were cut to fit the prompt of 1 question.",
    )


def test_an_unfinished_condition_has_no_mean(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.responds(fails_in_restructured(answer("")))
    unfinished = generate_answers(asked(), generator(endpoint, tmp_path), 2)
    found = content(unfinished, QUERIES)
    assert {row.condition for row in found.answers} == {"raw-to-raw"}
    assert found.comparisons == ()
