"""The report of a home: what is in it, when it is written, what is not in it, and another one beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from prime_pipeline.errors import NothingToStudy, ReportError
from prime_pipeline.reporting.answers import generated_answers
from prime_pipeline.reporting.evaluating import evaluate_published
from prime_pipeline.reporting.report import PublishedReport, home_report, publish_report, write_comparison
from prime_pipeline.reporting.studies import STUDIES, corpus_profile
from prime_pipeline.reports.content import EXTRACTIVE, Cell, Measured, ReportContent, bare_numbers, check
from prime_pipeline.reports.report_json import SCHEMA_VERSION
from prime_pipeline.reports.writing import read_report, write_report
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.chat_endpoint import Endpoint, answer
from prime_pipeline_tests.papers import (
    REWRITTEN,
    OpenPapers,
    opening,
    publish,
    reworded,
    write_papers,
)

KEY = "sk-very-secret-0123456789"
STALE = "Generated answers are of an earlier index or other questions, and are left out: prime answer"


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    return write_papers(tmp_path / "papers.json")


@pytest.fixture
def open_papers(tmp_path: Path, papers: Path) -> Iterator[OpenPapers]:
    """Opens workspaces on one home, each as a new process would."""
    with opening(tmp_path / "home", papers) as open_one:
        yield open_one


def reported(workspace: Workspace) -> PublishedReport:
    """The report after all studies were brought up to date."""
    for make in STUDIES.values():
        make(workspace)
    return publish_report(workspace)


def files(report: PublishedReport) -> list[Path]:
    return [report.files.page, report.files.markdown, report.files.json]


# --- what is in it ------------------------------------------------------------------------------------------------


def test_a_report_of_offline_mode(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    publish(workspace)
    found = reported(workspace)
    content = found.content
    check(content)
    assert bare_numbers(content) == []
    assert (content.title, content.dataset, content.n_documents) == ("Retrieval report: papers", "papers", 2)
    assert re.fullmatch(r"index published \d{4}-\d\d-\d\d \d\d:\d\d UTC", content.created)
    assert (content.known_item, content.restructurer, content.restructurers) == (True, "", ())
    assert content.clusters == {"a1": "alpha", "a2": "alpha", "b1": "beta", "b2": "beta"}
    assert {cell.level for cell in content.cells} == {"document", "section"}
    assert (content.profile is not None, bool(content.costs), bool(content.comparisons)) == (True, True, True)
    assert (content.density, content.evidence, content.audit, content.answers) == ((), (), (), ())
    assert files(found) == [workspace.home.reports / f"report.{suffix}" for suffix in ("html", "md", "json")]
    assert read_report(workspace.home.reports) == content
    markdown = found.files.markdown.read_text(encoding="utf-8")
    assert "# Retrieval report: papers" in markdown
    assert "It is filled by `prime refresh --mode full`" in markdown
    assert "It is filled by `prime answer`" in markdown


def test_a_report_of_full_mode_holds_what_restructuring_did(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    content = reported(workspace).content
    assert bare_numbers(content) == []
    assert (content.restructurer, content.restructurers) == (EXTRACTIVE, (EXTRACTIVE,))
    assert all((content.density, content.evidence, content.audit))
    assert content.settings["restructuring strategy"] == "extractive-1"
    assert content.settings["restructuring.entities"] == "rule"
    assert len({name for name in content.fingerprints if name.endswith("index")}) == 2


def test_a_report_names_what_it_was_made_of(open_papers: OpenPapers) -> None:
    workspace = open_papers(retrieval={"top_k": 3})
    publish(workspace)
    content = reported(workspace).content
    assert content.settings["retrieval.top_k"] == "3"
    assert content.settings["retrieval.arms"] == "document_bm25, section_bm25, metadata_vector"
    assert content.settings["evaluated systems"] == "bm25, stage1, default"
    assert (content.settings["embedder"], content.settings["nli_model"]) == ("hashing", "default")
    assert content.fingerprints["offline index"] == workspace.builds("offline").live_id
    assert {name for name in content.fingerprints if name.startswith("study")} == {
        f"study {name}" for name in STUDIES
    }


@pytest.mark.parametrize(
    ("corpus", "name"),
    [("papers.json", "papers"), ("docs-1.2", "docs-1.2"), ("installed:", "installed documentation")],
)
def test_a_report_is_named_after_its_corpus(
    open_papers: OpenPapers, tmp_path: Path, corpus: str, name: str
) -> None:
    publish(open_papers(queries=None))
    (tmp_path / "docs-1.2").mkdir()
    told = corpus if corpus == "installed:" else str(tmp_path / corpus)
    content = home_report(open_papers(corpus=told, queries=None))
    assert (content.title, content.dataset) == (f"Retrieval report: {name}", name)


def test_a_report_on_a_build_that_was_returned_to_says_so(open_papers: OpenPapers, papers: Path) -> None:
    publish(open_papers())
    write_papers(papers, reworded("Heat the oven for an hour.", "Heat it."))
    workspace = open_papers()
    publish(workspace)
    assert reported(workspace).content.notes[0].startswith("Retrieval: ")
    workspace.builds("offline").rollback()
    content = reported(workspace).content
    assert content.notes[0].startswith("What is served is a build of an earlier corpus")
    assert content.fingerprints["offline index"] == workspace.builds("offline").live_id
    assert content.cells == ()


def test_a_report_after_the_queries_changed_asks_for_an_evaluation(
    open_papers: OpenPapers, tmp_path: Path
) -> None:
    publish(open_papers())
    other = tmp_path / "queries.jsonl"
    other.write_text(json.dumps({"query": "ovens", "relevant": "beta"}), encoding="utf-8")
    content = reported(open_papers(queries=str(other))).content
    assert content.cells == ()
    assert "Index offline: not evaluated yet with the queries and settings of now" in content.notes[0]
    assert content.commands["comparisons"] == "prime evaluate"
    assert "question-types" not in content.commands  # no command gives a query a type
    assert open_papers().evaluations()
    assert not any("not evaluated" in note for note in reported(open_papers()).content.notes)


def test_a_report_on_text_of_another_strategy_says_so(open_papers: OpenPapers) -> None:
    publish(open_papers(mode="full"))
    llm = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}
    content = reported(open_papers(mode="full", llm=llm)).content
    assert content.notes[0].startswith(
        "The settings ask for llm:m/full-1, and what is served was restructured by extractive-1"
    )
    assert (content.audit, content.density, content.evidence) == ((), (), ())


def test_a_study_that_was_never_made_is_missing(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    publish(workspace)
    content = home_report(workspace)
    assert (content.cells, content.costs, content.profile, content.notes) == ((), (), None, ())
    corpus_profile(workspace)
    assert home_report(workspace).profile is not None


def test_nothing_published_is_nothing_to_report_on(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    with pytest.raises(NothingToStudy, match="run `prime refresh --corpus DIR` first"):
        publish_report(workspace)
    assert not workspace.home.root.exists()


# --- when it is written -------------------------------------------------------------------------------------------


def test_a_report_is_written_when_it_says_something_else(open_papers: OpenPapers, papers: Path) -> None:
    publish(open_papers())
    first = reported(open_papers())
    assert first.changed
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in files(first)]
    again = reported(open_papers())
    assert not again.changed
    assert again.content == first.content
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in files(again)] == before

    assert reported(open_papers(retrieval={"top_k": 2})).changed  # a setting that it names
    assert reported(open_papers()).changed
    write_papers(papers, reworded("Heat the oven for an hour.", "Heat it."))
    workspace = open_papers()
    publish(workspace)
    assert reported(workspace).changed


@pytest.mark.parametrize("suffix", ["html", "md", "json"])
def test_a_lost_file_is_written_again(open_papers: OpenPapers, suffix: str) -> None:
    workspace = open_papers()
    publish(workspace)
    lost = reported(workspace).files.page.with_suffix(f".{suffix}")
    before = lost.read_bytes()
    lost.unlink()
    assert publish_report(workspace).changed
    assert lost.read_bytes() == before
    assert not publish_report(workspace).changed


def test_a_damaged_report_is_written_again(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    publish(workspace)
    found = reported(workspace)
    found.files.json.write_bytes(b"\xff{")
    with pytest.raises(ReportError):
        read_report(workspace.home.reports)
    assert publish_report(workspace).changed
    assert read_report(workspace.home.reports) == found.content


# --- what is not in it --------------------------------------------------------------------------------------------


def replied(request: dict[str, Any]) -> dict[str, Any]:
    """An answer to a question, or a section rewritten."""
    return answer("Yes" if "<question-" in request["messages"][1]["content"] else REWRITTEN)


def test_the_language_model_s_settings_are_in_no_file(
    open_papers: OpenPapers, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.responds(replied)
    monkeypatch.setenv("PRIME_LLM__API_KEY", KEY)
    workspace = open_papers(mode="full", llm={"base_url": endpoint.url, "model": "m"})
    assert workspace.settings.llm.api_key.get_secret_value() == KEY
    publish(workspace)
    generated_answers(workspace)
    found = reported(workspace)
    assert found.content.answers
    assert found.content.restructurer == "m/full-1"
    for path in files(found):
        text = path.read_text(encoding="utf-8")
        assert KEY not in text
        assert endpoint.url not in text
        assert not re.search(r"api_key|base_url", text)


def test_a_report_holds_no_text_of_documents(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    for path in files(reported(workspace)):
        assert not re.search("Knead|Heat the oven|scheduler of the Alpha", path.read_text(encoding="utf-8"))


def test_answers_are_in_the_report_while_they_are_current(
    open_papers: OpenPapers, papers: Path, endpoint: Endpoint
) -> None:
    endpoint.responds(replied)
    llm = {"base_url": endpoint.url, "model": "m"}
    publish(open_papers(llm=llm))
    assert reported(open_papers(llm=llm)).content.answers == ()
    study, _ = generated_answers(open_papers(llm=llm))
    current = publish_report(open_papers(llm=llm))
    assert current.changed
    assert current.content.answers == study.findings.content.answers != ()
    assert STALE not in current.content.notes

    write_papers(papers, reworded("Heat the oven for an hour.", "Heat it."))
    workspace = open_papers(llm=llm)
    publish(workspace)
    stale = reported(workspace)
    assert stale.content.answers == ()
    assert stale.content.notes[-1] == STALE
    assert STALE in stale.files.markdown.read_text(encoding="utf-8")
    generated_answers(open_papers(llm=llm))
    assert publish_report(open_papers(llm=llm)).content.answers != ()


# --- another one beside it ----------------------------------------------------------------------------------------

BASE = ReportContent("Mine", "corpus", "Monday")


def with_values(*values: float, prefix: str = "q") -> ReportContent:
    """A report of one cell over as many queries."""
    per_query = {f"{prefix}{at}": value for at, value in enumerate(values)}
    mean = sum(values) / len(values)
    result = Measured(mean, mean - 0.1, mean + 0.1, len(values))
    return replace(BASE, cells=(Cell("default", "dense", "ndcg@5", result, per_query=per_query),))


def rows(page: Path, table: str) -> list[list[str]]:
    """The words of a table's rows."""
    tree = LexborHTMLParser(page.read_text(encoding="utf-8"))
    found = tree.css(f"#{table} tbody tr")
    return [[" ".join(field.text().split()) for field in row.css("td")] for row in found]


