"""Documents out of records: BEIR and QASPER."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.corpus.beir import BeirCorpus
from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.qasper import QasperCorpus
from prime_pipeline.corpus.source import CorpusSource, SourceEntry, SourceFailure
from prime_pipeline.errors import CorpusError
from prime_pipeline.records import Document
from prime_pipeline_tests.tables import QASPER, hub_paper, write_papers_as_parquet, write_parquet

PAPER: dict[str, Any] = {
    "title": "Of  Bots",
    "abstract": "We\r\nshow.",
    "full_text": [
        {"section_name": "Method ::: Data", "paragraphs": ["One.", "Two."]},
        {"section_name": None, "paragraphs": ["Three."]},
        {"section_name": "Results", "paragraphs": []},
    ],
    "figures_and_tables": [{"caption": "Figure 1: x", "file": "1.png"}, {"caption": "", "file": "2.png"}],
    "qas": [{"question": "why?", "question_id": "q", "answers": []}],
}
COLUMNS = PAPER | {
    "full_text": {
        "section_name": ["Method ::: Data", None, "Results"],
        "paragraphs": [["One.", "Two."], ["Three."], []],
    },
    "figures_and_tables": {"caption": ["Figure 1: x", ""], "file": ["1.png", "2.png"]},
}


def documents(corpus: CorpusSource) -> list[Document]:
    return [item.parse() for item in corpus.entries() if isinstance(item, SourceEntry)]


def failures(corpus: CorpusSource) -> dict[str, str]:
    return {item.source_path: item.reason for item in corpus.entries() if isinstance(item, SourceFailure)}


def fingerprints(corpus: CorpusSource) -> list[str]:
    return [item.fingerprint for item in corpus.entries() if isinstance(item, SourceEntry)]


def beir(folder: Path, *lines: str | bytes) -> BeirCorpus:
    data = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
    (folder / "corpus.jsonl").write_bytes(data)
    return BeirCorpus(folder / "corpus.jsonl", str(folder))


def qasper(folder: Path, content: object) -> QasperCorpus:
    (folder / "q.json").write_text(json.dumps(content))
    return QasperCorpus(folder / "q.json", "q.json")


def test_beir_records(tmp_path: Path) -> None:
    corpus = beir(
        tmp_path,
        '\ufeff{"_id": "a", "title": " The  title", "text": "x\\r\\ny", "metadata": {"url": "u", "n": 3, "l": []}}',
        '{"_id": 7, "text": "z"}',
        '{"_id": "t", "title": "only a title", "text": ""}',
    )
    first, second, third = documents(corpus)
    assert (first.doc_id, first.title, first.title_origin) == ("a", "The title", "dataset")
    assert (first.text, first.properties) == ("x\ny", {"url": "u", "n": "3"})
    assert (second.title, second.title_origin, second.own_title) == ("7", "file-name", "")
    assert [(s.ordinal, s.kind, s.start_line, s.end_line) for s in second.sections] == [(0, "whole", 2, 2)]
    assert third.text == "only a title"


def test_malformed_and_repeated_lines_fail_alone(tmp_path: Path) -> None:
    good = '{"_id": "g", "text": "x"}'
    bad = [
        "{",
        "[]",
        '{"text": "x"}',
        '{"_id": "n"}',
        '{"_id": "e", "text": " "}',
        '{"_id": "s", "text": "\\ud800"}',
    ]
    corpus = beir(tmp_path, *bad, b'{"_id": "b", "text": "\xff"}', "[" * 100_000, good, good)
    found = failures(corpus)
    assert list(found) == [f"corpus.jsonl:{line}" for line in (1, 2, 3, 4, 5, 6, 7, 8, 10)]
    assert "already taken by corpus.jsonl:9" in found["corpus.jsonl:10"]
    assert [document.doc_id for document in documents(corpus)] == ["g"]


def test_equal_beir_texts_are_documents_of_their_own(tmp_path: Path) -> None:
    corpus = beir(tmp_path, *(f'{{"_id": "{i}", "title": "T", "text": "same"}}' for i in ("MED-2", "MED-1")))
    assert [(document.doc_id, document.text) for document in documents(corpus)] == [
        ("MED-2", "same"),
        ("MED-1", "same"),
    ]
    assert len(set(fingerprints(corpus))) == 1


def test_beir_fingerprint_is_of_the_content(tmp_path: Path) -> None:
    before = fingerprints(beir(tmp_path, '{"_id": "a", "text": "x"}'))
    assert fingerprints(beir(tmp_path, "", '{"text":"x",  "_id":"b"}')) == before
    assert fingerprints(beir(tmp_path, '{"_id": "a", "text": "y"}')) != before


def test_cranfield(test_data: Path) -> None:
    corpus = open_corpus(str(test_data / "cranfield"))
    found = documents(corpus)
    assert len(found) == 1398
    assert list(failures(corpus)) == [
        "corpus.jsonl:471",
        "corpus.jsonl:995",
    ]  # the collection's two empty abstracts
    assert found[0].title.startswith("experimental investigation of the aerodynamics")


def test_qasper_paper(tmp_path: Path) -> None:
    (paper,) = documents(qasper(tmp_path, {"1909.1": PAPER}))
    assert (paper.doc_id, paper.title, paper.title_origin) == ("1909.1", "Of Bots", "dataset")
    assert [(s.ordinal, s.kind, s.heading, s.heading_path, s.body) for s in paper.sections] == [
        (0, "preamble", "", (), "We\nshow."),
        (1, "section", "Data", ("Method", "Data"), "One.\n\nTwo."),
        (2, "section", "", (), "Three."),
        (3, "section", "Results", ("Results",), ""),
        (4, "captions", "Figures and tables", ("Figures and tables",), "Figure 1: x"),
    ]
    assert paper.text.startswith("We\nshow.\n\n### Data\n\nOne.\n\nTwo.\n\nThree.\n\n## Results\n\n")
    assert documents(qasper(tmp_path, {"1909.1": COLUMNS})) == [paper]
    assert documents(qasper(tmp_path, [PAPER | {"id": "1909.1"}])) == [paper]


def test_questions_do_not_change_a_paper(tmp_path: Path) -> None:
    before = fingerprints(qasper(tmp_path, {"1": PAPER}))
    assert fingerprints(qasper(tmp_path, {"1": PAPER | {"qas": []}})) == before
    assert fingerprints(qasper(tmp_path, {"1": PAPER | {"abstract": "Other."}})) != before


def test_malformed_papers_fail_alone(tmp_path: Path) -> None:
    broken = {
        "list": [],
        "odd": PAPER | {"full_text": [{"name": "x"}]},
        "empty": {"title": "T", "full_text": []},
    }
    corpus = qasper(tmp_path, {"good": PAPER} | broken)
    assert [document.doc_id for document in documents(corpus)] == ["good"]
    assert list(failures(corpus)) == ["q.json#list", "q.json#odd", "q.json#empty"]
    assert "holds no QASPER papers" in failures(qasper(tmp_path, {"a": 1}))["q.json"]


def test_parquet_gives_the_same_papers_as_the_official_file(tmp_path: Path) -> None:
    papers = {"1909.1": PAPER, "2001.00001": PAPER | {"title": "", "full_text": [], "figures_and_tables": []}}
    path = write_papers_as_parquet(tmp_path / "test.parquet", papers)
    found = documents(open_corpus(str(path)))
    assert [paper.source_path for paper in found] == ["test.parquet"] * 2
    assert [replace(paper, source_path="q.json") for paper in found] == documents(qasper(tmp_path, papers))
    assert [item.position for item in open_corpus(str(path)).entries() if isinstance(item, SourceEntry)] == [
        "#1909.1",
        "#2001.00001",
    ]


def test_the_parts_of_the_test_split_are_one_corpus(tmp_path: Path) -> None:
    for part in range(2):
        name = f"test-0000{part}-of-00002.parquet"
        write_papers_as_parquet(tmp_path / name, {f"paper {1 - part}": PAPER, "both": PAPER})
    (tmp_path / "train-00000-of-00009.parquet").touch()
    corpus = open_corpus(str(tmp_path))
    assert isinstance(corpus, QasperCorpus)
    assert [paper.doc_id for paper in documents(corpus)] == ["paper 1", "both", "paper 0"]
    assert list(failures(corpus)) == ["test-00001-of-00002.parquet#both"]
    (tmp_path / "test-00000-of-00002.parquet").unlink()
    with pytest.raises(CorpusError, match="parts are missing"):
        open_corpus(str(tmp_path))


def test_odd_rows_of_parquet_fail_alone(tmp_path: Path) -> None:
    good = hub_paper("good", PAPER)
    empty = {"title": "T", "full_text": None, "abstract": None}
    uneven = good["full_text"] | {"paragraphs": [["one list"]]}
    rows = [good | {"id": None}, empty | {"id": "empty"}, good | {"id": "odd", "full_text": uneven}, good]
    corpus = QasperCorpus(write_parquet(tmp_path / "t.parquet", QASPER, rows), "t.parquet")
    assert [paper.doc_id for paper in documents(corpus)] == ["good"]
    assert list(failures(corpus)) == ["t.parquet:1", "t.parquet#empty", "t.parquet#odd"]


def test_another_table_or_a_damaged_file_fails_as_a_whole(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "t.parquet", {"id": "VARCHAR"}, [{"id": "a"}, {"id": "b"}])
    corpus = QasperCorpus(path, "t.parquet")
    assert "holds no QASPER papers: expected columns id, title" in failures(corpus)["t.parquet"]
    path.write_bytes(b"no table")
    assert "too small to be a Parquet file" in failures(corpus)["t.parquet"]
    path.unlink()
    assert failures(corpus) == {"t.parquet": "No such file or directory"}


def test_qasper_mini_as_parquet(test_data: Path, tmp_path: Path) -> None:
    source = test_data / "qasper-mini" / "qasper-mini.json"
    path = write_papers_as_parquet(tmp_path / "test-00000-of-00001.parquet", json.loads(source.read_text()))
    found = documents(open_corpus(str(tmp_path)))
    assert [replace(paper, source_path=source.name) for paper in found] == documents(open_corpus(str(source)))
    assert documents(open_corpus(str(path))) == found


def test_qasper_mini(test_data: Path) -> None:
    found = documents(open_corpus(str(test_data / "qasper-mini" / "qasper-mini.json")))
    kinds = [section.kind for paper in found for section in paper.sections]
    assert (len(found), kinds.count("section")) == (50, 653)
    assert all(paper.sections[0].kind == "preamble" for paper in found)
