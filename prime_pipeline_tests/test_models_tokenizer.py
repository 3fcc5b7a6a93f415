"""Counting, cutting and splitting in the embedded model's own tokens."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prime_pipeline.errors import ModelError, ModelNotFound
from prime_pipeline.models.location import resolve_model
from prime_pipeline.models.tokenizer import EncoderTokenizer, Tokenizer
from prime_pipeline_tests.fakes import WordTokenizer

# Words, accents, scripts without blanks, composed characters, markup, special tokens in clear, overlong words.
CHUNKS = st.sampled_from(
    [
        "retrieval",
        "naïve",
        "Straße",
        "検索",
        "👩‍🔬",
        "x" * 40,
        "y" * 120,
        "a1b2c3d4" * 9,
        "[SEP]",
        "C++",
        "12.5%",
        "e\u0301",
        "\u00a0",
        "\n\n",
    ]
)
TEXTS = st.lists(st.tuples(CHUNKS, st.sampled_from(["", " ", "\t", "-"])), max_size=60).map(
    lambda pairs: "".join(word + gap for word, gap in pairs)
)


@pytest.fixture(scope="module")
def tokenizer() -> EncoderTokenizer:
    return EncoderTokenizer(resolve_model("all-MiniLM-L6-v2"))


def words_of(text: str) -> str:
    return "".join(text.split())


@pytest.fixture
def small_window(tmp_path: Path) -> Callable[[dict[str, dict[str, object]]], EncoderTokenizer]:
    """The embedded model's tokenizer with other configuration files."""

    def build(configurations: dict[str, dict[str, object]]) -> EncoderTokenizer:
        shutil.copy(resolve_model("all-MiniLM-L6-v2") / "tokenizer.json", tmp_path)
        (tmp_path / "model.safetensors").touch()
        for name, configuration in configurations.items():
            (tmp_path / name).write_text(json.dumps(configuration))
        return EncoderTokenizer(tmp_path)

    return build


def test_counts_hold_the_special_tokens_and_are_not_cut(tokenizer: EncoderTokenizer) -> None:
    assert tokenizer.count(["", "hello", "hello world", "word " * 1000]) == [2, 3, 4, 1002]


def test_the_window_is_what_sentence_transformers_reads(tokenizer: EncoderTokenizer) -> None:
    assert tokenizer.window == 256  # and not the 128 of tokenizer.json, nor the 512 of tokenizer_config.json


def test_the_window_falls_back_to_tokenizer_and_positions(
    small_window: Callable[[dict[str, dict[str, object]]], EncoderTokenizer],
) -> None:
    positions: dict[str, object] = {"max_position_embeddings": 64}
    tokenizer = small_window({"config.json": positions, "tokenizer_config.json": {"model_max_length": 48}})
    assert tokenizer.window == 48
    tokenizer = small_window(
        {"config.json": positions, "tokenizer_config.json": {"model_max_length": 10**30}}
    )
    assert tokenizer.window == 64


def test_a_folder_that_does_not_tell_its_window_is_refused(
    small_window: Callable[[dict[str, dict[str, object]]], EncoderTokenizer],
) -> None:
    with pytest.raises(ModelError, match="max_seq_length"):
        small_window({"config.json": {}})


def test_a_folder_without_fast_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelNotFound, match=r"has no tokenizer\.json"):
        EncoderTokenizer(tmp_path)


def test_a_damaged_tokenizer_is_named(
    tmp_path: Path, small_window: Callable[[dict[str, dict[str, object]]], EncoderTokenizer]
) -> None:
    small_window({"config.json": {"max_position_embeddings": 64}})
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        EncoderTokenizer(tmp_path)


def test_a_text_that_fits_is_left_alone(tokenizer: EncoderTokenizer) -> None:
    assert tokenizer.fit(["", "  two words \n"]) == ["", "  two words \n"]


def test_a_long_text_is_cut_behind_the_last_token_that_fits(tokenizer: EncoderTokenizer) -> None:
    assert tokenizer.fit(["word " * 1000]) == [("word " * 254).rstrip()]


