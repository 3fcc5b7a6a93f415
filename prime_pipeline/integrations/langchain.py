"""A retriever for LangChain, over what is published now. Needs the extra ``langchain``."""

from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr

from prime_pipeline.errors import ExtraMissing
from prime_pipeline.integrations.searching import PublishedSections, served_text
from prime_pipeline.retrieval.filters import DocumentFilter

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise ExtraMissing("langchain", "langchain-core") from error


class PrimeRetriever(BaseRetriever):
    """Sections as LangChain documents: restructured text where there is some, and in the metadata the way back.

    What a refresh publishes is searched from then on. Safe for several threads.

    Example:
        >>> retriever = PrimeRetriever(home=".prime", top_k=8)  # doctest: +SKIP
        >>> retriever.invoke("how are partitions named?")  # doctest: +SKIP

    Attributes:
        home: PRIME_HOME; by default as the settings say.
        top_k: Sections to return; by default as the settings say.
        documents: Which documents may answer.
        settings: Other settings by name.
    """

    home: Path | None = None
    top_k: int | None = None
    documents: DocumentFilter | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    _sections: PublishedSections = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Read the settings; nothing is opened before the first search."""
        super().model_post_init(context)
        self._sections = PublishedSections(self.home, self.top_k, self.documents, self.settings)

    def close(self) -> None:
        """Close what is open; a further search opens it again."""
        self._sections.close()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        return [
            Document(
                id=hit.section_id, page_content=served_text(hit), metadata={**metadata, "score": hit.score}
            )
            for hit, metadata in self._sections.search(query)
        ]
