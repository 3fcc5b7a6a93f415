"""What the settings open: the home folder's stores, the models, the builds, each once and when first used.

The doors (command line, Dagster resources, servers) hold one of these and hand its parts to the stages.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from prime_pipeline.corpus.scan import ScanReport
from prime_pipeline.errors import IndexCorrupt, StoreUnavailable
from prime_pipeline.indexes.builds import BuildPlan, Builds
from prime_pipeline.indexes.vectors import ExactVectors
from prime_pipeline.models.cross_encoder import CrossEncoderScorer
from prime_pipeline.models.embedder import Embedder, SentenceTransformerEmbedder
from prime_pipeline.progress import Progress, silent
from prime_pipeline.refresh.evaluation import paper_literal_vectors
from prime_pipeline.refresh.steps import BuildSteps, metadata_fingerprint
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.settings import Settings, load_settings
from prime_pipeline.storage.blob_cache import BlobCache, Cache, NoCache
from prime_pipeline.storage.documents import DocumentStore
from prime_pipeline.storage.home import Home
from prime_pipeline.storage.seal import read_seal


class Workspace:
    """One home folder at work.

    Args:
        settings: In force.
        embedder: Use this one instead of the configured one.
        progress: Told of everything that takes time.

    Attributes:
        settings: In force.
        progress: Told of everything that takes time.
        last_scan: What the last scan of this process found, set by who scans; None before the first. It is not kept
            on disk.
    """

    last_scan: ScanReport | None = None

    def __init__(
        self, settings: Settings, *, embedder: Embedder | None = None, progress: Progress = silent
    ) -> None:
        self.settings = settings
        self.progress = progress
        self._embedder = embedder

    @property
    def home(self) -> Home:
        """The home folder. Who is going to write calls its ``prepare`` first."""
        return self.settings.stored

    @cached_property
    def store(self) -> DocumentStore:
        """Parsed documents."""
        return DocumentStore(self.home.documents)

    @cached_property
    def embeddings(self) -> BlobCache:
        """Vectors by model and text."""
        return BlobCache(self.home.embeddings)

    @cached_property
    def token_vectors(self) -> Cache:
        """Token vectors by model and text, under a size limit; none where no cache can be opened (a full disk)."""
        try:
            return BlobCache(self.home.token_vectors, self.settings.token_vector_cache_bytes)
        except StoreUnavailable:
            return NoCache()

    @cached_property
    def embedder(self) -> Embedder:
        """The configured embedder; its weights are loaded at the first encoding."""
        return self._embedder or SentenceTransformerEmbedder(self.settings.embedder_model)

    def builds(self, variant: str) -> Builds:
        """Builds of a variant."""
        return Builds(self.home.indexes(variant))

    def plan(self, variant: str) -> BuildPlan:
        """The build that the sealed corpus and the settings ask for."""
        return BuildPlan(
            variant=variant,
            corpus=read_seal(self.home.seal("raw")),
            metadata_fingerprint=metadata_fingerprint(self.settings.metadata.options()),
            embedder_name=self.embedder.name,
            embedder_fingerprint=self.embedder.fingerprint,
            profile=self.settings.profile,
            vector_options=self.settings.vector_options,
        )

    def steps(self, variant: str) -> BuildSteps:
        """The steps that make that build."""
        return BuildSteps(
            plan=self.plan(variant),
            builds=self.builds(variant),
            store=self.store,
            embedder=self.embedder,
            embeddings=self.embeddings,
            metadata_options=self.settings.metadata.options(),
            progress=self.progress,
        )

    def retriever(self, variant: str = "offline") -> Retriever:
        """A retriever over the build that is served now.

        Raises:
            IndexNotFound, IndexCorrupt, IndexModelMismatch, SchemaMismatch: There is none that can be used.
        """
        builds, options = self.builds(variant), self.settings.retrieval_options
        folder = builds.path(builds.served_id)  # raises before a model is loaded or a cache is made for it
        if not folder.is_dir():
            raise IndexCorrupt(folder, "the folder is missing")
        cross_encoder = (
            CrossEncoderScorer(self.settings.cross_encoder) if options.scorer == "cross_encoder" else None
        )
        return Retriever(folder, self.embedder, self.token_vectors, options, cross_encoder)

    def paper_literal_vectors(self) -> ExactVectors:
        """Vectors of the sealed documents' metadata as the PRIME paper has it, for comparisons."""
        documents = self.store.load_all(read_seal(self.home.seal("raw")).documents)
        return paper_literal_vectors(documents, self.embedder, self.embeddings, self.progress)

    def close(self) -> None:
        """Close the stores that were opened; one that is used again is opened again."""
        for name in ("store", "embeddings", "token_vectors"):
            if (opened := self.__dict__.pop(name, None)) is not None:
                opened.close()


def open_retriever(home: str | Path | None = None, **options: Any) -> Retriever:
    """A retriever over what ``prime refresh`` published.

    Args:
        home: PRIME_HOME; by default as the settings say (``.prime``).
        options: Other settings by name, e.g. ``retrieval={"top_k": 10}``.

    Raises:
        PrimeError: See :meth:`Workspace.retriever` and :func:`prime_pipeline.settings.load_settings`.
    """
    return Workspace(load_settings({"home": home, **options})).retriever()
