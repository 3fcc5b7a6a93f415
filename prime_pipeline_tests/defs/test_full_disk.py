"""Whole refreshes on a disk that is full, and on one that nobody can write to."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.health import examine_all
from prime_pipeline.defs.runs import run_refresh
from prime_pipeline.errors import HomeNotWritable, PrimeError
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.defs.conftest import PAGES
from prime_pipeline_tests.fakes import HashingEmbedder
from prime_pipeline_tests.mounts import read_only, small_disk

defs = definitions()

DISK_BYTES = 64 << 20
LEFT_BYTES = (0, 150_000, 900_000)


def workspace_at(home: Path, corpus: Path) -> Workspace:
    return Workspace(load_settings({"home": home, "corpus": str(corpus)}), embedder=HashingEmbedder())


def refresh(home: Path, corpus: Path) -> None:
    with closing(workspace_at(home, corpus)) as workspace:
        run_refresh(defs, workspace)


def served(home: Path, corpus: Path) -> list[str]:
    with closing(workspace_at(home, corpus)) as workspace, workspace.retriever() as retriever:
        assert retriever.search("exponential backoff")[0].doc_id == "more.md"
        return retriever.lexical.doc_ids


def fill(disk: Path, left_bytes: int) -> Path:
    """Take all room but some."""
    filler = disk / "filler"
    free = shutil.disk_usage(disk).free
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(4096, free - left_bytes))
    return filler


def test_on_a_full_disk_the_old_index_is_served_until_there_is_room(corpus: Path, tmp_path: Path) -> None:
    before, after = sorted(PAGES), sorted([*PAGES, "new.md"])
    with small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        home = disk / "home"
        refresh(home, corpus)
        (corpus / "new.md").write_text("# New\n\n## Words\n\n" + "Many more words. " * 4_000)
        failed = 0
        for left_bytes in LEFT_BYTES:
            filler = fill(disk, left_bytes)
            try:
                refresh(home, corpus)
            except PrimeError:
                failed += 1
            assert served(home, corpus) in (before, after)
            filler.unlink()
        assert failed >= 1
        refresh(home, corpus)
        assert served(home, corpus) == after
        with closing(workspace_at(home, corpus)) as workspace:
            problems = [
                c for c in examine_all(workspace) if c.state == "problem" and not c.name.startswith("room")
            ]
        assert problems == []


def test_a_read_only_home_answers_and_refuses_a_refresh(corpus: Path, tmp_path: Path) -> None:
    refresh(tmp_path / "home", corpus)
    with read_only(tmp_path / "home", tmp_path / "mounted") as home:
        assert served(home, corpus) == sorted(PAGES)
        with (
            closing(workspace_at(home, corpus)) as workspace,
            pytest.raises(HomeNotWritable, match="Read-only"),
        ):
            run_refresh(defs, workspace)
        found = {
            check.name: check for check in examine_all(workspace_at(home, corpus)) if check.area == "home"
        }
        assert found["folder"].state == "problem"
        assert "cannot be written" in found["folder"].found
    refresh(tmp_path / "home", corpus)
