"""Documentation of distributions, some made by hand and those that are really installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prime_pipeline.corpus.installed import InstalledCorpus, summaries
from prime_pipeline.corpus.markdown import parse_markdown
from prime_pipeline.corpus.restructured_text import parse_restructured_text
from prime_pipeline.corpus.source import SourceEntry
from prime_pipeline.records import Document

FILLER = "Words of a description that is long enough to be worth a row. " * 5


def install(folder: Path, name: str, summary: str, text: str, content_type: str = "") -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    kind = f"Description-Content-Type: {content_type}\n" if content_type else ""
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nSummary: {summary}\n{kind}\n"
    (info / "METADATA").write_text(head + text)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path with nothing else on it, so what parsing imports has to be there before."""
    parse_markdown("# A\n", "a", "a.md")
    parse_restructured_text("A\n=\n", "a", "a.rst")
    monkeypatch.setattr("sys.path", [str(tmp_path / "one"), str(tmp_path / "two")])
    return tmp_path


def documents() -> dict[str, Document]:
    return {
        item.doc_id: item.parse() for item in InstalledCorpus().entries() if isinstance(item, SourceEntry)
    }


def test_summaries_are_cut_out_of_the_text(site: Path) -> None:
    text = f"# Foo\n\n**a fast\nparser of things.** Not a fast parser of thingsome.\n\n## Use\n\n{FILLER}\n"
    install(site / "one", "Foo_Bar", "A fast parser of things", text, "text/markdown; charset=UTF-8")
    document = documents()["foo-bar"]
    assert "a fast\nparser" not in document.text
    assert "Not a fast parser of thingsome." in document.text
    assert (document.title, document.title_origin) == ("Foo", "heading")
    assert document.source_path == "foo-bar-1.0.dist-info/METADATA"
    assert [(s.heading, s.start_line) for s in document.sections] == [("", None), ("Use", None)]
    assert summaries() == [("foo-bar", "A fast parser of things")]


def test_first_copy_counts_and_short_ones_do_not(site: Path) -> None:
    install(site / "one", "a", "First copy of it", f"First\n=====\n\n{FILLER}")
    install(site / "two", "A", "Second copy of it", f"Second\n======\n\n{FILLER}")
    install(site / "one", "plain", "Shared words here", f"# no\n\n{FILLER}", "text/plain")
    install(site / "one", "other", "shared words HERE", FILLER, "text/markdown")
    install(site / "one", "short", "A short description of it", "little")
    install(site / "one", "two-words", "Two words", FILLER)
    found = documents()
    assert {doc_id: (d.title, d.title_origin, d.media_type) for doc_id, d in found.items()} == {
        "a": ("First", "heading", "text/x-rst"),
        "other": ("other", "dataset", "text/markdown"),
        "plain": ("plain", "dataset", "text/plain"),
        "two-words": ("two-words", "dataset", "text/x-rst"),
    }
    assert found["plain"].sections[0].heading == "plain"
    assert summaries() == [("a", "First copy of it")]


def test_real_distributions() -> None:
    found = documents()
    queries = summaries()
    assert len(queries) > 20
    assert queries == sorted(queries)
    for doc_id, summary in queries:
        text = " ".join(found[doc_id].text.casefold().split())
        assert not re.search(rf"(?<!\w){re.escape(summary.casefold())}(?!\w)", text)
