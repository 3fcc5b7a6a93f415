"""Scores of (query, text) pairs by a model that reads both at once.

Long texts are read in windows here, so no caller has to know how much the model reads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.errors import ModelError
from prime_pipeline.models.loading import load_pair_model
from prime_pipeline.models.location import model_fingerprint, read_config, resolve_model
from prime_pipeline.models.tokenizer import EncoderTokenizer

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class CrossEncoderScorer:
    """A cross-encoder on this machine. Safe to share between threads.

    Torch and the weights are loaded at the first scoring.

    Args:
        model: See :func:`~prime_pipeline.models.location.resolve_model`.
        device: A torch device.
        overlap_tokens: About how many tokens of a window are read again in the next one, so that a passage at a cut
            is seen whole; at most half of the room beside the query.

    Attributes:
        name: The model's name; of a local folder the last part.
        fingerprint: See :func:`~prime_pipeline.models.location.model_fingerprint`.
        tokenizer: The model's own. Its ``window`` holds query, text and special tokens together.

    Raises:
        ModelNotFound: See :func:`~prime_pipeline.models.location.resolve_model`.
        ModelError: The model's files are damaged, or it has more outputs than the one score of a reranker.
    """

    def __init__(self, model: str, *, device: str = "cpu", overlap_tokens: int = 32) -> None:
        self._directory = resolve_model(model)
        self.tokenizer = EncoderTokenizer(self._directory)
        _require_one_output(self._directory)
        self.name = self._directory.name if Path(model).expanduser().is_dir() else model
        self.fingerprint = model_fingerprint(self._directory)
        self._device, self._overlap_tokens = device, overlap_tokens
        self._model: CrossEncoder | None = None
        self._lock = threading.Lock()

    def score(self, query: str, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Raw logits, (n_texts,), higher is better; comparable only within one query.

        A text that does not fit beside the query is read in windows and gets the best window's score. Equal texts get
        equal scores within one call; in other company a score may move by about 1e-6.
        """
        if batch_size < 1:
            msg = f"batch_size is {batch_size}, expected 1 or more"
            raise ValueError(msg)
        query = self.fit_query(query)
        windows = [self.windows(query, text) for text in texts]
        distinct = sorted({w for of_text in windows for w in of_text}, key=lambda w: (-len(w), w))
        scores: dict[str, float] = {}
        for start in range(0, len(distinct), batch_size):
            batch = distinct[start : start + batch_size]
            scores.update(zip(batch, self._predict(query, batch), strict=True))
        return np.array([max(scores[w] for w in of_text) for of_text in windows], dtype=np.float32)

    def fit_query(self, query: str) -> str:
        """The query as it is read: one that takes more than half of the model's window is cut to that half.

        Otherwise a long question would leave its texts no room, or slice them too thin to be judged.
        """
        return self.tokenizer.windows(query, max(1, self.tokenizer.window // 2) + self.tokenizer.n_special)[0]

    def windows(self, query: str, text: str) -> list[str]:
        """The pieces of a text that are read beside a query that :meth:`fit_query` let pass; at least one."""
        n_query = self.tokenizer.count([query])[0] - self.tokenizer.n_special
        room = max(1, self.tokenizer.window - self.tokenizer.n_special_pair - n_query)
        overlap = min(self._overlap_tokens, room // 2)
        return self.tokenizer.windows(text, room + self.tokenizer.n_special, overlap)

    def _predict(self, query: str, texts: list[str]) -> Iterator[float]:
        # Callers take turns batch by batch: torch uses all cores for one, and the model's tokenizer is not safe to
        # share.
        with self._lock:
            scores = self._loaded().predict(
                [(query, text) for text in texts], batch_size=len(texts), show_progress_bar=False
            )
        return iter(scores.tolist())

    def _loaded(self) -> CrossEncoder:
        if self._model is None:
            self._model = load_pair_model(self._directory, self._device, self.tokenizer.window)
        return self._model


def _require_one_output(directory: Path) -> None:
    n_outputs = len(
        read_config(directory, "config.json").get("id2label", (0, 1))
    )  # the library's default is two
    if n_outputs != 1:
        raise ModelError(
            f"model folder {directory} has {n_outputs} outputs per pair, a reranker has one: choose a cross-encoder that "
            "was trained for ranking"
        )
