"""What the settings open: the home folder's stores, the models, the builds, each once and when first used.

The doors (command line, Dagster resources, servers) hold one of these and hand its parts to the stages.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from prime_pipeline.corpus.scan import ScanReport
from prime_pipeline.datasets.known_items import known_item_queries
from prime_pipeline.datasets.locations import KNOWN_ITEMS
from prime_pipeline.datasets.queries import QuerySet, load_query_set
from prime_pipeline.errors import (
    DocumentNotRestructured,
    IndexCorrupt,
    IndexNotFound,
    MethodChanged,
    StoreUnavailable,
)
from prime_pipeline.indexes.builds import VARIANTS, BuildPlan, Builds, ServedBuild, read_manifest
from prime_pipeline.indexes.vectors import ExactVectors
from prime_pipeline.llm.budget import Budget
from prime_pipeline.llm.cached import CachedChat
from prime_pipeline.llm.client import ChatClient
from prime_pipeline.llm.limiter import ConcurrencyLimiter
from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.models.caching_tokenizer import CachingTokenizer
from prime_pipeline.models.cross_encoder import CrossEncoderScorer
from prime_pipeline.models.embedder import Embedder, SentenceTransformerEmbedder
from prime_pipeline.models.location import EMBEDDED_MODEL, model_fingerprint, resolve_model
from prime_pipeline.models.nli import NliModel
from prime_pipeline.models.onnx_embedder import open_onnx_embedder
from prime_pipeline.models.sentence_similarity import EmbedderSimilarity
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document, DocumentOutcome
from prime_pipeline.refresh.evaluation import (
    EvaluationReport,
    evaluation_fingerprint,
    paper_literal_vectors,
    read_report,
)
from prime_pipeline.refresh.mode import ModeDecision, Variant, decided_options, read_decision
from prime_pipeline.refresh.pricing import Quote
from prime_pipeline.refresh.restructuring import RestructuringSteps, forget_removed
from prime_pipeline.refresh.sampling import Sample, note_sample, sample_sections
from prime_pipeline.refresh.steps import BuildSteps, metadata_fingerprint
from prime_pipeline.refresh.warehouse import Restructuring
from prime_pipeline.restructuring.estimate import Estimate, estimate
from prime_pipeline.restructuring.extractive import EXTRACTIVE_VERSION, extract
from prime_pipeline.restructuring.gate import FidelityGate
from prime_pipeline.restructuring.prompts import Prompt
from prime_pipeline.restructuring.restructurer import ExtractiveRestructurer, LlmRestructurer, Restructurer
from prime_pipeline.restructuring.rewriting import Rewriter, rough_tokens
from prime_pipeline.restructuring.strategy import Strategy
from prime_pipeline.retrieval.retriever import Retriever, retriever_fingerprint
from prime_pipeline.retrieval.systems import systems_of
from prime_pipeline.retrieval.warming import Warmed
from prime_pipeline.settings import Settings, load_settings
from prime_pipeline.storage.blob_cache import BlobCache, Cache, NoCache
from prime_pipeline.storage.documents import CatalogueEntry, DocumentStore
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.forgotten import ForgottenDocuments
from prime_pipeline.storage.home import Home
from prime_pipeline.storage.ledger import Ledger
from prime_pipeline.storage.memory_cache import MemoryCache
from prime_pipeline.storage.restructured import RestructuredStore
from prime_pipeline.storage.seal import read_seal
from prime_pipeline.text.entities import entity_finder


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
        self._builds: dict[str, Builds] = {}

    @property
    def home(self) -> Home:
        """The home folder. Who is going to write calls its ``prepare`` first."""
        return self.settings.stored

    @property
    def mode_decision(self) -> ModeDecision | None:
        """What the corpus profile decided at the last refresh; None where the settings say the mode themselves."""
        return read_decision(self.home.mode_decision) if self.settings.mode == "auto" else None

    @property
    def mode(self) -> Variant:
        """``offline`` or ``full``: as the settings say or, where that is ``auto``, as was decided."""
        decision = self.mode_decision
        return decision.variant if decision else cast("Variant", self.settings.mode)

    @property
    def mode_label(self) -> str:
        """The mode for people, with what it follows where it was decided."""
        decision = self.mode_decision
        return decision.label if decision else self.settings.mode

    @property
    def metadata_options(self) -> MetadataOptions:
        """How metadata is synthesised: as the settings say or, where the mode is ``auto``, as was decided."""
        return decided_options(self.settings.metadata.options(), self.mode_decision)

    @cached_property
    def store(self) -> DocumentStore:
        """Parsed documents."""
        return DocumentStore(self.home.documents)

    @property
    def forgotten(self) -> ForgottenDocuments:
        """Documents that no refresh reads again."""
        return ForgottenDocuments(self.home.forgotten)

    @cached_property
    def embeddings(self) -> BlobCache:
        """Vectors by model and text."""
        return BlobCache(self.home.embeddings)

    @cached_property
    def token_vectors(self) -> Cache:
        """Token vectors by model and text, under size limits on disk and in memory.

        Where none can be opened on disk (a full one), those in memory are all.
        """
        on_disk: Cache
        try:
            on_disk = self._open_token_vectors()
        except StoreUnavailable:
            on_disk = NoCache()
        return MemoryCache(on_disk, self.settings.token_vector_memory_bytes)

    def _open_token_vectors(self) -> BlobCache:
        return BlobCache(self.home.token_vectors, self.settings.token_vector_cache_bytes)

    @cached_property
    def embedder(self) -> Embedder:
        """The configured embedder; its weights are loaded at the first encoding."""
        if self._embedder is not None:
            return self._embedder
        model, backend = self.settings.embedder_model, self.settings.embedder_backend
        if backend == "torch":
            return SentenceTransformerEmbedder(model)
        return open_onnx_embedder(self.home.exports, model, backend, self.progress)

    @cached_property
    def cross_encoder(self) -> CrossEncoderScorer:
        """The configured cross-encoder; its weights are loaded at the first scoring."""
        return CrossEncoderScorer(self.settings.cross_encoder)

    @cached_property
    def token_counts(self) -> BlobCache:
        """Numbers of tokens by model and text."""
        return BlobCache(self.home.token_counts)

    @property
    def caching_tokenizer(self) -> CachingTokenizer:
        """The embedder's tokenizer for studies, which count the same texts again and again."""
        return CachingTokenizer(self.embedder.tokenizer, self.embedder.fingerprint, self.token_counts)

    @cached_property
    def replies(self) -> ReplyCache:
        """Replies of language models by content, and verdicts on them."""
        return ReplyCache(self.home.llm_cache)

    @cached_property
    def ledger(self) -> Ledger:
        """What runs spent on language models."""
        return Ledger(self.home.ledger)

    @cached_property
    def query_set(self) -> QuerySet | None:
        """The configured queries; None where there are none.

        Raises:
            EvaluationError: They cannot be read, or none can be made.
            EmptyCorpus: They are to be made from a corpus that is not sealed yet.
        """
        if not self.settings.queries:
            return None
        if self.settings.queries == KNOWN_ITEMS:
            documents = list(self.store.load_all(read_seal(self.home.seal("raw")).documents))
            return known_item_queries(documents).query_set
        # A store that is opened is made, and asking for queries must make no home.
        known = self.store.catalogue() if self.home.documents.is_dir() else {}
        return load_query_set(self.settings.queries, frozenset(known))

    @property
    def nli(self) -> NliModel | None:
        """What looks for contradictions; None where nothing does. Its weights are loaded at the first pair."""
        model = self.settings.contradiction_model
        return NliModel(model) if model else None

    @property
    def scorer_name(self) -> str:
        """What scores sections, for reports."""
        names = {
            "none": "none",
            "late_interaction": f"late interaction of {self.embedder.name}",
            "cross_encoder": Path(self.settings.cross_encoder).name,
        }
        return names[self.settings.retrieval_options.scorer]

    @cached_property
    def judge(self) -> FidelityGate:
        """The fidelity gate."""
        chosen = self.settings.restructuring
        return FidelityGate(
            chosen.gate_options,
            entity_finder(chosen.entities),
            self._prompt.system,
            self._similarity,
        )

    @property
    def _similarity(self) -> EmbedderSimilarity | None:
        """What the gate compares sentences with: the embedded model only, on whose cosines its thresholds were fitted."""
        is_embedded = self._embedder is None and self.settings.embedder_model == EMBEDDED_MODEL
        return EmbedderSimilarity(self.embedder) if is_embedded else None

    @cached_property
    def strategy(self) -> Strategy:
        """How sections are rewritten in full mode."""
        if self.settings.method == "extractive":
            return Strategy.extractive(EXTRACTIVE_VERSION, self.judge)
        return Strategy.llm(self._prompt, self.settings.rewriting_options, self.judge)

    @cached_property
    def restructured(self) -> RestructuredStore:
        """Documents restructured by that strategy."""
        return RestructuredStore(self.home.restructured(self.strategy.fingerprint))

    @property
    def restructured_seal(self) -> Path:
        """Where the set of documents restructured by that strategy is sealed."""
        return self.home.seal(f"restructured-{self.strategy.fingerprint}")

    def has_corpus(self, variant: str) -> bool:
        """Whether there is a sealed corpus to build a variant of."""
        if variant == "offline":
            return True
        return self.mode == "full" and self.restructured_seal.is_file()

    @contextmanager
    def restructuring(self) -> Iterator[RestructuringSteps]:
        """The steps of restructuring; calls that are under way at the end of the block are cut off.

        Raises:
            MethodChanged: What is published was made by a language model, and the settings fall back to extraction
                without having been told to.
        """
        self._check_method()
        with self._restructurer() as restructurer:
            yield RestructuringSteps(
                raw=self.store,
                restructured=self.restructured,
                restructurer=restructurer,
                n_workers=self.settings.llm.concurrency if self.settings.method == "llm" else 1,
                ledger=self.ledger,
                prices=self.settings.llm.price,
                pages=self.home.diffs,
                progress=self.progress,
            )

    def documents_to_restructure(self) -> list[CatalogueEntry]:
        """All raw documents that can be read, in order of id."""
        return [entry for entry in self.store.catalogue().values() if entry.version is not None]

    def restructured_document(self, name: str) -> tuple[Document, DocumentOutcome]:
        """A raw document, by id or path, and what restructuring made of it.

        Raises:
            DocumentNotRestructured: There is no such document, or nothing was made of it yet.
        """
        entries = self.restructured.documents.catalogue()
        entry = entries.get(name) or next((e for e in entries.values() if e.source_path == name), None)
        loaded = self.restructured.load(entry) if entry else None
        if loaded is None:
            similar = [doc_id for doc_id in entries if name in doc_id] or difflib.get_close_matches(
                name, entries
            )
            raise DocumentNotRestructured(name, similar[:3])
        return loaded

    def forget_removed(self) -> int:
        """Forget what was made of documents that are gone, by whatever strategy; returns how many."""
        stores = [RestructuredStore(self.home.restructured(name)) for name in self.home.strategies()]
        try:
            return forget_removed(self.store, stores, self.home.diffs)
        finally:
            for store in stores:
                store.close()

    def collect_restructured_garbage(self) -> int:
        """Remove leftovers of restructuring, and all of the strategies that are not in force; returns how many files.

        Going back to a strategy costs time and no call: its answers stay in the cache. Builds hold their own texts.
        """
        n_files = self.restructured.documents.collect_garbage() if self.mode == "full" else 0
        current = self.strategy.fingerprint if self.mode == "full" else None
        return n_files + sum(
            self.home.remove_strategy(name) for name in self.home.strategies() if name != current
        )

    def sample(self, n_sections: int) -> Sample | None:
        """Rewrite some sections to see how it goes; None where no language model is asked.

        This spends money. The answers are kept for the next refresh.
        """
        if self.settings.method == "extractive":
            return None
        entries = self.documents_to_restructure()
        with self.rewriter() as rewriter:
            sample = sample_sections(
                lambda: self.store.load_entries(entries),
                rewriter,
                n_sections,
                self.settings.llm.concurrency,
                self._count_tokens,
                self.progress,
            )
        note_sample(self.ledger, sample, self.strategy, self.settings.llm.price)
        return sample

    def quote(self, n_sampled: int = 0) -> Quote:
        """What restructuring all documents would take, after ``n_sampled`` sections were rewritten (paid)."""
        sample = self.sample(n_sampled) if n_sampled else None
        llm = self.settings.llm
        return Quote(
            self.strategy.label,
            self.estimate(self.documents_to_restructure()),
            sample,
            llm.price,
            llm.concurrency,
        )

    def estimate(self, entries: Sequence[CatalogueEntry]) -> Estimate | None:
        """What restructuring documents would take; None where it costs nothing."""
        if self.settings.method == "extractive":
            return None
        with self.rewriter() as rewriter:
            documents = self.store.load_entries(entries)
            return estimate(
                documents, len(entries), rewriter, self.replies, self._count_tokens, self.progress
            )

    @contextmanager
    def chat(self, model: str = "") -> Iterator[CachedChat]:
        """The language model behind cache and budget; calls that are under way at the end of the block are cut off.

        Args:
            model: Whose price the budget counts; by default that of the llm settings.
        """
        llm = self.settings.llm.model_copy(update={"model": model or self.settings.llm.model})
        client = ChatClient(
            llm.base_url or "",
            llm.api_key.get_secret_value(),
            ConcurrencyLimiter(llm.concurrency),
            self._count_tokens,
            deadline_s=llm.deadline_s,
            timeout_s=llm.timeout_s,
        )
        chat = CachedChat(client, self.replies, Budget(llm.max_tokens, llm.max_cost, llm.price))
        try:
            yield chat
        finally:
            chat.close()

    @contextmanager
    def rewriter(self) -> Iterator[Rewriter]:
        """Asks the configured model to rewrite sections; see :meth:`chat`."""
        with self.chat() as chat:
            yield Rewriter(
                chat, self.judge, self.replies, self._prompt, self.settings.rewriting_options, rough_tokens
            )

    def _check_method(self) -> None:
        live = self.builds("full").live_path
        before = read_manifest(live).restructuring if live else ""
        if (
            self.settings.method == "extractive"
            and not self.settings.restructuring.method
            and before.startswith("llm:")
        ):
            raise MethodChanged(before)

    @contextmanager
    def _restructurer(self) -> Iterator[Restructurer]:
        if self.settings.method == "extractive":
            yield ExtractiveRestructurer(extract, self.judge, self.strategy)
            return
        with self.rewriter() as rewriter:
            yield LlmRestructurer(rewriter, self.strategy)

    @property
    def _prompt(self) -> Prompt:
        return Prompt(self.settings.restructuring.prompt)

    def _count_tokens(self, text: str) -> int:
        return self.embedder.tokenizer.count([text])[0]

    def builds(self, variant: str) -> Builds:
        """Builds of a variant; files that were verified are known to be whole while the workspace lives."""
        return self._builds.setdefault(variant, Builds(self.home.indexes(variant)))

    def plan(self, variant: str) -> BuildPlan:
        """The build that the sealed corpus and the settings ask for."""
        is_full = variant == "full"
        return BuildPlan(
            variant=variant,
            corpus=read_seal(self.restructured_seal if is_full else self.home.seal("raw")),
            metadata_fingerprint=metadata_fingerprint(self.metadata_options),
            embedder_name=self.embedder.name,
            embedder_fingerprint=self.embedder.fingerprint,
            embedder_runtime=self.embedder.runtime,
            profile=self.settings.profile,
            vector_options=self.settings.vector_options,
            lexical_source=self.settings.lexical_source if is_full else "raw",
            restructuring=self.strategy.label if is_full else "",
            mode=self.mode_label,
            forgotten=self.forgotten.fingerprint,
        )

    def steps(self, variant: str) -> BuildSteps:
        """The steps that make that build."""
        return BuildSteps(
            plan=self.plan(variant),
            builds=self.builds(variant),
            store=self.restructured.documents if variant == "full" else self.store,
            embedder=self.embedder,
            embeddings=self.embeddings,
            metadata_options=self.metadata_options,
            progress=self.progress,
        )

    @property
    def served(self) -> ServedBuild:
        """The build that answers queries now; reads a few small files.

        Raises:
            IndexNotFound: Nothing is published.
        """
        variant = self.served_variant
        builds = self.builds(variant)
        if not (history := builds.history()):
            raise IndexNotFound(self.home.indexes(variant))
        return ServedBuild(variant, history[-1]["build"], history[-1]["published_at"])

    def retriever(self, variant: str | None = None) -> Retriever:
        """A retriever over the build that is served now: of a variant, by default :attr:`served_variant`.

        Raises:
            IndexNotFound, IndexCorrupt, IndexModelMismatch, SchemaMismatch: There is none that can be used.
        """
        builds = self.builds(variant or self.served_variant)
        return self.retriever_of(builds.path(builds.served_id))

    def retriever_of(self, folder: Path) -> Retriever:
        """A retriever over a build, served or not; all retrievers of a workspace share its models and caches.

        Raises:
            IndexNotFound, IndexCorrupt, IndexModelMismatch, SchemaMismatch: It cannot be used.
        """
        if not folder.is_dir():  # before a model is loaded or a cache is made for it
            raise IndexCorrupt(folder, "the folder is missing")
        options = self.settings.retrieval_options
        cross_encoder = self.cross_encoder if options.scorer == "cross_encoder" else None
        return Retriever(folder, self.embedder, self.token_vectors, options, cross_encoder)

    def warm(self) -> Warmed:
        """Fill the cache of token vectors for what is served, see :meth:`Retriever.warm`.

        Raises:
            StoreUnavailable: The cache cannot be opened, read or written; a search would do without.
            IndexNotFound, IndexCorrupt, IndexModelMismatch, SchemaMismatch: See :meth:`retriever`.
        """
        with self.retriever() as retriever:
            if retriever.options.scorer == "late_interaction":
                self._open_token_vectors().close()
            return retriever.warm(self.progress)

    @property
    def served_variant(self) -> str:
        """The variant that answers queries: that of the mode, or ``offline`` until full mode has published its first."""
        published = self.published_variants()
        return published[-1] if published else self.mode

    def published_variants(self) -> list[str]:
        """The variants that are served, the one of the mode last; nothing of the full track in offline mode."""
        wanted = VARIANTS if self.mode == "full" else VARIANTS[:1]
        return [variant for variant in wanted if self.builds(variant).live_path is not None]

    def evaluations(self) -> list[EvaluationReport]:
        """The evaluations of what is served now, with the queries and settings of now; others are left out."""
        queries = self.query_set
        if queries is None:
            return []
        evaluations = []
        for variant in self.published_variants():
            retriever = self.retriever_fingerprint(self.builds(variant).live_id or "")
            wanted = evaluation_fingerprint(retriever, queries, systems_of(variant, self.settings.evaluate))
            report = read_report(self.home.measures(variant))
            if report is not None and report.fingerprint == wanted:
                evaluations.append(report)
        return evaluations

    def retriever_fingerprint(self, build_id: str) -> str:
        """What a retriever over a build has as its fingerprint with the settings of now, without opening one."""
        options = self.settings.retrieval_options
        uses = options.scorer == "cross_encoder"
        cross_encoder = model_fingerprint(resolve_model(self.settings.cross_encoder)) if uses else None
        return retriever_fingerprint(build_id, options, cross_encoder)

    def restructuring_facts(self) -> Restructuring | None:
        """What the warehouse tells of restructuring; None in offline mode."""
        if self.mode == "offline":
            return None
        return Restructuring(
            self.strategy.label, self.restructured_version(), self.restructured.outcomes, self.ledger
        )

    def restructured_version(self) -> str:
        """Hash of all restructured documents as they are now, sealed or not."""
        catalogue = self.restructured.documents.catalogue().values()
        return fingerprint([[entry.doc_id, entry.version, entry.source_fingerprint] for entry in catalogue])

    def paper_literal_vectors(self) -> ExactVectors:
        """Vectors of the sealed documents' metadata as the PRIME paper has it, for comparisons."""
        documents = self.store.load_all(read_seal(self.home.seal("raw")).documents)
        return paper_literal_vectors(documents, self.embedder, self.embeddings, self.progress)

    def close(self) -> None:
        """Close the stores that were opened; one that is used again is opened again."""
        for name in (
            "store",
            "embeddings",
            "token_vectors",
            "token_counts",
            "replies",
            "ledger",
            "restructured",
        ):
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
