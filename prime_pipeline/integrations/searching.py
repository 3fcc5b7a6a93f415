"""What the retrievers of all frameworks do alike: search what is published now, and say where a text comes from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prime_pipeline.records import SectionHit
from prime_pipeline.retrieval.filters import DocumentFilter
from prime_pipeline.server.live import LiveRetriever
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace

RAW_TEXT = "raw_text"
"""In the metadata of a restructured section; not for a language model, which would read everything twice."""


class PublishedSections:
    """Searches what is published in a home, also after it changed. Safe for several threads.

    Args:
        home: PRIME_HOME; by default as the settings say.
        top_k: Sections to return; by default as the settings say.
        documents: Which documents may answer.
        settings: Other settings by name.

    Raises:
        SettingsError: See :func:`~prime_pipeline.settings.load_settings`.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        top_k: int | None = None,
        documents: DocumentFilter | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._workspace = Workspace(
            load_settings({**(settings or {}), **({} if home is None else {"home": home})})
        )
        self._live = LiveRetriever(self._workspace)
        self._top_k = top_k
        self._documents = documents

    def search(self, query: str) -> list[tuple[SectionHit, dict[str, Any]]]:
        """Hits, best first, each with metadata of plain values.

        Raises:
            PrimeError: Nothing that can be used is published.
        """
        with self._live.borrowed() as (build, retriever):
            hits = retriever.search(query, self._top_k, documents=self._documents)
            return [(hit, _metadata(hit, build.build_id)) for hit in hits]

    def close(self) -> None:
        """Close what is open; a further search opens it again."""
        self._live.close()
        self._workspace.close()


def served_text(hit: SectionHit) -> str:
    """The restructured text, or the raw one where it stands."""
    return hit.text if hit.restructured is None else hit.restructured


def _metadata(hit: SectionHit, build_id: str) -> dict[str, Any]:
    raw = {} if hit.restructured is None else {RAW_TEXT: hit.text}
    return {
        "section_id": hit.section_id,
        "doc_id": hit.doc_id,
        "title": hit.title,
        "heading_path": " › ".join(hit.heading_path),
        "source": hit.source_path,
        "start_line": hit.start_line,
        "end_line": hit.end_line,
        "build": build_id,
        **raw,
    }
