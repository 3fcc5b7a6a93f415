"""The steps that make a build. Each is given all it needs, says what it did, and does nothing where nothing changed.

A step first sees to the steps before it: parts are found by the id of the build, so that costs nothing in a run that
goes well, and a crash or another run between two steps is healed by whichever step comes next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from prime_pipeline.errors import (
    DocumentChanged,
    IndexCorrupt,
    QualityDropped,
    SchemaMismatch,
    StoreCorrupt,
)
from prime_pipeline.indexes.builds import (
    LEXICAL_FILE,
    METADATA_FILE,
    Approve,
    BuildPlan,
    Builds,
    Publication,
)
from prime_pipeline.indexes.embedding import embed_texts
from prime_pipeline.indexes.lexical import LexicalBuild, build_lexical_index
from prime_pipeline.indexes.vectors import build_vector_index
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.synthesis import SYNTHESIS_VERSION, EarlierSynthesis, bring_up_to_date
from prime_pipeline.models.embedder import Embedder
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document, DocumentMetadata
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.documents import DocumentStore
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.metadata_file import MetadataFile, write_metadata

_N_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What a step did.

    Attributes:
        build_id: The build that it worked on; its data version.
        changed: Whether anything was made.
        seconds: Wall time.
        counts: Numbers worth a plot, by name.
        notes: Sentences worth reading.
        samples: A few rows worth looking at; headings and terms only, never running text.
    """

    build_id: str
    changed: bool
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    samples: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True, slots=True)
class BuildSteps:
    """The steps for one plan.

    Args:
        plan: Which build.
        builds: Where builds lie; the caller holds its lock while a step runs.
        store: Whence documents come, with rewritten sections in ``full``.
        embedder: Encodes metadata texts and cuts them to its window.
        embeddings: Cache of vectors.
        metadata_options: How metadata is synthesised; the plan carries its fingerprint.
        progress: Told of everything that takes time.
    """

    plan: BuildPlan
    builds: Builds
    store: DocumentStore
    embedder: Embedder
    embeddings: BlobCache
    metadata_options: MetadataOptions
    progress: Progress = silent

    def synthesise_metadata(self) -> StepOutcome:
        """Terms, headings and metadata text of every document, into the build's metadata file."""
        started = time.monotonic()
        notes = (
            ["the published build was damaged and is made anew"]
            if self.builds.disown_damaged(self.plan)
            else []
        )
        target = self.builds.staging(self.plan.build_id) / METADATA_FILE
        if target.is_file():
            return self._unchanged(started)
        served = self.builds.intact_path
        earlier = _earlier_synthesis(served / METADATA_FILE) if served else None
        result = bring_up_to_date(
            self.plan.corpus.documents,
            self._counted_load(),
            self.metadata_options,
            self.embedder.tokenizer,
            self.plan.embedder_fingerprint,
            earlier,
        )
        self.progress("metadata", result.n_documents, result.n_documents)
        write_metadata(target, result.metadata, result.document_frequencies, result.counts)
        counts = {
            "documents": result.n_documents,
            "vocabulary": result.vocabulary_size,
            "changed_texts": _n_texts_changed(earlier, result.metadata),
        }
        return self._made(started, counts, notes, _metadata_samples(result.metadata))

    def build_lexical(self) -> StepOutcome:
        """Document and section rows for BM25."""
        started = time.monotonic()
        target = self.builds.staging(self.plan.build_id) / LEXICAL_FILE
        if target.is_file():
            return self._unchanged(started)
        previous = self.builds.start_for(self.plan)
        build = build_lexical_index(
            target,
            self.plan.corpus.documents,
            self._load,
            source=self.plan.lexical_source,
            previous=previous / LEXICAL_FILE if previous else None,
            progress=self.progress,
        )
        return self._made(started, _lexical_counts(build), [build.warning] if build.warning else [])

    def build_vectors(self) -> StepOutcome:
        """One vector per document, of its metadata text."""
        started = time.monotonic()
        folder = self.builds.staging(self.plan.build_id)
        if (folder / "vectors.json").is_file():
            return self._unchanged(started)
        if not (folder / METADATA_FILE).is_file():
            self.synthesise_metadata()
        with closing(MetadataFile(folder / METADATA_FILE)) as metadata:
            texts = metadata.texts()
        vectors, n_encoded = embed_texts(list(texts.values()), self.embedder, self.embeddings, self.progress)
        build = build_vector_index(
            folder,
            list(texts),
            vectors,
            self.plan.vector_options,
            previous=self.builds.start_for(self.plan),
        )
        counts = {
            "vectors": build.n_vectors,
            "dimensions": build.dimensions,
            "encoded": n_encoded,
            "from_cache": len(texts) - n_encoded,
        }
        return self._made(started, counts)

    def publish(
        self, *, even_if_withdrawn: bool = False, keep: int, approve: Approve | None = None
    ) -> tuple[StepOutcome, Publication]:
        """Check the parts against one another, serve the build, and remove builds beyond the ``keep`` before it.

        Raises:
            QualityDropped: The build was not approved; see :meth:`Builds.publish`.
        """
        started = time.monotonic()
        self.build_lexical()
        self.build_vectors()
        try:
            publication = self.builds.publish(self.plan, even_if_withdrawn=even_if_withdrawn, approve=approve)
        except QualityDropped:  # or candidates would pile up, one a night
            self.builds.collect_garbage(keep, but=self.plan.build_id)
            raise
        if publication.changed:
            self.builds.collect_garbage(keep)
        served = self.builds.live_path
        counts = {}
        if served is not None:
            manifest = self.builds.verify(served.name)
            counts = {
                "documents": manifest.n_documents,
                "sections": manifest.n_sections,
                "vectors": manifest.n_vectors,
                "index_bytes": sum(path.stat().st_size for path in served.iterdir()),
            }
        notes = [publication.withheld] if publication.withheld else []
        outcome = StepOutcome(
            self.plan.build_id, publication.changed, time.monotonic() - started, counts, notes
        )
        return outcome, publication

    def _counted_load(self) -> Callable[[str, str], Document]:
        """Gives documents as they are to be described, and tells how many it gave."""
        numbers = count(start=1)

        def load(doc_id: str, version: str) -> Document:
            self.progress("metadata", next(numbers), len(self.plan.corpus.documents))
            return self._load(doc_id, version).restructured

        return load

    def _load(self, doc_id: str, version: str) -> Document:
        """One document. Where it is damaged all others are checked too, so that the next refresh heals all of them."""
        try:
            return self.store.load(doc_id, version)
        except (DocumentChanged, StoreCorrupt, SchemaMismatch):
            self.store.forget_damaged(self.plan.corpus.documents)
            raise

    def _unchanged(self, started: float) -> StepOutcome:
        counts = {"documents": len(self.plan.corpus.documents)}
        return StepOutcome(
            self.plan.build_id, changed=False, seconds=time.monotonic() - started, counts=counts
        )

    def _made(
        self,
        started: float,
        counts: Mapping[str, int],
        notes: Sequence[str] = (),
        samples: Sequence[Mapping[str, str]] = (),
    ) -> StepOutcome:
        return StepOutcome(self.plan.build_id, True, time.monotonic() - started, counts, notes, samples)


