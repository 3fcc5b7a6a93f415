"""What people see of measures, printed to a console of a hundred columns."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from prime_pipeline.console.measuring import (
    answers_view,
    estimate_view,
    evaluation_view,
    profile_view,
    report_view,
    scores_view,
)
from prime_pipeline.evaluation.run_files import RunScores, score_runs
from prime_pipeline.evaluation.statistics import Interval
from prime_pipeline.records import Spending
from prime_pipeline.refresh.evaluation import EvaluationReport, SystemMeasures
from prime_pipeline.reports.content import AnswerRow, Measured, Profile, Property, ReportContent
from prime_pipeline.reports.summary import comparison_sentence
from prime_pipeline.studies.answers import AnswerEstimate
from prime_pipeline_tests.report_content import report_content

CONTENT = report_content()
STEERING = "a\x1b]0;t\x07b\x9bc\u202ed"
MARKUP = "[bold]x[/bold]"
EVIL = STEERING + MARKUP
HARMLESS = f"a]0;tbcd{MARKUP}"


def shown(view: Any, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(view, crop=False)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def joined(text: str) -> str:
    """The text without its line breaks, as words are wrapped where the console ends."""
    return " ".join(text.split())


def cells(text: str, beginning: str) -> list[str]:
    """The cells of the table's row that begins so; of several lines the first."""
    (row,) = [line for line in text.splitlines() if line.startswith(f"│ {beginning}")]
    return [cell.strip() for cell in row.strip("│").split("│")]


# --- runs of files ------------------------------------------------------------------------------------------------


def scored(folder: Path, *tags: str) -> RunScores:
    """Runs over two queries with three judged: the first run finds one, the others both."""
    for at, tag in enumerate(tags):
        second = "b" if at else "x"
        lines = f"q1 Q0 a 1 1.0 {tag}\nq2 Q0 {second} 1 1.0 {tag}\nq9 Q0 a 1 1.0 {tag}\n"
        (folder / f"{at}.run").write_text(lines, encoding="utf-8")
    (folder / "qrels").write_text("q1 0 a 1\nq2 0 b 1\nq3 0 c 0\n")
    return score_runs([folder / f"{at}.run" for at in range(len(tags))], folder / "qrels", ["mrr", "p@1"])


def test_runs_stand_side_by_side_with_a_row_for_each_measure(tmp_path: Path) -> None:
    text = shown(scores_view(scored(tmp_path, "mine", "theirs")))
    assert "3 judged queries" in text
    assert cells(text, "MRR") == ["MRR", "0.333", "0.667"]
    assert cells(text, "P@1") == ["P@1", "0.333", "0.667"]
    assert re.search(r"┃ measure +┃ +mine ┃ +theirs ┃", text)


def test_differences_to_the_first_run_come_with_interval_and_p(tmp_path: Path) -> None:
    text = shown(scores_view(scored(tmp_path, "mine", "theirs", "third")))
    assert "Compared with mine by MRR" in text
    name, difference, p_adjusted, detectable = cells(text, "theirs")
    assert (name, difference) == ("theirs", "+0.3333")
    assert p_adjusted == "1.000"  # one gain among three queries
    assert float(detectable) > 0
    assert text.count("[0.0000, ") == 2


def test_one_run_is_compared_with_nothing(tmp_path: Path) -> None:
    assert "Compared" not in shown(scores_view(scored(tmp_path, "mine")))


def test_queries_that_count_in_an_odd_way_are_told(tmp_path: Path) -> None:
    scores = scored(tmp_path, "mine")
    text = shown(scores_view(replace(scores, warnings=("a.run: odd",))), width=200)
    assert [line for line in text.splitlines() if line.startswith("note:")] == [
        "note: a.run: odd",
        "note: mine: 1 queries are judged and have no result; they count as 0",
        "note: mine: 1 queries have no relevant result in the judgements; they count as 0",
        "note: mine: 1 queries of the run are not judged; they are ignored",
    ]


def test_names_of_foreign_runs_cannot_steer_the_terminal(tmp_path: Path) -> None:
    text = shown(scores_view(scored(tmp_path, EVIL, f"{EVIL}2")), width=400)
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
    # The heads of the columns, the title and the row of the comparison, and three notes on each of them.
    assert text.count(HARMLESS) == 2 + 2 + 6


# --- what is served -----------------------------------------------------------------------------------------------


def evaluated(variant: str, restructuring: str, value: float, **told: Any) -> EvaluationReport:
    interval = Interval(value, value - 0.125, value + 0.125, 9, 9, "bca")
    measures = dict.fromkeys(("ndcg@5", "ndcg@10", "r@5", "mrr", "map"), interval)
    fields: dict[str, Any] = {"queries": "papers", "known_item": False, "n_queries": 1_234, **told}
    return EvaluationReport(
        fingerprint="f",
        build_id="b",
        variant=variant,
        restructuring=restructuring,
        query_set_fingerprint="q",
        systems={"bm25": SystemMeasures(measures, {})},
        changed=True,
        seconds=0.0,
        **fields,
    )


def test_systems_stand_by_variant_with_their_differences_in_words() -> None:
    reports = [evaluated("offline", "", 0.5), evaluated("full", "extractive-1", 0.25)]
    text = shown(evaluation_view(reports, CONTENT, []), width=160)
    assert "1,234 queries, papers" in text
    assert "known-item" not in text
    assert cells(text, "BM25 over documents  ")[1:] == ["0.500"] * 4
    assert cells(text, "BM25 over documents, full (extractive-1)")[1:] == ["0.250"] * 4
    assert text.count("[0.375, 0.625]") == text.count("[0.125, 0.375]") == 4
    for comparison in CONTENT.comparisons:
        assert f"• {joined(str(comparison_sentence(comparison)))}" in joined(text)
    assert "written:" not in text


