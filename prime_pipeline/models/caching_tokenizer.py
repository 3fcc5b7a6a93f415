"""A tokenizer that remembers what it has counted, for texts that are counted again and again.

Studies of a corpus ask how many tokens its documents and sections have, several times each and again whenever one of five hundred has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prime_pipeline.models.tokenizer import Tokenizer
from prime_pipeline.storage.blob_cache import Cache
from prime_pipeline.storage.fingerprint import text_fingerprint

_INTEGER_BYTES = 8


class CachingTokenizer:
    """Implements :class:`~prime_pipeline.models.tokenizer.Tokenizer` with a cache by content in front of another one.

    Args:
        tokenizer: Asked where the cache does not know.
        encoder: Tells the tokenizer from others.
        cache: Keeps numbers of tokens, and lengths of what fits the window.
    """

    def __init__(self, tokenizer: Tokenizer, encoder: str, cache: Cache) -> None:
        self._tokenizer = tokenizer
        self._encoder = encoder
        self._cache = cache

    @property
    def window(self) -> int:
        """See :attr:`Tokenizer.window`."""
        return self._tokenizer.window

    def count(self, texts: list[str]) -> list[int]:
        """See :meth:`Tokenizer.count`."""
        return self._numbers("tokens", texts, self._tokenizer.count)

    def fit(self, texts: list[str]) -> list[str]:
        """See :meth:`Tokenizer.fit`."""
        lengths = self._numbers(
            "fitting characters", texts, lambda some: [len(fitted) for fitted in self._tokenizer.fit(some)]
        )
        return [text[:length] for text, length in zip(texts, lengths, strict=True)]

    def windows(self, text: str, size_tokens: int, overlap_tokens: int = 0) -> list[str]:
        """See :meth:`Tokenizer.windows`; not cached."""
        return self._tokenizer.windows(text, size_tokens, overlap_tokens)

    def _numbers(
        self, what: str, texts: Sequence[str], ask: Callable[[list[str]], Sequence[int]]
    ) -> list[int]:
        keys = {text: text_fingerprint(what, self._encoder, text) for text in texts}
        known = self._cache.lookup(keys.values())
        missing = [text for text, key in keys.items() if key not in known]
        if missing:
            new = {
                keys[text]: number.to_bytes(_INTEGER_BYTES, "little")
                for text, number in zip(missing, ask(missing), strict=True)
            }
            self._cache.store(new)
            known |= new
        return [int.from_bytes(known[keys[text]], "little") for text in texts]