def test_differences_are_paired_query_by_query(tmp_path: Path) -> None:
    write_report(tmp_path / "left", with_values(0.1, 0.2, 0.3, 0.4))
    write_comparison(tmp_path / "left", with_values(0.2, 0.4, 0.3, 0.9), tmp_path / "page.html")
    (row,) = rows(tmp_path / "page.html", "cells")
    value, low, high = map(float, re.findall(r"[+−]?\d\.\d+", row[8]))
    assert value == 0.2  # of 0.1, 0.2, 0.0 and 0.5
    assert 0.0 <= low < value < high <= 0.5


def test_paired_queries_are_resampled_with_their_documents(tmp_path: Path) -> None:
    write_report(tmp_path / "left", with_values(0.1, 0.2, 0.3, 0.4))
    right = with_values(0.2, 0.4, 0.3, 0.9)
    for clusters, below in (
        (
            {"q0": "a", "q1": "a", "q2": "b", "q3": "b"},
            "[+0.1500, +0.2500]",
        ),  # 0.15 in one, 0.25 in the other
        (dict.fromkeys(("q0", "q1", "q2", "q3"), "a"), "no interval: one query or document only"),
        ({"q0": "a"}, "[+0.0500, +0.4250]"),  # not of these queries
    ):
        write_comparison(tmp_path / "left", replace(right, clusters=clusters), tmp_path / "page.html")
        (row,) = rows(tmp_path / "page.html", "cells")
        assert row[8].startswith(f"+0.2000 {below}")


