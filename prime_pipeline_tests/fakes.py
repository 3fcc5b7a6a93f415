"""Whole stand-ins for models, deterministic, quick, and without downloaded weights."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from transformers import BertConfig, PreTrainedTokenizerFast

Vectors = NDArray[np.float32]


class WordTokenizer:
    """Implements ``Tokenizer`` with one token per word (whatever stands between blanks) and no special tokens."""

    def __init__(self, window: int = 64) -> None:
        self.window = window

    def count(self, texts: list[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def fit(self, texts: list[str]) -> list[str]:
        return [
            text if len(spans := word_spans(text)) <= self.window else text[: spans[self.window - 1][1]]
            for text in texts
        ]

    def windows(self, text: str, size_tokens: int, overlap_tokens: int = 0) -> list[str]:
        spans = word_spans(text)
        if len(spans) <= size_tokens:
            return [text]
        step = size_tokens - overlap_tokens
        starts = range(0, len(spans) - overlap_tokens, step)
        return [text[spans[i][0] : spans[min(i + size_tokens, len(spans)) - 1][1]] for i in starts]


class HashingEmbedder:
    """Implements ``Embedder`` by feature hashing: texts that share words are similar, others are nearly orthogonal.

    A token is a word; case and punctuation at its edges do not count. A text's vector is the unit sum of its tokens'
    vectors, so order does not count either. ``texts_encoded`` remembers every document text, for tests that prove
    what was *not* encoded again.
    """

    def __init__(self, name: str = "hashing", dimensions: int = 64, window_tokens: int = 64) -> None:
        self.name = name
        self.dimensions = dimensions
        self.window_tokens = window_tokens
        self.fingerprint = hashlib.sha256(f"{name}/{dimensions}/{window_tokens}".encode()).hexdigest()
        self.runtime = {"backend": "hashing"}
        self.tokenizer = WordTokenizer(window_tokens)
        self.texts_encoded: list[str] = []

    def encode(self, texts: Sequence[str], on_progress: Callable[[int], None] | None = None) -> Vectors:
        self.texts_encoded.extend(texts)
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for i, text in enumerate(texts):
            rows[i] = self.encode_query(text)
            if on_progress:
                on_progress(i + 1)
        return rows

    def encode_query(self, text: str) -> Vectors:
        vectors, _ = self.query_token_vectors(text)
        # The smallest part of an "empty" token keeps an empty text, or words that cancel out, from having no length.
        total = vectors.sum(axis=0) + np.float32(1e-3) * self._word_vector("")
        return _unit(total)

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        return [self.query_token_vectors(text)[0] for text in texts]

    def query_token_vectors(self, text: str) -> tuple[Vectors, list[tuple[int, int]]]:
        spans = word_spans(text)[: self.window_tokens]
        rows = [self._word_vector(text[start:end]) for start, end in spans]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.dimensions), spans

    def _word_vector(self, word: str) -> Vectors:
        return _word_vector(re.sub(r"^\W+|\W+$", "", word).casefold(), self.dimensions)


@lru_cache(1 << 16)
def _word_vector(word: str, dimensions: int) -> Vectors:
    digest = hashlib.blake2b(word.encode(), digest_size=16).digest()
    generator = np.random.default_rng(int.from_bytes(digest, "little"))
    vector = _unit(generator.choice(np.array([-1, 1], dtype=np.float32), dimensions))
    vector.flags.writeable = False
    return vector


class Clock:
    """Seconds that pass only when somebody says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class SlowEmbedder(HashingEmbedder):
    """Takes a tenth of a second of a clock for the token vectors of a text; remembers the texts."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.token_texts: list[str] = []

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        self._clock.now_s += 0.1 * len(texts)
        self.token_texts += texts
        return super().token_vectors(texts)


def _unit(vector: Vectors) -> Vectors:
    unit: Vectors = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


def word_spans(text: str) -> list[tuple[int, int]]:
    """The characters of each word."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def tiny_bert(directory: Path, *, window: int = 32, seed: int = 0, spread: float = 1.0) -> Path:
    """Save a sentence-transformers model of random weights below a folder and return where.

    It has 16 dimensions, mean pooling, and reads ASCII. ``window`` is at most 64; ``spread`` is the deviation of the weights.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertModel

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertModel(_tiny_config(spread=spread)).save_pretrained(directory / "source")
    _tiny_tokenizer(window).save_pretrained(directory / "source")
    transformer = Transformer(str(directory / "source"), max_seq_length=window)
    model = SentenceTransformer(modules=[transformer, Pooling(16)])
    model.save(str(directory / "tiny-bert"), create_model_card=False)
    return directory / "tiny-bert"


def tiny_cross_encoder(directory: Path, *, window: int = 32, seed: int = 0, n_outputs: int = 1) -> Path:
    """Save a cross-encoder of random weights into a folder; it reads ASCII. ``window`` is at most 64."""
    import torch
    from transformers import BertForSequenceClassification

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertForSequenceClassification(_tiny_config(num_labels=n_outputs)).save_pretrained(directory)
    _tiny_tokenizer(window).save_pretrained(directory)
    return directory


def _tiny_config(num_labels: int = 2, spread: float = 1.0) -> BertConfig:
    from transformers import BertConfig

    config = BertConfig(
        vocab_size=len(_tiny_vocabulary()),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=spread,
    )
    config.num_labels = num_labels
    return config


def _tiny_vocabulary() -> dict[str, int]:
    characters = [chr(code) for code in range(ord("!"), ord("~") + 1) if not chr(code).isupper()]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *(f"##{c}" for c in characters)]
    words = ["the", "of", "section", "document", "query", "cat", "dog", "bread", "##ing", "##ed"]
    return {piece: i for i, piece in enumerate([*pieces, *words])}


def _tiny_tokenizer(window: int) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = _tiny_vocabulary()
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    fast: Any = PreTrainedTokenizerFast  # its constructor has no annotations
    tokenizer_of_model: PreTrainedTokenizerFast = fast(
        tokenizer_object=tokenizer,
        model_max_length=window,
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
    )
    return tokenizer_of_model
