"""Gold evidence: section judgements and recall worked by hand, the official evidence F1, and ten annotated papers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.corpus.qasper import QasperCorpus
from prime_pipeline.corpus.source import SourceEntry
from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.gold_evidence import (
    FLOAT_MARK,
    EvidenceMap,
    GoldEvidence,
    evidence_f1,
    evidence_paragraphs,
    evidence_text,
    kept,
    paragraph_f1,
    section_qrels,
    section_texts,
    shared_queries,
    token_recall,
)
from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.records import Document, Section
from prime_pipeline_tests.documents import make_document


def with_captions(document: Document, *captions: str) -> Document:
    ordinal, body = document.sections[-1].ordinal + 1, "".join(f"{caption}\n\n" for caption in captions)
    section = Section(ordinal, "captions", "Figures and tables", ("Figures and tables",), body)
    return replace(document, sections=(*document.sections, section))


def rewritten(document: Document, **bodies: str) -> Document:
    """The document with new bodies, by heading."""
    sections = [replace(s, rewritten=bodies.get(s.heading)) for s in document.sections]
    return replace(document, sections=tuple(sections))


PAPER = with_captions(
    make_document(
        "p", "Data: We use a  seed\nlexicon.\n", "Model: It is a BERT.\n", "End: We use a seed lexicon.\n"
    ),
    "Table 1: Sizes of the seed lexicon.",
    "Figure 2: A BERT.",
)
OTHER = make_document("o", "Intro: It is a BERT.\n")
CORPUS = {"p": PAPER, "o": OTHER}


def test_sections_that_hold_a_span_are_relevant() -> None:
    evidence = {"q": GoldEvidence(("We use a seed   lexicon.", "It is\na BERT."), "p")}
    assert section_qrels(evidence, CORPUS) == EvidenceMap({"q": {"p#1": 1, "p#3": 1, "p#2": 1}}, 2, 2, ())


def test_a_span_without_a_document_is_looked_for_everywhere() -> None:
    found = section_qrels({"q": GoldEvidence(("It is a BERT.",))}, CORPUS)
    assert found.qrels == {"q": {"p#2": 1, "o#1": 1}}


def test_case_and_wording_count() -> None:
    spans = ("it is a BERT.", "It was a BERT.", " \n", "It is a BERT.", "It  is a BERT.")
    found = section_qrels({"b": GoldEvidence(spans, "p"), "a": GoldEvidence(("no\nwhere",), "p")}, CORPUS)
    unfound = (("a", "no where"), ("b", "it is a BERT."), ("b", "It was a BERT."))
    assert found == EvidenceMap({"b": {"p#2": 1}}, 4, 1, unfound)


def test_figures_and_tables_are_their_captions() -> None:
    spans = tuple(f"{FLOAT_MARK}: {caption}" for caption in ("Figure 2: A BERT.", "We use a seed lexicon."))
    found = section_qrels({"q": GoldEvidence(spans, "p")}, CORPUS)
    assert found == EvidenceMap({"q": {"p#4": 1}}, 2, 1, (("q", f"{FLOAT_MARK}: We use a seed lexicon."),))


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (f"{FLOAT_MARK}: Figure 2: A BERT.", "Figure 2: A BERT."),
        (f"{FLOAT_MARK} Figure 2: A BERT.", "Figure 2: A BERT."),
        (f"{FLOAT_MARK}:", ""),
        (": as it is ", ": as it is "),
        (f"So says {FLOAT_MARK}: this.", f"So says {FLOAT_MARK}: this."),
    ],
)
def test_what_a_span_says(span: str, text: str) -> None:
    assert evidence_text(span) == text


def test_a_document_that_is_not_there_is_named() -> None:
    with pytest.raises(EvaluationError, match="query 'q' is in document 'gone'"):
        section_qrels({"q": GoldEvidence(("x",), "gone")}, CORPUS)


def test_restructured_text_by_the_protocol_of_the_paper() -> None:
    documents = {"p": rewritten(PAPER, Data="A seed lexicon serves.", Model="It is a BERT.", End="Done.")}
    evidence = {
        "lost": GoldEvidence(("We use a seed lexicon.",), "p"),
        "held": GoldEvidence(("It is a BERT.", "We use a seed lexicon."), "p"),
        "new": GoldEvidence(("A seed lexicon serves.",), "p"),
    }
    raw, restructured = section_qrels(evidence, documents), kept(evidence, documents)
    assert raw.qrels == {"lost": {"p#1": 1, "p#3": 1}, "held": {"p#2": 1, "p#1": 1, "p#3": 1}}
    assert restructured.qrels == {"held": {"p#2": 1}, "new": {"p#1": 1}}
    assert (restructured.n_spans, restructured.n_found) == (4, 2)
    assert shared_queries(raw, restructured) == (
        {"held": {"p#2": 1, "p#1": 1, "p#3": 1}},
        {"held": {"p#2": 1}},
    )


def test_judged_sections_can_be_measured() -> None:
    qrels = section_qrels({"q": GoldEvidence(("It is a BERT.",), "p")}, CORPUS).qrels
    assert evaluate({"q": {"p#1": 2.0, "p#2": 1.0}}, qrels, ["mrr", "r@5"]).means == {"mrr": 0.5, "r@5": 1.0}


def test_token_recall_worked_by_hand() -> None:
    texts = {"s#1": "The seed, the Lexicon.", "s#2": "a seed", "s#3": "the the the"}
    evidence = {
        "q1": GoldEvidence(("The the seed of THE", "the the  seed of THE", "lexicon", f"{FLOAT_MARK}: --")),
        "q2": GoldEvidence((f"{FLOAT_MARK}: A seed",)),
        "missing": GoldEvidence(("seed",)),
        "blank": GoldEvidence((" ", "...")),
    }
    run = {"q1": {"s#1": 3.0, "s#2": 2.0, "s#3": 1.0}, "q2": {"s#2": 1.0, "s#1": 1.0}}
    two = token_recall(run, evidence, texts, k=2)
    # The spans of q1 differ in case, so both count: the 6, seed 2, of 2, lexicon 1. Its two sections hold the 2,
    # seed 2, lexicon 1, a 1.
    assert two.per_query == {"missing": 0.0, "q1": (2 + 2 + 1) / 11, "q2": 2 / 2}
    assert two.tokens_per_query == {"missing": 0, "q1": 4 + 2, "q2": 4 + 2}
    assert two.mean == pytest.approx((5 / 11 + 1) / 3)
    assert two.mean_tokens == 4
    one = token_recall(run, evidence, texts, k=1)
    assert one.per_query["q2"] == 1 / 2  # of two equal scores the lower id is read
    assert token_recall(run, evidence, texts).tokens_per_query["q1"] == 4 + 2 + 3


def test_token_recall_refuses_what_does_not_fit() -> None:
    evidence, texts = {"q": GoldEvidence(("seed",))}, {"s#1": "seed"}
    with pytest.raises(EvaluationError, match="'s#2' is in the run and not among the texts"):
        token_recall({"q": {"s#2": 1.0}}, evidence, texts)
    with pytest.raises(EvaluationError, match="finite"):
        token_recall({"q": {"s#1": math.nan}}, evidence, texts)
    with pytest.raises(EvaluationError, match="no query has gold evidence"):
        token_recall({"q": {"s#1": 1.0}}, {"q": GoldEvidence(())}, texts)
    with pytest.raises(EvaluationError, match="k starts at 1"):
        token_recall({"q": {"s#1": 1.0}}, evidence, texts, k=0)


def test_texts_are_those_of_sections_that_can_be_found() -> None:
    empty = Section(0, "preamble", "", (), "# Title\n", 8)
    document = rewritten(replace(OTHER, sections=(empty, *OTHER.sections)), Intro="BERT.")
    assert section_texts([document]) == {"o#1": "## Intro\nIt is a BERT.\n"}
    assert section_texts([document.restructured]) == {"o#1": "## Intro\nBERT.\n"}


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [
        ([], [], 1.0),
        ([], ["a"], 0.0),
        (["a"], [], 0.0),
        (["b"], ["a"], 0.0),
        (["a", "b", "c"], ["a"], 2 * (1 / 3) * 1 / (1 / 3 + 1)),
        (["a", "b"], ["b", "c", "a"], 2 * 1 * (2 / 3) / (1 + 2 / 3)),
        (["a", "a"], ["a", "a"], 0.5),  # the official evaluator counts common paragraphs as a set
    ],
)
def test_paragraph_f1_as_the_official_evaluator_has_it(
    predicted: list[str], gold: list[str], f1: float
) -> None:
    assert paragraph_f1(predicted, gold) == pytest.approx(f1)


def test_evidence_f1_takes_the_best_annotator_and_every_query() -> None:
    table = f"{FLOAT_MARK}: Table 1"
    references: dict[str, list[list[str]]] = {
        "best": [["x"], ["a", "b"]],
        "unanswerable": [[], ["a"]],
        "missing": [[]],
        "table": [["a", table]],
        "nobody": [],
    }
    predictions = {"best": ["a"], "unanswerable": [], "table": ["a"], "nobody": ["a"], "unasked": ["a"]}
    found = evidence_f1(predictions, references)
    assert found.per_query == pytest.approx(
        {"best": 2 / 3, "missing": 0.0, "table": 2 / 3, "unanswerable": 1.0}
    )
    assert list(found.per_query) == ["best", "missing", "table", "unanswerable"]
    assert found.mean == pytest.approx((2 / 3 + 0 + 2 / 3 + 1) / 4)
    assert found.n_missing == 1
    assert evidence_f1(predictions, references, text_only=True).per_query["table"] == 1.0


def test_evidence_f1_needs_references() -> None:
    with pytest.raises(EvaluationError, match="no query has reference evidence"):
        evidence_f1({"q": ["a"]}, {"q": []})


def annotated(test_data: Path) -> tuple[dict[str, Document], dict[str, GoldEvidence], dict[str, list[str]]]:
    """Papers, evidence by question, and evidence by paper."""
    path = test_data / "qasper-mini" / "qasper-mini.json"
    entries = [entry for entry in QasperCorpus(path, str(path)).entries() if isinstance(entry, SourceEntry)]
    papers: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    evidence: dict[str, GoldEvidence] = {}
    by_paper: dict[str, list[str]] = {}
    for paper_id, paper in papers.items():
        for question in paper["qas"]:
            answers = (annotation["answer"] for annotation in question["answers"])
            if spans := [span for answer in answers for span in answer.get("evidence", ())]:
                evidence[question["question_id"]] = GoldEvidence(tuple(spans), paper_id)
                by_paper.setdefault(paper_id, []).extend(spans)
    return {entry.doc_id: entry.parse() for entry in entries}, evidence, by_paper


def test_real_evidence_is_found(test_data: Path) -> None:
    documents, evidence, _ = annotated(test_data)
    assert len({gold.doc_id for gold in evidence.values()}) == 10
    found = section_qrels(evidence, documents)
    # The one that is not is no paragraph but the name of a section.
    assert found.n_spans == 77
    assert [span for _, span in found.unfound] == [
        "Experimental Studies ::: Comparison with State-of-the-art Methods"
    ]
    assert found.qrels.keys() == evidence.keys()
    floats = {q for q, gold in evidence.items() if any(FLOAT_MARK in span for span in gold.spans)}
    captions = {
        q for q, grades in found.qrels.items() if any(_kind(i, documents) == "captions" for i in grades)
    }
    assert floats == captions


def test_real_evidence_is_read_completely_where_its_sections_are(test_data: Path) -> None:
    documents, evidence, _ = annotated(test_data)
    found = section_qrels(evidence, documents)
    run = {query: dict.fromkeys(grades, 1.0) for query, grades in found.qrels.items()}
    unfound = {query for query, _ in found.unfound}
    recall = token_recall(run, evidence, section_texts(documents.values()), k=100)
    assert {query: value for query, value in recall.per_query.items() if value < 1}.keys() <= unfound


def test_real_evidence_is_made_of_paragraphs(test_data: Path) -> None:
    documents, _, by_paper = annotated(test_data)
    for paper_id, spans in by_paper.items():
        paragraphs = evidence_paragraphs(documents[paper_id].content_sections)
        assert [span for span in spans if span not in paragraphs and ":::" not in span] == []


def _kind(found: str, documents: dict[str, Document]) -> str:
    doc_id, _, ordinal = found.rpartition("#")
    (kind,) = [s.kind for s in documents[doc_id].sections if s.ordinal == int(ordinal)]
    return kind