def test_other_queries_are_not_paired(tmp_path: Path) -> None:
    write_report(tmp_path / "left", with_values(0.1, 0.3))
    write_comparison(tmp_path / "left", with_values(0.2, 0.4, prefix="other"), tmp_path / "page.html")
    (row,) = rows(tmp_path / "page.html", "cells")
    assert row[8] == "+0.1000 no interval: unpaired, the queries differ"


def test_a_report_is_found_by_its_home_its_folder_or_its_file(
    open_papers: OpenPapers, tmp_path: Path
) -> None:
    publish(open_papers())
    first = reported(open_papers())
    second = home_report(open_papers(retrieval={"top_k": 2}))
    pages = [tmp_path / f"{at}.html" for at in range(3)]
    others = (tmp_path / "home", first.files.json.parent, first.files.json)
    for page, other in zip(pages, others, strict=True):
        write_comparison(other, second, page)
    assert len({page.read_bytes() for page in pages}) == 1
    assert rows(pages[0], "settings") == [["retrieval.top_k", "5", "2"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read the report"),
        ("no JSON", "this is no report"),
        ("[]", "it has no schema_version"),
        (json.dumps({"schema_version": SCHEMA_VERSION + 1}), "make the report anew"),
        (json.dumps({"schema_version": SCHEMA_VERSION, "report": {"title": 1}}), "report"),
    ],
)
def test_another_report_that_cannot_be_read_is_named(
    tmp_path: Path, content: str | None, message: str
) -> None:
    other = tmp_path / "other.json"
    if content is not None:
        other.write_text(content)
    with pytest.raises(ReportError, match=message) as caught:
        write_comparison(other, BASE, tmp_path / "page.html")
    assert "other.json" in str(caught.value)
    assert not (tmp_path / "page.html").exists()


