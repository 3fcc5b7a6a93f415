"""The store of restructured documents: what is pending, what comes back, and what a crash leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_pipeline.errors import StoreCorrupt, StoreUnavailable
from prime_pipeline.records import Document, DocumentOutcome, Finding, SectionOutcome
from prime_pipeline.storage.documents import CatalogueEntry, DocumentStore
from prime_pipeline.storage.restructured import RestructuredStore
from prime_pipeline_tests.documents import make_document

FINDING = Finding("number_missing", "12.5 %", ("It is 12.5 %.",))


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[DocumentStore]:
    store = DocumentStore(tmp_path / "documents")
    yield store
    store.close()


@pytest.fixture
def restructured(tmp_path: Path) -> Iterator[RestructuredStore]:
    store = RestructuredStore(tmp_path / "restructured")
    yield store
    store.close()


def document(doc_id: str, body: str = "One two three four.") -> Document:
    return make_document(doc_id, f"Head: {body}", "Other: Five six.")


def outcome(doc_id: str, kind: str = "accepted") -> DocumentOutcome:
    first = SectionOutcome(1, "patched", "One two. It is 12.5 %.", (FINDING,), ("It is 12.5 %.",), "refused")
    second = SectionOutcome(2, "deferred" if kind == "deferred" else "unchanged")
    return DocumentOutcome(doc_id, (first, second))


def put_raw(store: DocumentStore, *documents: Document) -> list[CatalogueEntry]:
    return [store.put(document, document.doc_id, "source") for document in documents]


def pending(raw: DocumentStore, restructured: RestructuredStore) -> list[str]:
    return [entry.doc_id for entry in restructured.pending(raw.catalogue().values())]


def test_what_is_put_comes_back(raw: DocumentStore, restructured: RestructuredStore) -> None:
    (entry,) = put_raw(raw, document("a"))
    stored = restructured.put(entry, document("a"), outcome("a"))
    loaded, whole = restructured.load(stored) or (document("b"), outcome("b"))
    assert (loaded.doc_id, whole) == ("a", outcome("a"))
    assert loaded.sections[0].rewritten == "One two. It is 12.5 %."
    assert loaded.sections[1].rewritten is None
    assert loaded.text == document("a").text
    (first, second) = (restructured.outcome("a") or outcome("b")).sections
    assert (first.kind, first.findings, first.appended, first.refused) == (
        "patched",
        (FINDING,),
        ("It is 12.5 %.",),
        "refused",
    )
    assert second.kind == "unchanged"
    assert restructured.word_counts() == (6, 8)


def test_pending_are_new_changed_and_deferred_documents(
    raw: DocumentStore, restructured: RestructuredStore
) -> None:
    entries = put_raw(raw, document("changed"), document("deferred"), document("done"), document("new"))
    for entry in entries[:3]:
        restructured.put(entry, document(entry.doc_id), outcome(entry.doc_id, entry.doc_id))
    put_raw(raw, document("changed", "Another text."))
    raw.put_failure("never read", "never-read", "x.md", "broken")
    assert pending(raw, restructured) == ["changed", "deferred", "new"]


def test_a_text_that_is_gone_is_pending_again(raw: DocumentStore, restructured: RestructuredStore) -> None:
    (entry,) = put_raw(raw, document("a"))
    restructured.put(entry, document("a"), outcome("a"))
    assert pending(raw, restructured) == []
    restructured.documents.path("a").unlink()
    assert pending(raw, restructured) == ["a"]


def test_a_damaged_text_is_pending_again(raw: DocumentStore, restructured: RestructuredStore) -> None:
    (entry,) = put_raw(raw, document("a"))
    stored = restructured.put(entry, document("a"), outcome("a"))
    restructured.documents.path("a").write_text("{}")
    with pytest.raises(StoreCorrupt):
        restructured.documents.load("a", stored.version or "")
    assert pending(raw, restructured) == ["a"]


def test_documents_that_are_gone_are_forgotten(raw: DocumentStore, restructured: RestructuredStore) -> None:
    for entry in put_raw(raw, document("a"), document("b")):
        restructured.put(entry, document(entry.doc_id), outcome(entry.doc_id))
    assert restructured.keep_only(["b", "c"]) == ["a"]
    assert restructured.outcome("a") is None
    assert [o.doc_id for o in restructured.outcomes()] == ["b"]
    assert not restructured.documents.path("a").exists()
    assert restructured.word_counts() == (6, 8)


def test_an_outcome_without_its_text_leaves_the_document_pending(
    raw: DocumentStore, restructured: RestructuredStore, tmp_path: Path
) -> None:
    (entry,) = put_raw(raw, document("a"))
    restructured.documents.path("a").parent.mkdir(parents=True)
    restructured.documents.path("a").mkdir()  # nothing can be renamed over a folder: as if killed in between
    with pytest.raises(StoreUnavailable):
        restructured.put(entry, document("a"), outcome("a"))
    assert restructured.outcome("a") is not None
    assert pending(raw, restructured) == ["a"]
