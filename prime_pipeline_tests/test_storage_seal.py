"""The sealed corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_pipeline.errors import EmptyCorpus, SchemaMismatch, StoreCorrupt
from prime_pipeline.storage.documents import DocumentStore
from prime_pipeline.storage.seal import read_seal, seal_corpus
from prime_pipeline_tests.documents import make_document, sealed


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DocumentStore]:
    opened = DocumentStore(tmp_path / "documents")
    yield opened
    opened.close()


def test_documents_are_sealed_in_order_of_id(store: DocumentStore, tmp_path: Path) -> None:
    documents = [make_document(i, f"text of {i}") for i in ("b", "é", "a")]
    for document in documents:
        store.put(document, document.doc_id, "s")
    store.put_failure("b", "b", "b.md", "is damaged now")
    store.put_failure("never", "never", "never.md", "is empty")
    corpus = seal_corpus(store, tmp_path / "raw.json", "docs")
    assert corpus == sealed(documents) == read_seal(tmp_path / "raw.json")
    assert [doc_id for doc_id, _ in corpus.documents] == ["a", "b", "é"]


def test_the_version_changes_with_any_document(store: DocumentStore, tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    store.put(make_document("a", "one"), "a", "s")
    first = seal_corpus(store, path, "docs").version
    assert seal_corpus(store, path, "docs").version == first
    store.put(make_document("a", "two"), "a", "s")
    assert seal_corpus(store, path, "docs").version != first


def test_an_empty_corpus_cannot_be_sealed(store: DocumentStore, tmp_path: Path) -> None:
    store.put_failure("a", "a", "a.md", "is empty")
    with pytest.raises(EmptyCorpus, match=r"docs holds no readable document \(1 files failed"):
        seal_corpus(store, tmp_path / "raw.json", "docs")
    with pytest.raises(EmptyCorpus):
        read_seal(tmp_path / "raw.json")


def test_damage_is_noticed(store: DocumentStore, tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    store.put(make_document("a", "one"), "a", "s")
    seal_corpus(store, path, "docs")
    good = path.read_text()
    for damaged in (
        good[:-9],
        "",
        "[]",
        "{}",
        "\u00e9",
        good.replace('"a"', '"b"'),
        good.replace('[["a"', '[[["a"]'),
    ):
        path.write_text(damaged)
        with pytest.raises(StoreCorrupt, match=r"raw\.json is damaged"):
            read_seal(path)
    path.write_text(json.dumps({**json.loads(good), "schema_version": 9}))
    with pytest.raises(SchemaMismatch, match="schema version 9"):
        read_seal(path)
