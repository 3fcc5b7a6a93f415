"""Documents of BRIGHT: where a task lies, what is made of its texts, and what happens to odd rows and lost files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_pipeline.corpus.bright import (
    BRIGHT_STRUCTURED_TASKS,
    BRIGHT_TASKS,
    BrightCorpus,
    BrightForm,
    BrightLocation,
    bright_location,
)
from prime_pipeline.corpus.markdown import parse_markdown
from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.source import CorpusSource, SourceEntry, SourceFailure
from prime_pipeline.corpus.watch import corpus_state
from prime_pipeline.errors import CorpusError, CorpusNotFound
from prime_pipeline.records import Document
from prime_pipeline_tests.tables import BRIGHT_DOCUMENTS, write_bright, write_parquet

PAGE = "# Phototaxis\n\nMoths fly to light.\n\n## Causes\nNobody knows.\n\n## Effects\n### At night\nThey burn.\n"
TEXTS = {"insects/Phototaxis_0.txt": PAGE, "insects/Phototaxis_1.txt": "One passage.\nTwo lines."}


def documents(corpus: CorpusSource) -> list[Document]:
    return [item.parse() for item in corpus.entries() if isinstance(item, SourceEntry)]


def failures(corpus: CorpusSource) -> dict[str, str]:
    return {item.source_path: item.reason for item in corpus.entries() if isinstance(item, SourceFailure)}


def test_texts_are_read_as_markdown_under_their_own_ids(tmp_path: Path) -> None:
    page, passage = documents(BrightCorpus(write_bright(tmp_path, "biology", TEXTS), "biology"))
    assert [(s.kind, s.heading, s.body) for s in page.sections] == [
        ("preamble", "", "Moths fly to light."),
        ("section", "Causes", "Nobody knows."),
        ("section", "Effects", "### At night\nThey burn."),
    ]
    assert (page.doc_id, page.title, page.title_origin) == (
        "insects/Phototaxis_0.txt",
        "Phototaxis",
        "heading",
    )
    assert (page.source_path, page.text) == ("documents/biology-00000-of-00001.parquet", PAGE)
    assert [(s.kind, s.heading, s.text) for s in passage.sections] == [
        ("whole", "insects/Phototaxis_1.txt", "One passage.\nTwo lines.")
    ]
    assert (passage.title, passage.own_title) == ("insects/Phototaxis_1.txt", "")


def test_a_document_has_no_lines_and_warns_nobody(tmp_path: Path) -> None:
    text = "## Rule\nA line\nand another\n---\n\n## End\nx\n"
    assert parse_markdown(text, "d", "d.md").warnings
    (found,) = documents(BrightCorpus(write_bright(tmp_path, "pony", {"d": text}), "pony"))
    assert found.warnings == ()
    places = [(s.start_line, s.end_line, *(heading.line for heading in s.headings)) for s in found.sections]
    assert {place for section in places for place in section} == {None}


@settings(max_examples=25, deadline=None)
@given(text=st.text(st.sampled_from("# -=\n`ab>*1.\t|$<"), min_size=1, max_size=60).filter(str.strip))
def test_sections_are_those_of_the_markdown_reader(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "bright"
    (found,) = documents(BrightCorpus(write_bright(folder, "pony", {"d": text}), "pony"))
    expected = parse_markdown(text, "d", "d.md")
    assert [(s.ordinal, s.kind, s.text, s.body, s.heading_path) for s in found.sections] == [
        (s.ordinal, s.kind, s.text, s.body, s.heading_path) for s in expected.sections
    ]


def test_whole_pages_are_another_corpus_of_the_same_task(tmp_path: Path) -> None:
    folder = write_bright(tmp_path, "biology", TEXTS, pages={"insects/Phototaxis.txt": PAGE})
    corpus = BrightCorpus(folder, "biology", "long_documents")
    assert [document.doc_id for document in documents(corpus)] == ["insects/Phototaxis.txt"]
    assert corpus.location == f"bright:{folder}#biology/long"


def test_parts_are_read_one_after_the_other(tmp_path: Path) -> None:
    for part, doc_id in enumerate("ba"):
        path = tmp_path / "documents" / f"aops-0000{part}-of-00002.parquet"
        write_parquet(path, BRIGHT_DOCUMENTS, [{"id": doc_id, "content": "x"}])
    assert [document.doc_id for document in documents(BrightCorpus(tmp_path, "aops"))] == ["b", "a"]
    (tmp_path / "documents" / "aops-00001-of-00002.parquet").unlink()
    with pytest.raises(CorpusError, match=r"bright:.*#aops: .*parts are missing"):
        BrightCorpus(tmp_path, "aops")


def test_equal_texts_are_two_documents_and_have_one_fingerprint(tmp_path: Path) -> None:
    corpus = BrightCorpus(write_bright(tmp_path, "pony", {"a": "x", "b": "x", "c": "y"}), "pony")
    assert [document.doc_id for document in documents(corpus)] == ["a", "b", "c"]
    prints = [item.fingerprint for item in corpus.entries() if isinstance(item, SourceEntry)]
    assert prints[0] == prints[1] != prints[2]


def test_odd_rows_fail_alone(tmp_path: Path) -> None:
    rows: list[dict[str, str | None]] = [
        {"id": None, "content": "x"},
        {"id": " ", "content": "x"},
        {"id": "none"},
        {"id": "blank", "content": " \n"},
        {"id": "nul", "content": "a\0b"},
        {"id": "good", "content": "a\r\nb"},
        {"id": "good", "content": "again"},
    ]
    name = "documents/pony-00000-of-00001.parquet"
    write_parquet(tmp_path / name, BRIGHT_DOCUMENTS, rows)
    corpus = BrightCorpus(tmp_path, "pony")
    assert [(document.doc_id, document.text) for document in documents(corpus)] == [("good", "a\nb")]
    found = failures(corpus)
    assert list(found) == [f"{name}{place}" for place in (":1", ":2", "#none", "#blank", "#nul", "#good")]
    assert found[f"{name}:1"] == "has no id: give it one"
    assert "has no content" in found[f"{name}#none"]
    assert "blank" in found[f"{name}#blank"]
    assert "U+0000" in found[f"{name}#nul"]
    assert "already taken" in found[f"{name}#good"]


def test_other_columns_are_told(tmp_path: Path) -> None:
    name = "documents/pony-00000-of-00001.parquet"
    write_parquet(tmp_path / name, {"_id": "VARCHAR", "text": "VARCHAR"}, [{"_id": "a", "text": "x"}])
    assert failures(BrightCorpus(tmp_path, "pony")) == {f"{name}:1": "has no id: give it one"}


def test_a_file_that_is_damaged_or_gone_fails_as_a_whole(tmp_path: Path) -> None:
    corpus = BrightCorpus(write_bright(tmp_path, "pony", {"a": "x"}), "pony")
    path = tmp_path / "documents" / "pony-00000-of-00001.parquet"
    path.write_bytes(b"PAR1 but no more than that")
    assert list(failures(corpus)) == ["documents/pony-00000-of-00001.parquet"]
    path.unlink()
    assert failures(corpus) == {"documents/pony-00000-of-00001.parquet": "No such file or directory"}


def test_a_location_opens_the_corpus_and_is_watched(tmp_path: Path) -> None:
    folder = write_bright(tmp_path / "br#ight", "pony", {"a": "x"})
    location = f"bright:{folder}#pony"
    corpus = open_corpus(location)
    assert isinstance(corpus, BrightCorpus)
    assert corpus.location == location
    before = corpus_state(location)
    write_bright(tmp_path / "br#ight", "pony", {"a": "longer than it was"})
    assert corpus_state(location) != before


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("bright:{folder}", "write bright:<folder>#<task>"),
        ("bright:#pony", "write bright:<folder>#<task>"),
        ("bright:{folder}#", "no task '': choose one of biology, "),
        ("bright:{folder}#Pony", "no task 'Pony'"),
        ("bright:{folder}#pony/short", "no task 'pony/short'"),
        ("bright:{folder}#leetcode/long", "no whole pages for leetcode"),
        ("bright:{folder}#pony", r"expected {folder}/documents/pony-00000-of-00001\.parquet"),
        ("bright:{folder}/documents#pony", r"cannot read .*documents/documents \(No such file"),
    ],
)
def test_a_location_that_is_none_says_why(tmp_path: Path, location: str, message: str) -> None:
    write_bright(tmp_path, "biology", {"a": "x"})
    location, message = (text.replace("{folder}", str(tmp_path)) for text in (location, message))
    with pytest.raises(CorpusError, match=message):
        open_corpus(location)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CorpusNotFound, match="gone does not exist"):
        open_corpus(f"bright:{tmp_path / 'gone'}#pony")


@pytest.mark.parametrize("form", ["documents", "long_documents"])
@pytest.mark.parametrize("folder", ["data", "/a b/c", "a#b", "bright:x", "/long"])
def test_a_location_is_written_as_it_is_read(folder: str, form: BrightForm) -> None:
    location = BrightLocation(folder, "pony", form)
    assert bright_location(str(location)) == location
    assert bright_location(str(replace(location, task="biology"))).name.startswith("bright/biology")


def test_twelve_tasks_of_which_eight_are_structured() -> None:
    assert (len(BRIGHT_TASKS), len(BRIGHT_STRUCTURED_TASKS)) == (12, 8)
    assert set(BRIGHT_STRUCTURED_TASKS) < set(BRIGHT_TASKS)
    names = [bright_location(f"bright:x#{task}").name for task in BRIGHT_TASKS]
    assert names == [f"bright/{task}" for task in BRIGHT_TASKS]
