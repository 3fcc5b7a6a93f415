"""A published build of hand-made documents, in a folder of the test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from prime_pipeline.indexes.builds import BuildPlan, Builds
from prime_pipeline.indexes.vectors import VectorOptions
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.records import Document
from prime_pipeline.refresh.steps import BuildSteps, metadata_fingerprint
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.documents import DocumentStore
from prime_pipeline.storage.home import Home
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline_tests.fakes import HashingEmbedder


class Bench:
    """A home folder at work on documents that a test puts there, with a hashing embedder."""

    def __init__(self, root: Path, embedder: HashingEmbedder | None = None) -> None:
        self.home = Home.at(root)
        self.embedder = embedder or HashingEmbedder()
        self.store = DocumentStore(self.home.documents)
        self.embeddings = BlobCache(self.home.embeddings)
        self.token_vectors = BlobCache(self.home.token_vectors)
        self.builds = Builds(self.home.indexes("offline"))
        self.vector_options = VectorOptions()
        self.metadata_options = MetadataOptions()

    def put(self, documents: Iterable[Document]) -> None:
        for document in documents:
            self.store.put(document, document.doc_id, "")

    def steps(self) -> BuildSteps:
        """The steps for what the store holds now."""
        plan = BuildPlan(
            variant="offline",
            corpus=seal_corpus(self.store, self.home.seal("raw"), "test"),
            metadata_fingerprint=metadata_fingerprint(self.metadata_options),
            embedder_name=self.embedder.name,
            embedder_fingerprint=self.embedder.fingerprint,
            profile="embedded",
            vector_options=self.vector_options,
        )
        return BuildSteps(
            plan, self.builds, self.store, self.embedder, self.embeddings, self.metadata_options
        )

    def publish(self, *documents: Document, keep: int = 3) -> str:
        """Put the documents, make all steps, and return the id of the served build."""
        self.put(documents)
        steps = self.steps()
        steps.synthesise_metadata()
        steps.publish(keep=keep)
        return steps.plan.build_id

    def live(self) -> Path:
        path = self.builds.live_path
        if path is None:
            raise LookupError("nothing is published")
        return path

    def retriever(self, options: RetrievalOptions | None = None) -> Retriever:
        return Retriever(self.live(), self.embedder, self.token_vectors, options or RetrievalOptions())