def metadata_fingerprint(options: MetadataOptions) -> str:
    """What the metadata of a build depends on, beside the corpus and the embedder."""
    determinants: dict[str, Any] = {"version": SYNTHESIS_VERSION, **asdict(options)}
    return fingerprint(determinants)


def _earlier_synthesis(path: Path) -> EarlierSynthesis | None:
    """What a build holds to start from; nothing where another version of this program wrote it."""
    try:
        with closing(MetadataFile(path)) as file:
            return EarlierSynthesis(file.terms(), list(file.documents()), file.counts())
    except IndexCorrupt:
        return None


def _n_texts_changed(earlier: EarlierSynthesis | None, metadata: Iterable[DocumentMetadata]) -> int:
    """Documents whose metadata text is new or another than in the served build."""
    before = {item.doc_id: item.text for item in earlier.metadata} if earlier else {}
    return sum(1 for item in metadata if before.get(item.doc_id) != item.text)


def _lexical_counts(build: LexicalBuild) -> dict[str, int]:
    return {
        "documents": build.n_documents,
        "sections": build.n_sections,
        "documents_written": build.n_written,
        "documents_taken_out": build.n_removed,
    }


def _metadata_samples(metadata: Sequence[DocumentMetadata]) -> list[dict[str, str]]:
    return [
        {
            "document": item.doc_id,
            "terms": ", ".join(term for term, _ in item.terms),
            "headings": " / ".join(heading for _, heading in item.headings[:6]),
        }
        for item in metadata[:_N_SAMPLES]
    ]
