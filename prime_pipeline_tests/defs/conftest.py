"""A small corpus and a workspace over it, with an embedder that needs no weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.fakes import HashingEmbedder

PAGES = {
    "guide/install.md": "# Install\n\nHow to get it running.\n\n## With pip\n\nRun pip.\n\n## From source\n\nClone it.\n",
    "guide/partitions.md": "# Partitions\n\nOne per document.\n\n## Keys\n\nKeys are slugs.\n\n## Limits\n\nMany.\n",
    "notes.txt": "Loose notes about backfills and lineage.\n",
    "reference.rst": "Reference\n=========\n\nOverview\n--------\n\nAll of it.\n\nDetails\n-------\n\nThe rest.\n",
    "page.html": "<title>Page</title><h1>Page</h1><p>Intro</p><h2>First</h2><p>One</p><h2>Second</h2><p>Two</p>",
    "more.md": "# More\n\n## Retries\n\nExponential backoff.\n\n## Timeouts\n\nAfter a minute.\n",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder of six readable documents."""
    folder = tmp_path / "corpus"
    for name, text in PAGES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


OpenWorkspace = Callable[..., Workspace]


@pytest.fixture
def open_workspace(tmp_path: Path, corpus: Path) -> Iterator[OpenWorkspace]:
    """Opens workspaces on one home, each as a new process would."""
    opened: list[Workspace] = []

    def open_one(**options: object) -> Workspace:
        settings = load_settings({"home": tmp_path / "home", "corpus": str(corpus), **options})
        opened.append(Workspace(settings, embedder=HashingEmbedder()))
        return opened[-1]

    yield open_one
    for workspace in opened:
        workspace.close()
