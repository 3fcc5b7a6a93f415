"""The document store: what it keeps, what it refuses, and how it heals."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from prime_pipeline.errors import (
    DocumentChanged,
    DocumentError,
    SchemaMismatch,
    StoreCorrupt,
)
from prime_pipeline.storage.documents import DocumentStore, document_version
from prime_pipeline_tests.documents import make_document

STRANGE_IDS = [
    "../../etc/passwd",
    "/absolute",
    "a/b/c",
    "..",
    ".",
    "",
    "\N{GRINNING FACE}",
    "x" * 5_000,
    "a\nb",
    "CON",
    "a\0b",
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DocumentStore]:
    opened = DocumentStore(tmp_path / "documents")
    yield opened
    opened.close()


def test_put_load_and_catalogue(store: DocumentStore) -> None:
    document = make_document("a", "One: first", "Two: second", title="Alpha")
    entry = store.put(document, "key", "source")
    assert entry == store.catalogue_entry("a") == store.catalogue()["a"]
    assert (entry.version, entry.title, entry.n_sections) == (document_version(document), "Alpha", 2)
    assert (entry.partition_key, entry.source_path, entry.source_fingerprint) == ("key", "a.md", "source")
    assert store.load("a", document_version(document)) == document


def test_the_catalogue_is_in_order_of_id(store: DocumentStore) -> None:
    ids = ["b", "a", "é", "Z", "\uffff", "\N{GRINNING FACE}"]
    for doc_id in ids:
        store.put(make_document(doc_id), doc_id, "s")
    assert list(store.catalogue()) == sorted(ids)
    assert store.catalogue_entry("c") is None


def test_the_version_follows_the_content(store: DocumentStore) -> None:
    first = store.put(make_document("a", "one"), "a", "1")
    again = store.put(make_document("a", "one"), "a", "2")
    other = store.put(make_document("a", "two"), "a", "3")
    assert first.version == again.version != other.version
    with pytest.raises(DocumentChanged, match="'a' changed"):
        store.load("a", str(first.version))
    assert [d.sections[0].body for d in store.load_all([("a", str(other.version))])] == ["two"]


def test_a_failure_keeps_the_last_good_version(store: DocumentStore) -> None:
    good = store.put(make_document("a", "one", title="Alpha"), "a", "source")
    failed = store.put_failure("a", "a", "a.md", "byte 3 is not UTF-8")
    assert failed == replace(good, failure="byte 3 is not UTF-8")
    assert store.load("a", str(failed.version)).title == "Alpha"
    never = store.put_failure("b", "b", "b.md", "is empty")
    assert (never.version, never.source_fingerprint, never.n_sections) == (None, None, 0)
    assert store.put(make_document("b", "now"), "b", "s").failure is None


def test_removed_documents_are_gone_and_others_stay(store: DocumentStore) -> None:
    versions = {i: str(store.put(make_document(i, "x"), i, "s").version) for i in "abc"}
    store.remove(["a", "c", "never there"])
    assert list(store.catalogue()) == ["b"]
    assert store.stored_files() == {store.path("b").name}
    assert store.load("b", versions["b"])
    with pytest.raises(DocumentChanged):
        store.load("a", versions["a"])


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other JSON", "changed text"])
def test_a_damaged_file_is_corrupt_and_parsed_again(store: DocumentStore, damage: str) -> None:
    entry = store.put(make_document("a", "some text"), "a", "source")
    path = store.path("a")
    data = path.read_bytes()
    flipped = data[:-40] + bytes([data[-40] ^ 0xFF]) + data[-39:]
    path.write_bytes(
        {
            "cut": data[:50],
            "flipped": flipped,
            "empty": b"",
            "other JSON": b"[1, 2]",
            "changed text": data.replace(b"some text", b"same text"),
        }[damage]
    )
    with pytest.raises(StoreCorrupt, match="delete it and run `prime refresh`"):
        store.load("a", str(entry.version))
    assert store.catalogue()["a"] == replace(entry, source_fingerprint=None)


def test_a_file_of_another_schema_is_named_and_parsed_again(store: DocumentStore) -> None:
    entry = store.put(make_document("a"), "a", "source")
    path = store.path("a")
    path.write_bytes(path.read_bytes().replace(b'"schema_version":1', b'"schema_version":9'))
    with pytest.raises(SchemaMismatch, match="schema version 9"):
        store.load("a", str(entry.version))
    assert store.catalogue()["a"].source_fingerprint is None


def test_a_lost_file_is_parsed_again(store: DocumentStore) -> None:
    entry = store.put(make_document("a"), "a", "source")
    store.path("a").unlink()
    with pytest.raises(DocumentChanged):
        store.load("a", str(entry.version))
    assert store.catalogue()["a"].source_fingerprint is None


@pytest.mark.parametrize("doc_id", STRANGE_IDS, ids=range(len(STRANGE_IDS)))
def test_no_id_leaves_the_folder(store: DocumentStore, tmp_path: Path, doc_id: str) -> None:
    entry = store.put(make_document(doc_id, "x"), "key", "s")
    assert store.load(doc_id, str(entry.version)).doc_id == doc_id
    assert store.path(doc_id).resolve().is_relative_to((tmp_path / "documents").resolve())
    assert [path.name for path in tmp_path.iterdir()] == ["documents"]
    store.remove([doc_id])
    assert store.stored_files() == frozenset()


def test_half_surrogate_pairs_are_refused_in_documents_and_written_out_in_failures(
    store: DocumentStore,
) -> None:
    for document in (make_document("a\udc80", "x"), make_document("a", "half \ud83d")):
        with pytest.raises(DocumentError, match="half of a character") as refused:
            store.put(document, "key", "s")
        refused.value.reason.encode()
        store.put_failure(document.doc_id, document.doc_id, document.source_path, "bad \udcff")
    assert {i: entry.failure for i, entry in store.catalogue().items()} == {
        "a": "bad \\udcff",
        "a\\udc80": "bad \\udcff",
    }
    assert store.catalogue_entry("a\udc80") == store.catalogue()["a\\udc80"]
    store.remove(["a\udc80"])
    assert list(store.catalogue()) == ["a"]
    assert store.stored_files() == frozenset()


def test_garbage_is_what_nobody_catalogued_an_hour_ago(store: DocumentStore, tmp_path: Path) -> None:
    entry = store.put(make_document("a"), "a", "s")
    folder = store.path("a").parent
    old, young = (folder / f"{folder.name}{digit * 38}.json" for digit in "01")
    temporary = folder / f".{old.name[:40]}.{'ab' * 16}.tmp"
    for path in (old, young, temporary):
        path.touch()
    for path in (old, temporary, store.path("a")):
        os.utime(path, (0, time.time() - 4_000))
    assert store.collect_garbage() == 2
    assert set(folder.iterdir()) == {young, store.path("a")}
    assert store.load("a", str(entry.version))


def test_files_of_the_user_are_no_garbage(store: DocumentStore, tmp_path: Path) -> None:
    name = "0" * 40
    kept = [
        tmp_path / "documents" / path
        for path in ("mine/a.md", "mine/a.json", "ab/a.json", f"ab/{name}.json", f"00/{name}.md", "00/.a.tmp")
    ]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (0, 0))
    assert store.collect_garbage() == 0
    assert all(path.is_file() for path in kept)
    assert store.stored_files() == frozenset()


def test_all_damaged_documents_are_found_at_once(store: DocumentStore) -> None:
    entries = [store.put(make_document(i, f"text {i}"), i, "source") for i in "abcd"]
    versions = [(entry.doc_id, str(entry.version)) for entry in entries]
    store.path("a").write_bytes(b"")
    store.path("d").unlink()
    store.path("c").write_bytes(store.path("b").read_bytes())  # a sound file in the wrong place
    with pytest.raises(StoreCorrupt):
        list(store.load_all(versions))
    sources = {i: entry.source_fingerprint for i, entry in store.catalogue().items()}
    assert sources == {"a": None, "b": "source", "c": None, "d": None}
    assert store.forget_damaged(versions) == ["a", "c", "d"]


def _put_many(folder: Path, prefix: str) -> None:
    store = DocumentStore(folder)
    for i in range(15):
        store.put(make_document(f"{prefix}{i}", f"text {i}"), f"{prefix}{i}", "s")
    store.close()


def test_two_processes_may_write_different_documents(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        for job in [pool.submit(_put_many, tmp_path, prefix) for prefix in "ab"]:
            job.result()
    store = DocumentStore(tmp_path)
    versions = [(i, str(entry.version)) for i, entry in store.catalogue().items()]
    assert len(list(store.load_all(versions))) == 30
    store.close()


def test_a_catalogue_that_is_no_database_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "catalogue.sqlite").write_bytes(b"x" * 5_000)
    with pytest.raises(StoreCorrupt, match=r"catalogue\.sqlite is damaged"):
        DocumentStore(tmp_path)
