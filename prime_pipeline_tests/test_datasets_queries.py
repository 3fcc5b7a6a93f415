"""Query sets: each layout by hand, its faults with file and line, and the real data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from prime_pipeline.corpus.source import INSTALLED
from prime_pipeline.datasets.queries import QuerySet, load_query_set
from prime_pipeline.errors import EvaluationError
from prime_pipeline.records import Query

HEADER = "query-id\tcorpus-id\tscore\n"
QUESTION = '{"_id": "q1", "text": "What flies?"}\n'


def beir(
    folder: Path, queries: str = QUESTION, qrels: str = f"{HEADER}q1\td1\t2\n", split: str = "test"
) -> str:
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "queries.jsonl").write_text(queries, encoding="utf-8")
    (folder / "qrels" / f"{split}.tsv").write_text(qrels, encoding="utf-8")
    return str(folder)


def test_a_beir_folder_gives_its_judged_queries(tmp_path: Path) -> None:
    queries = f'{{"_id": "q0", "text": "Unjudged"}}\n\n{QUESTION}'
    found = load_query_set(beir(tmp_path, queries, f"\ufeff{HEADER}q1\td1\t2\r\nq1\td2\t0\n"))
    assert found.queries == (Query("q1", "What flies?"),)
    assert found.qrels == {"q1": {"d1": 2, "d2": 0}}
    assert (found.name, found.known_item) == (tmp_path.name, False)


def test_grades_stay_as_they_are(tmp_path: Path) -> None:
    found = load_query_set(beir(tmp_path, qrels=f"{HEADER}q1\tMED-2\t1\nq1\tMED-1\t2\nq1\tMED-3\t0\n"))
    assert found.qrels == {"q1": {"MED-2": 1, "MED-1": 2, "MED-3": 0}}
    assert found.relevant_documents == {"MED-1", "MED-2"}
    assert (found.excluded, found.section_references) == ({}, {})


@pytest.mark.parametrize(
    ("queries", "qrels", "message"),
    [
        (f"{QUESTION}[1]", HEADER, r"queries\.jsonl:2: expected a JSON object, found list"),
        ('{"_id": "q1"', HEADER, r"queries\.jsonl:1: not valid JSON"),
        ('{"_id": 7, "text": "x"}', HEADER, r'queries\.jsonl:1: "_id" must be a text'),
        ('{"_id": "q1", "text": " "}', HEADER, r'queries\.jsonl:1: "text" must be a text'),
        (QUESTION, f"{HEADER}q1\td1\n", r"test\.tsv:2: expected query id"),
        (QUESTION, f"{HEADER}q1\td1\t0.5\n", r"test\.tsv:2: .*whole-number"),
        (QUESTION, f"{HEADER}q1\td1\t1\nq1\td1\t2\n", r"test\.tsv: query 'q1' has two grades for 'd1'"),
        (QUESTION, f"{HEADER}q2\td1\t1\n", r"test\.tsv: query 'q2' is judged but missing"),
        (QUESTION * 2, f"{HEADER}q1\td1\t1\n", "query id 'q1' occurs twice"),
        (QUESTION, HEADER, "no judged query"),
        ('{"_id": "q\\ud800", "text": "x"}', HEADER, r"queries\.jsonl:1: .*half of a character"),
        (QUESTION, f"{HEADER}q1\td\0\t1\n", r"test\.tsv:2: .*NUL"),
        (QUESTION, f"{HEADER}q1\td1\t{'9' * 20}\n", r"test\.tsv:2: grade 9+ is out of range"),
        (QUESTION, f"{HEADER}q1\td1\t-1000001\n", r"test\.tsv:2: grade -1000001 is out of range"),
    ],
)
def test_faults_of_a_beir_folder(tmp_path: Path, queries: str, qrels: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        load_query_set(beir(tmp_path, queries, qrels))


@pytest.mark.parametrize(
    ("splits", "measured", "suffix"),
    [
        (["dev", "test", "train"], "test", ""),
        (["dev", "train"], "dev", "/dev"),
        (["dev"], "dev", "/dev"),
        (["train"], "train", "/train"),
        (["validation"], "validation", "/validation"),
    ],
)
def test_the_test_split_is_measured_or_dev_or_the_only_one_and_named(
    splits: list[str], measured: str, suffix: str, tmp_path: Path
) -> None:
    for split in splits:
        beir(tmp_path, qrels=f"{HEADER}q1\t{split}-document\t1\n", split=split)
    (tmp_path / "qrels" / "readme.txt").write_text("no judgements")
    (tmp_path / "qrels" / "._other.tsv").write_text("no judgements")
    found = load_query_set(str(tmp_path))
    assert found.qrels == {"q1": {f"{measured}-document": 1}}
    assert found.name == f"{tmp_path.name}{suffix}"


def test_of_several_other_splits_none_is_chosen(tmp_path: Path) -> None:
    beir(tmp_path, split="train")
    beir(tmp_path, split="held-out")
    with pytest.raises(EvaluationError, match=r"\(held-out\.tsv, train\.tsv\).*keep the one to measure with"):
        load_query_set(str(tmp_path))


def test_faults_are_told_of_the_split_that_is_measured(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"dev\.tsv: query 'q2' is judged but missing"):
        load_query_set(beir(tmp_path, qrels=f"{HEADER}q2\td1\t1\n", split="dev"))


def test_a_folder_without_judgements_is_named(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"cannot read .*test\.tsv: No such file"):
        load_query_set(str(tmp_path))


def test_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"query": "one?", "relevant": "a.md"}\n\n{"query": "two?", "relevant": ["b.md", "a.md"], "query_id": "x"}\n'
    )
    found = load_query_set(str(path))
    assert found.queries == (Query("mine:1", "one?"), Query("x", "two?"))
    assert found.qrels == {"mine:1": {"a.md": 1}, "x": {"b.md": 1, "a.md": 1}}
    assert (found.name, found.known_item) == ("mine", False)


def test_lines_of_json_may_name_sections(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"query": "one?", "relevant": "a.md#2"}\n'
        '{"query": "two?", "relevant": ["b.md", "a.md#Set up", "a.md#2", "a.md#2", "p.json#7", "c#"]}\n'
    )
    found = load_query_set(str(path), {"p.json#7"})
    assert found.qrels == {"mine:1": {"a.md": 1}, "mine:2": {"b.md": 1, "a.md": 1, "p.json#7": 1, "c#": 1}}
    assert found.section_references == {
        "mine:1": (("a.md", "2"),),
        "mine:2": (("a.md", "Set up"), ("a.md", "2")),
    }
    found = load_query_set(str(path))
    assert found.section_references["mine:2"][-1] == ("p.json", "7")
    assert "p.json" in found.qrels["mine:2"]


@pytest.mark.parametrize("relevant", ["[]", "7", '""', '["a", 7]', "null"])
def test_lines_of_json_need_a_relevant_document(tmp_path: Path, relevant: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(f'\n{{"query": "one?", "relevant": {relevant}}}')
    with pytest.raises(EvaluationError, match=r'mine\.jsonl:2: "relevant" must be'):
        load_query_set(str(path))


@pytest.mark.parametrize("kind", ["null", "7", '""', '" "'])
def test_the_type_of_a_line_is_optional_but_a_text(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"query": "one?", "relevant": "a"}\n{"query": "two?", "relevant": "a", "type": "how-to"}'
    )
    assert load_query_set(str(path)).types == {"mine:2": "how-to"}
    path.write_text(f'{{"query": "one?", "relevant": "a", "type": {kind}}}')
    with pytest.raises(EvaluationError, match=r'mine\.jsonl:1: "type" must be a text'):
        load_query_set(str(path))


def test_what_has_no_answers_has_no_references(tmp_path: Path) -> None:
    found = load_query_set(beir(tmp_path))
    assert (found.types, found.references, found.gold_evidence) == ({}, {}, {})


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes('{"query": "naïve?", "relevant": "a"}'.encode("latin-1"))
    with pytest.raises(EvaluationError, match="byte 13 is not UTF-8"):
        load_query_set(str(path))


@pytest.mark.parametrize(
    "name", ["nowhere.jsonl", "nowhere.csv", "nowhere.parquet", "nowhere", "queries.xlsx"]
)
def test_what_is_no_query_set_is_told_what_would_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "queries.xlsx").write_text("a,b")
    with pytest.raises(EvaluationError, match=f"no query set at .*{name}.*BEIR folder"):
        load_query_set(str(tmp_path / name))


def test_real_data(test_data: Path) -> None:
    qasper = load_query_set(str(test_data / "qasper-mini" / "qasper-mini.json"))
    assert len(qasper.queries) == 189
    assert {len(grades) for grades in qasper.qrels.values()} == {1}
    assert qasper.known_item
    cranfield = load_query_set(str(test_data / "cranfield"))
    assert len(cranfield.queries) == 225
    assert sum(map(len, cranfield.qrels.values())) == 1837
    assert {query.query_id for query in cranfield.queries} == set(cranfield.qrels)


def test_installed_distributions_are_known_items() -> None:
    from prime_pipeline.corpus.installed import summaries

    found = load_query_set(INSTALLED)
    assert (found.name, found.known_item) == ("installed", True)
    assert [(*found.qrels[query.query_id], query.text) for query in found.queries] == summaries()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"query": "x", "relevant": "d\\ud800"}'),
        ("a.jsonl", '{"query": "x", "relevant": "d", "query_id": "q\\ud800"}'),
        ("a.json", '{"p\\ud800": {"qas": [{"question_id": "q", "question": "x"}]}}'),
        ("a.json", '{"p": {"qas": [{"question_id": "q\\ud800", "question": "x"}]}}'),
    ],
)
def test_ids_with_half_a_character_are_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(EvaluationError, match=rf"{name}.*half of a character"):
        load_query_set(str(tmp_path / name))


def test_queries_nest_in_documents_where_each_was_asked_about_one() -> None:
    known = QuerySet("k", (Query("q", "x"), Query("r", "y")), {"q": {"a": 1}, "r": {"a": 1}}, known_item=True)
    assert known.clusters == {"q": "a", "r": "a"}
    assert replace(known, known_item=False).clusters is None
    assert replace(known, qrels={"q": {"a": 1}, "r": {"a": 1, "b": 1}}).clusters is None
