"""A corpus of a few files and the workspace that publishes it, for tests of what is served while it changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.fakes import HashingEmbedder

GUIDE: Final = {
    "guide/bread.md": "---\ntags: [kitchen, flour]\ndate: 2024-05-01\n---\n# Bread\n\n## Dough\n\nKnead the dough.\n\n"
    "## Oven\n\nHeat the oven.\n",
    "guide/car.md": "---\ntags: [garage]\ndate: 2025-01-31\n---\n# Car\n\n## Engine\n\nAn engine burns fuel.\n",
    "sky.md": "# Sky\n\n## Stars\n\nA star shines at night.\n",
}


class Shelf:
    """Files below a folder, and a home beside them that publishes what they hold, without Dagster.

    Args:
        folder: Of both; ``docs`` and ``home`` are made in it.
        uses_fakes: Embed by hashing words; else by the embedder of the settings.
        options: Settings.
    """

    def __init__(self, folder: Path, *, uses_fakes: bool = True, **options: Any) -> None:
        self.docs = folder / "docs"
        self.home = folder / "home"
        settings = load_settings({"home": self.home, "corpus": str(self.docs), **options})
        self.workspace = Workspace(settings, embedder=HashingEmbedder() if uses_fakes else None)

    def publish(self, files: Mapping[str, str] = GUIDE, keep: int = 3) -> str:
        """Write the files, removing others, and publish them; returns the id of the build."""
        for path in [
            path for path in self.docs.rglob("*.md") if path.relative_to(self.docs).as_posix() not in files
        ]:
            path.unlink()
        for name, text in files.items():
            (self.docs / name).parent.mkdir(parents=True, exist_ok=True)
            (self.docs / name).write_text(text, encoding="utf-8")
        location = self.workspace.settings.corpus_location
        scan(open_corpus(location), self.workspace.store, allow_removals=True)
        seal_corpus(self.workspace.store, self.workspace.home.seal("raw"), location)
        steps = self.workspace.steps("offline")
        steps.publish(keep=keep)
        return steps.plan.build_id


def generation(number: int, n_files: int = 3) -> dict[str, str]:
    """Files that all name the generation they belong to, in text that is the same otherwise."""
    return {
        f"file{at}.md": f"# File {at}\n\n## Part\n\nThis text of generation {number} tells of bread.\n"
        for at in range(n_files)
    }
