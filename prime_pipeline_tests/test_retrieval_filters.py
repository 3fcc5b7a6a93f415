"""Filters of documents: paths, tags, dates, and that a filter leaves no hit out that exists."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from prime_pipeline.indexes.lexical import StoredDocument
from prime_pipeline.indexes.vectors import VectorOptions
from prime_pipeline.records import Document
from prime_pipeline.retrieval.filters import DocumentFilter, date_of, tags_of
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document

PATHS = ("guide/a.md", "guide/deep/b.md", "guidelines.md", "notes[1].md")


def passing(wanted: DocumentFilter, *documents: StoredDocument) -> list[str]:
    excluded = wanted.excluded(documents)
    return [document.doc_id for document in documents if document.doc_id not in excluded]


def stored(doc_id: str, **properties: str) -> StoredDocument:
    return StoredDocument(doc_id, "Title", doc_id, properties)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", PATHS),
        ("guide", PATHS[:3]),
        ("guide/", PATHS[:2]),
        ("guide/*.md", PATHS[:2]),
        ("*/?.md", PATHS[:2]),
        ("guide*s.md", PATHS[2:3]),
        ("*[[]1].md", PATHS[3:]),
        ("deep", ()),
        ("[", ()),
        ("[z-a]*", ()),
        ("\x00\udcff", ()),
        ("*" * 400 + "x", ()),
    ],
)
def test_a_path_is_a_beginning_or_a_pattern(path: str, found: tuple[str, ...]) -> None:
    assert passing(DocumentFilter(path=path), *map(stored, PATHS)) == list(found)


def test_tags_are_cut_at_commas_from_every_property_that_holds_some() -> None:
    tags = tags_of({"tags": "Retries, back off,, ", "Category": "Straße", "title": "no"})
    assert tags == {"retries", "back off", "strasse"}


def test_a_document_has_all_tags_that_are_asked_for() -> None:
    documents = [stored("both", tags="a, B"), stored("one", tags="a"), stored("none")]
    assert passing(DocumentFilter(tags=("A",)), *documents) == ["both", "one"]
    assert passing(DocumentFilter(tags=("a", " b ")), *documents) == ["both"]
    assert passing(DocumentFilter(tags=("a b",)), *documents) == []


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({"date": "2024-05-31"}, date(2024, 5, 31)),
        ({"date": "2024-05-31T10:00:00+02:00"}, date(2024, 5, 31)),
        ({"date": "2024/5/1"}, date(2024, 5, 1)),
        ({"date": "2024-01-01", "Last-Modified": "2024-03-02"}, date(2024, 3, 2)),
        ({"date": "2024-06-31"}, None),
        ({"date": "May 2024"}, None),
        ({"date": "2024-05-311"}, None),
        ({"title": "2024-05-31"}, None),
    ],
)
def test_a_date_is_the_latest_that_is_written_by_year_month_and_day(
    properties: dict[str, str], found: date | None
) -> None:
    assert date_of(properties) == found


def test_both_days_of_a_range_count_and_a_document_without_a_date_is_in_none() -> None:
    documents = [stored("may", date="2024-05-31"), stored("june", date="2024-06-01"), stored("undated")]
    june = date(2024, 6, 1)
    assert passing(DocumentFilter(since=june), *documents) == ["june"]
    assert passing(DocumentFilter(until=june), *documents) == ["may", "june"]
    assert passing(DocumentFilter(since=june, until=june), *documents) == ["june"]
    assert passing(DocumentFilter(), *documents) == ["may", "june", "undated"]


def numbered(number: int) -> Document:
    """One of 60 documents; the word that is searched for is more frequent in those with a low number."""
    text = "Bread: " + "bread " * (60 - number)
    document = make_document(f"doc{number:02}", text + "Then rest.", title=f"Number {number}")
    return replace(document, properties={"tags": "last" if number >= 55 else "first"})


@pytest.mark.parametrize("search", ["exact", "hnsw"])
def test_a_filter_is_applied_before_rankings_are_cut(tmp_path: Path, search: str) -> None:
    bench = Bench(tmp_path / "home")
    bench.vector_options = VectorOptions(search="exact" if search == "exact" else "hnsw", ef_search=2)
    bench.publish(*map(numbered, range(60)))
    options = RetrievalOptions(arm_depth=5, n_candidates=6, top_k=5)
    last = DocumentFilter(tags=("last",))
    with bench.retriever(options) as retriever:
        assert not {hit.doc_id for hit in retriever.search("bread")} & {f"doc{n}" for n in range(55, 60)}
        hits = retriever.search("bread", documents=last)
        assert {hit.doc_id for hit in hits} == {f"doc{n}" for n in range(55, 60)}
        explained = retriever.explain("bread", documents=last)
        assert [found.hit for found in explained.hits] == hits
        assert retriever.search("bread", documents=DocumentFilter(path="none/")) == []
        assert len(retriever.search("bread", top_k=5, documents=DocumentFilter())) == 5


def test_the_index_keeps_what_a_document_says_about_itself(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "home")
    bench.publish(numbered(1), numbered(2))
    with bench.retriever() as retriever:
        found = retriever.lexical.document("doc01")
        assert found == StoredDocument("doc01", "Number 1", "doc01.md", {"tags": "first"})
        assert retriever.lexical.documents()[1].doc_id == "doc02"
        for unknown in ("", "doc", "doc03", "../doc01", "doc01\x00", "\udcff"):
            assert retriever.lexical.document(unknown) is None
