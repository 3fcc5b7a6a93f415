"""Evidence localisation on two small documents, worked by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from prime_pipeline.evaluation.gold_evidence import GoldEvidence
from prime_pipeline.records import Document
from prime_pipeline.reports.content import Contrast, Measured, ReportContent, bare_numbers, check
from prime_pipeline.studies.localisation import (
    MEASURES,
    PAPER_PROTOCOL,
    WITHIN,
    WITHIN_RERANKED,
    Track,
    localisation_findings,
    named_section_findings,
    within_document_findings,
)
from prime_pipeline_tests.documents import make_document

PAPER = make_document("a", "Data: We use a seed lexicon.\n", "Model: It is a BERT.\n")
SKY = make_document("b", "Intro: Stars shine brightly.\n")
EVIDENCE = {
    "q1": GoldEvidence(("We use a seed lexicon.",), "a"),
    "q2": GoldEvidence(("It is a BERT.",), "a"),
    "q3": GoldEvidence(("Stars shine brightly.",), "b"),
}
RAW_RUN = {"q1": ["a#1"], "q2": ["a#1", "a#2"], "q3": []}
FULL_RUN = {"q1": ["a#2", "a#1"], "q2": ["a#2"], "q3": ["b#1"]}
Runs = Mapping[str, Mapping[str, Sequence[str]]]


def rewritten(document: Document, *bodies: str | None) -> Document:
    """The document with new bodies, in the order of its sections."""
    sections = [replace(s, rewritten=body) for s, body in zip(document.sections, bodies, strict=True)]
    return replace(document, sections=tuple(sections))


LOST = rewritten(PAPER, "A lexicon serves.", None)


def raw_track(runs: Runs, *documents: Document) -> Track:
    return Track({document.doc_id: document for document in documents}, runs)


def full_track(runs: Runs, *documents: Document) -> Track:
    return replace(raw_track(runs, *documents), restructurer="extractive")


RAW = raw_track({"default": RAW_RUN}, PAPER, SKY)
FULL = full_track({"default": FULL_RUN}, LOST, SKY)


def content(
    raw: Track = RAW,
    restructured: Track | None = FULL,
    evidence: Mapping[str, GoldEvidence] = EVIDENCE,
    clusters: Mapping[str, str] | None = None,
) -> ReportContent:
    found = localisation_findings(evidence, raw, restructured, clusters, "ms-marco").content
    check(found)
    assert bare_numbers(found) == []
    return found


def contrasts(found: ReportContent, questions: str = "") -> dict[str, Contrast]:
    return {c.measure: c for c in found.evidence if c.question_type == questions}


def means(contrast: Contrast) -> tuple[float, float]:
    return contrast.raw.value, contrast.restructured.value


# --- by the judgements of the raw text ----------------------------------------------------------------------------


def test_a_cell_for_every_text_and_measure() -> None:
    cells = content().cells
    assert [cell.measure for cell in cells] == [*MEASURES, *MEASURES]
    assert {(c.level, c.representation, c.pipeline, c.reranker) for c in cells} == {
        ("section", "default", "hybrid-sections+rerank", "ms-marco")
    }
    assert [cell.restructurer for cell in cells] == [""] * 5 + ["extractive"] * 5
    ndcg = cells[0]
    assert ndcg.per_query == {"q1": 1.0, "q2": pytest.approx(1 / math.log2(3)), "q3": 0.0}
    assert ndcg.result is not None
    assert ndcg.result.n == 3
    assert ndcg.result.value == pytest.approx((1 + 1 / math.log2(3)) / 3)


def test_what_restructuring_lost_counts_against_it() -> None:
    # The rewritten a#1 no longer holds the span of q1, and is still what should be found.
    found = contrasts(content())
    assert means(found["mrr"]) == pytest.approx(((1 + 1 / 2 + 0) / 3, (1 / 2 + 1 + 1) / 3))
    assert means(found["r@5"]) == pytest.approx((2 / 3, 1.0))
    assert means(found["p@5"]) == pytest.approx((2 / 15, 3 / 15))
    assert means(found["map"]) == means(found["mrr"])  # one section is relevant to each
    relative = found["mrr"].relative
    assert relative is not None
    assert relative.value == pytest.approx(2.5 / 1.5 - 1)


def test_tokens_of_what_is_read() -> None:
    found = contrasts(content())
    assert list(found) == [*MEASURES, "token-recall@5", "evidence tokens per query"]
    # Of we, use, a, seed and lexicon the restructured sections hold a and lexicon.
    assert means(found["token-recall@5"]) == pytest.approx(((1 + 1 + 0) / 3, (2 / 5 + 1 + 1) / 3))
    # Headings are read, too: a#1 has 6 tokens and 4 after restructuring, a#2 has 5, b#1 has 4.
    assert means(found["evidence tokens per query"]) == pytest.approx(((6 + 11 + 0) / 3, (5 + 4 + 5 + 4) / 3))


def test_only_five_sections_are_read() -> None:
    document = make_document("c", *(f"H{at}: word" for at in range(6)))
    run = {"q": [f"c#{at}" for at in range(1, 7)]}
    raw, full = raw_track({"default": run}, document), full_track({"default": run}, document)
    found = contrasts(content(raw, full, {"q": GoldEvidence(("word",), "c")}))
    assert means(found["evidence tokens per query"]) == (10.0, 10.0)


# --- the paper's protocol -----------------------------------------------------------------------------------------


def test_the_paper_s_protocol_leaves_out_what_was_lost() -> None:
    found = contrasts(content(), PAPER_PROTOCOL)
    assert list(found) == [*MEASURES, "token-recall@5", "evidence tokens per query"]
    assert all(contrast.follows_paper for contrast in found.values())
    assert not any(contrast.follows_paper for contrast in contrasts(content()).values())
    assert means(found["mrr"]) == ((1 / 2 + 0) / 2, 1.0)
    assert found["mrr"].raw.n == 2
    assert found["mrr"].relative == Measured(3.0, None, None, 2, "the base is zero in some resample")


def test_the_paper_s_protocol_judges_each_text_by_its_own() -> None:
    moved = rewritten(PAPER, "Nothing.", "It is a BERT. We use a seed lexicon.")
    evidence = {"q1": EVIDENCE["q1"]}
    full = full_track({"default": {"q1": ["a#2", "a#1"]}}, moved)
    found = content(raw_track({"default": {"q1": ["a#1"]}}, PAPER), full, evidence)
    assert means(contrasts(found)["mrr"]) == (1.0, 1 / 2)
    assert means(contrasts(found, PAPER_PROTOCOL)["mrr"]) == (1.0, 1.0)


def test_evidence_without_a_token_has_no_recall() -> None:
    marks = Document("a", "A", "heading", (replace(PAPER.sections[0], text="..."),), "a.md", "text/markdown")
    track = raw_track({"default": {"q": ["a#1"]}}, marks)
    full = full_track({"default": {"q": ["a#1"]}}, marks)
    found = content(track, full, {"q": GoldEvidence(("...",), "a")})
    assert "token-recall@5" not in contrasts(found)
    assert "mrr" in contrasts(found)


def test_without_a_span_in_both_texts_there_is_no_protocol() -> None:
    full = full_track({"default": FULL_RUN}, LOST)
    found = content(restructured=full, evidence={"q1": EVIDENCE["q1"]})
    assert contrasts(found, PAPER_PROTOCOL) == {}
    assert means(contrasts(found)["mrr"]) == (1.0, 1 / 2)


# --- which systems and documents ----------------------------------------------------------------------------------


def test_every_system_has_cells_and_the_default_one_the_contrasts() -> None:
    raw = raw_track({"stage1": FULL_RUN, "default": RAW_RUN}, PAPER, SKY)
    full = full_track({"stage1": RAW_RUN, "default": FULL_RUN}, LOST, SKY)
    found = content(raw, full)
    assert [(c.pipeline, c.restructurer) for c in found.cells if c.measure == "mrr"] == [
        ("hybrid-sections", ""),
        ("hybrid-sections+rerank", ""),
        ("hybrid-sections", "extractive"),
        ("hybrid-sections+rerank", "extractive"),
    ]
    assert found.evidence == content().evidence


def test_without_the_default_system_another_one_of_both_texts_is_contrasted() -> None:
    raw = raw_track({"bm25": FULL_RUN, "paper_literal": RAW_RUN, "stage1": RAW_RUN}, PAPER, SKY)
    full = full_track({"bm25": RAW_RUN, "stage1": FULL_RUN}, LOST, SKY)
    assert content(raw, full).evidence == content().evidence


def test_without_a_system_of_both_texts_there_is_no_contrast() -> None:
    found = content(restructured=full_track({"bm25": FULL_RUN}, LOST, SKY))
    assert len(found.cells) == 10
    assert found.evidence == ()


def test_raw_text_alone_has_cells_and_no_contrast() -> None:
    found = content(restructured=None)
    assert found.cells == content().cells[:5]
    assert found.evidence == ()


def test_evidence_about_unknown_documents_is_left_out_and_counted() -> None:
    known = content()
    assert known.notes == ("Gold evidence: 3 of 3 spans stand in a section of the raw text, for 3 queries.",)
    evidence = {**EVIDENCE, "q4": GoldEvidence(("Gone.", "Lost."), "c"), "q5": GoldEvidence(("Gone.",), "d")}
    found = content(evidence=evidence)
    assert found.notes == (
        *known.notes,
        "Gold evidence of 2 queries is about documents that are not indexed, and is left out.",
    )
    assert replace(found, notes=()) == replace(known, notes=())


def test_evidence_that_may_be_in_any_document_is_looked_for_everywhere() -> None:
    anywhere = {query: GoldEvidence(gold.spans) for query, gold in EVIDENCE.items()}
    assert content(evidence=anywhere) == content()


def test_a_document_that_is_restructured_no_more_is_not_found_there() -> None:
    full = full_track({"default": {**FULL_RUN, "q3": []}}, LOST)
    found = content(restructured=full)
    assert means(contrasts(found)["mrr"]) == pytest.approx((1.5 / 3, 1.5 / 3))
    assert contrasts(found)["mrr"].raw.n == 3
    assert contrasts(found, PAPER_PROTOCOL)["mrr"].raw.n == 1  # only q2


@pytest.mark.parametrize(
    ("evidence", "note"),
    [
        ({}, "0 of 0 spans"),
        ({"q1": GoldEvidence(("Nobody wrote that.", "Nor that."), "a")}, "0 of 2 spans"),
    ],
)
def test_where_no_span_is_found_only_that_is_told(evidence: Mapping[str, GoldEvidence], note: str) -> None:
    found = content(evidence=evidence)
    assert (found.cells, found.evidence) == ((), ())
    assert found.notes == (f"Gold evidence: {note} stand in a section of the raw text, for 0 queries.",)


def test_questions_about_one_document_have_no_interval() -> None:
    about_a = {query: EVIDENCE[query] for query in ("q1", "q2")}
    clusters = {"q1": "a", "q2": "a", "q3": "b"}
    found = content(evidence=about_a, clusters=clusters)
    shown = [c.result for c in found.cells] + [m for c in found.evidence for m in (c.raw, c.restructured)]
    assert {(m.low, m.reason) for m in shown if m} == {
        (None, "one query or document only, which says nothing about others")
    }
    assert len(shown) == 10 + 2 * (7 + 7)
    assert not [note for note in found.notes if "narrower" in note]
    by_query = content(evidence=about_a)
    assert by_query.cells[0].result is not None
    assert by_query.cells[0].result.low == pytest.approx(1 / math.log2(3))


def test_questions_about_few_documents_are_told() -> None:
    told = "Evidence localisation: from 2 documents only, so that the intervals are narrower than they should be."
    assert told in content(clusters={"q1": "a", "q2": "a", "q3": "b", "unasked": "c"}).notes
    assert told not in content().notes


# --- named sections, and known documents --------------------------------------------------------------------------


def test_sections_that_queries_name_are_measured_as_they_are_ranked() -> None:
    qrels = {"q1": {"a#1": 1}, "q2": {"a#2": 1}}
    found = named_section_findings(qrels, [RAW, FULL], None, "ms-marco").content
    assert bare_numbers(found) == []
    mrr = {cell.restructurer: cell for cell in found.cells if cell.measure == "mrr"}
    assert mrr[""].per_query == {"q1": 1.0, "q2": 0.5}
    assert mrr["extractive"].per_query == {"q1": 0.5, "q2": 1.0}
    assert {cell.level for cell in found.cells} == {"section"}
    assert found.notes == ("Relevant sections are named for 2 queries.",)


def test_sections_of_a_known_document_are_measured_in_a_pipeline_of_their_own() -> None:
    runs = {WITHIN: {"q1": ["a#1", "a#2"], "q2": ["a#1", "a#2"], "q3": ["b#1"]}, WITHIN_RERANKED: RAW_RUN}
    clusters = {"q1": "a", "q2": "a", "q3": "b"}
    tracks = [raw_track(runs, PAPER, SKY), full_track(runs, LOST, SKY)]
    found = within_document_findings(EVIDENCE, tracks, clusters, "ms-marco").content
    assert bare_numbers(found) == []
    mrr = {(cell.pipeline, cell.restructurer): cell for cell in found.cells if cell.measure == "mrr"}
    assert mrr[WITHIN, ""].per_query == {"q1": 1.0, "q2": 0.5, "q3": 1.0}
    # The evidence is that of the raw text: what restructuring lost counts against it.
    assert mrr[WITHIN, "extractive"].per_query == mrr[WITHIN, ""].per_query
    assert {pipeline: cell.reranker for (pipeline, _), cell in mrr.items()} == {
        WITHIN: "",
        WITHIN_RERANKED: "ms-marco",
    }
    assert {cell.level for cell in found.cells} == {"section"}


def test_known_documents_without_evidence_give_no_cell() -> None:
    runs = {WITHIN: RAW_RUN}
    evidence = {"q1": GoldEvidence(("Nowhere at all.",), "a")}
    found = within_document_findings(evidence, [raw_track(runs, PAPER, SKY)], {"q1": "a"}, "").content
    assert found.cells == ()
