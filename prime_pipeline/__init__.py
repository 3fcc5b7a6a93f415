"""PRIME: a corpus of structured documents, prepared for retrieval by LLM agents.

The names below are loaded when they are first used, so that importing the package stays cheap.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prime_pipeline.retrieval.retriever import Retriever
    from prime_pipeline.workspace import open_retriever

__all__ = ["Retriever", "open_retriever"]


def __getattr__(name: str) -> Any:
    if name == "Retriever":
        from prime_pipeline.retrieval.retriever import Retriever

        return Retriever
    if name == "open_retriever":
        from prime_pipeline.workspace import open_retriever

        return open_retriever
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