@given(piece=TEXTS)
@settings(deadline=None, max_examples=60)
def test_fitting_is_a_prefix_that_fits_and_fitting_twice_changes_nothing(
    tokenizer: EncoderTokenizer, piece: str
) -> None:
    text = piece * 20
    (fitted,) = tokenizer.fit([text])
    assert text.startswith(fitted)
    assert tokenizer.count([fitted])[0] <= tokenizer.window
    assert tokenizer.fit([fitted]) == [fitted]
    n_tokens = min(tokenizer.window, tokenizer.count([text])[0])
    assert tokenizer.count([fitted])[0] == n_tokens, "the encoder reads less than it could"


@given(text=TEXTS, size=st.integers(8, 60))
@settings(deadline=None, max_examples=100)
def test_windows_fit_and_lose_nothing(tokenizer: EncoderTokenizer, text: str, size: int) -> None:
    pieces = tokenizer.windows(text, size)
    assert max(tokenizer.count(pieces)) <= size
    assert words_of("".join(pieces)) == words_of(text)


@given(text=TEXTS, size=st.integers(8, 60), overlap=st.integers(1, 5))
@example(text="retrievalretrievalretrievale\u0301", size=8, overlap=1)  # no token covers the accent
@settings(deadline=None, max_examples=100)
def test_overlapping_windows_fit_and_lose_nothing(
    tokenizer: EncoderTokenizer, text: str, size: int, overlap: int
) -> None:
    pieces = tokenizer.windows(text, size, overlap)
    assert max(tokenizer.count(pieces)) <= size
    end = 0
    for piece in pieces:  # each starts, blanks aside, at or before the end of the one before it
        next_token = len(text) - len(text[end:].lstrip())
        start = text.rfind(piece, 0, next_token + len(piece))
        assert start >= 0
        end = start + len(piece)
    assert not text[end:].strip()


def test_windows_cut_between_words_and_repeat_the_overlap(tokenizer: EncoderTokenizer) -> None:
    text = "alpha beta gamma delta epsilon zeta eta theta"
    assert tokenizer.windows("one two three four five", 4) == ["one two", "three four", "five"]
    assert tokenizer.windows("one two three four five", 5, 1) == ["one two three", "three four five"]
    assert all(word in text.split() for piece in tokenizer.windows(text, 6) for word in piece.split())


def test_a_word_longer_than_a_window_is_cut_inside(tokenizer: EncoderTokenizer) -> None:
    word = "a1b2c3d4e5" * 9
    pieces = tokenizer.windows(word, 12)
    assert len(pieces) > 1
    assert "".join(pieces) == word


def test_an_empty_text_is_one_window(tokenizer: EncoderTokenizer) -> None:
    assert tokenizer.windows("", 10) == [""]


@pytest.mark.parametrize(("size", "overlap"), [(2, 0), (10, 8), (10, -1)])
def test_windows_that_hold_no_text_are_refused(tokenizer: EncoderTokenizer, size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="hold no text"):
        tokenizer.windows("some text", size, overlap)


def test_window_spans_are_the_tokens_that_the_encoder_reads(tokenizer: EncoderTokenizer) -> None:
    assert tokenizer.window_spans(["naïve x", ""]) == [[None, (0, 5), (6, 7), None], [None, None]]
    (spans,) = tokenizer.window_spans(["word " * 1000])
    assert len(spans) == tokenizer.window
    assert spans[0] is spans[-1] is None
    assert spans[-2] == (5 * 253, 5 * 253 + 4)


def test_threads_share_one_tokenizer(tokenizer: EncoderTokenizer) -> None:
    text = "retrieval of naïve sections " * 300
    expected = (tokenizer.windows(text, 40, 3), tokenizer.fit([text]))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: (tokenizer.windows(text, 40, 3), tokenizer.fit([text])), range(32)))
    assert all(each == expected for each in found)


def test_the_fake_tokenizer_keeps_the_same_promises() -> None:
    fake: Tokenizer = WordTokenizer(window=3)
    assert fake.count(["a  b c d", ""]) == [4, 0]
    assert fake.fit(["a  b c d", " a "]) == ["a  b c", " a "]
    assert fake.windows("a b c d e", 2) == ["a b", "c d", "e"]
    assert fake.windows("a b c d e", 3, 1) == ["a b c", "c d e"]
    assert fake.windows("", 3) == [""]