def test_known_item_queries_are_called_so() -> None:
    text = shown(evaluation_view([evaluated("offline", "", 0.5, known_item=True)], CONTENT, []))
    assert "1,234 queries, papers, known-item queries" in text


def test_written_runs_are_counted_and_their_folder_is_named() -> None:
    files = [Path("out/a.run"), Path("out/b.run"), Path("out/qrels.txt")]
    text = shown(evaluation_view([evaluated("offline", "", 0.5)], CONTENT, files))
    assert text.splitlines()[-1] == f"written: 3 files in {Path('out')}"


def test_the_name_of_a_query_set_cannot_steer_the_terminal() -> None:
    text = shown(evaluation_view([evaluated("offline", "", 0.5, queries=EVIL)], CONTENT, []))
    assert f"queries, {HARMLESS}" in text
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}


# --- the corpus profile -------------------------------------------------------------------------------------------


def test_a_profile_shows_regime_evidence_and_properties() -> None:
    assert CONTENT.profile is not None
    text = shown(profile_view(CONTENT.profile, ["a sample only"]))
    assert re.search(r"Regime +structure-exploiting", text)
    assert re.search(r"Recommended +metadata \(offline\)", text)
    assert "• Every document has section headings, 13.4 on average." in text
    row = cells(text, "documents with section headings")
    assert row == ["documents with section headings", "1.000", "416", "headings can be used"]
    assert text.count("[0.991, 1.000]") == 1
    assert text.splitlines()[-1] == "note: a sample only"


def test_a_property_without_interval_or_count_shows_neither() -> None:
    profile = Profile("saturated", "full text", (), (Property("code", Measured(0.25), "of it"),))
    text = shown(profile_view(profile, []))
    assert cells(text, "code") == ["code", "0.250", "", "of it"]
    assert "[" not in text
    assert "note:" not in text


def test_evidence_in_words_cannot_steer_the_terminal() -> None:
    profile = Profile(EVIL, EVIL, (EVIL,), (Property("code", Measured(0.25), EVIL),))
    text = shown(profile_view(profile, [EVIL]), width=300)
    assert text.count(HARMLESS) == 5
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}


# --- answers ------------------------------------------------------------------------------------------------------


def test_an_estimate_tells_the_most_that_answers_can_cost() -> None:
    text = shown(estimate_view(AnswerEstimate(1_200, 1_000, 2_500_000, 512_000, 1.25), "EUR"))
    assert re.search(r"questions +1,200", text)
    assert re.search(r"calls +1,000 \(200 are answered already, or alike\)", text)
    assert re.search(r"tokens read +about 2,500,000", text)
    assert re.search(r"tokens generated +at most 512,000", text)
    assert re.search(r"price +at most 1\.2500 EUR", text)


def test_without_a_price_the_setting_that_holds_it_is_named() -> None:
    assert "unknown: set llm.prices" in shown(estimate_view(AnswerEstimate(2, 2, 30, 10, None), None))


def test_answers_stand_by_condition_and_type_with_what_they_cost() -> None:
    found = replace(CONTENT, notes=("Answers were generated by m.",))
    text = shown(answers_view(found, Spending(1_000, 20, 0, 2_000_000, 34_567)), width=200)
    whole, boolean = (line for line in text.splitlines() if line.startswith("│ raw-to-raw "))
    assert [cell.strip() for cell in whole.strip("│").split("│")] == [
        "raw-to-raw",
        "all",
        "0.0912",
        "",
        "1,451",
    ]
    assert [cell.strip() for cell in boolean.strip("│").split("│")] == [
        "raw-to-raw",
        "boolean",
        "0.3100",
        "",
        "6",
    ]
    assert "note: Answers were generated by m." in text
    assert re.search(r"calls +1,000", text)
    assert re.search(r"from the cache +20", text)
    assert re.search(r"tokens +2,034,567", text)
    assert re.search(r"price +unknown: set llm\.prices", text)


def test_what_answers_cost_stands_in_its_currency() -> None:
    text = shown(answers_view(CONTENT, Spending(1_000, 20, 0, 2_000_000, 34_567), 1_234.5678, "EUR"))
    assert re.search(r"price +1,234\.5678 EUR", text)


def test_evidence_f1_stands_beside_answer_f1_where_evidence_is_marked() -> None:
    row = AnswerRow("full-to-full", Measured(0.5, 0.25, 0.75, 9), "", Measured(0.125, 0.1, 0.2, 9))
    text = shown(answers_view(ReportContent("t", "d", "c", answers=(row,)), Spending()))
    assert cells(text, "full-to-full") == ["full-to-full", "all", "0.5000", "0.1250", "9"]
    assert "[0.2500, 0.7500]" in text
    assert "[0.1000, 0.2000]" in text


# --- the report ---------------------------------------------------------------------------------------------------


def test_a_report_is_told_in_short_with_its_files(tmp_path: Path) -> None:
    files = [tmp_path / ("long-name" * 20), tmp_path / "report.md"]
    text = shown(report_view(CONTENT, files))
    assert text.startswith("PRIME on QASPER\n")
    assert [line for line in text.splitlines() if line in {"Data", "Text", "Retrieval", "Fidelity"}] == [
        "Data",
        "Text",
        "Retrieval",
        "Fidelity",
    ]
    assert "• 416 documents; 1,451 queries from “qasper-test”." in text
    assert text.splitlines()[-2:] == [f"written: {path}" for path in files]  # a path can be copied whole


def test_names_in_a_report_cannot_steer_the_terminal() -> None:
    found = ReportContent(title=EVIL, dataset=EVIL, created="Monday", restructurer=EVIL)
    text = shown(report_view(found, []), width=300)
    assert text.count(HARMLESS) == 3
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
