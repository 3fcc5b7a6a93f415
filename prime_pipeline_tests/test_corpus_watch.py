"""The state of a corpus changes with its files, and with nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prime_pipeline.corpus.source import INSTALLED
from prime_pipeline.corpus.watch import corpus_state
from prime_pipeline.errors import CorpusNotFound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("# A")
    (folder / "deep" / "b.md").write_text("# B")
    return folder


def test_a_state_stays_while_nothing_changes(folder: Path) -> None:
    assert corpus_state(str(folder)) == corpus_state(str(folder))


def test_every_kind_of_change_is_seen(folder: Path) -> None:
    states = [corpus_state(str(folder))]
    (folder / "deep" / "c.md").write_text("# C")
    states.append(corpus_state(str(folder)))
    (folder / "a.md").write_text("# A longer")
    states.append(corpus_state(str(folder)))
    os.utime(folder / "a.md", ns=(1, 1))
    states.append(corpus_state(str(folder)))
    (folder / "a.md").rename(folder / "z.md")
    states.append(corpus_state(str(folder)))
    (folder / "z.md").unlink()
    states.append(corpus_state(str(folder)))
    assert len(set(states)) == 6


def test_what_is_hidden_does_not_count(folder: Path) -> None:
    before = corpus_state(str(folder))
    (folder / ".git").mkdir()
    (folder / ".git" / "x.md").write_text("x")
    (folder / ".hidden.md").write_text("x")
    assert corpus_state(str(folder)) == before


def test_a_dangling_link_does_not_end_the_watch(folder: Path) -> None:
    (folder / "link.md").symlink_to(folder / "nowhere.md")
    before = corpus_state(str(folder))
    (folder / "nowhere.md").write_text("x")
    assert corpus_state(str(folder)) != before


def test_a_corpus_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text("{}")
    before = corpus_state(str(path))
    path.write_text("{}\n{}")
    assert corpus_state(str(path)) != before


def test_the_installed_distributions_have_a_state() -> None:
    assert corpus_state(INSTALLED) == corpus_state(INSTALLED)


def test_nothing_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusNotFound, match="does not exist"):
        corpus_state(str(tmp_path / "gone"))
