"""Scanning: what is parsed, what is kept, what is removed, over a corpus in memory and real folders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from prime_pipeline.corpus import scan as scan_module
from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import ScanReport, parse_documents, scan
from prime_pipeline.corpus.source import SourceEntry, SourceFailure, SourceItem
from prime_pipeline.errors import DocumentError, EmptyCorpus, TooManyRemovals
from prime_pipeline.records import Document
from prime_pipeline.storage.documents import CatalogueEntry, DocumentStore
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline_tests.documents import make_document


class MemoryCorpus:
    """Implements ``CorpusSource`` over texts by document id; remembers what was parsed.

    A text that begins with ``!`` cannot be parsed, one with ``?`` makes the reader break. ``failures`` come first,
    ``late_failures`` last.
    """

    location = "memory"

    def __init__(self, **texts: str) -> None:
        self.ignored: Mapping[str, int] = {".png": 2}
        self.texts = texts
        self.failures: list[SourceFailure] = []
        self.late_failures: list[SourceFailure] = []
        self.parsed: list[str] = []

    def entries(self) -> Iterator[SourceItem]:
        yield from self.failures
        for doc_id, text in sorted(self.texts.items()):
            digest = hashlib.sha256(text.encode()).hexdigest()
            yield SourceEntry(doc_id, f"{doc_id}.md", "text/markdown", digest, partial(self._parse, doc_id))
        yield from self.late_failures

    def _parse(self, doc_id: str) -> Document:
        self.parsed.append(doc_id)
        text = self.texts[doc_id]
        if text.startswith("!"):
            raise DocumentError(f"{doc_id}.md", "is broken")
        if text.startswith("?"):
            raise RecursionError("too deep")
        return make_document(doc_id, *([f"Part: {text}"] if text else []))

    def parsed_since(self) -> list[str]:
        parsed, self.parsed = self.parsed, []
        return parsed


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return DocumentStore(tmp_path / "documents")


def ten() -> MemoryCorpus:
    return MemoryCorpus(**{f"d{i}": f"text {i}" for i in range(10)})


def stored_text(store: DocumentStore, doc_id: str) -> str:
    version = store.catalogue()[doc_id].version
    return store.load(doc_id, version or "").sections[-1].body


def counts(report: ScanReport) -> tuple[int, int, int, int, int]:
    failed = len(report.failed)
    return len(report.added), len(report.changed), report.unchanged, len(report.removed), failed


def test_a_first_scan_adds_everything(store: DocumentStore) -> None:
    told: list[tuple[str, int, int | None]] = []
    report = scan(ten(), store, progress=lambda *state: told.append(state))
    assert counts(report) == (10, 0, 0, 0, 0)
    assert report.n_changes == 10
    assert report.ignored == {".png": 2}
    assert told[-2:] == [("scan", 10, None), ("scan", 10, 10)]
    assert list(store.catalogue()) == list(report.added) == [f"d{i}" for i in range(10)]


def test_unchanged_content_costs_no_parsing(store: DocumentStore) -> None:
    corpus = ten()
    scan(corpus, store)
    corpus.parsed_since()
    assert counts(scan(corpus, store)) == (0, 0, 10, 0, 0)
    assert corpus.parsed_since() == []


def test_added_changed_removed_and_failed_are_told_apart(store: DocumentStore) -> None:
    corpus = ten()
    scan(corpus, store)
    del corpus.texts["d0"]
    corpus.texts |= {"d1": "other", "d2": "!", "new": "new"}
    corpus.parsed_since()
    report = scan(corpus, store)
    assert (report.added, report.changed, report.removed) == (("new",), ("d1",), ("d0",))
    assert report.failed == {"d2.md": "is broken"}
    assert report.served_from_before == ("d2",)
    assert counts(report) == (1, 1, 7, 1, 1)
    assert corpus.parsed_since() == ["d1", "d2", "new"]
    assert not store.path("d0").exists()


def test_a_failing_file_keeps_its_last_good_text_and_is_tried_again(store: DocumentStore) -> None:
    corpus = MemoryCorpus(a="good", b="b")
    scan(corpus, store)
    corpus.texts["a"] = "!"
    for _ in range(2):
        report = scan(corpus, store)
        assert corpus.parsed_since()[-1] == "a"
        assert report.failed == {"a.md": "is broken"}
        assert stored_text(store, "a") == "good"
        assert store.catalogue()["a"].failure == "is broken"
    corpus.texts["a"] = "good"
    report = scan(corpus, store)
    assert (report.changed, report.failed, report.unchanged) == ((), {}, 2)
    assert store.catalogue()["a"].failure is None


def test_a_file_that_never_parsed_is_added_when_it_does(store: DocumentStore) -> None:
    corpus = MemoryCorpus(a="!", b="b")
    report = scan(corpus, store)
    assert (report.added, report.served_from_before) == (("b",), ())
    assert store.catalogue()["a"].version is None
    corpus.texts["a"] = "good"
    assert scan(corpus, store).added == ("a",)


def test_a_file_that_never_parsed_goes_without_being_a_removal(store: DocumentStore) -> None:
    corpus = MemoryCorpus(a="!", b="b")
    scan(corpus, store)
    del corpus.texts["a"]
    report = scan(corpus, store)
    assert (report.removed, report.n_changes) == ((), 0)
    assert list(store.catalogue()) == ["b"]


def test_a_reader_that_breaks_fails_its_document_alone(store: DocumentStore) -> None:
    report = scan(MemoryCorpus(a="?", b="b"), store)
    assert report.added == ("b",)
    assert "RecursionError: too deep" in report.failed["a.md"]


def test_a_document_without_text_fails(store: DocumentStore) -> None:
    assert scan(MemoryCorpus(a="", b="b"), store).failed == {"a.md": "holds no text: fill it or remove it"}


def test_more_than_a_fifth_is_not_removed_unasked(store: DocumentStore) -> None:
    corpus = ten()
    scan(corpus, store)
    for i in range(3):
        del corpus.texts[f"d{i}"]
    corpus.texts["new"] = "new"
    with pytest.raises(TooManyRemovals, match=r"3 of 10 documents are gone from memory.*--allow-removals"):
        scan(corpus, store)
    assert len(store.catalogue()) == 11
    assert scan(corpus, store, allow_removals=True).removed == ("d0", "d1", "d2")
    assert len(store.catalogue()) == 8


def test_a_fifth_is_removed(store: DocumentStore) -> None:
    corpus = ten()
    scan(corpus, store)
    del corpus.texts["d3"], corpus.texts["d4"]
    assert scan(corpus, store).removed == ("d3", "d4")


def test_an_empty_corpus_removes_nothing(store: DocumentStore) -> None:
    scan(ten(), store)
    with pytest.raises(TooManyRemovals, match="10 of 10"):
        scan(MemoryCorpus(), store)
    assert len(store.catalogue()) == 10


def test_failing_sources_do_not_count_as_removed(store: DocumentStore) -> None:
    corpus = ten()
    scan(corpus, store)
    corpus.texts = dict.fromkeys(corpus.texts, "!")
    report = scan(corpus, store)
    assert (report.removed, len(report.failed), len(report.served_from_before)) == ((), 10, 10)
    assert all(entry.version for entry in store.catalogue().values())


@pytest.mark.parametrize(
    ("place", "kept"),
    [("a/b/x.md", True), ("a/b", True), ("a", True), ("a/b/x", False), ("a/b/x.md:7", False)],
)
def test_documents_of_a_file_or_folder_that_fails_as_a_whole_stay(
    store: DocumentStore, place: str, kept: bool
) -> None:
    corpus = ten()
    corpus.texts["a/b/x"] = "inside"
    scan(corpus, store)
    del corpus.texts["a/b/x"]
    corpus.failures = [SourceFailure(place, "cannot be read", "other")]
    report = scan(corpus, store)
    assert report.removed == (() if kept else ("a/b/x",))
    assert report.served_from_before == (("a/b/x",) if kept else ())
    assert ("a/b/x" in store.catalogue()) is kept


@pytest.mark.parametrize("first", [True, False])
def test_a_failure_cannot_take_the_id_of_a_document(store: DocumentStore, first: bool) -> None:
    corpus = MemoryCorpus(a="good", b="b")
    duplicate = SourceFailure("x/a.md", "document id 'a' is already taken by a.md: rename one of them", "a")
    unnamed = SourceFailure("b", "unnamed", None)
    corpus.failures, corpus.late_failures = (
        ([duplicate, unnamed], []) if first else ([], [duplicate, unnamed])
    )
    for expected in ((2, 0, 0, 0, 2), (0, 0, 2, 0, 2)):
        report = scan(corpus, store)
        assert counts(report) == expected
        assert list(report.failed) == ["b", "x/a.md"]
        assert report.served_from_before == ()
        assert [entry.failure for entry in store.catalogue().values()] == [None, None]


def test_a_failure_without_an_id_is_kept_by_its_place(store: DocumentStore) -> None:
    corpus = MemoryCorpus(a="good")
    corpus.failures = [SourceFailure("c.jsonl:7", "is no JSON", None)]
    scan(corpus, store)
    assert store.catalogue()["c.jsonl:7"].failure == "is no JSON"
    corpus.failures = []
    assert scan(corpus, store).removed == ()
    assert list(store.catalogue()) == ["a"]


def test_records_of_one_file_fail_each_under_its_own_place(store: DocumentStore) -> None:
    class Records(MemoryCorpus):
        def entries(self) -> Iterator[SourceItem]:
            for line, doc_id in enumerate(("a", "b"), start=1):
                yield SourceEntry(doc_id, "c.jsonl", "x", doc_id, partial(self._parse, doc_id), f":{line}")

    report = scan(Records(a="!", b="!"), store)
    assert report.failed == {"c.jsonl:1": "is broken", "c.jsonl:2": "is broken"}


def test_another_parser_version_parses_everything_again(
    store: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = MemoryCorpus(a="a", b="b")
    scan(corpus, store)
    corpus.parsed_since()
    monkeypatch.setattr(scan_module, "PARSER_VERSION", "next")
    assert counts(scan(corpus, store)) == (0, 0, 2, 0, 0)
    assert corpus.parsed_since() == ["a", "b"]
    scan(corpus, store)
    assert corpus.parsed_since() == []


def test_a_lost_document_file_is_made_again(store: DocumentStore) -> None:
    corpus = MemoryCorpus(a="a", b="b")
    scan(corpus, store)
    corpus.parsed_since()
    store.path("a").unlink()
    assert counts(scan(corpus, store)) == (0, 0, 2, 0, 0)
    assert corpus.parsed_since() == ["a"]
    assert stored_text(store, "a") == "a"


def test_chosen_documents_are_parsed_whether_or_not_they_changed(store: DocumentStore) -> None:
    corpus = MemoryCorpus(a="a", b="b", c="c")
    scan(corpus, store)
    corpus.parsed_since()
    corpus.texts["b"] = "new b"
    stored: list[CatalogueEntry] = []
    assert parse_documents(corpus, store, ["b", "a"], stored.append) == {}
    assert corpus.parsed_since() == ["a", "b"]
    assert stored == [store.catalogue()["a"], store.catalogue()["b"]]
    assert stored_text(store, "b") == "new b"


def test_chosen_documents_fail_one_by_one(store: DocumentStore) -> None:
    corpus = MemoryCorpus(a="a", b="b", c="c", gone="gone")
    scan(corpus, store)
    corpus.texts |= {"a": "!", "b": "?"}
    del corpus.texts["gone"], corpus.texts["c"]
    corpus.late_failures = [SourceFailure("c.md", "cannot be read", "c")]
    stored: list[CatalogueEntry] = []
    reasons = parse_documents(corpus, store, ["a", "b", "c", "gone"], stored.append)
    assert list(reasons) == ["a", "b", "c", "gone"]
    assert (reasons["a"], reasons["c"]) == ("is broken", "cannot be read")
    assert "RecursionError" in reasons["b"]
    assert reasons["gone"].startswith("not in the corpus any more")
    assert stored == []
    catalogue = store.catalogue()
    assert [bool(catalogue[doc_id].failure) for doc_id in ("a", "b", "c", "gone")] == [
        True,
        True,
        True,
        False,
    ]
    assert stored_text(store, "a") == "a"


@pytest.mark.parametrize("first", [True, False])
def test_a_chosen_document_does_not_fail_by_another_source_of_its_id(
    store: DocumentStore, first: bool
) -> None:
    corpus = MemoryCorpus(a="a")
    failures = [SourceFailure("x/a.md", "document id 'a' is already taken", "a")]
    corpus.failures, corpus.late_failures = (failures, []) if first else ([], failures)
    assert parse_documents(corpus, store, ["a"], lambda _: None) == {}
    assert store.catalogue()["a"].failure is None


def folder_of(tmp_path: Path, n: int = 6) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for i in range(n):
        (folder / f"{i}.md").write_text(f"# Title {i}\n\n## Part\n\nText {i}.\n")
    return folder


def test_a_renamed_file_is_one_removed_and_one_added(store: DocumentStore, tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    scan(open_corpus(str(folder)), store)
    (folder / "0.md").rename(folder / "zero.md")
    report = scan(open_corpus(str(folder)), store)
    assert (report.added, report.removed, report.unchanged) == (("zero.md",), ("0.md",), 5)


def test_a_real_folder_with_a_broken_file(store: DocumentStore, tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "picture.png").write_bytes(b"\x89PNG")
    scan(open_corpus(str(folder)), store)
    (folder / "1.md").write_bytes(b"# T\n\xff\xfe\xfa bad")
    (folder / "2.md").write_text("# Title 2\n\n## Part\n\nAnother text.\n")
    report = scan(open_corpus(str(folder)), store)
    assert counts(report) == (0, 1, 4, 0, 1)
    assert (list(report.failed), report.served_from_before) == (["1.md"], ("1.md",))
    assert report.ignored == {".png": 1}
    assert stored_text(store, "2.md") == "Another text."


def test_a_broken_data_file_does_not_remove_its_records(store: DocumentStore, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 20)
    paper = {"title": "P", "abstract": "A.", "full_text": [], "qas": [], "figures_and_tables": []}
    (folder / "papers.json").write_text(f'{{"p1": {paper}, "p2": {paper}}}'.replace("'", '"'))
    scan(open_corpus(str(folder)), store)
    assert "papers.json#p1" in store.catalogue()
    (folder / "papers.json").write_text('{"p1": ')
    report = scan(open_corpus(str(folder)), store)
    assert (report.removed, list(report.failed)) == ((), ["papers.json"])
    assert report.served_from_before == ("papers.json#p1", "papers.json#p2")


def test_warnings_are_told_once(store: DocumentStore, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 1)
    (folder / "setext.md").write_text("# T\n\none\ntwo\nthree\n---\n\nText.\n")
    report = scan(open_corpus(str(folder)), store)
    assert [source for source, _ in report.warnings] == ["setext.md"]
    assert scan(open_corpus(str(folder)), store).warnings == ()


def test_a_document_that_cannot_be_stored_fails_alone(store: DocumentStore, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 2)
    (folder / "0.md").write_text('---\nauthor: "\\ud800"\n---\n\n# T\n\ntext\n')
    report = scan(open_corpus(str(folder)), store)
    assert report.added == ("1.md",)
    assert "half of a character" in report.failed["0.md"]
    stored: list[CatalogueEntry] = []
    reasons = parse_documents(open_corpus(str(folder)), store, ["0.md", "1.md"], stored.append)
    assert list(reasons) == ["0.md"]
    assert [entry.doc_id for entry in stored] == ["1.md"]


def test_ids_that_are_not_valid_unicode_fail_printably_and_stay_known(
    store: DocumentStore, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, 1)
    paper = {"title": "P", "abstract": "A.", "full_text": [], "figures_and_tables": []}
    (folder / "p.json").write_text(json.dumps({"\ud800": paper, "good": paper}))
    (folder / "r.jsonl").write_text(json.dumps({"_id": "\udfff", "text": "x"}))
    for _ in range(2):
        report = scan(open_corpus(str(folder)), store)
        assert list(report.failed) == ["p.json#\\ud800", "r.jsonl:1"]
        "".join([*report.failed, *report.failed.values(), *store.catalogue()]).encode()
        assert store.catalogue().keys() == {"0.md", "p.json#good", "p.json#\\ud800", "r.jsonl:1"}


def test_a_corpus_without_a_readable_document_names_the_first_failure(
    store: DocumentStore, tmp_path: Path
) -> None:
    scan(MemoryCorpus(a="!", b="!"), store)
    with pytest.raises(EmptyCorpus, match=r"2 files failed, first a\.md: is broken"):
        seal_corpus(store, tmp_path / "seal.json", "memory")


def test_what_is_forgotten_is_removed_and_not_read_again(store: DocumentStore) -> None:
    corpus = ten()
    scan(corpus, store)
    some = {"d1", "d2", "d3"}  # more than a fifth: they are gone because somebody asked for it
    report = scan(corpus, store, forgotten=some | {"never there"})
    assert counts(report) == (0, 0, 7, 3, 0)
    assert (report.n_forgotten, set(report.removed)) == (3, some)
    corpus.failures.append(SourceFailure("d1.md", "cannot be read", "d1"))
    del corpus.texts["d1"]
    report = scan(corpus, store, forgotten=some)
    assert counts(report) == (0, 0, 7, 0, 0)
    assert not some & store.catalogue().keys()
    assert counts(scan(ten(), store)) == (3, 0, 7, 0, 0)


def test_a_forgotten_document_is_not_parsed_because_it_was_chosen(store: DocumentStore) -> None:
    corpus = ten()
    scan(corpus, store, forgotten={"d1"})
    corpus.parsed_since()
    reasons = parse_documents(corpus, store, ["d1", "d2"], lambda entry: None, forgotten={"d1"})
    assert list(reasons) == ["d1"]
    assert "prime forget --undo" in reasons["d1"]
    assert corpus.parsed_since() == ["d2"]
