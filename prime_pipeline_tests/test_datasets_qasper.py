"""QASPER's questions: both published layouts, references by the official rules, faults, and the real data."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.datasets.queries import QuerySet, load_query_set
from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.answer_f1 import AnswerReference
from prime_pipeline.records import Query


def annotation(**fields: Any) -> dict[str, Any]:
    """The answer of one annotator as it is published: every field is there."""
    nothing = {"unanswerable": False, "extractive_spans": [], "yes_no": None, "free_form_answer": ""}
    return {**nothing, "evidence": [], "highlighted_evidence": [], **fields}


SPANS = annotation(
    extractive_spans=["BERT", "a CRF"], evidence=["We use BERT and a CRF.", "FLOAT SELECTED: Table 1"]
)
WORDS = annotation(free_form_answer="BERT with a CRF", evidence=["We use BERT and a CRF.", "Section two."])
NO = annotation(yes_no=False, evidence=["Only English."])
NOTHING = annotation(unanswerable=True, evidence=["Never counted."])
QUESTIONS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "q1": ("Which model?", [SPANS, WORDS]),
    "q2": ("Also in French?", [NOTHING, NO, NO]),
    "q3": ("Nobody answered?", []),
}
ABOUT = {
    "nlp_background": "two",
    "topic_background": "unfamiliar",
    "paper_read": "no",
    "search_query": "",
    "question_writer": "w",
}


def official() -> dict[str, Any]:
    """The layout of the released files: lists of records."""
    qas = [
        {
            "question": text,
            "question_id": query_id,
            **ABOUT,
            "answers": [{"answer": a, "annotation_id": "a", "worker_id": "w"} for a in answers],
        }
        for query_id, (text, answers) in QUESTIONS.items()
    ]
    return {"1909.00694": {"title": "T", "abstract": "A", "full_text": [], "qas": qas}}


def hub() -> list[dict[str, Any]]:
    """The layout of the hub's copy: rows with an id, tables as columns."""
    answers = [
        {"answer": a, "annotation_id": ["a"] * len(a), "worker_id": ["w"] * len(a)}
        for _, a in QUESTIONS.values()
    ]
    qas = {
        "question": [text for text, _ in QUESTIONS.values()],
        "question_id": list(QUESTIONS),
        **{name: [value] * len(QUESTIONS) for name, value in ABOUT.items()},
        "answers": answers,
    }
    full_text: dict[str, list[str]] = {"section_name": [], "paragraphs": []}
    return [{"id": "1909.00694", "title": "T", "abstract": "A", "full_text": full_text, "qas": qas}]


def hub_by_id() -> dict[str, Any]:
    return {paper.pop("id"): paper for paper in hub()}


def loaded(folder: Path, papers: Any) -> QuerySet:
    path = folder / "dev.json"
    path.write_text(papers if isinstance(papers, str) else json.dumps(papers), encoding="utf-8")
    return load_query_set(str(path))


@pytest.mark.parametrize("papers", [official(), hub(), hub_by_id()], ids=["official", "hub", "hub by id"])
def test_every_layout_gives_the_same_questions(tmp_path: Path, papers: Any) -> None:
    found = loaded(tmp_path, papers)
    assert (found.name, found.known_item) == ("dev", True)
    assert found.queries == tuple(Query(query_id, text) for query_id, (text, _) in QUESTIONS.items())
    assert found.qrels == {query_id: {"1909.00694": 1} for query_id in QUESTIONS}
    no = AnswerReference("No", "boolean", ("Only English.",))
    assert found.references == {
        "q1": (
            AnswerReference("BERT, a CRF", "extractive", tuple(SPANS["evidence"])),
            AnswerReference("BERT with a CRF", "abstractive", tuple(WORDS["evidence"])),
        ),
        "q2": (AnswerReference("Unanswerable", "none"), no, no),
    }


def test_most_annotators_decide_the_type_and_the_first_where_they_are_at_odds(tmp_path: Path) -> None:
    assert loaded(tmp_path, official()).types == {"q1": "extractive", "q2": "boolean"}


def test_the_gold_evidence_is_that_of_all_annotators_each_paragraph_once(tmp_path: Path) -> None:
    assert loaded(tmp_path, official()).gold_evidence == {
        "q1": ("We use BERT and a CRF.", "FLOAT SELECTED: Table 1", "Section two."),
        "q2": ("Only English.",),
    }


@pytest.mark.parametrize(
    ("fields", "text", "kind"),
    [
        ({"unanswerable": True, "extractive_spans": ["x"], "yes_no": True}, "Unanswerable", "none"),
        ({"extractive_spans": ["x"], "free_form_answer": "y", "yes_no": True}, "x", "extractive"),
        ({"free_form_answer": "y", "yes_no": True}, "y", "abstractive"),
        ({"yes_no": True}, "Yes", "boolean"),
        ({"yes_no": False}, "No", "boolean"),
    ],
)
def test_the_first_field_that_applies_is_the_reference(
    tmp_path: Path, fields: dict[str, Any], text: str, kind: str
) -> None:
    answers = [{"answer": annotation(**fields)}]
    qas = [{"question": "Which?", "question_id": "q", "answers": answers}]
    (reference,) = loaded(tmp_path, {"p": {"qas": qas}}).references["q"]
    assert (reference.text, reference.type) == (text, kind)


def with_answers(answers: Any) -> dict[str, Any]:
    return {"p": {"qas": [{"question": "Which?", "question_id": "q", "answers": answers}]}}


@pytest.mark.parametrize(
    ("papers", "message"),
    [
        ({"p": {"title": "T"}}, "dev.json: paper 'p': no list of questions"),
        ({"p": []}, "dev.json: paper 'p': no list of questions"),
        ({"p": {"qas": ["Which?"]}}, "dev.json: paper 'p': no list of questions"),
        ({"p": {"qas": [{"question": "Which?"}]}}, "dev.json: paper 'p': \"question_id\" must be a text"),
        (
            {"p": {"qas": {"question": ["A?", "B?"], "question_id": ["a"]}}},
            "question, question_id differ in length",
        ),
        ([{"qas": []}], 'dev.json: "id" must be a text'),
        ([7], "dev.json: expected QASPER papers by id, found list"),
        ("[" * 100_000, "dev.json: not valid JSON"),
        (with_answers(7), "paper 'p': question 'q': no list of annotations"),
        (with_answers([{}]), "paper 'p': question 'q': an annotation holds no answer"),
        (with_answers([{"answer": annotation()}]), "question 'q': an annotation holds no answer"),
        (with_answers([{"answer": annotation(extractive_spans=[7])}]), "question 'q': .* lists of texts"),
        (
            with_answers([{"answer": annotation(yes_no=True, evidence="x")}]),
            "question 'q': .* lists of texts",
        ),
    ],
)
def test_faults_name_paper_and_question(tmp_path: Path, papers: Any, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        loaded(tmp_path, papers)


def test_real_data(test_data: Path) -> None:
    found = load_query_set(str(test_data / "qasper-mini" / "qasper-mini.json"))
    n_references = Counter(map(len, found.references.values()))
    assert n_references == {1: 80, 2: 17}
    assert found.references.keys() == found.types.keys()
    assert Counter(found.types.values()) == {"abstractive": 60, "extractive": 26, "none": 6, "boolean": 5}
    papers = {paper for query_id in found.gold_evidence for paper in found.qrels[query_id]}
    assert len(papers) == 10
    assert found.references["003f884d3893532f8c302431c9f70be6f64d9be8"][0].text == "No"
