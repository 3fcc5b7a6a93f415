"""What the warehouse holds, read back with DuckDB, and when it is published again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.evaluation.statistics import Interval
from prime_pipeline.records import DocumentOutcome, Finding, SectionOutcome, Spending
from prime_pipeline.refresh.evaluation import EvaluationReport, SystemMeasures
from prime_pipeline.refresh.warehouse import Restructuring, WarehouseOutcome, refresh_warehouse
from prime_pipeline.storage.ledger import Ledger, LedgerLine, LedgerRun
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document

REPORT = EvaluationReport(
    fingerprint="f1",
    build_id="b",
    variant="offline",
    restructuring="",
    queries="mine",
    query_set_fingerprint="queries",
    known_item=False,
    n_queries=2,
    systems={
        "bm25": SystemMeasures(
            {"mrr": Interval(0.75, 0.5, 1.0, 2, 2, "bca")}, {"mrr": {"q1": 1.0, "q2": 0.5}}
        )
    },
    changed=True,
    seconds=1.0,
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.publish(
        make_document("a", "Bread, “dough”: Dough of bread.", "Ovens: Heat the oven.", title='The "A"'),
        make_document("b", "Engines: An engine.", title="B"),
    )
    return bench


def refresh(
    bench: Bench, *reports: EvaluationReport, restructuring: Restructuring | None = None
) -> WarehouseOutcome:
    return refresh_warehouse(
        bench.home.warehouse, bench.live(), bench.store.catalogue(), reports, restructuring
    )


def rows(bench: Bench, query: str) -> list[Any]:
    import duckdb

    connection = duckdb.connect(str(bench.home.warehouse), read_only=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_the_tables_hold_what_is_served(bench: Bench) -> None:
    bench.store.put_failure("c", "c", "c.md", "is broken")
    outcome = refresh(bench, REPORT)
    assert outcome.changed
    assert outcome.rows == {
        "documents": 3,
        "sections": 3,
        "metadata": 2,
        "measures": 2,
        "restructurings": 0,
        "restructuring_runs": 0,
        "spending": 0,
        "text_density": 0,
        "fidelity_audit": 0,
        "corpus_properties": 0,
    }
    version = bench.store.catalogue()["a"].version
    documents = rows(bench, "SELECT * FROM documents ORDER BY doc_id")
    assert documents[0] == ("a", 'The "A"', "a.md", version, 2, None)
    assert documents[2] == ("c", "c", "c.md", None, 0, "is broken")
    sections = rows(bench, "SELECT * FROM sections ORDER BY section_id")
    text = "## Bread, “dough”\nDough of bread."
    assert sections[0] == ("a#1", "a", 1, ["Bread, “dough”"], len(text), None, 2, 3)
    assert [section[0] for section in sections] == ["a#1", "a#2", "b#1"]
    assert rows(bench, "SELECT * FROM measures ORDER BY query_id") == [
        ("offline", "", "bm25", "q1", "mrr", 1.0),
        ("offline", "", "bm25", "q2", "mrr", 0.5),
    ]


def test_metadata_has_terms_with_scores_and_headings(bench: Bench) -> None:
    refresh(bench)
    ((terms, scores, headings),) = rows(
        bench, "SELECT terms, scores, headings FROM metadata WHERE doc_id = 'a'"
    )
    assert "dough" in terms
    assert len(scores) == len(terms)
    assert scores == sorted(scores, reverse=True)
    assert headings == ["Bread, “dough”", "Ovens"]


def test_without_an_evaluation_there_are_no_measures(bench: Bench) -> None:
    assert refresh(bench).rows["measures"] == 0
    assert rows(bench, "SELECT * FROM measures") == []


def test_an_equal_snapshot_is_left_alone(bench: Bench) -> None:
    refresh(bench, REPORT)
    before = bench.home.warehouse.stat()
    outcome = refresh(bench, REPORT)
    assert (outcome.changed, outcome.rows) == (False, {})
    assert bench.home.warehouse.stat().st_ino == before.st_ino


def test_whatever_it_shows_makes_another_snapshot(bench: Bench) -> None:
    refresh(bench)
    assert refresh(bench, REPORT).changed
    bench.store.put_failure("c", "c", "c.md", "is broken")
    assert refresh(bench, REPORT).changed
    bench.put([make_document("b", "Engines: Another engine.", title="B")])
    assert refresh(bench, REPORT).changed
    bench.publish()
    assert refresh(bench, REPORT).changed
    assert not refresh(bench, REPORT).changed


def test_a_changed_document_has_its_new_sections_beside_those_of_the_others(bench: Bench) -> None:
    refresh(bench)
    bench.publish(make_document("b", "Engines: An engine.", "Wings: Two of them.", title="B"))
    assert refresh(bench).rows["sections"] == 4
    found = rows(bench, "SELECT section_id, heading_path FROM sections ORDER BY section_id")
    headings = {"a#1": "Bread, “dough”", "a#2": "Ovens", "b#1": "Engines", "b#2": "Wings"}
    assert found == [(section, [heading]) for section, heading in headings.items()]


def test_a_damaged_snapshot_is_replaced(bench: Bench) -> None:
    bench.home.warehouse.write_bytes(b"no database")
    assert refresh(bench).changed
    assert len(rows(bench, "SELECT * FROM documents")) == 2


def test_nothing_but_the_snapshot_is_left_behind(bench: Bench) -> None:
    before = {path.name for path in bench.home.root.iterdir()}
    refresh(bench)
    assert {path.name for path in bench.home.root.iterdir()} - before == {"warehouse.duckdb"}


def test_restructurings_and_what_they_cost_are_told(bench: Bench) -> None:
    ledger = Ledger(bench.home.ledger)
    ledger.open_run(LedgerRun("r1", "2026-01-02T03:04:05+00:00", "abc", "llm:m/full-1", 2, 300, 200))
    finding = Finding("number_missing", "12.5")
    sections = (
        SectionOutcome(1, "patched", "x", (finding,), appended=("It is 12.5.",)),
        SectionOutcome(2, "accepted", "y"),
    )
    facts = Restructuring("llm:m/full-1", "v1", lambda: [DocumentOutcome("a", sections)], ledger)
    assert refresh(bench, restructuring=facts).changed
    assert not refresh(bench, restructuring=facts).changed
    assert rows(bench, "SELECT * FROM restructurings ORDER BY section_id") == [
        ("a#1", "a", "llm:m/full-1", "patched", ["number_missing"], 1),
        ("a#2", "a", "llm:m/full-1", "accepted", [], 0),
    ]
    ledger.add(LedgerLine("r1", "a", Spending(3, 1, 0, 310, 190), 0.25))
    assert refresh(bench, restructuring=facts).changed  # money was spent since
    joined = (
        "SELECT expected_calls, sum(calls), expected_prompt_tokens, sum(prompt_tokens), sum(cost)"
        " FROM restructuring_runs JOIN spending USING (run_id) GROUP BY ALL"
    )
    assert rows(bench, joined) == [(2, 3, 300, 310, 0.25)]
    ledger.close()
