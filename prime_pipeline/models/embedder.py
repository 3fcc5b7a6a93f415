"""Texts to vectors: one per text, or one per token.

The protocol is what the rest of the pipeline knows of an embedder. Vectors of documents are neither cached nor stored here.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.models.loading import quiet_loading
from prime_pipeline.models.location import (
    EMBEDDED_MODEL,
    model_fingerprint,
    read_config,
    require_files,
    resolve_model,
)
from prime_pipeline.models.tokenizer import EncoderTokenizer, Span, Tokenizer

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Vectors = NDArray[np.float32]
OnProgress = Callable[[int], None]

# From the model card of BGE v1.5; the published folders do not carry it.
_BGE_QUERY_PREFIX = "Represent this sentence for searching relevant passages: "
_QUERIES_KEPT = 4096
# All of QASPER's test set; a query of ordinary length takes some 25 kB.
_QUERY_TOKENS_KEPT = 1536
"""Vectors of queries that are kept in memory: several systems are asked the same ones."""
_BGE_NAME = re.compile(r"bge-(small|base|large)-en-v1\.5", re.IGNORECASE)


class Embedder(Protocol):
    """A text encoder. Every vector is float32 and of unit length, so a dot product is a cosine.

    All methods may be called from several threads at once.
    """

    @property
    def name(self) -> str:
        """For people; the fingerprint tells two models apart."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same text may get another vector."""

    @property
    def runtime(self) -> Mapping[str, str | float]:
        """What computes the vectors (``backend``), and what is known of how well; written down with every build."""

    @property
    def dimensions(self) -> int:
        """Components of a vector."""

    @property
    def window_tokens(self) -> int:
        """The most tokens read of a text, special ones included; the rest is ignored."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Counts, cuts and splits in the encoder's own tokens."""

    def encode(self, texts: Sequence[str], on_progress: OnProgress | None = None) -> Vectors:
        """Vectors of documents, (n_texts, dimensions), in the order of the texts.

        ``on_progress`` is called with the number of texts done so far.
        """

    def encode_query(self, text: str) -> Vectors:
        """The vector of a query, (dimensions,)."""

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """Per text the vectors of its tokens in order, (n_tokens, dimensions), without special tokens."""

    def query_token_vectors(self, text: str) -> tuple[Vectors, list[Span]]:
        """The vectors of a query's tokens, (n_tokens, dimensions), and the characters that each token covers."""


