"""Whether a text contradicts what it was made from, by a model of natural language inference (NLI).

Long premises are read in windows here, so no caller has to know how much the model reads. What a contradiction means for
a rewritten section is for others to say.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.errors import ModelError
from prime_pipeline.models.loading import load_pair_model
from prime_pipeline.models.location import model_fingerprint, read_config, resolve_model
from prime_pipeline.models.tokenizer import EncoderTokenizer
from prime_pipeline.text.sentences import sentence_spans

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Pair = tuple[str, str]
"""A premise of any length, and a hypothesis of about one sentence."""

_MAX_KEPT: Final = 8
"""Premises whose sentences are kept: all sentences of a section come with the same one."""


class ContradictionModel(Protocol):
    """What an audit needs to know of an NLI model."""

    @property
    def name(self) -> str:
        """For reports."""

    @property
    def fingerprint(self) -> str:
        """Two of one fingerprint find the same."""

    def contradiction_probabilities(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """For each pair the probability, (n_pairs,), that the premise contradicts the hypothesis."""

    def is_cut(self, hypothesis: str) -> bool:
        """Whether the hypothesis is too long to be read whole."""


class NliModel:
    """A sequence classifier of premise and hypothesis on this machine. Safe to share between threads.

    Torch and the weights are loaded at the first pair.

    Args:
        model: See :func:`~prime_pipeline.models.location.resolve_model`.
        device: A torch device.
        batch_size: Pairs that are read at once, 1 or more.

    Attributes:
        name: The model's name; of a local folder the last part.
        fingerprint: See :func:`~prime_pipeline.models.location.model_fingerprint`.
        tokenizer: The model's own. Its ``window`` holds premise, hypothesis and special tokens together.

    Raises:
        ModelNotFound: See :func:`~prime_pipeline.models.location.resolve_model`.
        ModelError: The model's files are damaged, or its labels do not name contradiction and entailment.
    """

    def __init__(self, model: str, *, device: str = "cpu", batch_size: int = 16) -> None:
        if batch_size < 1:
            msg = f"batch_size is {batch_size}, expected 1 or more"
            raise ValueError(msg)
        self._directory = resolve_model(model)
        self.tokenizer = EncoderTokenizer(self._directory)
        self._contradiction, self._entailment = _label_positions(self._directory)
        self.name = self._directory.name if Path(model).expanduser().is_dir() else model
        self.fingerprint = model_fingerprint(self._directory)
        self._device, self._batch_size = device, batch_size
        self._measured = lru_cache(maxsize=_MAX_KEPT)(self._sentences_with_counts)
        self._model: CrossEncoder | None = None
        self._lock = threading.Lock()

    def contradiction_probabilities(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """For each pair the probability, (n_pairs,), that the premise contradicts the hypothesis.

        A premise that does not fit beside its hypothesis is read in windows, of which the :func:`deciding_window` counts.
        Equal pairs get equal values within one call; in other company a value may move by about 1e-6.
        """
        read = [self._read(*pair) for pair in pairs]
        distinct = sorted({pair for of_pair in read for pair in of_pair}, key=_longest_first)
        found: dict[Pair, NDArray[np.float32]] = {}
        for start in range(0, len(distinct), self._batch_size):
            batch = distinct[start : start + self._batch_size]
            found.update(zip(batch, self._predict(batch), strict=True))
        return np.array(
            [self._decided([found[pair] for pair in of_pair]) for of_pair in read], dtype=np.float32
        )

    def is_cut(self, hypothesis: str) -> bool:
        """Whether :meth:`fit_hypothesis` cuts it."""
        return self.fit_hypothesis(hypothesis) != hypothesis

    def fit_hypothesis(self, hypothesis: str) -> str:
        """The hypothesis as it is read: one of more than half of the model's window is cut to that half."""
        half = max(1, self.tokenizer.window // 2)
        return self.tokenizer.windows(hypothesis, half + self.tokenizer.n_special)[0]

    def windows(self, premise: str, hypothesis: str) -> list[str]:
        """The pieces of a premise that are read beside a hypothesis that :meth:`fit_hypothesis` let pass; at least one.

        A piece is a run of whole sentences, as many as fit; only a sentence that is too long by itself is cut. Every
        sentence is in one piece.
        """
        n_hypothesis = self.tokenizer.count([hypothesis])[0] - self.tokenizer.n_special
        room = max(1, self.tokenizer.window - self.tokenizer.n_special_pair - n_hypothesis)
        runs = [premise[start:end] for start, end in self._runs(premise, room)]
        # Tokens of joined sentences may differ from the sum, so each run is measured again, and long sentences are cut.
        size = room + self.tokenizer.n_special
        return [piece for run in runs for piece in self.tokenizer.windows(run, size)] or [premise]

    def _read(self, premise: str, hypothesis: str) -> list[Pair]:
        hypothesis = self.fit_hypothesis(hypothesis)
        return [(window, hypothesis) for window in self.windows(premise, hypothesis)]

    def _runs(self, premise: str, room: int) -> Iterator[tuple[int, int]]:
        """Spans of consecutive sentences whose tokens together fit the room."""
        run: tuple[int, int] | None = None
        n_tokens = 0
        for (start, end), count in self._measured(premise):
            if run and n_tokens + count > room:
                yield run
                run, n_tokens = None, 0
            run, n_tokens = (run[0] if run else start, end), n_tokens + count
        if run:
            yield run

    def _sentences_with_counts(self, premise: str) -> list[tuple[tuple[int, int], int]]:
        """The sentences, each with its tokens, special ones not included."""
        spans = sentence_spans(premise)
        counts = self.tokenizer.count([premise[start:end] for start, end in spans])
        return [(span, n - self.tokenizer.n_special) for span, n in zip(spans, counts, strict=True)]

    def _decided(self, windows: list[NDArray[np.float32]]) -> np.float32:
        table = np.stack(windows)
        contradiction, entailment = table[:, self._contradiction], table[:, self._entailment]
        decided: np.float32 = contradiction[deciding_window(contradiction, entailment)]
        return decided

    def _predict(self, pairs: list[Pair]) -> NDArray[np.float32]:
        """Label probabilities, (n_pairs, n_labels)."""
        # Callers take turns batch by batch: torch uses all cores for one, and the model's tokenizer is not safe to
        # share.
        with self._lock:
            probabilities: NDArray[np.float32] = self._loaded().predict(
                pairs, batch_size=len(pairs), apply_softmax=True, show_progress_bar=False
            )
        return probabilities

    def _loaded(self) -> CrossEncoder:
        if self._model is None:
            self._model = load_pair_model(self._directory, self._device, self.tokenizer.window)
        return self._model


def deciding_window(contradiction: NDArray[np.float32], entailment: NDArray[np.float32]) -> int:
    """Which window of a premise decides about a hypothesis; of equal ones the earliest.

    If some window entails the hypothesis (probability above one half), the one that does so most: what a part of the
    premise supports is no contradiction, whatever unrelated parts look like. This is the reading of SummaC-ZS (Laban et
    al., "SummaC", TACL 10, 2022). Where no window entails it, the maximum of entailment picks among windows that speak of
    something else and misses the one that contradicts; there the window of the lowest neutral probability decides.

    Args:
        contradiction: Probabilities, (n_windows,).
        entailment: Probabilities, (n_windows,), of the same windows.
    """
    best = int(entailment.argmax())
    return best if entailment[best] > 0.5 else int((contradiction + entailment).argmax())


def _longest_first(pair: Pair) -> tuple[int, Pair]:
    return -len(pair[0]) - len(pair[1]), pair


def _label_positions(directory: Path) -> tuple[int, int]:
    """The outputs of contradiction and entailment."""
    labels = read_config(directory, "config.json").get("id2label") or {}
    try:
        positions = {str(label).strip().lower(): int(position) for position, label in labels.items()}
        return positions["contradiction"], positions["entailment"]
    except (AttributeError, KeyError, ValueError) as error:
        listed = ", ".join(map(str, labels.values())) if isinstance(labels, dict) else str(labels)
        raise ModelError(
            f"model folder {directory} does not tell which outputs mean contradiction and entailment (its labels: "
            f"{listed or 'none'}): choose a model that was trained for natural language inference, or name the labels "
            "in id2label of its config.json"
        ) from error
