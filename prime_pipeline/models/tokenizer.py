"""Texts in an encoder's own tokens: counting, cutting to the window, splitting into windows.

Works on text only. The tokenizer runs without the model, so nothing here imports torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from prime_pipeline.errors import ModelError
from prime_pipeline.models.location import read_config, require_files

if TYPE_CHECKING:
    from tokenizers import Encoding

Span = tuple[int, int]
"""Offsets of the first character and of the one behind the last."""


class Tokenizer(Protocol):
    """What a caller needs to know of an encoder's tokens. All counts include the special tokens of a single text."""

    @property
    def window(self) -> int:
        """The most tokens that the encoder reads; it ignores what comes behind."""

    def count(self, texts: list[str]) -> list[int]:
        """Tokens of each text, however many the encoder would read."""

    def fit(self, texts: list[str]) -> list[str]:
        """The longest prefix of each text that fits the window; fitting twice changes nothing more."""

    def windows(self, text: str, size_tokens: int, overlap_tokens: int = 0) -> list[str]:
        """A text in consecutive pieces of at most ``size_tokens`` each."""


class EncoderTokenizer:
    """The fast tokenizer of a model folder. Safe to share between threads: nothing is changed after construction.

    Every count includes the special tokens that the encoder puts around a single text ([CLS] and [SEP] for BERT).

    Attributes:
        window: The most tokens that the encoder reads.
        n_special: Special tokens around a single text.
        n_special_pair: Special tokens around a pair of texts.

    Raises:
        ModelNotFound: The folder has no fast tokenizer.
        ModelError: The tokenizer cannot be read, or the folder does not tell the window.
    """

    def __init__(self, directory: Path) -> None:
        from tokenizers import Tokenizer as FastTokenizer

        require_files(directory, "config.json", "tokenizer.json")
        self.window = _window(directory)
        path = directory / "tokenizer.json"
        try:
            self._tokenizer = FastTokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing more specific
            raise ModelError(f"{path} cannot be read ({error}): download the model again") from error
        # The file may ask for both, which would cut what is to be counted.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.n_special: int = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self.n_special_pair: int = self._tokenizer.num_special_tokens_to_add(is_pair=True)

    def count(self, texts: list[str]) -> list[int]:
        """Tokens of each text, special ones included, nothing cut."""
        return [len(encoding) for encoding in self._tokenizer.encode_batch(texts)]

    def window_spans(self, texts: list[str]) -> list[list[Span | None]]:
        """For each text the tokens that the encoder reads of it, in order: the characters of each.

        Special tokens cover none and are None. An encoder that meets a longer text drops its last tokens, never the
        special ones; so does this.
        """
        return [self._window_spans(encoding) for encoding in self._tokenizer.encode_batch(texts)]

    def window_ids(self, text: str) -> list[int]:
        """Numbers of the tokens that the encoder reads of a text, special ones included, in order."""
        encoding = self._tokenizer.encode(text)
        return [encoding.ids[i] for i in self._positions_read(encoding)]

    def fit(self, texts: list[str]) -> list[str]:
        """The longest prefix of each text that the encoder reads whole.

        A text that fits is returned as it is. Another is cut behind the last token that fits, blanks at the cut
        dropped, so that the encoder sees the same tokens as it would of the whole text (it may cut inside a word).
        """
        encodings = self._tokenizer.encode_batch(texts)
        return [self._fit(text, encoding) for text, encoding in zip(texts, encodings, strict=True)]

    def windows(self, text: str, size_tokens: int, overlap_tokens: int = 0) -> list[str]:
        """A text in consecutive pieces that hold every token.

        Cuts fall between words unless a single word is longer than a piece. A text that fits is returned as it is,
        and so is an empty one; of others only blanks around pieces are dropped.

        Args:
            text: Any text.
            size_tokens: The most tokens per piece, special ones included.
            overlap_tokens: About how many tokens of a piece are repeated at the start of the next.

        Raises:
            ValueError: The size leaves no room beside the special tokens, or the overlap fills the piece.
        """
        room = size_tokens - self.n_special
        if room < 1 or not 0 <= overlap_tokens < room:
            msg = f"windows of {size_tokens} tokens with an overlap of {overlap_tokens} hold no text"
            raise ValueError(msg)
        encoding = self._tokenizer.encode(text)
        if len(encoding) <= size_tokens:
            return [text]
        spans, words = _content(encoding), _content_words(encoding)
        pieces, start, end = [], 0, 0
        while end < len(spans):
            end = self._window_end(text, spans, words, start, size_tokens)
            pieces.append(_piece(text, spans, start, end))
            start = _word_start(words, end - overlap_tokens, after=start) if overlap_tokens else end
        return pieces

    def _window_spans(self, encoding: Encoding) -> list[Span | None]:
        specials = encoding.special_tokens_mask
        return [None if specials[i] else encoding.offsets[i] for i in self._positions_read(encoding)]

    def _positions_read(self, encoding: Encoding) -> list[int]:
        specials = encoding.special_tokens_mask
        content = [i for i, is_special in enumerate(specials) if not is_special]
        dropped = set(content[self.window - self.n_special :])
        return [i for i in range(len(specials)) if i not in dropped]

    def _fit(self, text: str, encoding: Encoding) -> str:
        spans, n_tokens = _content(encoding), len(encoding)
        n_kept = len(spans)
        # A prefix can hold more tokens than the whole text had in its place, so it is counted again.
        while n_tokens > self.window and n_kept:
            n_kept = max(0, n_kept - (n_tokens - self.window))
            text = text[: spans[n_kept][0]].rstrip()
            n_tokens = self.count([text])[0]
        return text

    def _window_end(
        self, text: str, spans: list[Span], words: list[int | None], start: int, size_tokens: int
    ) -> int:
        end = min(start + size_tokens - self.n_special, len(spans))
        while end > start + 1:
            if end < len(spans):
                end = _word_start(words, end, after=start)
            excess = self.count([_piece(text, spans, start, end)])[0] - size_tokens
            if excess <= 0:
                break
            end = max(start + 1, end - excess)
        return end


def _content(encoding: Encoding) -> list[Span]:
    pairs = zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
    return [span for span, is_special in pairs if not is_special]


def _piece(text: str, spans: list[Span], start: int, end: int) -> str:
    # Up to the next token, for a span does not cover what the tokenizer removes, such as combining accents.
    first = spans[start][0] if start else 0
    behind = spans[end][0] if end < len(spans) else len(text)
    return text[first:behind].strip()


def _content_words(encoding: Encoding) -> list[int | None]:
    """For each content token the number of the word that it belongs to."""
    pairs = zip(encoding.word_ids, encoding.special_tokens_mask, strict=True)
    return [word for word, is_special in pairs if not is_special]


def _word_start(words: list[int | None], position: int, *, after: int) -> int:
    """The last position up to ``position`` that starts a word; ``position`` itself if none lies behind ``after``."""
    for candidate in range(position, after, -1):
        if words[candidate] != words[candidate - 1]:
            return candidate
    return max(position, after + 1)


def _window(directory: Path) -> int:
    config = read_config(directory, "config.json")
    own = read_config(directory, "sentence_bert_config.json").get("max_seq_length")
    # Tokenizers without a limit of their own say 1e30; then the position embeddings set it.
    limits = [own or read_config(directory, "tokenizer_config.json").get("model_max_length")]
    limits.append(config.get("max_position_embeddings"))
    window = min((int(limit) for limit in limits if limit), default=0)
    if window < 3:
        raise ModelError(
            f"model folder {directory} does not tell its window: set max_seq_length in "
            "sentence_bert_config.json"
        )
    return window
