"""Token vectors of sections: how texts are cut into windows, and where the vectors of a window are kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.errors import StoreUnavailable
from prime_pipeline.indexes.lexical import StoredSection
from prime_pipeline.models.embedder import Embedder
from prime_pipeline.models.late_interaction import quantise
from prime_pipeline.storage.blob_cache import Cache
from prime_pipeline.storage.fingerprint import text_fingerprint

QuantisedVectors = NDArray[np.int8]
"""(n_tokens, dimensions), as :func:`~prime_pipeline.models.late_interaction.quantise` gives them."""

_SPLIT_TEXTS_KEPT = 4_096
"""Texts whose windows are kept in memory: splitting a section took several times as long as looking its vectors up."""
_PATIENCE_S = 0.01
"""How often who waits for others' encoding looks whether the time is over."""


def scoring_text(section: StoredSection) -> str:
    """What a scorer reads of a section: its heading path and its body, the rewritten one if the section has one."""
    heading = " > ".join(section.heading_path)
    body = section.text[section.body_start :].strip() if section.rewritten is None else section.rewritten
    return f"{heading}\n{body}" if heading else body


class TokenVectors:
    """The vectors of windows' tokens, computed when first needed and kept by content, in 8 bits per component.

    Args:
        embedder: Whose vectors they are.
        cache: Keeps them, by model and text.
    """

    def __init__(self, embedder: Embedder, cache: Cache) -> None:
        self._embedder = embedder
        self._cache = cache
        # One at a time: searches that meet the same new sections wait for the first, instead of encoding them all over.
        self._encoding = threading.Lock()
        self._windows_kept = lru_cache(_SPLIT_TEXTS_KEPT)(self.cut)

    @property
    def capacity_bytes(self) -> float:
        """See :attr:`~prime_pipeline.storage.blob_cache.Cache.capacity_bytes`."""
        return self._cache.capacity_bytes

    def windows(self, text: str) -> tuple[str, ...]:
        """As :meth:`cut` cuts a text; those of the last texts are kept."""
        return self._windows_kept(text)

    def cut(self, text: str) -> tuple[str, ...]:
        """A text in pieces that the embedder reads whole; none of an empty text."""
        return tuple(self._embedder.tokenizer.windows(text, self._embedder.window_tokens)) if text else ()

    def key(self, window: str) -> str:
        """By what the vectors of a window are kept."""
        return text_fingerprint("token vectors, int8", self._embedder.fingerprint, window)

    def present(self, keys: Iterable[str]) -> dict[str, int]:
        """The sizes in bytes of those keys' vectors that are kept; none is read.

        Raises:
            StoreUnavailable: The cache cannot be read.
        """
        return self._cache.present(keys)

    def encoded(self, windows: Sequence[str]) -> dict[str, bytes]:
        """The vectors of windows by key, computed now and not kept."""
        found = self._embedder.token_vectors(windows)
        return {
            self.key(window): quantise(vectors).tobytes()
            for window, vectors in zip(windows, found, strict=True)
        }

    def keep(self, encoded: dict[str, bytes]) -> None:
        """Keep vectors by key.

        Raises:
            StoreUnavailable: The cache cannot be written.
        """
        self._cache.store(encoded)

    def kept(self, windows: Iterable[str]) -> dict[str, QuantisedVectors]:
        """By window the vectors, (n_tokens, dimensions), of those that are kept; none where the cache cannot be read."""
        keys = {window: self.key(window) for window in windows}
        cached: dict[str, bytes] = {}
        with suppress(StoreUnavailable):
            cached = self._cache.lookup(keys.values())
        return {window: self._decoded(cached[key]) for window, key in keys.items() if key in cached}

    def of(
        self, windows: Iterable[str], is_over: Callable[[], bool] | None = None
    ) -> dict[str, QuantisedVectors]:
        """By window the vectors of all, those that are not kept computed, and kept where the cache can be written.

        Without those that are not kept if the time ``is_over`` before it is this search's turn to compute.
        """
        wanted = list(dict.fromkeys(windows))
        vectors = self.kept(wanted)
        if len(vectors) == len(wanted):
            return vectors
        while not self._encoding.acquire(timeout=_PATIENCE_S if is_over else -1):
            if is_over and is_over():
                return vectors
        try:
            vectors |= self.kept(window for window in wanted if window not in vectors)
            return vectors | self._encoded_and_kept([window for window in wanted if window not in vectors])
        finally:
            self._encoding.release()

    def _encoded_and_kept(self, windows: Sequence[str]) -> dict[str, QuantisedVectors]:
        if not windows:
            return {}
        new = self.encoded(windows)
        with suppress(StoreUnavailable):
            self.keep(new)
        # Through 8 bits, too, so that a score does not depend on whether the cache was warm.
        return {window: self._decoded(value) for window, value in zip(windows, new.values(), strict=True)}

    def _decoded(self, value: bytes) -> QuantisedVectors:
        return np.frombuffer(value, dtype=np.int8).reshape(-1, self._embedder.dimensions)
