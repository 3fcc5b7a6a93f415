"""A retriever for LlamaIndex, over what is published now. Needs the extra ``llama-index``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prime_pipeline.errors import ExtraMissing
from prime_pipeline.integrations.searching import RAW_TEXT, PublishedSections, served_text
from prime_pipeline.retrieval.filters import DocumentFilter

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise ExtraMissing("llama-index", "llama-index-core") from error


class PrimeRetriever(BaseRetriever):
    """Sections as LlamaIndex nodes: restructured text where there is some, and in the metadata the way back.

    What a refresh publishes is searched from then on. Safe for several threads.

    Example:
        >>> retriever = PrimeRetriever(".prime", top_k=8)  # doctest: +SKIP
        >>> retriever.retrieve("how are partitions named?")  # doctest: +SKIP

    Args:
        home: PRIME_HOME; by default as the settings say.
        top_k: Sections to return; by default as the settings say.
        documents: Which documents may answer.
        settings: Other settings by name.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        top_k: int | None = None,
        documents: DocumentFilter | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._sections = PublishedSections(home, top_k, documents, settings)

    def close(self) -> None:
        """Close what is open; a further search opens it again."""
        self._sections.close()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(
                    id_=hit.section_id,
                    text=served_text(hit),
                    metadata=metadata,
                    excluded_llm_metadata_keys=[RAW_TEXT, "build"],
                    excluded_embed_metadata_keys=[RAW_TEXT, "build"],
                ),
                score=hit.score,
            )
            for hit, metadata in self._sections.search(query_bundle.query_str)
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
