"""Queries in CSV and TSV files: lines put together, sections, and faults with file and line."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_pipeline.datasets.queries import QuerySet, load_query_set
from prime_pipeline.errors import EvaluationError
from prime_pipeline.records import Query


def loaded(
    folder: Path, text: str, name: str = "mine.csv", doc_ids: frozenset[str] = frozenset()
) -> QuerySet:
    (folder / name).write_bytes(text.encode())
    return load_query_set(str(folder / name), doc_ids)


def test_lines_of_one_query_are_put_together(tmp_path: Path) -> None:
    found = loaded(tmp_path, "query,relevant\none?,a.md\ntwo?,b.md\none?,c/d.md\n")
    assert found.queries == (Query("mine:2", "one?"), Query("mine:3", "two?"))
    assert found.qrels == {"mine:2": {"a.md": 1, "c/d.md": 1}, "mine:3": {"b.md": 1}}
    assert (found.name, found.known_item, found.types, found.section_references) == ("mine", False, {}, {})


def test_lines_of_one_id_are_put_together_and_equal_queries_of_two_ids_are_not(tmp_path: Path) -> None:
    found = loaded(tmp_path, "query_id,query,relevant\nx,one?,a\ny,one?,b\nx,one?,c\n,one?,d\n")
    assert found.qrels == {"x": {"a": 1, "c": 1}, "y": {"b": 1}, "mine:5": {"d": 1}}


def test_types_and_grades_may_be_left_out(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "grade,type,query,relevant\n2,how-to,one?,a\n,,one?,b\n0,,one?,c\n-1,,two?,d\n,fact,three?,e\n",
    )
    assert found.qrels == {"mine:2": {"a": 2, "b": 1, "c": 0}, "mine:5": {"d": -1}, "mine:6": {"e": 1}}
    assert found.types == {"mine:2": "how-to", "mine:6": "fact"}


def test_sections_are_named_behind_the_document(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "query,relevant,grade\none?,a.md#3,\none?,a.md#How to install,2\none?,b.md,1\none?,c.md#x,0\none?,a#b.md#1,1\n",
    )
    assert found.section_references == {
        "mine:2": (("a.md", "3"), ("a.md", "How to install"), ("a#b.md", "1"))
    }
    assert found.qrels == {"mine:2": {"a.md": 2, "b.md": 1, "c.md": 0, "a#b.md": 1}}


def test_an_id_of_the_corpus_is_no_section(tmp_path: Path) -> None:
    text = "query,relevant\none?,p.json#1\none?,C#\none?,#1\ntwo?,p.json#1#2\n"
    assert loaded(tmp_path, text).section_references == {
        "mine:2": (("p.json", "1"),),
        "mine:5": (("p.json#1", "2"),),
    }
    found = loaded(tmp_path, text, doc_ids=frozenset({"p.json#1"}))
    assert found.qrels == {"mine:2": {"p.json#1": 1, "C#": 1, "#1": 1}, "mine:5": {"p.json#1": 1}}
    assert found.section_references == {"mine:5": (("p.json#1", "2"),)}


def test_the_same_line_twice_is_no_fault(tmp_path: Path) -> None:
    found = loaded(tmp_path, "query,relevant\none?,a#1\none?,a#1\n")
    assert (found.qrels, found.section_references) == ({"mine:2": {"a": 1}}, {"mine:2": (("a", "1"),)})


def test_a_tab_parts_the_fields_of_tsv(tmp_path: Path) -> None:
    found = loaded(tmp_path, 'query\trelevant\none, two?\ta.md\n"say ""hi"""\tb.md\n', "mine.tsv")
    assert found.queries == (Query("mine:2", "one, two?"), Query("mine:3", 'say "hi"'))


def test_what_spreadsheets_write(tmp_path: Path) -> None:
    text = '\ufeffQuery, Relevant \r\n"one,\r\nor two?", a.md \r\n,\r\n\r\nthree?,b.md\r\n'
    found = loaded(tmp_path, text)
    assert found.queries == (Query("mine:2", "one,\nor two?"), Query("mine:6", "three?"))
    assert found.qrels == {"mine:2": {"a.md": 1}, "mine:6": {"b.md": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"mine\.csv:1: expected a header of query, relevant .*no 'query'"),
        ("one?,a.md\n", r"mine\.csv:1: expected a header .*no 'query'"),
        ("query;relevant\n", r"mine\.csv:1: expected a header .*no 'query'"),
        ("query,answer\n", r"mine\.csv:1: expected a header .*no 'relevant'"),
        ("\nquery,relevant,grades\n", r"mine\.csv:2: expected a header .*found 'grades'"),
        ("query,relevant,query\n", r"mine\.csv:1: expected a header .*each of them once"),
        ("query,relevant\n", r"mine\.csv holds no judged query"),
        ("query,relevant\none?\n", r"mine\.csv:2: expected 2 fields, found 1"),
        ("query,relevant\none, two?,a\n", r"mine\.csv:2: expected 2 fields, found 3: quote"),
        ("query,relevant\n,a\n", r'mine\.csv:2: "query" must be a text'),
        ("query,relevant\none?, \n", r'mine\.csv:2: "relevant" must be a text'),
        ("query,relevant\none?,a\0b\n", r"mine\.csv:2: .*NUL"),
        ('query,relevant\none?,a\n"two?,b\n', r"mine\.csv:3: unexpected end of data: check its quotes"),
        ('query,relevant\n"one"?,a\n', r"mine\.csv:2: .*check its quotes"),
        ("query,relevant,grade\none?,a,1_0\n", r"mine\.csv:2: expected a whole-number grade, found '1_0'"),
        ("query,relevant,grade\none?,a,1.5\n", r"mine\.csv:2: expected a whole-number grade, found '1.5'"),
        ("query,relevant,grade\none?,a,9999999\n", r"mine\.csv:2: grade 9999999 is out of range"),
        ("query,relevant,grade\none?,a,1\none?,a,2\n", r"mine\.csv:3: the query has two grades for 'a'"),
        ("query,relevant,type\none?,a,x\none?,b,y\n", r"mine\.csv:3: the query has two types, 'x' and 'y'"),
        (
            "query,relevant,query_id\none?,a,q\n\ntwo?,b,q\n",
            r"mine\.csv:4: query_id 'q' stands for two queries",
        ),
        ("query,relevant,query_id\none?,a,mine:3\ntwo?,b,\n", r"mine\.csv: query id 'mine:3' occurs twice"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        loaded(tmp_path, text)


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes("query,relevant\nnaïve?,a\n".encode("latin-1"))
    with pytest.raises(EvaluationError, match="byte 17 is not UTF-8"):
        load_query_set(str(tmp_path / "mine.csv"))


WORDS = st.text(st.sampled_from("ab ,\t\"'#;é\n"), min_size=1, max_size=6).map(lambda t: f"x{t}x")


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5),
    dialect=st.sampled_from([("mine.csv", ","), ("mine.tsv", "\t")]),
)
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], dialect: tuple[str, str]
) -> None:
    path = tmp_path_factory.getbasetemp() / dialect[0]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=dialect[1]).writerows([("query", "relevant"), *rows])
    found = load_query_set(str(path), frozenset(relevant for _, relevant in rows))
    expected: dict[str, set[str]] = {}
    for query, relevant in rows:
        expected.setdefault(query, set()).add(relevant)
    assert {query.text: set(found.qrels[query.query_id]) for query in found.queries} == expected
    assert found.section_references == {}