def test_a_folder_without_a_report_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"report\.json.*Give a report's folder or its report\.json"):
        write_comparison(tmp_path, BASE, tmp_path / "page.html")


def test_a_report_after_the_settings_changed_shows_no_number_of_the_old_ones(open_papers: OpenPapers) -> None:
    publish(open_papers())
    assert reported(open_papers()).content.cells
    changed = reported(open_papers(retrieval={"rrf_k": 7})).content
    assert changed.cells == ()
    assert changed.settings["retrieval.rrf_k"] == "7"
    assert "with the queries and settings of now" in changed.notes[0]
    assert reported(open_papers(retrieval={"rrf_k": 60})).content.cells


def test_other_questions_with_the_same_ids_are_not_paired(open_papers: OpenPapers, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    lines = [json.dumps({"query": q, "relevant": d}) for q, d in (("oven", "beta"), ("workers", "alpha"))]
    queries.write_text("\n".join(lines), encoding="utf-8")
    publish(open_papers(queries=str(queries)))
    before = reported(open_papers(queries=str(queries)))
    write_report(tmp_path / "before", before.content)
    pages = []
    for given in (lines, lines[::-1]):
        queries.write_text("\n".join(given), encoding="utf-8")
        workspace = open_papers(queries=str(queries))
        evaluate_published(workspace)
        write_comparison(tmp_path / "before", reported(workspace).content, tmp_path / "page.html")
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))
    same, turned = (page.count("no interval: unpaired") for page in pages)
    assert turned > same


def test_what_is_relevant_and_not_there_is_noted(open_papers: OpenPapers, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text(
        json.dumps({"query": "oven", "relevant": ["beta#Ovens", "beta#Nope", "gone"]}), encoding="utf-8"
    )
    publish(open_papers(queries=str(queries)))
    notes = reported(open_papers(queries=str(queries))).content.notes
    assert any(
        note.startswith("1 document that the queries call relevant is not in the index") for note in notes
    )
    assert any("Relevant sections are not measured" in note and "'Nope'" in note for note in notes)


def test_how_much_was_restructured_is_noted(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    notes = reported(workspace).content.notes
    assert any(note.startswith("Restructuring changed 1 of 4 sections") for note in notes)
