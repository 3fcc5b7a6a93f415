"""The reports on several tasks as one, worked by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from prime_pipeline.corpus.bright import BRIGHT_STRUCTURED_TASKS
from prime_pipeline.reporting.bright import bright_report
from prime_pipeline.reports.content import (
    Cell,
    Comparison,
    Measured,
    ReportContent,
    SystemCost,
    bare_numbers,
    check,
)
from prime_pipeline.reports.page import report_page
from prime_pipeline.reports.tables import report_tables

MEAN = "bright/mean of 2 structured tasks"


def of_task(task: str, systems: Mapping[str, Mapping[str, float]], vectors: int = 10) -> ReportContent:
    """The report on a task: representations by their values per query, all of them dense."""
    means = {name: sum(values.values()) / len(values) for name, values in systems.items()}
    cells = [
        Cell(name, "dense", "ndcg@5", Measured(means[name], 0.0, 1.0, len(values)), per_query=values)
        for name, values in systems.items()
    ]
    return ReportContent(
        title=f"Retrieval report: {task}",
        dataset=f"bright/{task}",
        created=f"index of {task}",
        n_documents=5,
        cells=tuple(cells),
        comparisons=(
            Comparison(
                "representations", "ndcg@5", "dense", "prime-offline", "chunk-256", Measured(0.1, 0.0, 0.2, 2)
            ),
        ),
        costs=(SystemCost("chunk-256", {"vectors": vectors, "query_ms": 4.0}),),
        settings={"profile": "embedded", "corpus": task},
        fingerprints={"offline index": task},
        conventions=("Ties are broken by id.",),
        notes=("A note.",),
    )


BIOLOGY = of_task(
    "biology",
    {
        "chunk-256": {"1": 0.2, "2": 0.4},
        "prime-offline": {"1": 0.6, "2": 0.6},
        "raptor-lite": {"1": 1, "2": 1},
    },
)
PONY = of_task(
    "pony",
    {"chunk-256": {"1": 0.1, "2": 0.1, "3": 0.1}, "prime-offline": {"1": 0.2, "2": 0.1, "3": 0.3}},
    vectors=30,
)
AOPS = of_task("aops", {"chunk-256": {"1": 0.9}, "prime-offline": {"1": 0.9}})


@pytest.fixture
def report() -> ReportContent:
    found = bright_report({"biology": BIOLOGY, "pony": PONY, "aops": AOPS})
    check(found)
    assert bare_numbers(found) == []
    return found


def test_every_task_keeps_its_cells_and_comparisons(report: ReportContent) -> None:
    values = {(cell.dataset, cell.representation): cell.result and cell.result.value for cell in report.cells}
    assert values["bright/biology", "chunk-256"] == pytest.approx(0.3)
    assert values["bright/pony", "prime-offline"] == pytest.approx(0.2)
    assert values["bright/aops", "chunk-256"] == pytest.approx(0.9)
    assert [c.dataset for c in report.comparisons if c.family == "representations"] == [
        *("bright/biology", "bright/pony", "bright/aops")
    ]


def test_the_mean_is_over_structured_tasks_and_systems_that_all_of_them_have(report: ReportContent) -> None:
    means = {cell.representation: cell for cell in report.cells if cell.dataset == MEAN}
    assert set(means) == {"chunk-256", "prime-offline"}
    result = means["chunk-256"].result
    assert result is not None
    assert result.value == pytest.approx((0.3 + 0.1) / 2)
    assert result.n == 5
    (compared,) = (c for c in report.comparisons if c.dataset == MEAN)
    assert (compared.left, compared.right) == ("prime-offline", "chunk-256")
    assert compared.difference.value == pytest.approx((0.3 + 0.1) / 2)
    assert compared.relative is not None
    assert compared.relative.value == pytest.approx((0.6 / 0.3 - 1 + 0.2 / 0.1 - 1) / 2)
    assert compared.p_adjusted == compared.p_value


def test_costs_are_added_up_and_those_of_a_query_averaged(report: ReportContent) -> None:
    (cost,) = report.costs
    assert cost.amounts == {"vectors": 50, "query_ms": 4.0}


def test_what_is_missing_or_apart_is_said(report: ReportContent) -> None:
    assert report.notes[0] == "Mean over 2 of 8 structured tasks: biology, pony."
    assert "earth_science" in report.notes[1]
    assert "not comparable with the paper's" in report.notes[1]
    assert report.notes[2] == "Reported apart, and in no mean: aops."
    assert report.settings == {"profile": "embedded"}  # where tasks differ, their own reports tell


def test_all_structured_tasks_stand_beside_the_published_mean() -> None:
    every = {
        task: of_task(task, {n: {"1": 0.1, "2": 0.3} for n in ("chunk-256", "prime-offline")})
        for task in BRIGHT_STRUCTURED_TASKS
    }
    found = bright_report(every)
    assert not any("not comparable" in note for note in found.notes)
    (table,) = (table for table in report_tables(found) if table.id == "table-3")
    row = next(row for row in table.rows if row[0].text == "mean of 8 structured tasks")
    assert row[-1].text == "+6.9%"
    assert row[-2].text == "0.0%"
    assert len(table.rows) == 9


def test_tasks_apart_alone_have_no_mean() -> None:
    found = bright_report({"aops": AOPS})
    assert {cell.dataset for cell in found.cells} == {"bright/aops"}
    assert "mean of 1 structured" not in report_page(found)
