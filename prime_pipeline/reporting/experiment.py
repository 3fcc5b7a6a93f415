"""The paper's experiment in a home of its own: every cell from caches where it can be, and the report on all of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Final, Self

from prime_pipeline.baselines.pooled_vectors import PooledVectors
from prime_pipeline.baselines.representations import (
    CONTROLS,
    LITERAL,
    RECIPES,
    REPRESENTATIONS,
    Corpus,
    units,
)
from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.errors import NothingToStudy
from prime_pipeline.indexes.builds import LEXICAL_FILE, Manifest
from prime_pipeline.indexes.embedding import embed_texts
from prime_pipeline.indexes.lexical import LEXICAL_VERSION
from prime_pipeline.models.location import model_fingerprint, resolve_model
from prime_pipeline.records import Document
from prime_pipeline.refresh.steps import metadata_fingerprint
from prime_pipeline.reporting.report import PublishedReport, home_report, write_if_changed
from prime_pipeline.reporting.studies import kept, loaded, restructurer, sealed
from prime_pipeline.reports.content import ReportContent, SystemCost
from prime_pipeline.retrieval.options import Scorer
from prime_pipeline.retrieval.retriever import RETRIEVAL_VERSION, Retriever
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
from prime_pipeline.workspace import Workspace

EXPERIMENT_VERSION: Final = 1
"""Raise it when the same corpus, queries and settings would give other cells."""
_NO_BGE_M3: Final = "BGE-M3 is not measured yet: its weights are on the model hub only"


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
            lambda: comparison_findings(
                values, restructurer(self._workspace), self._workspace.scorer_name, self._queries
            ),
        )

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
        if key.representation == "bge-m3-chunk-256":
            return _NO_BGE_M3
        if RECIPES[key.representation].text == "restructured" and not self._workspace.has_corpus("full"):
            return "nothing is restructured: mode = full"
        if key.pipeline == RERANKED and self._workspace.settings.retrieval_options.scorer == "none":
            return "nothing scores sections: retrieval.scorer"
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
            "retrieval": [RETRIEVAL_VERSION, asdict(options)],
            "lexical": [LEXICAL_VERSION, manifest.corpus_version, manifest.lexical_source],
            "scorer": self._scorer(options.scorer, manifest),
            "raw": sealed(workspace, "offline").version,
            "restructured": sealed(workspace, "full").version if variant == "full" else None,
            "metadata": metadata_fingerprint(
                workspace.settings.metadata.options() if is_configured else LITERAL
            ),
            "embedder": workspace.embedder.fingerprint,
            "query_set": queries.fingerprint,
            "types": dict(queries.types) if key.pipeline == RERANKED else None,
        }

    def _scorer(self, scorer: Scorer, manifest: Manifest) -> str:
        """What the section scorer reads beside the embedder: a model, or the build's document frequencies."""
        if scorer == "cross_encoder":
            return model_fingerprint(resolve_model(self._workspace.settings.cross_encoder))
        return manifest.metadata_fingerprint if scorer == "late_interaction" else ""

    def _made(self, key: CellKey, place: CellPlace, reason: str) -> Findings:
        if reason:
            return unavailable(place, reason)
        return cell_findings(
            place,
            self._represented(key.representation),
            self._retriever(_variant(key.representation)),
            self._queries,
            self._workspace.progress,
        )

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
        restructured = self._documents("full") if workspace.has_corpus("full") else []
        return Corpus(raw, restructured, workspace.settings.metadata.options(), workspace.embedder.tokenizer)

    def _documents(self, variant: str) -> list[Document]:
        return list(loaded(self._workspace, variant, sealed(self._workspace, variant).documents))

    def _represented(self, name: str) -> Embedded:
        if name not in self._embedded:
            workspace = self._workspace
            made = units(name, self._corpus)
            texts = [unit.text for unit in made]
            started = time.monotonic()
            vectors, n_encoded = embed_texts(
                texts, workspace.embedder, workspace.embeddings, workspace.progress
            )
            seconds = time.monotonic() - started
            embedder = workspace.embedder
            cost = amounts(
                texts,
                embedder.tokenizer,
                embedder.dimensions,
                self._lexical_bytes(_variant(name)),
                seconds * len(texts) / n_encoded if n_encoded else None,
            )
            self._embedded[name] = Embedded(PooledVectors([unit.doc_id for unit in made], vectors), cost)
        return self._embedded[name]


def experiment_report(workspace: Workspace) -> ReportContent:
    """The report on an experiment: all cells that are kept, what they say of one another, and the studies of the home."""
    names = [*(_study_name(key) for key in CELLS), "experiment_comparisons"]
    found = [study for name in names if (study := read_study(workspace.home.study(name))) is not None]
    content = home_report(workspace, without=("retrieval_quality",), more=found)
    return replace(content, costs=_each_once(content.costs))


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
