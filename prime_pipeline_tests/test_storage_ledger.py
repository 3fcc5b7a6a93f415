"""The ledger: what runs spent, and that the same line is never counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prime_pipeline.records import Spending
from prime_pipeline.storage.ledger import Ledger, LedgerLine, LedgerRun

RUN = LedgerRun("r2", "2026-01-02T00:00:00+00:00", "abc", "llm:m/full-1", 10, 1000, 500)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield ledger
    ledger.close()


def test_runs_come_back_oldest_first(ledger: Ledger) -> None:
    earlier = LedgerRun("r9", "2026-01-01T00:00:00+00:00", "abc", "extractive-1", None, None, None)
    ledger.open_run(RUN)
    ledger.open_run(earlier)
    assert ledger.runs() == [earlier, RUN]


def test_lines_add_up_by_run(ledger: Ledger) -> None:
    spent = Spending(2, 1, 1, 100, 50, estimated=True)
    ledger.add(LedgerLine("r1", "a", spent, 0.25))
    ledger.add(LedgerLine("r1", "b", Spending(1, 0, 0, 10, 5), None))
    ledger.add(LedgerLine("r2", "a", Spending(cache_hits=3), 0.0))
    assert ledger.totals() == {
        "r1": Spending(3, 1, 1, 110, 55, estimated=True),
        "r2": Spending(cache_hits=3),
    }
    assert ledger.lines()[0] == LedgerLine("r1", "a", spent, 0.25)


def test_the_last_run_about_a_document_is_known(ledger: Ledger) -> None:
    earlier = replace(RUN, run_id="r9", started_at="2026-01-01T00:00:00+00:00")
    other = replace(RUN, run_id="r3", started_at="2026-01-03T00:00:00+00:00", strategy="other")
    for run in (RUN, earlier, other):
        ledger.open_run(run)
        ledger.add(LedgerLine(run.run_id, "a", Spending(2, 1, 1, 100, 50, estimated=True), 0.25))
    assert ledger.latest("a", "abc") == (RUN, ledger.lines()[0])
    assert ledger.latest("b", "abc") is None


def test_the_same_line_counts_once(ledger: Ledger) -> None:
    line = LedgerLine("r1", "a", Spending(calls=2), None)
    ledger.add(line)
    ledger.add(replace(line, spending=Spending(calls=3)))
    assert ledger.totals() == {"r1": Spending(calls=3)}


def test_forgetting_a_document_leaves_the_sums(ledger: Ledger) -> None:
    ledger.add(LedgerLine("r1", "a", Spending(calls=2, prompt_tokens=10), 0.25))
    ledger.add(LedgerLine("r1", "b", Spending(calls=1, prompt_tokens=5), None))
    ledger.add(LedgerLine("r1", "c", Spending(calls=4), 0.5))
    ledger.add(LedgerLine("r2", "c", Spending(cache_hits=1), None))
    before = ledger.totals()
    assert ledger.forget(["a", "b", ""]) == 2
    assert ledger.totals() == before
    assert ledger.lines() == [
        LedgerLine("r1", "", Spending(calls=3, prompt_tokens=15), 0.25),
        LedgerLine("r1", "c", Spending(calls=4), 0.5),
        LedgerLine("r2", "c", Spending(cache_hits=1), None),
    ]