class SentenceTransformerEmbedder:
    """A sentence-transformers model on this machine.

    Everything but the vectors is known without torch, which is imported, with the weights, at the first encoding.

    With ``batch_size=1``, the default, a text's vector depends on the text alone: the same text gets the same bits
    in whatever company it is encoded, so an index built anew equals one brought up to date. In larger batches the
    company moves components by about 1e-7. On a CPU single texts cost up to a quarter more time for passages; raise
    the size for a GPU. (Another number of threads or another processor also moves the last bits.)

    Args:
        model: See :func:`~prime_pipeline.models.location.resolve_model`.
        device: A torch device.
        batch_size: Texts per forward pass.
        query_prefix: Put in front of queries only; by default what the model asks for: the ``query`` prompt of its
            configuration, or the instruction of the English BGE v1.5 models.

    Attributes:
        name: The model's name; of a local folder the last part.
        fingerprint: See :func:`~prime_pipeline.models.location.model_fingerprint`.
        dimensions: Components of a vector.
        tokenizer: The model's own.
        query_prefix: In use for queries.
        document_prefix: In use for all other texts: the model's ``document`` or ``passage`` prompt, mostly empty.

    Raises:
        ModelNotFound: See :func:`~prime_pipeline.models.location.resolve_model`.
        ModelError: The model's files are damaged; for the weights this shows at the first encoding.
    """

    def __init__(
        self,
        model: str = EMBEDDED_MODEL,
        *,
        device: str = "cpu",
        batch_size: int = 1,
        query_prefix: str | None = None,
    ) -> None:
        if batch_size < 1:
            msg = f"batch_size is {batch_size}, expected 1 or more"
            raise ValueError(msg)
        self._directory = resolve_model(model)
        require_files(self._directory, "config.json", "tokenizer.json")
        self.name = self._directory.name if Path(model).expanduser().is_dir() else model
        self.fingerprint = model_fingerprint(self._directory)
        self.dimensions = _dimensions(self._directory)
        self.tokenizer = EncoderTokenizer(self._directory)
        prompts = read_config(self._directory, "config_sentence_transformers.json").get("prompts") or {}
        self.document_prefix: str = prompts.get("document") or prompts.get("passage") or ""
        own_prefix = prompts.get("query") or (_BGE_QUERY_PREFIX if _BGE_NAME.search(self.name) else "")
        self.query_prefix: str = own_prefix if query_prefix is None else query_prefix
        self._device, self._batch_size = device, batch_size
        self._model: SentenceTransformer | None = None
        self._lock = threading.Lock()
        self._encode_query = lru_cache(_QUERIES_KEPT)(self._encode_query_now)
        self._query_tokens = lru_cache(_QUERY_TOKENS_KEPT)(self._query_tokens_now)

    @property
    def runtime(self) -> Mapping[str, str | float]:
        """See :attr:`Embedder.runtime`."""
        return {"backend": "torch"}

    @property
    def window_tokens(self) -> int:
        """The most tokens read of a text, prefix and special ones included."""
        return self.tokenizer.window

    def encode(self, texts: Sequence[str], on_progress: OnProgress | None = None) -> Vectors:
        """See :meth:`Embedder.encode`. Longest texts first, so a progress bar errs on the slow side."""
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        n_done = 0
        for batch in self._batches(texts):
            rows[batch] = self._infer([texts[i] for i in batch], self.document_prefix, "sentence_embedding")
            n_done += len(batch)
            if on_progress:
                on_progress(n_done)
        return rows

    def encode_query(self, text: str) -> Vectors:
        """See :meth:`Embedder.encode_query`. The vectors of the last queries are kept, and may not be written to."""
        return self._encode_query(text)

    def _encode_query_now(self, text: str) -> Vectors:
        vector = self._infer([text], self.query_prefix, "sentence_embedding")[0]
        vector.flags.writeable = False  # several callers share it
        return vector

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """See :meth:`Embedder.token_vectors`. A text's tokens beyond the window have none."""
        found: list[Vectors] = [np.empty((0, self.dimensions), dtype=np.float32)] * len(texts)
        for batch in self._batches(texts):
            pieces = self._token_vectors([texts[i] for i in batch], self.document_prefix)
            for i, (vectors, _) in zip(batch, pieces, strict=True):
                found[i] = vectors
        return found

    def query_token_vectors(self, text: str) -> tuple[Vectors, list[Span]]:
        """See :meth:`Embedder.query_token_vectors`.

        The prefix is read by the encoder but has no vectors of its own; spans count from the start of ``text``. Of a
        query longer than the window the tokens inside it are returned. Those of the last queries are kept, and may not
        be written to.
        """
        vectors, spans = self._query_tokens(text)
        return vectors, list(spans)

    def _query_tokens_now(self, text: str) -> tuple[Vectors, list[Span]]:
        vectors, spans = self._token_vectors([text], self.query_prefix)[0]
        vectors.flags.writeable = False  # several callers share them
        return vectors, spans

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
        for start in range(0, len(order), self._batch_size):
            yield order[start : start + self._batch_size]

    def _token_vectors(self, texts: list[str], prefix: str) -> list[tuple[Vectors, list[Span]]]:
        all_spans = self.tokenizer.window_spans([prefix + text for text in texts])
        rows = self._infer(texts, prefix, "token_embeddings")
        results = []
        for vectors, spans in zip(rows, all_spans, strict=True):
            kept = {i: span for i, span in enumerate(spans) if span is not None and span[1] > len(prefix)}
            shifted = [(max(0, start - len(prefix)), end - len(prefix)) for start, end in kept.values()]
            results.append((vectors[list(kept)], shifted))
        return results

    def _infer(
        self, texts: list[str], prefix: str, output: Literal["sentence_embedding", "token_embeddings"]
    ) -> list[Vectors]:
        # One forward pass at a time: torch uses all cores for it anyway, and the model's tokenizer is not safe to
        # share. Batches of several callers take turns, so a query waits for one batch and not for a whole corpus.
        with self._lock:
            rows: Any = self._loaded().encode(
                texts,
                prompt=prefix,
                batch_size=len(texts),
                output_value=output,
                convert_to_numpy=False,
                show_progress_bar=False,
            )
        return [unit_rows(row.float().cpu().numpy()) for row in rows]

    def _loaded(self) -> SentenceTransformer:
        if self._model is None:
            from sentence_transformers import SentenceTransformer

            with quiet_loading(self._directory):
                model = SentenceTransformer(str(self._directory), device=self._device, local_files_only=True)
            model.max_seq_length = self.tokenizer.window
            self._model = model
        return self._model


def unit_rows(vectors: Vectors) -> Vectors:
    """The same directions, (n, dim) or (dim,), in unit length."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Vectors = (vectors / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
    return unit


def _dimensions(directory: Path) -> int:
    """The width of the last module that names one: hidden layers, then pooling, then a projection if there is one."""
    width: int = read_config(directory, "config.json").get("hidden_size", 0)
    for path in sorted(directory.glob("[0-9]*_*/config.json")):
        config = read_config(path.parent, path.name)
        for key in ("word_embedding_dimension", "embedding_dimension", "out_features"):
            width = config.get(key, width)
    return width
