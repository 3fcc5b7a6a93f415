"""How long a query takes by the size of the corpus, by arm and stage; prints Markdown tables.

    python benchmarks/query_latency.py --data DIR/qasper-mini/qasper-mini.json --documents 1000 10000 100000

Each size is a build of synthetic documents (see ``synthetic.py``), published and opened as any other; it is built in one process
and asked in another, whose peaks are the memory, and all are built before the first is asked. Vectors, of documents, queries and tokens, are random unit vectors in
the dimensions of the embedded model, as many as its tokenizer finds tokens: no search or scoring time depends on
their values, and so no query is encoded here. Every query is asked once before it is timed: files are in the page cache, and
the token vectors of its sections in their cache.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from synthetic import SyntheticCorpus, doc_id_of

from prime_pipeline.indexes.builds import LEXICAL_FILE, METADATA_FILE, BuildPlan, Builds
from prime_pipeline.indexes.lexical import build_lexical_index
from prime_pipeline.indexes.vectors import VectorIndex, VectorOptions, build_vector_index
from prime_pipeline.models.location import EMBEDDED_MODEL, resolve_model
from prime_pipeline.models.tokenizer import EncoderTokenizer, Span
from prime_pipeline.records import Document, DocumentMetadata
from prime_pipeline.retrieval.fusion import reciprocal_rank_fusion
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.retrieval.scorers import LateInteractionScorer
from prime_pipeline.retrieval.stage1 import Candidates, best_sections_by_document, find_candidates
from prime_pipeline.retrieval.stage2 import cheap_order
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.memory_cache import MemoryCache
from prime_pipeline.storage.metadata_file import write_metadata
from prime_pipeline.storage.seal import SealedCorpus
from prime_pipeline.text.words import term_words

DIMENSIONS = 384
OPTIONS = RetrievalOptions()
ROUNDS = 3

Vectors = NDArray[np.float32]


class RandomVectors:
    """An embedder whose vectors are random, with the tokenizer of the embedded model."""

    name = "random vectors"
    fingerprint = "random vectors"
    runtime: Mapping[str, str | float] = {"backend": "random"}
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self.tokenizer = EncoderTokenizer(resolve_model(EMBEDDED_MODEL))
        self.window_tokens = self.tokenizer.window

    def encode(self, texts: Sequence[str], on_progress: Callable[[int], None] | None = None) -> Vectors:
        del on_progress
        return np.concatenate([random_unit_vectors(text, 1) for text in texts])

    def encode_query(self, text: str) -> Vectors:
        return query_vector(text)

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        return [self.tokens(text)[0] for text in texts]

    def query_token_vectors(self, text: str) -> tuple[Vectors, list[Span]]:
        return query_tokens(self, text)

    def tokens(self, text: str) -> tuple[Vectors, list[Span]]:
        spans = [span for span in self.tokenizer.window_spans([text])[0] if span is not None]
        return random_unit_vectors(text, len(spans)), spans


# Queries are encoded before anything is timed; the real embedder keeps what it has encoded, too.
@cache
def query_vector(text: str) -> Vectors:
    vector: Vectors = random_unit_vectors(text, 1)[0]
    return vector


@cache
def query_tokens(embedder: RandomVectors, text: str) -> tuple[Vectors, list[Span]]:
    return embedder.tokens(text)


def random_unit_vectors(seed: str, n: int) -> Vectors:
    chance = np.random.default_rng(
        int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big")
    )
    vectors = chance.standard_normal((n, DIMENSIONS), dtype=np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


@dataclass(frozen=True)
class Built:
    """A published build: where, how large, what making it took."""

    folder: Path
    n_documents: int
    n_sections: int
    lexical_bytes: int
    search: str
    seconds: Mapping[str, float]
    peak_bytes: int


@dataclass(frozen=True)
class Asked:
    """Milliseconds of every query by stage, seconds to open the build, and bytes of memory before and at the end."""

    milliseconds: Mapping[str, Sequence[float]]
    open_s: float
    opened_bytes: int
    peak_bytes: int


def build(data: Path, folder: Path, n_documents: int) -> Built:
    """Publish a build of the first documents below a folder."""
    corpus = SyntheticCorpus(data)
    frequencies: Counter[str] = Counter()
    numbers = {doc_id_of(number): number for number in range(n_documents)}

    def load(doc_id: str, version: str) -> Document:
        del version
        document = corpus.text(numbers[doc_id]).document
        frequencies.update(set(term_words(document.text)))
        return document

    versions = tuple((doc_id, doc_id) for doc_id in sorted(numbers))
    plan = BuildPlan(
        variant="offline",
        corpus=SealedCorpus(fingerprint(versions), versions),
        metadata_fingerprint="none",
        embedder_name=RandomVectors.name,
        embedder_fingerprint=RandomVectors.fingerprint,
        profile="embedded",
        vector_options=VectorOptions(),
    )
    builds = Builds(folder)
    staging = builds.staging(plan.build_id)
    seconds = {}
    started = time.perf_counter()
    lexical = build_lexical_index(staging / LEXICAL_FILE, versions, load)
    seconds["lexical index, generating included"] = time.perf_counter() - started
    write_metadata(
        staging / METADATA_FILE, (DocumentMetadata(i, (), (), i) for i, _ in versions), frequencies
    )
    started = time.perf_counter()
    ids = [doc_id for doc_id, _ in versions]
    vectors = build_vector_index(
        staging, ids, random_unit_vectors("documents", n_documents), plan.vector_options
    )
    seconds["vector index"] = time.perf_counter() - started
    builds.publish(plan)
    path = builds.path(plan.build_id)
    return Built(
        folder=path,
        n_documents=n_documents,
        n_sections=lexical.n_sections,
        lexical_bytes=(path / LEXICAL_FILE).stat().st_size,
        search=vectors.search,
        seconds=seconds,
        peak_bytes=peak_bytes(),
    )


def ask(data: Path, folder: Path, n_documents: int, n_queries: int) -> Asked:
    """Ask a build and time it."""
    corpus, embedder = SyntheticCorpus(data), RandomVectors()
    queries = [corpus.query(number, n_documents) for number in range(n_queries)]
    with closing(BlobCache(folder.parent.parent / "token_vectors.sqlite")) as on_disk:
        in_memory = MemoryCache(on_disk, load_settings().token_vector_memory_bytes)
        started = time.perf_counter()
        with Retriever(folder, embedder, in_memory, OPTIONS) as retriever:
            open_s = time.perf_counter() - started
            opened_bytes = peak_bytes()
            vectors = VectorIndex(folder)
            scorers = {
                name: LateInteractionScorer(embedder, cache, retriever.idf, OPTIONS.windows_per_section)
                for name, cache in (("in memory", in_memory), ("on disk", on_disk))
            }
            for query in queries:
                retriever.search(query)
                dict(timed(query, retriever, vectors, embedder, scorers))
            milliseconds: dict[str, list[float]] = {}
            for _ in range(ROUNDS):
                for query in queries:
                    for stage, taken in timed(query, retriever, vectors, embedder, scorers):
                        milliseconds.setdefault(stage, []).append(taken)
    return Asked(milliseconds, open_s, opened_bytes, peak_bytes())


def timed(
    query: str,
    retriever: Retriever,
    vectors: VectorIndex,
    embedder: RandomVectors,
    scorers: Mapping[str, LateInteractionScorer],
) -> Iterator[tuple[str, float]]:
    """Milliseconds of each stage of one query."""
    lexical, depth = retriever.lexical, OPTIONS.arm_depth
    query_vector = embedder.encode_query(query)

    def once(work: Callable[[], Any]) -> tuple[Any, float]:
        started = time.perf_counter()
        result = work()
        return result, 1e3 * (time.perf_counter() - started)

    documents, taken = once(lambda: lexical.search_documents(query, depth))
    yield "document BM25", taken
    by_section, taken = once(lambda: best_sections_by_document(lexical, lexical.score_sections(query), depth))
    yield "section BM25", taken
    by_vector, taken = once(lambda: vectors.search(query_vector, depth))
    yield "metadata vectors", taken
    rankings = [[doc_id for doc_id, _ in arm] for arm in (documents, by_section, by_vector)]
    _, taken = once(lambda: reciprocal_rank_fusion(rankings, OPTIONS.rrf_k))
    yield "fusion", taken
    found, taken = once(lambda: find_candidates(query, lexical, vectors, embedder, OPTIONS))
    yield "**stage 1**", taken
    candidates: Candidates = found
    ordered, taken = once(lambda: cheap_order(lexical, candidates, OPTIONS.n_candidates))
    yield "cheap order of sections", taken
    best = ordered[: OPTIONS.rerank_budget]
    sections, taken = once(lambda: [lexical.stored_section(at) for at, _ in best])
    yield "reading 48 sections", taken
    for name, scorer in scorers.items():
        _, taken = once(partial(scorer.score, query, sections))
        yield f"late interaction over 48 sections, vectors {name}", taken
    _, taken = once(lambda: retriever.search(query))
    yield "**search**, vectors in memory", taken


def peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def in_own_process(function: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def print_latency(builds: Sequence[Built], asked: Sequence[Asked], n_queries: int) -> None:
    print(
        f"Milliseconds of {n_queries} queries, {ROUNDS} times each: median (95th percentile), ratio of medians to the first size\n"
    )
    print("| stage | " + " | ".join(f"{b.n_documents:,} documents | ratio" for b in builds) + " |")
    print("| --- |" + " ---: | ---: |" * len(builds))
    for stage, smallest in asked[0].milliseconds.items():
        cells = []
        for found in asked:
            times = found.milliseconds[stage]
            ratio = median(times) / median(smallest)
            cells.append(f"{median(times):.2f} ({np.quantile(times, 0.95):.2f}) | {ratio:.1f}")
        print(f"| {stage} | " + " | ".join(cells) + " |")


def print_builds(builds: Sequence[Built], asked: Sequence[Asked]) -> None:
    print(
        "\n| documents | sections | lexical index, MB | vector search | opening, s | peak of building, MB "
        "| peak once opened, MB | peak after all queries, MB |"
    )
    print("| ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for built, found in zip(builds, asked, strict=True):
        numbers = [built.peak_bytes, found.opened_bytes, found.peak_bytes]
        print(
            f"| {built.n_documents:,} | {built.n_sections:,} | {built.lexical_bytes / 1e6:,.0f} | {built.search} "
            f"| {found.open_s:.2f} | " + " | ".join(f"{n / 1e6:,.0f}" for n in numbers) + " |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="qasper-mini.json")
    parser.add_argument("--documents", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument(
        "--folder", type=Path, help="where builds are made; by default below the system's temporary folder"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        builds = [in_own_process(build, given.data, Path(folder) / f"{n}", n) for n in given.documents]
        asked = [in_own_process(ask, given.data, b.folder, b.n_documents, given.queries) for b in builds]
    print_latency(builds, asked, given.queries)
    print_builds(builds, asked)


if __name__ == "__main__":
    main()
