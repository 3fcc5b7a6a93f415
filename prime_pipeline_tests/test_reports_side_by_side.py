"""Two reports side by side, and the files of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from selectolax.lexbor import LexborHTMLParser

from prime_pipeline.errors import ReportError, StoreUnavailable
from prime_pipeline.reports.content import (
    AnswerRow,
    AuditRow,
    Cell,
    Contrast,
    Measured,
    ReportContent,
    SystemCost,
)
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
        *("0.200 [0.100, 0.300]", "0.250 [0.150, 0.350]", "+0.0500 no interval: unpaired"),
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
    assert [row[-1] for row in tables["cells"]] == ["one → third", ""]
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


def test_what_is_the_same_in_all_cells_is_told_in_the_caption() -> None:
    page = LexborHTMLParser(compare(with_cells(CELL, replace(CELL, measure="mrr")), with_cells(CELL)))
    assert [node.text() for node in page.css("#cells th")][:2] == ["data", "level"]
    both = with_cells(CELL, replace(CELL, measure="mrr"))
    page = LexborHTMLParser(compare(both, both))
    assert [node.text() for node in page.css("#cells th")] == [
        *("representation", "pipeline", "measure", "left", "right", "right − left")
    ]
    (caption,) = page.css("#cells .caption")
    assert caption.text().endswith("Throughout: data corpus; level document.")


# --- what is no cell ------------------------------------------------------------------------------------------------

RAW, NEW, MORE = Measured(0.2, 0.1, 0.3, 44), Measured(0.4, 0.3, 0.5, 44), Measured(1.0, 0.5, 1.5, 44)
CARRIED = Contrast("mrr", RAW, NEW, MORE, follows_paper=False)
PAPERS = Contrast("mrr", RAW, NEW, question_type="evidence in both texts")


def test_contrasts_stand_side_by_side_by_protocol_and_text() -> None:
    left = replace(BASE, evidence=(CARRIED, PAPERS))
    right = replace(BASE, evidence=(replace(CARRIED, restructured=Measured(0.45, 0.4, 0.5, 23)),))
    assert shown(left, right)["evidence"] == [
        [
            "MRR",
            "all",
            "raw",
            "0.200 [0.100, 0.300]",
            "0.200 [0.100, 0.300]",
            "0.0000 no interval: unpaired",
            "44",
        ],
        [
            *("MRR", "all", "restructured", "0.400 [0.300, 0.500]", "0.450 [0.400, 0.500]"),
            *("+0.0500 no interval: unpaired", "44 → 23"),
        ],
        [
            *("MRR", "all", "change", "+100.0% [+50.0%, +150.0%]", "+100.0% [+50.0%, +150.0%]"),
            *("0.0 points no interval: unpaired", "44"),
        ],
        ["MRR", "evidence in both texts", "raw", "0.200 [0.100, 0.300]", "", "only in the left report", "44"],
        [
            "MRR",
            "evidence in both texts",
            "restructured",
            "0.400 [0.300, 0.500]",
            "",
            "only in the left report",
            "44",
        ],
    ]


def test_what_one_report_has_stands_with_what_is_like_it() -> None:
    left = replace(BASE, evidence=(PAPERS, replace(PAPERS, measure="map")))
    right = replace(BASE, evidence=(CARRIED,))
    assert [row[0] for row in shown(left, right)["evidence"]] == ["MRR"] * 5 + ["MAP"] * 2


def test_density_has_a_table_of_its_own() -> None:
    tables = shown(BASE, replace(BASE, density=(replace(CARRIED, measure="mean IDF"),)))
    assert [row[0] for row in tables["density"]] == ["mean IDF"] * 3
    assert tables["evidence"] == []


def test_answers_stand_side_by_side() -> None:
    left = replace(BASE, answers=(AnswerRow("raw-to-raw", RAW, evidence_f1=Measured(0.5, reason="one")),))
    right = replace(BASE, answers=(AnswerRow("raw-to-raw", NEW), AnswerRow("full-to-full", NEW, "boolean")))
    assert shown(left, right)["answers"] == [
        [
            *("raw-to-raw", "all", "Answer-F1", "0.2000 [0.1000, 0.3000]", "0.4000 [0.3000, 0.5000]"),
            *("+0.2000 no interval: unpaired", "44"),
        ],
        ["raw-to-raw", "all", "Evidence-F1", "0.5000 no interval: one", "", "only in the left report", ""],
        [
            "full-to-full",
            "boolean",
            "Answer-F1",
            "",
            "0.4000 [0.3000, 0.5000]",
            "only in the right report",
            "44",
        ],
    ]


def test_the_audit_stands_side_by_side_in_points() -> None:
    left = replace(BASE, audit=(AuditRow("B", "numbers", Measured(0.9, 0.8, 1.0, 7), 3),))
    right = replace(
        BASE, audit=(AuditRow("B", "numbers", Measured(0.95, 0.9, 1.0, 7)), AuditRow("A", "spans", RAW))
    )
    assert shown(left, right)["audit"] == [
        ["A", "spans", "", "20.0% [10.0%, 30.0%]", "only in the right report", "44"],
        [
            "B",
            "numbers",
            "90.0% [80.0%, 100.0%]",
            "95.0% [90.0%, 100.0%]",
            "+5.0 points no interval: unpaired",
            "7",
        ],
    ]


def test_rows_of_one_name_are_all_listed() -> None:
    twice = replace(BASE, audit=(AuditRow("B", "numbers", RAW), AuditRow("B", "numbers", NEW)))
    assert [row[:2] for row in shown(twice, BASE)["audit"]] == [["B", "numbers"], ["B", "numbers (2)"]]


def test_costs_stand_side_by_side_with_their_ratio() -> None:
    left = replace(BASE, costs=(SystemCost("default", {"vectors": 50, "index_bytes": 2_000_000}),))
    right = replace(BASE, costs=(SystemCost("default", {"vectors": 100, "money": 1.5}),))
    assert shown(left, right)["cost"] == [
        ["default", "vectors", "50", "100", "+50 2.0× more"],
        ["default", "index size", "2.0 MB", "", "only in the left report"],
        ["default", "money", "", "1.50", "only in the right report"],
    ]


def test_less_index_is_a_negative_difference() -> None:
    left, right = (replace(BASE, costs=(SystemCost("default", {"index_bytes": n}),)) for n in (3e6, 1e6))
    assert shown(left, right)["cost"] == [["default", "index size", "3.0 MB", "1.0 MB", "−2.0 MB 3.0× less"]]


def test_costs_that_differ_in_their_models_only_are_matched_and_say_so() -> None:
    left, right = (
        replace(BASE, costs=(SystemCost("prime-full", {"vectors": 5}, restructurer=name),))
        for name in ("extractive", "gpt")
    )
    (row,) = shown(left, right)["cost"]
    assert row[2:] == ["5", "5", "0 the same", "extractive → gpt"]
    raw_too = replace(left, costs=(*left.costs, SystemCost("prime-full", {"vectors": 5})))
    assert [row[4] for row in shown(raw_too, right)["cost"]] == [
        *("only in the left report", "only in the left report", "only in the right report")
    ]


def test_other_restructurers_are_told() -> None:
    page = compare(replace(BASE, restructurer="extractive"), replace(BASE, restructurer="gpt"))
    assert "What made the restructured text differs: extractive on the left, gpt on the right." in page
    assert "What made the restructured text" not in compare(BASE, BASE)


def test_every_number_of_both_reports_is_shown_once() -> None:
    content = report_content()
    tables = shown(content, content)
    assert len(tables["density"]) == 3 * len(content.density)
    assert len(tables["evidence"]) == 3 * len(content.evidence)
    assert len(tables["answers"]) == sum(1 + (row.evidence_f1 is not None) for row in content.answers)
    assert len(tables["audit"]) == len(content.audit)
    assert len(tables["cost"]) == sum(len(system.amounts) for system in content.costs)
    numbers = [row for name in ("density", "evidence", "answers", "audit") for row in tables[name]]
    assert not any(field.endswith(" report") for row in numbers for field in row)


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
