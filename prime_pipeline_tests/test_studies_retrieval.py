"""Cells and comparisons of evaluations that can be worked by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.evaluation.measures import CONVENTIONS
from prime_pipeline.evaluation.statistics import mean_intervals
from prime_pipeline.records import Query
from prime_pipeline.refresh.evaluation import EvaluationReport, SystemMeasures
from prime_pipeline.reports.content import (
    EXTRACTIVE,
    Cell,
    Comparison,
    Measured,
    ReportContent,
    bare_numbers,
    check,
)
from prime_pipeline.reports.tables import report_tables
from prime_pipeline.retrieval.systems import SYSTEMS
from prime_pipeline.studies.findings import merged
from prime_pipeline.studies.retrieval import (
    COMPARED,
    PLACES,
    restructurer_of,
    retrieval_findings,
    unmeasured,
)

IDS = tuple(f"q{at}" for at in range(6))
TYPES = {"q0": "boolean", "q1": "boolean", "q2": "boolean", "q3": "extractive"}
QUERIES = QuerySet(
    "mine", tuple(Query(q, q) for q in IDS), {q: {"d": 1} for q in IDS}, known_item=False, types=TYPES
)
NESTED = replace(QUERIES, qrels={q: {f"d{q in TYPES}": 1} for q in IDS}, known_item=True)
NO_GAIN = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
HALF = (0.125, 0.125, 0.125, 0.0, 0.0, 0.0)
ALL = (0.125, 0.125, 0.125, 0.125, 0.125, 0.125)
BM25, PAPER, STAGE1, DEFAULT = "BM25", "the paper's stage 1", "our stage 1", "our default"


def report(
    systems: Mapping[str, tuple[float, ...]],
    variant: str = "offline",
    restructuring: str = "",
    queries: QuerySet = QUERIES,
) -> EvaluationReport:
    """An evaluation by two measures: NDCG@5 as given, and MRR, which is always 1."""
    measures = {}
    for name, values in systems.items():
        per_query = {COMPARED: dict(zip(IDS, values, strict=True)), "mrr": dict.fromkeys(IDS, 1.0)}
        measures[name] = SystemMeasures(mean_intervals(per_query, queries.clusters), per_query)
    return EvaluationReport(
        fingerprint=variant,
        build_id="b",
        variant=variant,
        restructuring=restructuring,
        queries=queries.name,
        query_set_fingerprint="queries",
        known_item=queries.known_item,
        n_queries=len(IDS),
        systems=measures,
        changed=True,
        seconds=0.0,
    )


def content(*reports: EvaluationReport, queries: QuerySet = QUERIES) -> ReportContent:
    found = retrieval_findings(reports, queries, "ms-marco").content
    check(found)
    assert bare_numbers(found) == []
    return found


def compared(found: ReportContent) -> dict[tuple[str, str], Comparison]:
    return {(comparison.left, comparison.right): comparison for comparison in found.comparisons}


# --- cells --------------------------------------------------------------------------------------------------------


def test_every_system_has_its_place() -> None:
    assert set(PLACES) == set(SYSTEMS)
    found = content(report(dict.fromkeys(SYSTEMS, ALL)))
    cells = [c for c in found.cells if c.measure == COMPARED and not c.question_type]
    assert [(c.representation, c.pipeline, c.reranker) for c in cells] == [
        ("no vectors", "bm25", ""),
        ("prime-offline", "hybrid", ""),
        ("default", "hybrid-sections", ""),
        ("default", "hybrid-sections+rerank", "ms-marco"),
    ]
    assert {c.level for c in cells} == {"document"}


def test_a_cell_for_every_measure_and_type_of_question() -> None:
    found = content(report({"bm25": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)}))
    values = [(c.question_type, c.measure, c.result.value, c.result.n) for c in found.cells if c.result]
    assert values == [
        ("", COMPARED, pytest.approx(0.35), 6),
        ("", "mrr", 1.0, 6),
        ("boolean", COMPARED, pytest.approx(0.2), 3),
        ("boolean", "mrr", 1.0, 3),
        ("extractive", COMPARED, 0.4, 1),
        ("extractive", "mrr", 1.0, 1),
    ]
    assert [len(cell.per_query) for cell in found.cells] == [6, 6, 0, 0, 0, 0]
    assert found.cells[0].per_query == {f"q{at}": pytest.approx((at + 1) / 10) for at in range(6)}
    of_one = found.cells[4].result
    assert of_one == Measured(
        0.4, None, None, 1, "one query or document only, which says nothing about others"
    )


def test_queries_without_types_have_no_breakdown() -> None:
    found = content(report({"bm25": ALL}), queries=replace(QUERIES, types={}))
    assert [cell.question_type for cell in found.cells] == ["", ""]


def test_a_system_of_another_version_is_left_out() -> None:
    found = content(report({"colbert": ALL, "bm25": NO_GAIN}))
    assert {cell.pipeline for cell in found.cells} == {"bm25"}
    assert found.comparisons == ()


def test_cells_of_two_variants_do_not_collide() -> None:
    found = content(report({"bm25": NO_GAIN}), report({"bm25": ALL}, "full", "llm:gpt/full-1"))
    cells = [c for c in found.cells if c.measure == COMPARED and not c.question_type]
    assert [(c.restructurer, c.result.value) for c in cells if c.result] == [
        ("", 0.0),
        ("gpt/full-1", 0.125),
    ]
    assert found.restructurers == ("gpt/full-1",)


def test_questions_about_one_document_are_resampled_together() -> None:
    found = content(report({"bm25": HALF}, queries=NESTED), queries=NESTED)
    assert found.known_item
    (boolean,) = [c.result for c in found.cells if c.question_type == "boolean" and c.measure == COMPARED]
    assert boolean is not None
    assert (boolean.value, boolean.low) == (0.125, None)  # three questions about one document
    assert [*CONVENTIONS, *found.conventions[-1:]] == list(found.conventions)
    assert "documents, which queries nest in, are resampled" in found.conventions[-1]
    assert found.notes == (
        "Retrieval: from 2 documents only, so that the intervals are narrower than they should be.",
    )
    flat = content(report({"bm25": HALF}))
    assert flat.notes == ()
    assert "; queries are resampled" in flat.conventions[-1]
    assert not flat.known_item


def test_nothing_evaluated_is_no_cell() -> None:
    found = content()
    assert (found.cells, found.comparisons) == ((), ())


def test_an_unmeasured_cell_waits_for_its_measure() -> None:
    assert unmeasured("default", EXTRACTIVE, "ms-marco") == Cell(
        "default", "hybrid-sections+rerank", "", None, restructurer=EXTRACTIVE, reranker="ms-marco"
    )
    assert unmeasured("stage1", "", "ms-marco").reranker == ""


# --- comparisons --------------------------------------------------------------------------------------------------


def test_the_family_is_declared_whatever_the_values() -> None:
    systems: dict[str, tuple[float, ...]] = dict.fromkeys(SYSTEMS, ALL)
    of_raw = [
        (DEFAULT, BM25),
        (DEFAULT, STAGE1),
        (DEFAULT, PAPER),
        (STAGE1, BM25),
        (STAGE1, PAPER),
    ]
    assert list(compared(content(report(systems)))) == of_raw
    raw = report(dict(systems))
    del systems["paper_literal"]
    both = content(raw, report(systems, "full", "extractive-1"))

    def full(label: str) -> str:
        return f"{label} (extractive)"

    assert list(compared(both)) == [
        *of_raw,
        (full(DEFAULT), full(BM25)),
        (full(DEFAULT), full(STAGE1)),
        (full(STAGE1), full(BM25)),
        *((full(label), label) for label in (BM25, STAGE1, DEFAULT)),
    ]
    assert {(c.family, c.measure, c.level, c.difference.value) for c in both.comparisons} == {
        ("systems", COMPARED, "document", 0.0)
    }
    assert {c.p_adjusted for c in both.comparisons} == {1.0}


def test_comparisons_worked_by_hand() -> None:
    found = compared(content(report({"bm25": NO_GAIN, "stage1": HALF, "default": ALL})))
    # Six gains of one sign: 2 of 64 patterns of signs are as extreme. Three gains: 2 of 8.
    assert {pair: (c.difference.value, c.p_value) for pair, c in found.items()} == {
        (DEFAULT, BM25): (0.125, 2 / 64),
        (DEFAULT, STAGE1): (0.0625, 2 / 8),
        (STAGE1, BM25): (0.0625, 2 / 8),
    }
    # Holm: the least times 3, the next times 2, and the last not below that.
    assert [c.p_adjusted for c in found.values()] == [3 * 2 / 64, 2 * 2 / 8, 2 * 2 / 8]
    assert [c.relative for c in (found[DEFAULT, BM25], found[STAGE1, BM25])] == [None, None]
    relative = found[DEFAULT, STAGE1].relative
    assert relative == Measured(1.0, None, None, 6, "the base is zero in some resample")
    assert found[DEFAULT, BM25].minimum_detectable_effect is None  # all queries gain alike
    assert (found[DEFAULT, STAGE1].minimum_detectable_effect or 0) > 0


def test_one_family_over_both_variants_is_adjusted_together() -> None:
    found = content(
        report({"bm25": NO_GAIN, "default": ALL}),
        report({"bm25": NO_GAIN, "default": HALF}, "full", "extractive-1"),
    )
    # Default against BM25 raw and restructured, then full against offline: p is 1/32, 1/4, 1 and 1/4.
    assert [c.p_value for c in found.comparisons] == [1 / 32, 1 / 4, 1.0, 1 / 4]
    assert [c.p_adjusted for c in found.comparisons] == [4 / 32, 3 / 4, 1.0, 3 / 4]
    assert found.comparisons[-1].difference.value == -0.0625


def test_systems_of_the_restructured_text_only_have_no_base() -> None:
    found = content(report({"default": ALL}), report({"bm25": ALL}, "full", "extractive-1"))
    assert found.comparisons == ()


def test_one_document_is_compared_without_an_interval() -> None:
    nested = replace(NESTED, qrels={q: {"d": 1} for q in IDS})
    evaluated = report({"bm25": HALF, "default": ALL}, queries=nested)
    (comparison,) = content(evaluated, queries=nested).comparisons
    assert comparison.relative is not None
    assert comparison.difference.reason == comparison.relative.reason != ""
    assert (comparison.difference.low, comparison.p_value, comparison.p_adjusted) == (None, 1.0, 1.0)
    assert comparison.minimum_detectable_effect is None


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "restructurer"),
    [("", ""), ("extractive-1", EXTRACTIVE), ("llm:deepseek-chat/full-1", "deepseek-chat/full-1")],
)
def test_who_rewrote(label: str, restructurer: str) -> None:
    assert restructurer_of(label) == restructurer


def test_extractive_text_is_never_called_sr() -> None:
    systems = {"bm25": NO_GAIN, "stage1": HALF, "default": ALL}
    part = content(report(systems), report(systems, "full", "extractive-1"))
    tables = report_tables(merged(ReportContent("Mine", "corpus", "Monday"), [part]))
    words = [datum.text for table in tables for row in table.rows for datum in row]
    assert f"{DEFAULT} (extractive)" in words
    assert "default (extractive)" in words
    assert not [text for text in words if "SR" in text]
