"""Two reports side by side, and the files of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from selectolax.lexbor import LexborHTMLParser

from prime_pipeline.errors import ReportError, StoreUnavailable
from prime_pipeline.reports.content import Cell, Measured, ReportContent
from prime_pipeline.reports.markdown import report_markdown
from prime_pipeline.reports.page import report_page
from prime_pipeline.reports.side_by_side import Paired, compare
from prime_pipeline.reports.writing import read_report, write_report
from prime_pipeline_tests.report_content import report_content

BASE = ReportContent("Left", "corpus", "Monday", settings={"rrf_k": "60", "top_k": "5"})
CELL = Cell("chunk-256", "dense", "ndcg@5", Measured(0.2, 0.1, 0.3, 2), per_query={"a": 0.1, "b": 0.3})


def paired(left: Mapping[str, float], right: Mapping[str, float]) -> Measured:
    """A stand-in for the bootstrap: the mean difference with the smallest and the largest as its bounds."""
    differences = [right[query] - left[query] for query in left]
    return Measured(fmean(differences), min(differences), max(differences), len(differences))


def shown(
    left: ReportContent, right: ReportContent, hook: Paired | None = None
) -> dict[str, list[list[str]]]:
    """Table id to the words of its rows."""
    page = LexborHTMLParser(compare(left, right, hook))
    return {
        str(table.attributes["id"]): [
            [" ".join(field.text().split()) for field in row.css("td")] for row in table.css("tbody tr")
        ]
        for table in page.css("article")
    }


def with_cells(*cells: Cell) -> ReportContent:
    return replace(BASE, cells=cells)


def test_values_stand_side_by_side_and_a_difference_of_means_has_no_interval() -> None:
    right = replace(CELL, result=Measured(0.25, 0.15, 0.35, 2), per_query={})
    (row,) = shown(with_cells(CELL), with_cells(right), paired)["cells"]
    assert row == [
        *("corpus", "document", "all", "chunk-256", "dense", "NDCG@5"),
        *("0.200 [0.100, 0.300]", "0.250 [0.150, 0.350]", "+0.0500 no interval: unpaired", ""),
    ]


def test_values_of_the_same_queries_are_paired() -> None:
    right = replace(CELL, result=Measured(0.25), per_query={"b": 0.3, "a": 0.2})
    (row,) = shown(with_cells(CELL), with_cells(right), paired)["cells"]
    assert row[8] == "+0.0500 [0.0000, +0.1000]"
    (row,) = shown(with_cells(CELL), with_cells(right))["cells"]
    assert row[8] == "+0.0500 no interval: unpaired"


def test_values_of_other_queries_are_not_paired() -> None:
    right = replace(CELL, per_query={"a": 0.2, "c": 0.3})
    (row,) = shown(with_cells(CELL), with_cells(right), paired)["cells"]
    assert row[8].endswith("no interval: unpaired, the queries differ")


def test_cells_that_differ_in_their_models_only_are_matched_and_say_so() -> None:
    left, right = (replace(CELL, pipeline="hybrid+rerank", reranker=name) for name in ("ours", "theirs"))
    (row,) = shown(with_cells(left), with_cells(right))["cells"]
    assert row[9] == "ours → theirs"


def test_a_whole_key_goes_before_a_place() -> None:
    one, other, third = (replace(CELL, reranker=name) for name in ("one", "other", "third"))
    tables = shown(with_cells(one, other), with_cells(other, third))
    assert [row[9] for row in tables["cells"]] == ["one → third", ""]
    tables = shown(with_cells(one, other), with_cells(third))
    assert (len(tables["cells"]), len(tables["only-left"]), len(tables["only-right"])) == (0, 2, 1)


def test_cells_of_one_report_only_are_listed() -> None:
    tables = shown(with_cells(CELL), with_cells(replace(CELL, measure="mrr", result=None, reason="no model")))
    assert tables["cells"] == []
    assert [row[5:] for row in tables["only-left"]] == [["NDCG@5", "0.200 [0.100, 0.300]"]]
    assert [row[5:] for row in tables["only-right"]] == [["MRR", "unavailable: no model"]]


def test_other_data_do_not_match() -> None:
    right = replace(with_cells(CELL), dataset="other")
    assert shown(with_cells(CELL), right)["cells"] == []
    assert "different data sets" in compare(with_cells(CELL), right)


def test_only_changed_settings_are_listed() -> None:
    right = replace(BASE, settings={"rrf_k": "20", "top_k": "5", "mode": "full"})
    assert shown(BASE, right)["settings"] == [["mode", "not set", "full"], ["rrf_k", "60", "20"]]


def test_every_cell_of_both_reports_is_shown_once() -> None:
    left, right = report_content(), report_content("extractive")
    tables = shown(left, right)
    assert len(tables["cells"]) == len(left.cells)
    assert not tables["only-left"]
    assert not tables["only-right"]


# --- files ------------------------------------------------------------------------------------------------------


def test_three_files_are_written_and_the_json_read_again(tmp_path: Path) -> None:
    content = report_content()
    files = write_report(tmp_path / "reports", content)
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == [
        "report.html",
        "report.json",
        "report.md",
    ]
    assert files.page.read_text(encoding="utf-8") == report_page(content)
    assert files.markdown.read_text(encoding="utf-8") == report_markdown(content)
    assert read_report(files.json) == read_report(tmp_path / "reports") == content


def test_a_refused_report_replaces_nothing(tmp_path: Path) -> None:
    files = write_report(tmp_path, BASE)
    before = files.page.read_bytes()
    with pytest.raises(ReportError, match="nan"):
        write_report(tmp_path, with_cells(replace(CELL, result=Measured(float("nan")))))
    assert files.page.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StoreUnavailable, match="file"):
        write_report(file, BASE)


def test_a_report_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"absent.*report\.json"):
        read_report(tmp_path / "absent")
    (tmp_path / "report.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ReportError, match=r"report\.json: this is no report"):
        read_report(tmp_path)
