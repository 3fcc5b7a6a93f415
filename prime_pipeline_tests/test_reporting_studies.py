"""The studies of a home with two papers: what each finds, and when each is made again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.errors import EmptyCorpus
from prime_pipeline.reporting import studies
from prime_pipeline.reporting.evaluating import evaluate_published
from prime_pipeline.reporting.studies import (
    STUDIES,
    corpus_profile,
    evaluated,
    evidence_localisation,
    fidelity_audit,
    index_costs,
    loaded,
    restructurer,
    retrieval_quality,
    study_rows,
    text_density,
    versions,
)
from prime_pipeline.reports.content import EXTRACTIVE, Contrast, ReportContent, bare_numbers, check
from prime_pipeline.studies.costs import RERANKING
from prime_pipeline.studies.findings import Study, drawn, merged, part
from prime_pipeline.studies.localisation import PAPER_PROTOCOL
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.chat_endpoint import Endpoint, answer
from prime_pipeline_tests.fakes import tiny_cross_encoder
from prime_pipeline_tests.papers import (
    PAPERS,
    REWRITTEN,
    SHORT,
    OpenPapers,
    opening,
    publish,
    reworded,
    write_papers,
)

BASES = {"structure-chunks", "full-text", "prime-offline"}


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    return write_papers(tmp_path / "papers.json")


@pytest.fixture
def open_papers(tmp_path: Path, papers: Path) -> Iterator[OpenPapers]:
    """Opens workspaces on one home, each as a new process would."""
    with opening(tmp_path / "home", papers) as open_one:
        yield open_one


def all_made(workspace: Workspace) -> dict[str, Study]:
    return {name: make(workspace) for name, make in STUDIES.items()}


def changed(workspace: Workspace) -> set[str]:
    """The studies that were made now."""
    return {name for name, study in all_made(workspace).items() if study.changed}


def encoded(workspace: Workspace) -> list[str]:
    texts: list[str] = workspace.embedder.texts_encoded  # type: ignore[attr-defined]
    return texts


def costs(content: ReportContent) -> dict[tuple[str, str], dict[str, float]]:
    return {(cost.representation, cost.restructurer): dict(cost.amounts) for cost in content.costs}


def contrasts(content: ReportContent, questions: str = "") -> dict[str, Contrast]:
    return {found.measure: found for found in content.evidence if found.question_type == questions}


# --- something where there is something ---------------------------------------------------------------------------


def test_the_report_of_all_studies_has_no_fault_and_no_bare_number(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    found = [study.findings.content for study in all_made(workspace).values()]
    content = merged(ReportContent("Mine", "papers", "Monday"), found)
    check(content)
    assert bare_numbers(content) == []
    assert content.known_item
    assert content.restructurers == (EXTRACTIVE,)


def test_a_profile_is_made_of_texts_metadata_and_queries(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    publish(workspace)
    study = corpus_profile(workspace)
    profile = study.findings.content.profile
    assert profile is not None
    found = {p.name: p.result for p in profile.properties}
    assert (found["heading coverage"].value, found["sections per document"].value) == (1.0, 2.0)
    assert found["vocabulary gap"].n == 4
    assert (
        study.findings.counts["encoded"] == 4
    )  # a text and metadata of each paper, with and without the lead
    assert [row["property"] for row in study.findings.rows["corpus_properties"]] == [
        name.replace(" ", "_") for name in found
    ]


def test_systems_are_measured_over_both_texts(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    content = retrieval_quality(workspace).findings.content
    mrr = [c for c in content.cells if c.measure == "mrr" and not c.question_type]
    assert [(c.pipeline, c.restructurer) for c in mrr] == [
        (pipeline, by)
        for by in ("", EXTRACTIVE)
        for pipeline in ("bm25", "hybrid-sections", "hybrid-sections+rerank")
    ]
    assert {c.reranker for c in mrr} == {"", "late interaction of hashing"}
    assert all(c.per_query == dict.fromkeys(("a1", "a2", "b1", "b2"), 1.0) for c in mrr)
    assert {c.question_type for c in content.cells} == {"", "abstractive", "boolean", "extractive", "none"}
    assert len(content.comparisons) == 3 + 3 + 3


def test_sections_with_evidence_are_looked_for_in_both_texts(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    content = evidence_localisation(workspace).findings.content
    assert content.notes[0] == (
        "Gold evidence: 3 of 3 spans stand in a section of the raw text, for 3 queries."
    )
    assert {c.level for c in content.cells} == {"section"}
    mrr = [c for c in content.cells if c.measure == "mrr"]
    assert [c.restructurer for c in mrr] == [""] * 3 + [EXTRACTIVE] * 3
    assert all(c.per_query == dict.fromkeys(("a1", "a2", "b1"), 1.0) for c in mrr)
    whole, both = contrasts(content), contrasts(content, PAPER_PROTOCOL)
    assert (whole["mrr"].raw.n, both["mrr"].raw.n) == (3, 2)  # restructuring shortened the evidence of a1
    assert (whole["token-recall@5"].raw.value, whole["evidence tokens per query"].raw.n) == (1.0, 3)
    assert whole["token-recall@5"].restructured.value < 1.0
    assert (
        whole["evidence tokens per query"].restructured.value < whole["evidence tokens per query"].raw.value
    )


def test_evidence_about_papers_that_are_not_indexed_is_left_out(
    open_papers: OpenPapers, tmp_path: Path
) -> None:
    more = json.loads(json.dumps(PAPERS))
    more["gamma"] = {**more["beta"], "qas": [{**more["beta"]["qas"][0], "question_id": "c1"}]}
    workspace = open_papers(queries=str(write_papers(tmp_path / "more.json", more)))
    publish(workspace)
    content = evidence_localisation(workspace).findings.content
    assert "Gold evidence of 1 query is about documents that are not indexed" in content.notes[1]
    assert {query for cell in content.cells for query in cell.per_query} == {"a1", "a2", "b1"}


def test_densities_of_both_texts_are_contrasted(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    findings = text_density(workspace).findings
    ratio = next(found for found in findings.content.density if found.measure == "stop-word ratio")
    assert ratio.restructured.value < ratio.raw.value
    assert ratio.raw.n == 2
    texts = [(row["doc_id"], row["text"]) for row in findings.rows["text_density"]]
    assert set(texts) == {(d, text) for d in ("alpha", "beta") for text in ("raw", "restructured")}


def test_what_restructuring_kept_is_audited(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    findings = fidelity_audit(workspace).findings
    shares = {row.dimension: row.share for row in findings.content.audit}
    verbatim, numbers = shares["evidence retained, verbatim"], shares["numbers"]
    assert (verbatim.value * 3, verbatim.n) == (2.0, 3)
    assert (numbers.value, numbers.n) == (1.0, 6)  # 12, 250, three, 30, 20 and 40
    assert shares["sections that the router would keep raw"].n == 4
    assert {row.panel for row in findings.content.audit} == {"A", "B", "D"}
    assert "Fidelity: contradictions were not looked for, as no NLI model is set (nli_model)." in (
        findings.content.notes
    )
    # The first section of the second paper has neither evidence nor a number or a name.
    assert {row["section_id"] for row in findings.rows["fidelity_audit"]} == {"alpha#1", "alpha#2", "beta#2"}


def test_contradictions_are_looked_for_by_the_configured_model(
    open_papers: OpenPapers, tmp_path: Path
) -> None:
    folder = tiny_cross_encoder(tmp_path / "nli", n_outputs=3, window=64)
    labels = {"id2label": {"0": "contradiction", "1": "neutral", "2": "entailment"}}
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **labels}))
    workspace = open_papers(mode="full")
    publish(workspace)
    fidelity_audit(workspace)
    study = fidelity_audit(open_papers(mode="full", nli_model=str(folder)))
    assert study.changed
    assert {row.dimension for row in study.findings.content.audit if row.panel == "C"} == {
        "contradiction",
        "sections with a contradiction",
        "documents with a contradiction",
    }
    assert any("looked for by nli" in note for note in study.findings.content.notes)


def test_costs_are_those_of_every_published_index(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    found = costs(index_costs(workspace).findings.content)
    published = {("default", ""), ("default", EXTRACTIVE)}
    assert set(found) == {*((name, "") for name in (*BASES, RERANKING)), *published}
    raw, full = found["default", ""], found["default", EXTRACTIVE]
    assert [found[name]["vectors"] for name in (("structure-chunks", ""), ("default", ""))] == [4, 2]
    assert (full["llm_tokens"], full["money"]) == (0, 0.0)
    assert not {"llm_tokens", "money"} & raw.keys()
    assert full["query_read_tokens"] < raw["query_read_tokens"]


def test_rewriting_by_a_language_model_costs_what_the_ledger_says(
    open_papers: OpenPapers, endpoint: Endpoint
) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    endpoint.plays(answer(REWRITTEN, usage=usage))
    llm = {"base_url": endpoint.url, "model": "m"}
    workspace = open_papers(mode="full", llm={**llm, "prices": {"m": {"prompt": 1.0, "completion": 2.0}}})
    publish(workspace)
    assert len(endpoint.requests) == 1
    assert restructurer(workspace) == "m/full-1"
    study = index_costs(workspace)
    found = costs(study.findings.content)["default", "m/full-1"]
    assert found["llm_tokens"] == 150
    assert found["money"] == pytest.approx(0.0002)
    assert study.findings.content.break_even is not None
    assert study.findings.content.break_even.restructuring_tokens == 150
    audit = fidelity_audit(workspace).findings.content
    assert "sections that the router kept raw" in {row.dimension for row in audit.audit}


def test_what_was_paid_without_a_price_is_tokens_and_no_money(
    open_papers: OpenPapers, endpoint: Endpoint
) -> None:
    endpoint.plays(answer(REWRITTEN))
    workspace = open_papers(mode="full", llm={"base_url": endpoint.url, "model": "m"})
    publish(workspace)
    found = costs(index_costs(workspace).findings.content)["default", "m/full-1"]
    assert found["llm_tokens"] == 10
    assert "money" not in found


# --- nothing where there is nothing -------------------------------------------------------------------------------


def test_without_queries_and_restructured_text_there_is_little_to_find(open_papers: OpenPapers) -> None:
    workspace = open_papers(queries=None)
    publish(workspace)
    found = {name: study.findings for name, study in all_made(workspace).items()}
    for name in ("retrieval_quality", "evidence_localisation", "fidelity_audit"):
        assert found[name].content == part(), name
        assert found[name].rows == {}
    profile = found["corpus_profile"].content.profile
    assert profile is not None
    assert not {"vocabulary gap", "unknown query words"} & {p.name for p in profile.properties}
    assert found["text_density"].content.density == ()
    assert {row["text"] for row in found["text_density"].rows["text_density"]} == {"raw"}
    of_costs = costs(found["index_costs"].content)
    assert set(of_costs) == {*((name, "") for name in BASES), ("default", "")}
    assert not {"query_read_tokens", "llm_tokens", "money"} & of_costs["default", ""].keys()


def test_offline_mode_makes_nothing_of_the_full_track(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    publish(workspace)
    all_made(workspace)
    assert restructurer(workspace) == ""
    assert not (workspace.home.root / "restructured").exists()
    assert not workspace.home.audits.exists()


def test_offline_mode_leaves_what_full_mode_published_alone(open_papers: OpenPapers) -> None:
    publish(open_papers(mode="full"))
    found = all_made(open_papers())
    assert found["fidelity_audit"].findings.content == part()
    assert found["text_density"].findings.content.density == ()
    assert found["evidence_localisation"].findings.content.evidence == ()
    assert {c.restructurer for c in found["retrieval_quality"].findings.content.cells} == {""}


def test_nothing_published_costs_nothing_and_is_not_measured(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    publish(workspace)
    (workspace.home.indexes("offline") / "CURRENT").unlink()
    assert index_costs(workspace).findings.content == part()
    assert retrieval_quality(workspace).findings.content == part()
    assert evidence_localisation(workspace).findings.content == part()


def test_nothing_is_said_of_a_corpus_that_was_never_read(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    for make in (corpus_profile, text_density, index_costs):
        with pytest.raises(EmptyCorpus):
            make(workspace)
    assert not workspace.home.root.exists()


def test_queries_without_evidence_have_no_section_to_be_found(
    open_papers: OpenPapers, tmp_path: Path
) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"query": "how long is the oven heated", "relevant": "beta"}\n')
    workspace = open_papers(queries=str(queries))
    publish(workspace)
    assert retrieval_quality(workspace).findings.content.cells != ()
    assert evidence_localisation(workspace).findings.content == part()


def test_measures_without_their_rankings_are_not_read_as_rankings(open_papers: OpenPapers) -> None:
    workspace = open_papers()
    publish(workspace)
    assert [report.variant for report, _ in evaluated(workspace)] == ["offline"]
    workspace.home.rankings("offline").unlink()
    assert evaluated(workspace) == []
    assert evidence_localisation(workspace).findings.content == part()
    assert "query_read_tokens" not in costs(index_costs(workspace).findings.content)["default", ""]


def test_measures_of_a_build_that_was_taken_back_are_not_studied(
    open_papers: OpenPapers, papers: Path
) -> None:
    publish(open_papers())
    write_papers(papers, reworded("Knead the dough of the bread.", "Knead the dough twice."))
    workspace = open_papers()
    publish(workspace)
    assert retrieval_quality(workspace).findings.content.cells != ()
    workspace.builds("offline").rollback()
    assert evaluated(workspace) == []
    assert retrieval_quality(workspace).findings.content == part()
    assert evidence_localisation(workspace).findings.content == part()
    evaluate_published(workspace)
    assert retrieval_quality(workspace).findings.content.cells != ()


def test_measures_of_other_queries_are_not_studied(open_papers: OpenPapers, tmp_path: Path) -> None:
    publish(open_papers())
    others = json.loads(json.dumps(PAPERS).replace('"question_id": "', '"question_id": "other-'))
    workspace = open_papers(queries=str(write_papers(tmp_path / "others.json", others)))
    assert retrieval_quality(workspace).findings.content == part()
    assert evidence_localisation(workspace).findings.content == part()
    evaluate_published(workspace)
    cells = evidence_localisation(workspace).findings.content.cells
    assert {query for cell in cells for query in cell.per_query} == {"other-a1", "other-a2", "other-b1"}


def test_text_of_another_strategy_than_the_one_in_force_is_not_studied(open_papers: OpenPapers) -> None:
    publish(open_papers(mode="full"))
    llm = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}
    workspace = open_papers(mode="full", llm=llm)
    assert workspace.published_variants() == ["offline", "full"]
    found = {name: study.findings.content for name, study in all_made(workspace).items()}
    assert found["fidelity_audit"] == part()
    assert found["text_density"].density == ()
    assert found["evidence_localisation"].evidence == ()
    assert {cost.restructurer for cost in found["index_costs"].costs} == {""}
    # What was ranked over it is served, and measured, all the same.
    assert {cell.restructurer for cell in found["retrieval_quality"].cells} == {"", EXTRACTIVE}


# --- kept and made again ------------------------------------------------------------------------------------------


def test_studies_are_kept_while_nothing_changes(open_papers: OpenPapers) -> None:
    publish(open_papers(mode="full"))
    first = all_made(open_papers(mode="full"))
    assert {study.changed for study in first.values()} == {True}
    workspace = open_papers(mode="full")
    publish(workspace)
    second = all_made(workspace)
    assert {study.changed for study in second.values()} == {False}
    for name, study in second.items():
        assert study.findings.content == first[name].findings.content, name
        assert study.fingerprint == first[name].fingerprint
        assert study.findings.counts == {}
    assert encoded(workspace) == []


SEARCHED = {"retrieval_quality", "evidence_localisation", "index_costs"}
"""What looks at rankings."""


def paragraph(papers: dict[str, Any]) -> None:
    papers["beta"]["full_text"][0]["paragraphs"] = ["Knead the dough twice."]


def question(papers: dict[str, Any]) -> None:
    papers["beta"]["qas"][1]["question"] = "Who baked the bread?"


def reference(papers: dict[str, Any]) -> None:
    papers["alpha"]["qas"][0]["answers"][0]["answer"]["extractive_spans"] = ["twelve"]


def evidence(papers: dict[str, Any]) -> None:
    papers["alpha"]["qas"][0]["answers"][0]["answer"]["evidence"] = [SHORT]


def question_type(papers: dict[str, Any]) -> None:
    papers["beta"]["qas"][1]["answers"][0]["answer"].update(unanswerable=False, yes_no=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (paragraph, set(STUDIES)),
        (question, SEARCHED | {"corpus_profile"}),
        (reference, set()),
        (evidence, {"evidence_localisation", "fidelity_audit"}),
        (question_type, {"retrieval_quality"}),
    ],
)
def test_a_change_of_the_data_makes_what_depends_on_it_again(
    open_papers: OpenPapers, papers: Path, change: Callable[[dict[str, Any]], None], expected: set[str]
) -> None:
    publish(open_papers(mode="full"))
    all_made(open_papers(mode="full"))
    others = json.loads(papers.read_text())
    change(others)
    write_papers(papers, others)
    workspace = open_papers(mode="full")
    publish(workspace)
    assert changed(workspace) == expected
    assert changed(workspace) == set()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"metadata": {"n_terms": 2}}, SEARCHED | {"corpus_profile"}),
        ({"retrieval": {"rrf_k": 1}}, SEARCHED),
        ({"retrieval": {"scorer": "none"}}, SEARCHED),
        ({"evaluate": ["bm25"]}, SEARCHED),
        ({"restructuring": {"entities": "rule", "router": {"min_words": 3}}}, {"fidelity_audit"}),
        ({"mode": "offline"}, set(STUDIES) - {"corpus_profile"}),
        ({"answers": {"max_answer_tokens": 9}}, set()),
        ({"index": {"keep_builds": 1}}, set()),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_change_of_a_setting_makes_what_depends_on_it_again(
    open_papers: OpenPapers, options: dict[str, Any], expected: set[str]
) -> None:
    publish(open_papers(mode="full"))
    all_made(open_papers(mode="full"))
    workspace = open_papers(**{"mode": "full", **options})
    publish(workspace)
    assert changed(workspace) == expected


def test_another_version_of_the_studies_makes_all_of_them_again(
    open_papers: OpenPapers, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(open_papers())
    all_made(open_papers())
    monkeypatch.setattr(studies, "STUDIES_VERSION", studies.STUDIES_VERSION + 1)
    assert changed(open_papers()) == set(STUDIES)


def kept_audits(workspace: Workspace) -> int:
    with closing(sqlite3.connect(workspace.home.audits)) as connection:
        (n_kept,) = connection.execute("SELECT count(*) FROM blobs").fetchone()
    return int(n_kept)


def test_the_audit_of_an_unchanged_document_is_kept(open_papers: OpenPapers, papers: Path) -> None:
    publish(open_papers(mode="full"))
    fidelity_audit(open_papers(mode="full"))
    write_papers(papers, reworded("Knead the dough of the bread.", "Knead the dough twice."))
    workspace = open_papers(mode="full")
    publish(workspace)
    assert kept_audits(workspace) == 2
    assert fidelity_audit(workspace).changed
    assert kept_audits(workspace) == 3


# --- samples ------------------------------------------------------------------------------------------------------


@pytest.fixture
def one_document(monkeypatch: pytest.MonkeyPatch) -> str:
    """The document that is drawn where studies read one document only."""
    monkeypatch.setattr(studies, "drawn", partial(drawn, n=1))
    (chosen,) = drawn(PAPERS, 1)
    return chosen


def test_a_sample_is_told_by_every_study_that_reads_texts(open_papers: OpenPapers, one_document: str) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    notes = {name: study.findings.content.notes for name, study in all_made(workspace).items()}
    drawn_note = "1 of the documents, drawn by hashes of their ids."
    for name, label in (
        ("corpus_profile", "Corpus profile"),
        ("text_density", "Text density"),
        ("fidelity_audit", "Fidelity audit"),
        ("index_costs", "Costs"),
    ):
        assert f"{label}: {drawn_note}" in notes[name]
    for name in ("retrieval_quality", "evidence_localisation"):
        assert drawn_note not in " ".join(notes[name])


def test_a_sample_is_of_both_texts_and_all_costs(open_papers: OpenPapers, one_document: str) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    found = all_made(workspace)
    rows = found["text_density"].findings.rows["text_density"]
    assert {(row["doc_id"], row["text"]) for row in rows} == {
        (one_document, "raw"),
        (one_document, "restructured"),
    }
    assert {row["doc_id"] for row in found["fidelity_audit"].findings.rows["fidelity_audit"]} == {
        one_document
    }
    amounts = costs(found["index_costs"].findings.content)
    assert amounts["structure-chunks", ""]["vectors"] == 2
    assert amounts["default", ""]["vectors"] == 1
    assert not any("index_bytes" in of_one for of_one in amounts.values())


def test_a_document_that_is_not_drawn_makes_no_text_be_read_again(
    open_papers: OpenPapers, papers: Path, one_document: str
) -> None:
    publish(open_papers(mode="full"))
    all_made(open_papers(mode="full"))
    other = {"alpha": ("Knead the dough of the bread.", "Knead."), "beta": (SHORT, "Alpha has a queue.")}
    write_papers(papers, reworded(*other[one_document]))
    workspace = open_papers(mode="full")
    publish(workspace)
    assert not changed(workspace) & {"corpus_profile", "text_density"}


def test_one_more_document_that_is_not_drawn_makes_no_study_again(
    open_papers: OpenPapers, papers: Path, monkeypatch: pytest.MonkeyPatch, one_document: str
) -> None:
    publish(open_papers())
    all_made(open_papers())
    more = json.loads(papers.read_text())
    (kept,) = drawn([*PAPERS, "gamma"], 1)
    assert kept == one_document
    more["gamma"] = {**more["beta"], "title": "Gamma", "qas": []}
    write_papers(papers, more)
    workspace = open_papers()
    publish(workspace)
    assert not changed(workspace) & {"corpus_profile", "text_density", "fidelity_audit"}


def test_all_documents_are_no_sample(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    notes = [note for study in all_made(workspace).values() for note in study.findings.content.notes]
    assert "drawn by hashes" not in " ".join(notes)


# --- what others ask for ------------------------------------------------------------------------------------------


def test_rows_for_the_warehouse_are_those_of_the_kept_studies(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    assert study_rows(workspace).rows == {}
    found = all_made(workspace)
    rows = study_rows(workspace)
    assert set(rows.rows) == {"corpus_properties", "text_density", "fidelity_audit"}
    with_rows = ("corpus_profile", "text_density", "fidelity_audit")
    assert list(rows.fingerprints) == [found[name].fingerprint for name in with_rows]


def test_documents_are_loaded_by_variant(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    assert [doc_id for doc_id, _ in versions(workspace, "offline", ["beta", "alpha", "gone"])] == [
        "alpha",
        "beta",
    ]
    (raw,) = loaded(workspace, "offline", versions(workspace, "offline", ["alpha"]))
    (full,) = loaded(workspace, "full", versions(workspace, "full", ["alpha"]))
    assert [section.rewritten for section in raw.content_sections] == [None, None]
    assert [section.body for section in full.content_sections] == [
        section.body for section in raw.content_sections
    ]
    shortened, same = (section.rewritten for section in full.content_sections)
    assert shortened is not None
    assert "12 workers" in shortened
    assert "It is worth noting that" not in shortened
    assert same is None
