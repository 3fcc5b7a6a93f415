"""Folders of files, and what of them fails alone."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from prime_pipeline.corpus import folder as folder_module
from prime_pipeline.corpus.beir import BeirCorpus
from prime_pipeline.corpus.folder import FolderCorpus
from prime_pipeline.corpus.installed import InstalledCorpus
from prime_pipeline.corpus.location import unreadable
from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.qasper import QasperCorpus
from prime_pipeline.corpus.source import SourceEntry, SourceFailure, unique
from prime_pipeline.corpus.watch import corpus_state
from prime_pipeline.errors import CorpusError, CorpusNotFound

PAPER = {"title": "P", "abstract": "a", "full_text": [], "figures_and_tables": []}


def written(root: Path, files: Mapping[str, str | bytes]) -> FolderCorpus:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return FolderCorpus(root, str(root))


def entries(corpus: FolderCorpus) -> dict[str, SourceEntry]:
    return {item.doc_id: item for item in corpus.entries() if isinstance(item, SourceEntry)}


def failures(corpus: FolderCorpus) -> dict[str, str]:
    return {item.source_path: item.reason for item in corpus.entries() if isinstance(item, SourceFailure)}


def test_every_kind_is_read_in_order_of_paths(tmp_path: Path) -> None:
    corpus = written(
        tmp_path,
        {
            "z.md": "# Z\n",
            "a/b.MARKDOWN": "# B\n",
            "a-b.txt": "words",
            "h.html": "<p>x",
            "r.rst": "R\n=\n\ntext\n",
            "data/c.jsonl": '{"_id": "1", "text": "one"}\n\nbroken\n',
            "papers.json": json.dumps({"1909.1": PAPER}),
            "package.json": '{"name": "x"}',
            "log.jsonl": '{"level": "info"}\n',
            "photo.PNG": b"\x89PNG",
            "LICENSE": "text",
            ".git/x.md": "# hidden\n",
            ".hidden.md": "# hidden\n",
        },
    )
    found = entries(corpus)
    assert list(found) == [
        "a-b.txt",
        "a/b.MARKDOWN",
        "data/c.jsonl#1",
        "h.html",
        "papers.json#1909.1",
        "r.rst",
        "z.md",
    ]
    for doc_id, entry in found.items():
        document = entry.parse()
        assert (document.doc_id, document.source_path) == (doc_id, entry.source_path)
        assert document.media_type == entry.media_type
        assert document.text
    assert list(failures(corpus)) == ["data/c.jsonl:3"]
    assert corpus.ignored == {".json": 1, ".jsonl": 1, ".png": 1, "": 1}


def test_failures_stand_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MAX_FILE_BYTES", 100)
    corpus = written(
        tmp_path,
        {
            "empty.md": "",
            "blank.md": " \n\t\n",
            "large.md": "x" * 101,
            "gbk.md": "中文".encode("gbk"),
            "broken.json": "{",
            "good.md": "# G\n",
        },
    )
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(tmp_path / "pipe.md")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")).write_text("# F\n")
    found = failures(corpus)
    assert list(entries(corpus)) == ["good.md"]
    expected = {
        "empty.md": "is empty",
        "blank.md": "nothing but blanks",
        "large.md": "more than the limit",
        "gbk.md": "byte 0 is not UTF-8",
        "broken.json": "is no JSON",
        "gone.md": "cannot be read",
        "pipe.md": "no regular file",
        "\\udcff.md": "not valid UTF-8",
    }
    assert found.keys() == expected.keys()
    assert all(words in found[name] for name, words in expected.items())


def test_linked_folders_are_not_followed(tmp_path: Path) -> None:
    corpus = written(tmp_path, {"a/x.md": "# X\n"})
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    assert list(entries(corpus)) == ["a/x.md"]


def test_ids_and_fingerprints_do_not_depend_on_other_files(tmp_path: Path) -> None:
    corpus = written(tmp_path, {"b.md": "# B\n", "c, [d]/é 🎉.md": "# C\n"})
    before = {doc_id: entry.fingerprint for doc_id, entry in entries(corpus).items()}
    written(tmp_path, {"a.md": "\ufeff# B\n"})
    after = {doc_id: entry.fingerprint for doc_id, entry in entries(corpus).items()}
    assert after == before | {"a.md": before["b.md"]}


def test_parsing_uses_what_was_read(tmp_path: Path) -> None:
    corpus = written(tmp_path, {"a.md": "# Old\n"})
    entry = entries(corpus)["a.md"]
    (tmp_path / "a.md").write_text("# New\n")
    assert entry.parse().title == "Old"


def test_record_and_file_of_one_id(tmp_path: Path) -> None:
    corpus = written(tmp_path, {"a.jsonl": '{"_id": "b.md", "text": "x"}\n', "a.jsonl#b.md": "# B\n"})
    assert "already taken by a.jsonl:1" in failures(corpus)["a.jsonl#b.md"]


def test_queries_beside_a_corpus_are_no_documents(tmp_path: Path) -> None:
    record = '{"_id": "1", "text": "x"}\n'
    corpus = written(tmp_path, {"set/corpus.jsonl": record, "set/queries.jsonl": record})
    assert list(entries(corpus)) == ["set/corpus.jsonl#1"]


def test_location_decides_the_kind(tmp_path: Path) -> None:
    written(tmp_path, {"beir/corpus.jsonl": "", "md/x.md": "x", "p.json": "{}"})
    kinds = {"beir": BeirCorpus, "md": FolderCorpus, "p.json": QasperCorpus, "beir/corpus.jsonl": BeirCorpus}
    for name, kind in kinds.items():
        corpus = open_corpus(str(tmp_path / name))
        assert isinstance(corpus, kind)
        assert corpus.location == str(tmp_path / name)
    assert isinstance(open_corpus("installed:"), InstalledCorpus)
    with pytest.raises(CorpusNotFound, match="nowhere does not exist"):
        open_corpus(str(tmp_path / "nowhere"))
    with pytest.raises(CorpusError, match="name the folder"):
        open_corpus(str(tmp_path / "md" / "x.md"))


def test_links_to_files_are_followed_out_of_the_folder(tmp_path: Path) -> None:
    corpus = written(tmp_path / "docs", {"a.md": "# A\n"})
    (tmp_path / "outside.md").write_text("# Outside\n")
    (tmp_path / "docs" / "link.md").symlink_to(tmp_path / "outside.md")
    assert entries(corpus)["link.md"].parse().title == "Outside"


def test_links_that_lead_nowhere_say_so(tmp_path: Path) -> None:
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere.md")
    (tmp_path / "loop.md").symlink_to(tmp_path / "loop.md")
    found = failures(FolderCorpus(tmp_path, "docs"))
    assert "link to nothing" in found["gone.md"]
    assert "loop of links" in found["loop.md"]


def test_an_id_that_is_not_valid_utf8_is_a_failure_wherever_it_comes_from() -> None:
    entry = SourceEntry("\ud800", "a.x", "x", "f", lambda: pytest.fail("is not parsed"), "#\ud800")
    (failure,) = unique(iter([entry]))
    assert isinstance(failure, SourceFailure)
    assert (failure.source_path, failure.doc_id) == ("a.x#\\ud800", None)
    assert "not valid UTF-8" in failure.reason


def test_failures_can_be_printed() -> None:
    failure = SourceFailure("\udcff.md", "bad \ud800", "\udcff.md")
    assert failure == SourceFailure("\\udcff.md", "bad \\ud800", None)


@pytest.mark.parametrize("name", ["ff.jsonl", "ff.json", "ff"])
def test_a_pipe_is_no_corpus(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(CorpusError, match=f"{name} is no folder and no regular file"):
        open_corpus(str(tmp_path / name))


@pytest.mark.parametrize("use", [open_corpus, corpus_state])
def test_locations_that_cannot_be_reached_name_the_cause(
    tmp_path: Path, use: Callable[[str], object]
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    causes = {
        "n" * 300: "nnn cannot be read, its name is too long",
        "loop": "loop cannot be read, it is a link in a loop",
        "link": "link cannot be read, it has vanished, or is a link to nothing",
        "file/below": "below does not exist",
        "nul\0": "is no path",
    }
    for name, cause in causes.items():
        with pytest.raises(CorpusError, match=cause):
            use(str(tmp_path / name))
    with pytest.raises(CorpusError, match="is no path"):
        use("~no-such-user/docs")


def test_reasons_are_worded_by_the_error() -> None:
    for number in (errno.EACCES, errno.EPERM):
        assert "check its permissions" in unreadable(OSError(number, os.strerror(number)))
    assert "Input/output error" in unreadable(OSError(errno.EIO, os.strerror(errno.EIO)))
