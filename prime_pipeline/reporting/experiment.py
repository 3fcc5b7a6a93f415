"""The paper's experiment in a home of its own: every cell from caches where it can be, and the report on all of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, Self

from prime_pipeline.baselines.pooled_vectors import PooledVectors
from prime_pipeline.baselines.representations import (
    BGE_M3,
    CONTROLS,
    LITERAL,
    RECIPES,
    REPRESENTATIONS,
    SUMMARY_AUGMENTED,
    Corpus,
    units,
)
from prime_pipeline.baselines.summaries import Summaries, summarise, summarising_fingerprint
from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.errors import NothingToStudy
from prime_pipeline.indexes.builds import LEXICAL_FILE, VARIANTS, Manifest
from prime_pipeline.indexes.embedding import embed_texts
from prime_pipeline.indexes.lexical import LEXICAL_VERSION
from prime_pipeline.models.embedder import Embedder, SentenceTransformerEmbedder
from prime_pipeline.models.location import model_fingerprint, resolve_model
from prime_pipeline.records import Document, Spending
from prime_pipeline.refresh.spending import note_spending
from prime_pipeline.refresh.steps import metadata_fingerprint
from prime_pipeline.reporting.report import PublishedReport, home_report, write_if_changed
from prime_pipeline.reporting.studies import (
    at_hand,
    gold_evidence,
    kept,
    loaded,
    restructurer,
    sealed,
    spent_on,
    with_notes,
)
from prime_pipeline.reports.content import ReportContent, SystemCost
from prime_pipeline.retrieval.options import Scorer
from prime_pipeline.retrieval.retriever import RETRIEVAL_VERSION, Retriever
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.studies.experiment import (
    COMPARED,
    PIPELINES,
    RERANKED,
    CellName,
    CellPlace,
    Embedded,
    Pipeline,
    amounts,
    cell_findings,
    comparison_findings,
    pipeline_options,
    unavailable,
)
from prime_pipeline.studies.findings import Findings, Study, read_study
from prime_pipeline.studies.localisation import (
    WITHIN,
    WITHIN_RERANKED,
    Track,
    within_document_findings,
)
from prime_pipeline.workspace import Workspace

EXPERIMENT_VERSION: Final = 1
"""Raise it when the same corpus, queries and settings would give other cells."""
_WITHIN: Final = "experiment_within_documents"
_NO_BGE_M3: Final = "BGE-M3 is on the model hub: profile = paper, or chunk_embedder names its folder"
_N_TIMED: Final = 24
"""Texts that are encoded to see how long all of them take."""
_OF_MODELS: Final = ("llm_tokens", "money")


@dataclass(frozen=True, slots=True, order=True)
class CellKey:
    """A cell of the experiment; its name is that of a partition."""

    representation: str
    pipeline: Pipeline

    @property
    def name(self) -> str:
        """Such as ``chunk-256.hybrid-sections``."""
        return f"{self.representation}.{self.pipeline}"


CELLS: Final = tuple(
    CellKey(name, pipeline) for name in (*REPRESENTATIONS, *CONTROLS) for pipeline in PIPELINES
)
"""All cells, in the order of the tables."""


class Experiment:
    """The cells over what a home publishes. What several cells need is made once, and closed at the end.

    Args:
        workspace: Of the experiment's home, with both tracks published and queries configured.

    Raises:
        NothingToStudy: No queries are configured.
    """

    def __init__(self, workspace: Workspace) -> None:
        queries = workspace.query_set
        if queries is None:
            raise NothingToStudy(
                "the experiment has no queries: set queries, or let prime reproduce make them"
            )
        self._workspace = workspace
        self._queries: QuerySet = queries
        self._embedded: dict[str, Embedded] = {}
        self._retrievers: dict[str, Retriever] = {}

    def cell(self, key: CellKey) -> Study:
        """One cell: as it is kept, or ranked and measured now."""
        place = self._place(key)
        reason = self._unavailable(key)
        determinants: dict[str, Any] = {
            "version": EXPERIMENT_VERSION,
            "place": asdict(place),
            "unavailable": reason,
        }
        if not reason:
            determinants |= self._determinants(key)
        return kept(self._workspace, _study_name(key), determinants, lambda: self._made(key, place, reason))

    def comparisons(self) -> Study:
        """What the cells that are kept say of one another."""
        values: dict[CellName, Mapping[str, float]] = {}
        fingerprints = []
        for key in CELLS:
            study = read_study(self._workspace.home.study(_study_name(key)))
            if study is None:
                continue
            fingerprints.append([key.name, study.fingerprint])
            for cell in study.findings.content.cells:
                if cell.measure == COMPARED and not cell.question_type and cell.per_query:
                    values[key.representation, key.pipeline] = cell.per_query
        return kept(
            self._workspace,
            "experiment_comparisons",
            {"version": EXPERIMENT_VERSION, "cells": fingerprints},
            lambda: with_notes(
                comparison_findings(
                    values, restructurer(self._workspace), self._workspace.scorer_name, self._queries
                ),
                self._nothing_to_decide,
            ),
        )

    @property
    def _nothing_to_decide(self) -> tuple[str, ...]:
        n_documents = len(sealed(self._workspace, "offline").documents)
        n_candidates = self._workspace.settings.retrieval_options.n_candidates
        if n_documents > n_candidates:
            return ()
        told = (
            f"{RERANKED}: all {n_documents:,} documents are among the {n_candidates} candidates that are reranked, so that "
            "what is indexed decides nothing there; that no representation differs says nothing."
        )
        return (told,)

    def within_documents(self) -> Study:
        """How well sections with gold evidence are found where the document is known; nothing where it never is."""
        workspace, clusters = self._workspace, self._queries.clusters
        evidence = gold_evidence(workspace) if clusters else {}
        variants = (
            [v for v in VARIANTS if v == "offline" or not self._without_restructured] if evidence else []
        )
        determinants = {
            "version": EXPERIMENT_VERSION,
            "indexes": [self._retriever(variant).fingerprint for variant in variants],
            "queries": self._queries.fingerprint,
            "evidence": {q: [gold.doc_id, *gold.spans] for q, gold in evidence.items()},
        }

        def make() -> Findings:
            if not evidence or clusters is None:
                return Findings()
            tracks = [self._track_within(variant, clusters) for variant in variants]
            return within_document_findings(evidence, tracks, clusters, workspace.scorer_name)

        return kept(workspace, _WITHIN, determinants, make)

    def _track_within(self, variant: str, clusters: Mapping[str, str]) -> Track:
        retriever = self._retriever(variant)
        pipelines = {WITHIN: replace(retriever.options, scorer="none")}
        if retriever.options.scorer != "none":
            pipelines[WITHIN_RERANKED] = retriever.options
        runs: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in pipelines}
        queries = self._queries.queries
        for position, query in enumerate(queries, start=1):
            for name, options in pipelines.items():
                runs[name][query.query_id] = retriever.rank_within(
                    query.text, clusters[query.query_id], options
                )
            self._workspace.progress(f"within documents, {variant}", position, len(queries))
        documents = {document.doc_id: document for document in self._documents(variant)}
        made_by = restructurer(self._workspace) if variant == "full" else ""
        return Track(documents, runs, made_by)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the indexes."""
        for retriever in self._retrievers.values():
            retriever.close()

    # --- what cells are made from

    def _place(self, key: CellKey) -> CellPlace:
        is_rewritten = RECIPES[key.representation].text == "restructured"
        made_by = restructurer(self._workspace) if is_rewritten else ""
        reranker = self._workspace.scorer_name if key.pipeline == RERANKED else ""
        return CellPlace(key.representation, key.pipeline, made_by, reranker)

    def _unavailable(self, key: CellKey) -> str:
        if key.representation == BGE_M3 and self._chunk_embedder is None:
            return _NO_BGE_M3
        if RECIPES[key.representation].text == "restructured" and self._without_restructured:
            return self._without_restructured
        if key.pipeline == RERANKED and self._workspace.settings.retrieval_options.scorer == "none":
            return "nothing scores sections: retrieval.scorer"
        if key.representation == SUMMARY_AUGMENTED and self._summaries and self._summaries.stopped:
            return f"not all documents are summarised: {self._summaries.stopped}"
        return ""

    def _determinants(self, key: CellKey) -> dict[str, Any]:
        """All that a cell depends on, and nothing of the build or the settings that it does not read."""
        workspace, queries, variant = self._workspace, self._queries, _variant(key.representation)
        manifest = self._retriever(variant).manifest
        options = pipeline_options(key.pipeline, workspace.settings.retrieval_options)
        if variant == "offline":
            options = replace(options, section_text="raw")
        is_configured = RECIPES[key.representation].is_configured
        return {
            "retrieval": [RETRIEVAL_VERSION, options.determinants],
            "lexical": [LEXICAL_VERSION, manifest.corpus_version, manifest.lexical_source],
            "scorer": self._scorer(options.scorer, manifest),
            "raw": sealed(workspace, "offline").version,
            "restructured": sealed(workspace, "full").version if variant == "full" else None,
            "metadata": metadata_fingerprint(
                workspace.settings.metadata.options() if is_configured else LITERAL
            ),
            "embedder": workspace.embedder.fingerprint,
            "own": self._own_determinants(key.representation),
            "query_set": queries.fingerprint,
            "types": dict(queries.types) if key.pipeline == RERANKED else None,
        }

    @cached_property
    def _without_restructured(self) -> str:
        """Why there is no restructured text of the very documents that the raw cells are about; empty where there is."""
        workspace = self._workspace
        if workspace.mode != "full":
            return "nothing is restructured: mode = full"
        if not workspace.has_corpus("full"):
            return "no document is restructured yet, as the language model did not answer: run it again"
        made, sources = (
            dict(at_hand(workspace, "full")),
            workspace.restructured.documents.catalogue(),
        )
        raw = sealed(workspace, "offline").documents
        behind = [d for d, v in raw if d not in made or sources[d].source_fingerprint not in {None, v}]
        if behind or len(made) > len(raw):
            n_behind = max(len(behind), len(made) - len(raw))
            return (
                f"the restructured text lags behind in {n_behind:,} of {len(raw):,} documents: run it again"
            )
        return ""

    def _own_determinants(self, representation: str) -> Any:
        """What no other representation depends on."""
        if representation == BGE_M3 and self._chunk_embedder:
            return self._chunk_embedder.fingerprint
        if representation == SUMMARY_AUGMENTED and self._summaries:
            return fingerprint(self._summaries.texts)
        return None

    def _scorer(self, scorer: Scorer, manifest: Manifest) -> str:
        """What the section scorer reads beside the embedder: a model, or the build's document frequencies."""
        if scorer == "cross_encoder":
            return model_fingerprint(resolve_model(self._workspace.settings.cross_encoder))
        return manifest.metadata_fingerprint if scorer == "late_interaction" else ""

    def _made(self, key: CellKey, place: CellPlace, reason: str) -> Findings:
        if reason:
            return unavailable(place, reason)
        found = cell_findings(
            place,
            self._represented(key.representation),
            self._retriever(_variant(key.representation)),
            self._queries,
            self._workspace.progress,
        )
        return with_notes(found, (self._who_summarised,) if key.representation == SUMMARY_AUGMENTED else ())

    def _retriever(self, variant: str) -> Retriever:
        if variant not in self._retrievers:
            self._retrievers[variant] = self._workspace.retriever(variant)
        return self._retrievers[variant]

    def _lexical_bytes(self, variant: str) -> int:
        folder = self._workspace.builds(variant).path(self._retriever(variant).manifest.build_id)
        return (folder / LEXICAL_FILE).stat().st_size

    @cached_property
    def _corpus(self) -> Corpus:
        workspace = self._workspace
        raw = self._documents("offline")
        restructured = [] if self._without_restructured else self._documents("full")
        return Corpus(
            raw,
            restructured,
            workspace.settings.metadata.options(),
            workspace.embedder.tokenizer,
            self._summaries.texts if self._summaries else None,
        )

    def _documents(self, variant: str) -> list[Document]:
        return list(loaded(self._workspace, variant, sealed(self._workspace, variant).documents))

    @cached_property
    def _chunk_embedder(self) -> Embedder | None:
        """BGE-M3, or what stands for it; None where none is set."""
        model = self._workspace.settings.chunk_embedder_model
        return SentenceTransformerEmbedder(model) if model else None

    @cached_property
    def _summaries(self) -> Summaries | None:
        """Those of a language model; None where none is set, and leads take their place."""
        workspace = self._workspace
        if workspace.settings.method != "llm":
            return None
        llm = workspace.settings.llm
        with workspace.chat() as chat:
            return summarise(
                self._documents("offline"),
                chat,
                llm.base_url or "",
                llm.model,
                llm.concurrency,
                partial(_note_summaries, workspace),
                workspace.progress,
            )

    @property
    def _who_summarised(self) -> str:
        if self._summaries is None:
            return "Summary-augmented: the summary of a document is its title and lead; no language model is set."
        n_leads = len(self._corpus.raw) - len(self._summaries.texts)
        but = f"; {n_leads:,} of them by their leads, as it gave none" if n_leads else ""
        return f"Summary-augmented: documents were summarised by {self._workspace.settings.llm.model}{but}."

    def _represented(self, name: str) -> Embedded:
        if name not in self._embedded:
            workspace = self._workspace
            other = self._chunk_embedder if name == BGE_M3 else None
            embedder = other or workspace.embedder
            corpus = self._corpus
            if other:
                corpus = Corpus(corpus.raw, (), corpus.options, other.tokenizer)
            made = units(name, corpus)
            texts = [unit.text for unit in made]
            vectors, _ = embed_texts(texts, embedder, workspace.embeddings, workspace.progress)
            cost = amounts(
                texts,
                embedder.tokenizer,
                embedder.dimensions,
                self._lexical_bytes(_variant(name)),
                _encoding_seconds(texts, embedder),
            )
            vectors_of = PooledVectors([unit.doc_id for unit in made], vectors)
            self._embedded[name] = Embedded(vectors_of, cost, other)
        return self._embedded[name]


