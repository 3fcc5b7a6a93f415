"""What fewer dimensions of token vectors would cost; prints one Markdown table a home.

    python benchmarks/token_dimensions.py --axes CORPUS HOME [HOME ...]

A home is one that was refreshed with queries. Token vectors of sections and queries are turned into their first coordinates
along the principal axes of the tokens of another corpus, and kept in 8 bits as ever. NDCG@5 after the best 48 sections were scored;
differences are to all dimensions.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import fmean

import numpy as np
from captured import Captured, capture, difference, shown
from fusion import BUDGET, PLAIN, scored
from numpy.typing import NDArray

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.source import SourceEntry
from prime_pipeline.indexes.lexical import StoredSection
from prime_pipeline.models.embedder import Embedder, SentenceTransformerEmbedder, Vectors
from prime_pipeline.models.late_interaction import dequantise, quantise
from prime_pipeline.models.tokenizer import Span
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.retrieval.scorers import LateInteractionScorer
from prime_pipeline.retrieval.token_vectors import QuantisedVectors, TokenVectors
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.blob_cache import Cache
from prime_pipeline.workspace import Workspace

DIMENSIONS = (256, 192, 128, 96, 64)
N_DOCUMENTS = 150
"""Of the other corpus; the beginning of each is read."""

Axes = NDArray[np.float32]
"""(dimensions of the model, dimensions kept)."""


class ShortQueries(SentenceTransformerEmbedder):
    """An embedder whose token vectors of queries are along axes."""

    def __init__(self, axes: Axes) -> None:
        super().__init__()
        self._axes = axes

    def query_token_vectors(self, text: str) -> tuple[Vectors, list[Span]]:
        vectors, spans = super().query_token_vectors(text)
        return vectors @ self._axes, spans


class ShortVectors(TokenVectors):
    """Token vectors of sections along axes."""

    def __init__(self, embedder: Embedder, cache: Cache, axes: Axes) -> None:
        super().__init__(embedder, cache)
        self._axes = axes

    def kept(self, windows: Iterable[str]) -> dict[str, QuantisedVectors]:
        found = super().kept(windows)
        return {window: quantise(dequantise(vectors) @ self._axes) for window, vectors in found.items()}


def principal_axes(location: str) -> Axes:
    """All axes, those along which tokens of a corpus lie furthest from the origin first."""
    entries = (entry for entry in open_corpus(location).entries() if isinstance(entry, SourceEntry))
    embedder = SentenceTransformerEmbedder()
    texts = [entry.parse().text for entry in islice(entries, N_DOCUMENTS)]
    tokens = np.concatenate(embedder.token_vectors(embedder.tokenizer.fit(texts)))
    return np.asarray(np.linalg.svd(tokens.T @ tokens)[0], dtype=np.float32)


def rescored(
    captured: Captured, scorer: LateInteractionScorer, sections: Sequence[StoredSection]
) -> Captured:
    """The same queries with another scorer's word on the sections that are scored."""
    queries = []
    for query in captured.queries:
        positions = captured.cheap_order(query, query.fused(PLAIN))[:BUDGET]
        own = np.full(len(sections), np.nan)
        own[positions] = scorer.score(query.text, [sections[at] for at in positions])
        queries.append(replace(query, own=own))
    return replace(captured, queries=queries)


def shortened(retriever: Retriever, cache: Cache, axes: Axes) -> LateInteractionScorer:
    embedder = ShortQueries(axes)
    scorer = LateInteractionScorer(embedder, cache, retriever.idf, RetrievalOptions().windows_per_section)
    scorer.token_vectors = ShortVectors(embedder, cache, axes)
    return scorer


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--axes", required=True, help="the other corpus, as for prime refresh --corpus")
    parser.add_argument("homes", nargs="+", type=Path)
    given = parser.parse_args()
    axes = principal_axes(given.axes)
    for home in given.homes:
        captured = capture(home)
        base = scored(captured, (1.0, 0.0))
        clusters = {query_id: captured.clusters[query_id] for query_id in base}
        print(f"\n{home.name}\n\n| dimensions | NDCG@5 | difference |\n| ---: | ---: | ---: |")
        print(f"| {len(axes)} | {fmean(base.values()):.4f} | |")
        with (
            closing(Workspace(load_settings({"home": home}))) as workspace,
            workspace.retriever("offline") as retriever,
        ):
            sections = list(retriever.lexical.iterate_sections())
            for kept in DIMENSIONS:
                scorer = shortened(retriever, workspace.token_vectors, axes[:, :kept])
                values = scored(rescored(captured, scorer, sections), (1.0, 0.0))
                change = shown(difference(values, base, clusters))
                print(f"| {kept} | {fmean(values.values()):.4f} | {change} |", flush=True)


if __name__ == "__main__":
    main()
