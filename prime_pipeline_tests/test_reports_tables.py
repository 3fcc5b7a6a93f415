"""The tables of a report, and what its figures show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prime_pipeline.reports.charts import MAX_MARKS, report_charts
from prime_pipeline.reports.content import (
    EXTRACTIVE,
    AuditRow,
    Cell,
    Comparison,
    Contrast,
    Measured,
    ReportContent,
    SystemCost,
)
from prime_pipeline.reports.layout import Datum, Table, compact, text_datum
from prime_pipeline.reports.summary import comparison_sentence
from prime_pipeline.reports.tables import report_tables
from prime_pipeline_tests.report_content import LLM, NO_WEIGHTS, report_content

CONTENT = report_content()
EMPTY = ReportContent("Empty", "nothing", "today")
IDS = [
    *(
        "table-1",
        "table-2",
        "table-3",
        "table-4",
        "table-5a",
        "table-5b",
        "sections",
        "answers",
        "table-6",
        "cost",
        "comparisons",
    ),
    *("question-types", "corpus-profile", "settings", "fingerprints", "all-cells"),
]


def table(table_id: str, content: ReportContent = CONTENT) -> Table:
    (found,) = [table for table in report_tables(content) if table.id == table_id]
    return found


def row(table_id: str, name: str, content: ReportContent = CONTENT) -> dict[str, Datum]:
    found = table(table_id, content)
    (fields,) = [fields for fields in found.rows if name in {datum.text for datum in fields}]
    return dict(zip(found.columns, fields, strict=True))


@pytest.mark.parametrize(
    "content", [EMPTY, CONTENT, report_content(EXTRACTIVE)], ids=["empty", "llm", "extractive"]
)
def test_every_table_is_there_and_rectangular(content: ReportContent) -> None:
    tables = report_tables(content)
    assert [found.id for found in tables] == IDS
    assert all(len(fields) == len(found.columns) for found in tables for fields in found.rows)
    assert all(bool(found.rows) is (content is not EMPTY) for found in tables)


def test_table_1_is_of_raw_text_behind_one_pipeline() -> None:
    assert [fields[0].text for fields in table("table-1").rows] == [
        "chunk-256",
        "summary-augmented",
        "RAPTOR-lite",
        "structure-chunks",
        "PRIME offline",
    ]
    assert table("table-1").columns[:3] == ("representation", "NDCG@5", "NDCG@5, published")
    assert row("table-1", "RAPTOR-lite")["NDCG@5"] == Datum(f"unavailable: {NO_WEIGHTS}", kind="absent")
    assert row("table-1", "RAPTOR-lite")["P@5"] == Datum("")


def test_two_rerankers_are_two_rows() -> None:
    cells = tuple(
        Cell("chunk-256", "hybrid+rerank", "ndcg@5", Measured(0.3), reranker=name)
        for name in ("ours", "theirs")
    )
    rows = table("table-1", replace(EMPTY, cells=cells)).rows
    assert [fields[0].text for fields in rows] == ["chunk-256, ours", "chunk-256, theirs"]


def test_table_2_sets_published_numbers_beside_ours() -> None:
    found = row("table-2", "structure-chunks")
    assert (found["dense"].text, found["dense"].kind) == ("0.207", "number")
    assert found["dense"].detail.startswith("[0.1")
    assert found["dense, published"] == Datum("0.201", "§ 4.2", 0.201, "published")
    assert found["hybrid, published"] == Datum("")
    assert [name.split(",")[0] for name in found][1::2] == [name.split(",")[0] for name in found][2::2]


def test_extractive_text_has_no_published_number_beside_it() -> None:
    assert row("table-2", f"PRIME full ({LLM})")["hybrid, published"].text == "0.245"
    assert (
        row("table-2", "PRIME full (extractive)", report_content(EXTRACTIVE))["hybrid, published"].text == ""
    )


def test_table_3_has_the_change_of_each_task() -> None:
    pony = row("table-3", "pony")
    assert pony["change"].text == "+102.0%"
    assert pony["change, published"].text == "+175.6%"
    assert row("table-3", "biology")["change, published"].order is None  # a range


def test_table_4_takes_the_cells_of_nfcorpus_only() -> None:
    assert [fields[0].text for fields in table("table-4").rows] == [
        "full-text",
        "PRIME offline",
        "PRIME (FT)",
    ]


def test_a_question_type_has_no_published_number() -> None:
    rows = table("answers").rows
    assert [fields[3].text for fields in rows] == ["0.0842", "0.0866", "0.0957", ""]
    assert rows[3][2].detail == "no interval: fewer than ten questions"


def test_audit_rows_are_in_the_order_of_their_panels() -> None:
    rows = (AuditRow("C", "contradiction", Measured(0.1)), AuditRow("A", "mine", Measured(0.2)))
    assert [fields[0].text for fields in table("table-6", replace(EMPTY, audit=rows)).rows] == ["A", "C"]


def test_costs_have_their_ratio_to_structure_chunks() -> None:
    offline = row("cost", "PRIME offline")
    assert (offline["vectors"].text, offline["vectors"].detail) == ("416", "13.4× less")
    assert row("cost", "PRIME offline, published")["vectors"] == Datum(
        "22.4× less", "§ 4.1", 22.4, "published"
    )
    assert row("cost", "PRIME offline, published")["index size"] == Datum("")
    assert row("cost", "structure-chunks")["vectors"].detail == ""
    assert "query time, ms, dense" in offline
    assert "12,096 queries (23,296,000 tokens" in table("cost").caption


def test_without_structure_chunks_costs_have_no_ratio() -> None:
    costs = (SystemCost("chunk-256", {"vectors": 7}),)
    assert row("cost", "chunk-256", replace(EMPTY, costs=costs))["vectors"] == Datum("7", "", 7, "number")


def test_all_cells_are_listed() -> None:
    assert len(table("all-cells").rows) == len(CONTENT.cells)


def test_equal_contents_in_another_order_give_the_same_tables_of_cells() -> None:
    turned = replace(CONTENT, cells=CONTENT.cells[::-1])
    for table_id in ("table-1", "table-2", "table-4", "question-types", "all-cells"):
        assert table(table_id, turned) == table(table_id)


# --- columns ----------------------------------------------------------------------------------------------------


def small(*rows: tuple[str, ...]) -> Table:
    words = tuple(tuple(map(text_datum, row)) for row in rows)
    return Table("id", "group", "title", "Caption.", ("data", "level", "value"), words)


def test_a_column_that_is_empty_throughout_is_left_out() -> None:
    found = compact(small(("a", "", "1"), ("b", "", "")))
    assert found.columns == ("data", "value")
    assert [[datum.text for datum in row] for row in found.rows] == [["a", "1"], ["b", ""]]
    assert found.caption == "Caption."


def test_a_column_that_does_not_vary_is_told_in_the_caption() -> None:
    found = compact(small(("a", "all", "1"), ("a", "all", "2")), ("data", "level"))
    assert (found.columns, found.caption) == (("value",), "Caption. Throughout: data a.")


def test_the_columns_of_a_single_row_stay_and_so_do_those_of_none() -> None:
    for table_ in (small(("a", "all", "1")), small()):
        assert compact(table_, ("data", "level")) == table_


@pytest.mark.parametrize("content", [CONTENT, report_content(EXTRACTIVE)], ids=["llm", "extractive"])
def test_no_table_has_an_empty_column(content: ReportContent) -> None:
    for found in report_tables(content):
        filled = [any(row[at].text for row in found.rows) for at in range(len(found.columns))]
        assert all(filled), found.id


def test_comparisons_without_a_pipeline_have_no_column_for_it() -> None:
    one = Comparison("systems", "ndcg@5", "", "default", "bm25", Measured(0.1, 0.0, 0.2, 9))
    assert "pipeline" not in table("comparisons", replace(EMPTY, comparisons=(one,))).columns


# --- what numbers rest on ---------------------------------------------------------------------------------------

UNTOLD = Comparison(
    "systems",
    "ndcg@5",
    "",
    "default",
    "bm25",
    Measured(0.4, 0.3, 0.5, 30),
    p_adjusted=0.07,
    minimum_detectable_effect=0.2,
    n_clusters=7,
)


def test_below_a_number_of_queries_stands_that_of_their_documents() -> None:
    content = replace(
        EMPTY,
        comparisons=(UNTOLD,),
        evidence=(Contrast("mrr", Measured(0.1), Measured(0.2), n_clusters=4),),
        audit=(
            AuditRow("B", "numbers", Measured(1.0, n=9), 4),
            AuditRow("D", "flagged", Measured(0.5, n=9), 9),
        ),
    )
    assert row("comparisons", "default", content)["n"] == Datum("30", "7 documents", 30, "number")
    assert [fields[-1].detail for fields in table("table-6", content).rows] == ["4 documents", ""]
    assert "n" not in table("table-5b", content).columns


@pytest.mark.parametrize(
    ("n_family", "shown"),
    [(3, Datum("0.2000", "", 0.2, "number")), (4, Datum("none", "too few to tell", kind="number"))],
)
def test_no_effect_is_detectable_in_a_family_that_could_tell_nothing(n_family: int, shown: Datum) -> None:
    # Signs of 7 documents give no p below 1/64, and four times that is above 0.05.
    content = replace(EMPTY, comparisons=(replace(UNTOLD, n_family=n_family),))
    assert row("comparisons", "default", content)["MDE"] == shown


def test_a_table_of_two_protocols_says_which_rows_are_the_papers() -> None:
    carried = Contrast("mrr", Measured(0.1), Measured(0.2), follows_paper=False)
    papers = Contrast("mrr", Measured(0.1), Measured(0.2), question_type="evidence in both texts")
    caption = table("table-5b", replace(EMPTY, evidence=(carried, papers))).caption
    assert "rows of the paper's protocol (evidence in both texts) judge each text by its own." in caption
    assert (
        "carried over section by section." in table("table-5b", replace(EMPTY, evidence=(carried,))).caption
    )
    assert "carried over" not in table("table-5b").caption


def test_sections_stand_in_a_table_of_their_own() -> None:
    corpus_wide = Cell("default", "hybrid-sections", "mrr", Measured(0.2, 0.1, 0.3, 9), level="section")
    known = replace(corpus_wide, representation="sections", pipeline="within-document+rerank", reranker="m")
    documents = replace(corpus_wide, level="document")
    found = table("sections", replace(EMPTY, cells=(corpus_wide, known, documents)))
    assert found.columns == ("representation", "pipeline", "MRR")
    assert [[datum.text for datum in fields] for fields in found.rows] == [
        ["default", "hybrid-sections", "0.200"],
        ["sections", "within-document + m", "0.200"],
    ]


# --- figures ----------------------------------------------------------------------------------------------------


def test_figures_show_what_their_tables_hold() -> None:
    charts = report_charts(CONTENT)
    assert set(charts) == {"table-2", "table-3", "table-5a", "table-5b", "answers", "table-6", "comparisons"}
    assert list(dict.fromkeys(mark.panel for mark in charts["table-2"].marks)) == [
        "dense",
        "hybrid",
        "hybrid + ms-marco-MiniLM-L-6-v2",
    ]
    assert len(charts["table-2"].marks) == 15  # those that could not be measured are not drawn
    assert [mark.published for mark in charts["answers"].marks] == [0.0842, 0.0866, 0.0957]


@pytest.mark.parametrize(
    ("low", "p_adjusted", "is_hollow"),
    [(0.3, 0.04, False), (0.3, 0.05, True), (-0.1, 0.04, True), (0.3, None, False), (None, 0.04, True)],
)
def test_a_dot_is_hollow_where_the_sentence_tells_no_difference(
    low: float | None, p_adjusted: float | None, is_hollow: bool
) -> None:
    difference = Measured(0.4, low, None if low is None else 0.5, 30)
    compared = replace(UNTOLD, difference=difference, p_adjusted=p_adjusted, n_clusters=40)
    (mark,) = report_charts(replace(EMPTY, comparisons=(compared,)))["comparisons"].marks
    assert mark.is_hollow is is_hollow
    assert comparison_sentence(compared).claim.startswith("No difference") is is_hollow


def test_a_task_of_bright_is_hollow_where_its_comparison_tells_no_difference() -> None:
    assert all(mark.is_hollow for mark in report_charts(CONTENT)["table-3"].marks)  # every adjusted p is 0.64


@pytest.mark.parametrize(("n_clusters", "is_hollow"), [(5, True), (6, False), (None, False)])
def test_a_change_is_hollow_where_too_few_documents_tell_it(n_clusters: int | None, is_hollow: bool) -> None:
    change = Contrast("mrr", Measured(0.1), Measured(0.2), Measured(1.0, 0.5, 1.5), n_clusters=n_clusters)
    (mark,) = report_charts(replace(EMPTY, evidence=(change,)))["table-5b"].marks
    assert mark.is_hollow is is_hollow


def test_an_empty_report_has_no_figures() -> None:
    assert report_charts(EMPTY) == {}


def test_a_figure_has_so_many_rows_and_says_what_is_left_out() -> None:
    rows = tuple(AuditRow("A", f"dimension {at}", Measured(0.5)) for at in range(MAX_MARKS + 5))
    chart = report_charts(replace(EMPTY, audit=rows))["table-6"]
    assert (len(chart.marks), chart.n_left_out) == (MAX_MARKS, 5)
