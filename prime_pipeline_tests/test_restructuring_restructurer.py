"""Whole documents: order, memory, and what a run that is killed, ended or out of budget leaves behind."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from prime_pipeline.errors import ChatClosed
from prime_pipeline.llm.budget import Budget
from prime_pipeline.records import Document, Section, SectionOutcome
from prime_pipeline.restructuring.prompts import Prompt
from prime_pipeline.restructuring.restructurer import ExtractiveRestructurer, restructure_all
from prime_pipeline.restructuring.rewriting import RewritingOptions
from prime_pipeline.restructuring.router import RouterOptions
from prime_pipeline.restructuring.strategy import Strategy
from prime_pipeline_tests.chat_endpoint import Endpoint, answer
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.rewriting_run import PROSE, CapitalsJudge, Run, numbered_documents, sent_text

ROOT = Path(__file__).parent.parent
EXTRACTIVE = Strategy.extractive("1", CapitalsJudge())


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with HTTPServer(threaded=True) as server:
        made = Endpoint(server)
        made.responds(shortened)
        yield made


def shortened(body: dict[str, Any]) -> dict[str, Any]:
    return answer(sent_text(body).removeprefix(PROSE))


class Scripted:
    """A restructurer whose sections take as long as their body says, in seconds."""

    def __init__(self) -> None:
        self.strategy = EXTRACTIVE
        self.n_begun = 0
        self.threads: set[int] = set()
        self._lock = threading.Lock()

    def tasks(self, document: Document) -> list[Callable[[], SectionOutcome]]:
        return [lambda section=section: self._run(section) for section in document.sections]  # type: ignore[misc]

    def _run(self, section: Section) -> SectionOutcome:
        with self._lock:
            self.n_begun += 1
            self.threads.add(threading.get_ident())
        if section.body == "fault":
            raise ZeroDivisionError
        time.sleep(float(section.body))
        return SectionOutcome(section.ordinal, "accepted", section.body)


# --- order and extent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_workers", [1, 4])
def test_documents_come_in_their_order_each_with_its_sections(n_workers: int) -> None:
    documents = [
        make_document("slow", "0.2", "0", "0.1"),
        make_document("empty"),
        make_document("fast", "0", "0"),
    ]
    reported: list[int] = []
    done = list(
        restructure_all(documents, Scripted(), n_workers, lambda activity, n, total: reported.append(n))
    )
    assert [document.doc_id for document, _ in done] == ["slow", "empty", "fast"]
    assert [[s.ordinal for s in outcome.sections] for _, outcome in done] == [[1, 2, 3], [], [1, 2]]
    assert reported == [1, 2, 3, 4, 5]


def test_one_worker_is_the_calling_thread() -> None:
    scripted = Scripted()
    list(restructure_all([make_document("d", "0", "0")], scripted, 1))
    assert scripted.threads == {threading.get_ident()}


def test_no_worker_waits_because_a_first_section_is_slow() -> None:
    class SlowFirst(Scripted):
        def _run(self, section: Section) -> SectionOutcome:
            if section.body == "slow":
                deadline_s = time.monotonic() + 20
                while self.n_begun < 30 and time.monotonic() < deadline_s:
                    time.sleep(0.01)
                return SectionOutcome(section.ordinal, "accepted", f"{self.n_begun}")
            return super()._run(section)

    documents = [make_document("slow", "slow"), *(make_document(f"d{i}", "0") for i in range(60))]
    (_, first), *_ = restructure_all(documents, SlowFirst(), 2)
    assert int(first.sections[0].rewritten or 0) >= 30


def test_documents_are_read_as_they_are_needed() -> None:
    n_read = 0

    def documents() -> Iterator[Document]:
        nonlocal n_read
        for number in range(5000):
            n_read += 1
            yield make_document(f"d{number}", "0.001")

    done = restructure_all(documents(), Scripted(), 2)
    furthest = 0
    for position, _ in enumerate(done):
        furthest = max(furthest, n_read - position)
        if position == 300:
            break
    done.close()
    assert furthest < 200


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_fault_is_raised_and_what_has_not_begun_is_cancelled(n_workers: int) -> None:
    scripted = Scripted()
    documents = [make_document("good", "0"), make_document("bad", "fault", *["0.05"] * 50)]
    done = restructure_all(documents, scripted, n_workers)
    assert next(done)[0].doc_id == "good"
    with pytest.raises(ZeroDivisionError):
        next(done)
    begun = scripted.n_begun
    time.sleep(0.3)
    assert scripted.n_begun <= begun + n_workers


def test_a_caller_who_stops_early_does_not_wait() -> None:
    done = restructure_all([make_document("d", "0"), make_document("e", *["1"] * 20)], Scripted(), 2)
    next(done)
    started = time.monotonic()
    done.close()
    assert time.monotonic() - started < 0.5


# --- without a language model -----------------------------------------------------------------------------------


def test_an_extract_must_pass_the_judge_like_any_rewrite() -> None:
    block = "```\nx = 1\n```"
    bodies = {
        1: ("BLEU is high. Filler.", "BLEU is high."),
        2: ("BLEU is high. Filler.", "Filler."),
        3: ("As it was.", None),
        4: (f"One.\n\n{block}\n\nTwo.\n\n{block}\n\nThree.", f"One.\n\n{block}\n\n{block}\n\nThree."),
        5: (f"One.\n\n{block}\n\nTwo.", "One.\n\nTwo."),
    }
    document = make_document("d", *(raw for raw, _ in bodies.values()))
    captions = replace(document.sections[0], ordinal=6, kind="captions")
    document = replace(document, sections=(*document.sections, captions))
    extracts = {ordinal: extract for ordinal, (_, extract) in bodies.items() if extract}
    restructurer = ExtractiveRestructurer(lambda _: extracts, CapitalsJudge(), EXTRACTIVE)
    ((_, outcome),) = restructure_all([document], restructurer, 1)
    assert [s.kind for s in outcome.sections] == [
        "accepted",
        "raw",
        "unchanged",
        "accepted",
        "raw",
        "routed",
    ]
    assert [f.code for s in outcome.sections for f in s.findings] == [
        "word_missing",
        "placeholder",
        "captions",
    ]
    assert outcome.sections[3].rewritten == extracts[4]
    assert outcome.sections[1].refused == "Filler."


# --- strategies -------------------------------------------------------------------------------------------------


def test_a_strategy_changes_with_everything_that_determines_the_result() -> None:
    options = RewritingOptions("http://x/v1", "m")
    judge = CapitalsJudge()
    strategies = [
        Strategy.llm(Prompt(), options, judge),
        Strategy.llm(Prompt("compression"), options, judge),
        Strategy.llm(Prompt(), replace(options, model="n"), judge),
        Strategy.llm(Prompt(), replace(options, temperature=0.5), judge),
        Strategy.llm(Prompt(), replace(options, router=RouterOptions(min_words=9)), judge),
        Strategy.llm(Prompt(), options, CapitalsJudge(version=2)),
        EXTRACTIVE,
        Strategy.extractive("2", judge),
    ]
    assert len({strategy.fingerprint for strategy in strategies}) == len(strategies)
    assert Strategy.llm(Prompt(), options, judge).fingerprint == strategies[0].fingerprint
    assert (strategies[0].label, EXTRACTIVE.label) == ("llm:m/full-1", "extractive-1")


# --- runs that end otherwise than planned -----------------------------------------------------------------------


def test_a_killed_run_goes_on_where_it_was_and_changes_cost_what_changed(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.responds(lambda body: time.sleep(0.2) or shortened(body))  # type: ignore[func-returns-value]
    child = spawned(endpoint, tmp_path)
    wait_for(lambda: len(endpoint.requests) >= 24)
    os.kill(child.pid, signal.SIGKILL)
    child.wait(10)
    n_answered = n_replies(tmp_path)
    assert 15 <= n_answered <= 45
    time.sleep(0.3)  # the last requests of the dead process arrive
    endpoint.requests.clear()

    documents = numbered_documents(6, 10)
    run = Run(endpoint.url, tmp_path)
    outcomes = run.outcomes(documents)
    assert {s.kind for outcome in outcomes for s in outcome.sections} == {"accepted"}
    assert len(endpoint.requests) == 60 - n_answered
    assert n_replies(tmp_path) == 60

    endpoint.requests.clear()
    edited = replace(
        documents[2], sections=(*make_document("x", f"{PROSE}New.").sections, *documents[2].sections[1:])
    )
    run.outcomes([*documents[:2], edited, *documents[3:]])
    assert len(endpoint.requests) == 1

    endpoint.requests.clear()
    run.outcomes(
        [replace(document, doc_id=f"new-{document.doc_id}", source_path="new.md") for document in documents]
    )
    assert endpoint.requests == []


def test_a_renamed_file_without_a_title_of_its_own_costs_nothing(endpoint: Endpoint, tmp_path: Path) -> None:
    run = Run(endpoint.url, tmp_path)
    (document,) = numbered_documents(1, 3)
    run.outcomes([replace(document, title="old name", title_origin="file-name")])
    run.outcomes([replace(document, title="new name", title_origin="file-name")])
    assert len(endpoint.requests) == 3


def test_a_spent_budget_ends_a_run_cleanly_and_a_later_one_goes_on(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    dear = {"prompt_tokens": 400, "completion_tokens": 100, "total_tokens": 500}
    endpoint.responds(lambda body: answer(sent_text(body).removeprefix(PROSE), usage=dear))
    documents = numbered_documents(2, 10)
    outcomes = Run(endpoint.url, tmp_path, budget=Budget(max_tokens=5000)).outcomes(documents)
    spent = outcomes[0].spending + outcomes[1].spending
    assert 4000 <= spent.prompt_tokens + spent.completion_tokens <= 5000
    kinds = [s.kind for outcome in outcomes for s in outcome.sections]
    assert set(kinds) == {"accepted", "deferred"}
    assert len(endpoint.requests) == kinds.count("accepted")
    assert not outcomes[1].is_complete
    later = Run(endpoint.url, tmp_path).outcomes(documents)
    assert all(outcome.is_complete for outcome in later)
    assert len(endpoint.requests) == 20


def test_two_processes_share_a_cache(endpoint: Endpoint, tmp_path: Path) -> None:
    children = [spawned(endpoint, tmp_path) for _ in range(2)]
    outputs = [child.communicate(timeout=120)[0] for child in children]
    assert outputs[0] == outputs[1]
    assert outputs[0].count("accepted") == 60
    assert n_replies(tmp_path) == 60
    assert 60 <= len(endpoint.requests) <= 120


def test_an_interrupted_run_ends_although_its_calls_hang(endpoint: Endpoint, tmp_path: Path) -> None:
    end = threading.Event()
    endpoint.responds(lambda body: answer(f"{end.wait(120)}"))
    child = spawned(endpoint, tmp_path)
    wait_for(lambda: len(endpoint.requests) >= 4)
    started = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    seconds = time.monotonic() - started
    end.set()
    assert "KeyboardInterrupt" in errors
    assert child.returncode != 0
    assert seconds < 10


def test_closing_the_chat_ends_a_run_in_another_thread(endpoint: Endpoint, tmp_path: Path) -> None:
    end = threading.Event()
    endpoint.responds(lambda body: answer(f"{end.wait(120)}"))
    run = Run(endpoint.url, tmp_path)
    threading.Timer(0.5, run.chat.close).start()
    started = time.monotonic()
    with pytest.raises(ChatClosed):
        run.outcomes(numbered_documents(2, 10))
    assert time.monotonic() - started < 10
    end.set()


def spawned(endpoint: Endpoint, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "prime_pipeline_tests.rewriting_run", endpoint.url, str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def n_replies(folder: Path) -> int:
    connection = sqlite3.connect(folder / "llm.sqlite")
    try:
        ((n_rows, n_keys),) = connection.execute("SELECT count(*), count(DISTINCT key) FROM replies")
    finally:
        connection.close()
    assert n_rows == n_keys
    return int(n_rows)
