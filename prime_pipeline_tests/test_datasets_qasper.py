"""QASPER's questions: both published layouts, references by the official rules, faults, and the real data."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.datasets.queries import QuerySet, load_query_set
from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.answer_f1 import AnswerReference
from prime_pipeline.records import Query
from prime_pipeline_tests.tables import QASPER, hub_paper, write_papers_as_parquet, write_parquet


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
    paper = {"title": "T", "abstract": "A", "full_text": [], "figures_and_tables": [], "qas": qas}
    return {"1909.00694": paper}


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


def test_parquet_gives_the_same_questions_as_the_official_file(tmp_path: Path) -> None:
    expected = loaded(tmp_path, official())
    path = write_papers_as_parquet(tmp_path / "hub" / "test-00000-of-00001.parquet", official())
    assert load_query_set(str(path)) == replace(expected, name="test-00000-of-00001")
    assert load_query_set(str(path.parent)) == replace(expected, name="hub")


def test_questions_of_all_parts_are_taken(tmp_path: Path) -> None:
    paper = official()["1909.00694"]
    for part, answers in enumerate([[SPANS], [NO]]):
        qas = [{"question": "Which?", "question_id": f"q{part}", "answers": [{"answer": a} for a in answers]}]
        papers = {f"p{part}": paper | {"qas": qas}}
        write_papers_as_parquet(tmp_path / f"test-0000{part}-of-00002.parquet", papers)
    assert load_query_set(str(tmp_path)).qrels == {"q0": {"p0": 1}, "q1": {"p1": 1}}
    (tmp_path / "test-00000-of-00002.parquet").unlink()
    with pytest.raises(EvaluationError, match="parts are missing or there twice: test-00001"):
        load_query_set(str(tmp_path))


def test_faults_of_parquet_name_file_and_row(tmp_path: Path) -> None:
    good = hub_paper("p", official()["1909.00694"])
    path = tmp_path / "t.parquet"
    write_parquet(path, QASPER, [good, good | {"id": None}])
    with pytest.raises(EvaluationError, match=r't\.parquet:2: "id" must be a text'):
        load_query_set(str(path))
    blank = good["qas"] | {"question": ["Which?", "", "Why?"]}
    write_parquet(path, QASPER, [good | {"qas": blank}])
    with pytest.raises(EvaluationError, match=r"t\.parquet:1: paper 'p': \"question\" must be a text"):
        load_query_set(str(path))
    write_parquet(path, QASPER, [good, good | {"id": "copy"}])
    with pytest.raises(EvaluationError, match=r"t\.parquet: query id 'q1' occurs twice"):
        load_query_set(str(path))
    write_parquet(path, QASPER, [])
    with pytest.raises(EvaluationError, match=r"t\.parquet holds no judged query"):
        load_query_set(str(path))
    path.write_bytes(b"no table")
    with pytest.raises(EvaluationError, match=r"t\.parquet is damaged.*a query set needs this file"):
        load_query_set(str(path))


def test_real_data_as_parquet(test_data: Path, tmp_path: Path) -> None:
    source = test_data / "qasper-mini" / "qasper-mini.json"
    path = write_papers_as_parquet(tmp_path / "qasper-mini.parquet", json.loads(source.read_text()))
    assert load_query_set(str(path)) == load_query_set(str(source))


def test_real_data(test_data: Path) -> None:
    found = load_query_set(str(test_data / "qasper-mini" / "qasper-mini.json"))
    n_references = Counter(map(len, found.references.values()))
    assert n_references == {1: 80, 2: 17}
    assert found.references.keys() == found.types.keys()
    assert Counter(found.types.values()) == {"abstractive": 60, "extractive": 26, "none": 6, "boolean": 5}
    papers = {paper for query_id in found.gold_evidence for paper in found.qrels[query_id]}
    assert len(papers) == 10
    assert found.references["003f884d3893532f8c302431c9f70be6f64d9be8"][0].text == "No"
