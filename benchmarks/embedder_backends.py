"""Speed of ways to run the embedded model on this processor, one text at a time, and how far each agrees with torch.

On the 50 papers of qasper-mini: windows of sections and metadata texts, as an index encodes them, and questions. Ways take turns
in random order in every round, so that a change of the machine's load meets all of them. Agreement and NDCG@5 are of the cosines
of all questions with all metadata texts.

    PRIME_TEST_DATA=DIR python benchmarks/embedder_backends.py
"""

from __future__ import annotations

import os
import random
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.source import SourceEntry
from prime_pipeline.datasets.queries import QuerySet, load_query_set
from prime_pipeline.evaluation.measures import evaluate
from prime_pipeline.evaluation.statistics import paired_differences
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.synthesis import synthesise
from prime_pipeline.models.agreement import agreement_of
from prime_pipeline.models.embedder import Embedder, SentenceTransformerEmbedder, Vectors, unit_rows
from prime_pipeline.models.onnx_embedder import open_onnx_embedder
from prime_pipeline.models.onnx_export import Output
from prime_pipeline.models.processor import processor
from prime_pipeline.records import Document

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

ROUNDS, N_PASSAGES, N_QUERIES = 9, 6, 24
TORCH = "`torch`"


class Direct(SentenceTransformerEmbedder):
    """Torch without what sentence-transformers does around a forward pass."""

    def _infer(self, texts: list[str], prefix: str, output: Output) -> list[Vectors]:
        import torch

        (text,) = texts
        with self._lock, torch.inference_mode():
            ids = torch.tensor([self.tokenizer.window_ids(prefix + text)])
            features = {"input_ids": ids, "token_type_ids": torch.zeros_like(ids)}
            found = self._loaded()({**features, "attention_mask": torch.ones_like(ids)})
        return [unit_rows(found[output][0].numpy())]


class TorchInt8(SentenceTransformerEmbedder):
    """Torch's own dynamic quantisation of linear layers."""

    def _loaded(self) -> SentenceTransformer:
        import torch

        if self._model is None:
            model = super()._loaded()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it is deprecated
                quantise: Any = torch.ao.quantization.quantize_dynamic
                quantise(model, {torch.nn.Linear}, dtype=torch.qint8, inplace=True)
        return super()._loaded()


def contenders(folder: Path) -> dict[str, Embedder]:
    return {
        TORCH: SentenceTransformerEmbedder(),
        "torch, called directly": Direct(),
        "torch, dynamic int8": TorchInt8(),
        "`onnx`": open_onnx_embedder(folder),
        "`int8`": open_onnx_embedder(folder, backend="int8"),
    }


def milliseconds(embedder: Embedder, texts: Sequence[str]) -> float:
    """Per text; the first is encoded once more before."""
    embedder.encode(texts[:1])
    started = time.perf_counter()
    embedder.encode(texts)
    return (time.perf_counter() - started) / len(texts) * 1_000


def timed(
    ways: Mapping[str, Embedder], kinds: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, list[float]]]:
    """Milliseconds per text by kind of text, way and round."""
    found: dict[str, dict[str, list[float]]] = {kind: {name: [] for name in ways} for kind in kinds}
    chance = random.Random(0)
    for _ in range(ROUNDS):
        for name in chance.sample(list(ways), len(ways)):
            for kind, texts in kinds.items():
                found[kind][name].append(milliseconds(ways[name], texts))
    return found


def speed(times: Mapping[str, list[float]], name: str) -> str:
    """Median milliseconds, and ratio of medians to torch with the span of the rounds' ratios."""
    ratios = sorted(base / own for base, own in zip(times[TORCH], times[name], strict=True))
    ratio = median(times[TORCH]) / median(times[name])
    return f"{median(times[name]):.1f} ms, {ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def ndcg(scores: NDArray[np.float32], doc_ids: Sequence[str], queries: QuerySet) -> Mapping[str, float]:
    run = {
        query.query_id: dict(zip(doc_ids, map(float, row), strict=True))
        for query, row in zip(queries.queries, scores, strict=True)
    }
    return evaluate(run, queries.qrels, ("ndcg@5",)).per_query["ndcg@5"]


def documents_at(location: str) -> list[Document]:
    return [entry.parse() for entry in open_corpus(location).entries() if isinstance(entry, SourceEntry)]


def main() -> None:
    location = str(Path(os.environ["PRIME_TEST_DATA"]) / "qasper-mini" / "qasper-mini.json")
    documents, queries = documents_at(location), load_query_set(location)
    tokenizer = SentenceTransformerEmbedder().tokenizer
    metadata = synthesise(documents, MetadataOptions(), tokenizer).metadata
    windows = [
        w
        for doc in documents
        for part in doc.sections
        for w in tokenizer.windows(part.text, tokenizer.window)
    ]
    chance = random.Random(0)
    kinds = {
        "windows": chance.sample([w for w in windows if tokenizer.count([w])[0] >= 200], N_PASSAGES),
        "metadata": chance.sample([item.text for item in metadata], N_PASSAGES),
        "queries": [query.text for query in chance.sample(queries.queries, N_QUERIES)],
    }
    with tempfile.TemporaryDirectory() as folder:
        ways = contenders(Path(folder))
        times = timed(ways, kinds)
        scores = {
            name: embedder.encode([query.text for query in queries.queries])
            @ embedder.encode([item.text for item in metadata]).T
            for name, embedder in ways.items()
        }
    values = {
        name: ndcg(table, [item.doc_id for item in metadata], queries) for name, table in scores.items()
    }
    differences = paired_differences(
        values, [(name, TORCH) for name in ways if name != TORCH], queries.clusters
    )
    print(f"{processor()}; tokens per text: ", end="")
    print(", ".join(f"{kind} {np.mean(tokenizer.count(list(texts))):.0f}" for kind, texts in kinds.items()))
    print()
    print("| | windows | metadata | queries | rank correlation | largest difference | NDCG@5 | difference |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in ways:
        agreement = agreement_of(scores[name], scores[TORCH])
        speeds = " | ".join(speed(times[kind], name) for kind in kinds)
        mean = np.mean(list(values[name].values()))
        d = differences.get((name, TORCH))
        difference = f"{d.difference:+.4f} [{d.low:+.4f}, {d.high:+.4f}]" if d else ""
        print(
            f"| {name} | {speeds} | {agreement.rank_correlation:.4f} | {agreement.max_difference:.4f} | {mean:.4f} | {difference} |"
        )


if __name__ == "__main__":
    main()