def _encoding_seconds(texts: Sequence[str], embedder: Embedder) -> float:
    """What encoding all of the texts takes, by a sample: most of them may have been encoded before, for others.

    The sample is every n-th text by length, so that it holds short and long ones as all do.
    """
    by_length = sorted(texts, key=lambda text: (len(text), text))
    sample = by_length[:: max(1, len(by_length) // _N_TIMED)]
    embedder.encode(sample[:1])  # loads the weights, which is not part of it
    started = time.monotonic()
    embedder.encode(sample)
    return (time.monotonic() - started) * len(texts) / len(sample)


def experiment_report(workspace: Workspace) -> ReportContent:
    """The report on an experiment: all cells that are kept, what they say of one another, and the studies of the home."""
    names = [*(_study_name(key) for key in CELLS), _WITHIN, "experiment_comparisons"]
    found = [study for name in names if (study := read_study(workspace.home.study(name))) is not None]
    content = home_report(workspace, without=("retrieval_quality",), more=found)
    return replace(content, costs=_each_once([*content.costs, *_spent(workspace, content.costs)]))


def _spent(workspace: Workspace, costs: Iterable[SystemCost]) -> Iterator[SystemCost]:
    """What language models took for representations: every one of the restructured text needs all of the restructuring."""
    restructuring = {
        cost.restructurer: {name: cost.amounts[name] for name in _OF_MODELS if name in cost.amounts}
        for cost in costs
        if cost.representation == "default" and cost.restructurer
    }
    for name, recipe in RECIPES.items():
        for made_by, spent in restructuring.items():
            if recipe.text == "restructured" and spent:
                yield SystemCost(name, spent, restructurer=made_by)
    if workspace.settings.method == "llm":
        spending, money = spent_on(workspace, _summarising(workspace))
        tokens = {"llm_tokens": float(spending.prompt_tokens + spending.completion_tokens)}
        yield SystemCost(SUMMARY_AUGMENTED, tokens if money is None else {**tokens, "money": money})


def _summarising(workspace: Workspace) -> str:
    llm = workspace.settings.llm
    return f"summaries-{summarising_fingerprint(llm.base_url or '', llm.model)}"


def _note_summaries(workspace: Workspace, spent: Spending) -> None:
    llm = workspace.settings.llm
    if spent.calls:
        label = f"summaries:{llm.model}"
        note_spending(workspace.ledger, "summaries", _summarising(workspace), label, {"": spent}, llm.price)


def publish_experiment_report(workspace: Workspace) -> PublishedReport:
    """Write that report, unless the one that is there says the same."""
    return write_if_changed(workspace, experiment_report(workspace), workspace.home.experiment_report)


def _each_once(costs: Iterable[SystemCost]) -> tuple[SystemCost, ...]:
    """Costs of the same system as one; of an amount that is named twice the first one stands."""
    merged: dict[tuple[str, ...], SystemCost] = {}
    for cost in costs:
        known = merged.setdefault(cost.key, cost)
        merged[cost.key] = replace(known, amounts={**cost.amounts, **known.amounts})
    return tuple(merged.values())


def _variant(representation: str) -> str:
    """The variant of the index whose text goes with a representation."""
    return "full" if RECIPES[representation].text == "restructured" else "offline"


def _study_name(key: CellKey) -> str:
    return f"cell-{key.name}"
