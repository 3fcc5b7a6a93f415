"""Section scorers: weights of the query's pieces, windows, and a cache that changes no score."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from prime_pipeline.errors import StoreUnavailable
from prime_pipeline.indexes.lexical import StoredSection
from prime_pipeline.models.cross_encoder import CrossEncoderScorer
from prime_pipeline.models.late_interaction import dequantise, maxsim, quantise
from prime_pipeline.retrieval.scorers import CrossEncoderSectionScorer, LateInteractionScorer
from prime_pipeline.storage.blob_cache import BlobCache, NoCache
from prime_pipeline_tests.fakes import Clock, HashingEmbedder, SlowEmbedder, tiny_cross_encoder

IDF = {"the": 1.0, "bread": 3.0, "state": 2.0, "of": 1.5}


class PieceEmbedder(HashingEmbedder):
    """Cuts words into pieces of three characters, marks of punctuation alone; remembers the section texts it encoded."""

    def __init__(self) -> None:
        super().__init__()
        self.token_texts: list[str] = []

    def query_token_vectors(self, text: str) -> tuple[NDArray[np.float32], list[tuple[int, int]]]:
        spans = [match.span() for match in re.finditer(r"\w{1,3}|[^\w\s]", text)][: self.window_tokens]
        return self._vectors([text[start:end] for start, end in spans]), spans

    def token_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        self.token_texts += texts
        return [self._vectors(re.findall(r"\w{1,3}|[^\w\s]", text)) for text in texts]

    def _vectors(self, pieces: list[str]) -> NDArray[np.float32]:
        rows = [self._word_vector(piece) for piece in pieces]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.dimensions)


def idf(words: Iterable[str]) -> Mapping[str, float]:
    return {word: IDF.get(word, 9.0) for word in words}


def section(text: str, *heading_path: str, body_start: int = 0) -> StoredSection:
    return StoredSection("d", 1, "Title", heading_path, text, body_start, "d.md", 1, 2)


@pytest.fixture
def embedder() -> PieceEmbedder:
    return PieceEmbedder()


@pytest.fixture
def cache(tmp_path: Path) -> BlobCache:
    return BlobCache(tmp_path / "vectors.sqlite")


def weights(embedder: PieceEmbedder, cache: BlobCache, query: str) -> list[tuple[str, float]]:
    scorer = LateInteractionScorer(embedder, cache, idf)
    _, spans = embedder.query_token_vectors(query)
    found = scorer._weights(query, spans).tolist()
    return [(query[start:end], weight) for (start, end), weight in zip(spans, found, strict=True)]


def test_pieces_of_a_word_share_its_weight_and_punctuation_has_none(
    embedder: PieceEmbedder, cache: BlobCache
) -> None:
    assert weights(embedder, cache, "The bread?") == [("The", 1.0), ("bre", 3.0), ("ad", 3.0), ("?", 0.0)]
    found = weights(embedder, cache, "state-of-the zz")
    assert found[:4] == [("sta", 2.0), ("te", 2.0), ("-", 0.0), ("of", 1.5)]
    assert found[-1] == ("zz", 9.0)


def test_weights_of_a_query_that_is_read_in_part(embedder: PieceEmbedder, cache: BlobCache) -> None:
    query = "the " * 63 + "bread " * 100_000
    found = weights(embedder, cache, query)
    assert found[-1] == ("bre", 3.0)
    assert len(found) == embedder.window_tokens


def test_a_score_is_the_weighted_mean_of_the_best_cosines(embedder: PieceEmbedder, cache: BlobCache) -> None:
    query, text = "the bread", "bread and salt"
    query_vectors, _ = embedder.query_token_vectors(query)
    stored = dequantise(quantise(embedder.token_vectors([text])[0]))
    cosines = np.clip((query_vectors @ stored.T).max(axis=1), -1, 1)
    expected = float(cosines @ np.array([1.0, 3.0, 3.0])) / 7.0
    score = LateInteractionScorer(embedder, cache, idf).score(query, [section(text)])
    assert score == pytest.approx([expected], abs=1e-5)


def test_what_is_relevant_at_the_end_of_a_long_section_is_found(
    embedder: PieceEmbedder, cache: BlobCache
) -> None:
    filler = "salt " * 300
    ending, without = section(f"{filler}bread"), section(filler)
    scorer = LateInteractionScorer(embedder, cache, idf)
    with_end, without_end, alone = scorer.score("bread", [ending, without, section("bread")])
    assert with_end == pytest.approx(alone)
    assert with_end > without_end + 0.3


def test_of_a_long_section_the_windows_that_share_most_with_the_query_are_scored(
    embedder: PieceEmbedder, cache: BlobCache
) -> None:
    filler = "salt " * 300
    text = section(f"{filler}bread {filler}")
    few, every = LateInteractionScorer(embedder, cache, idf, 2), LateInteractionScorer(embedder, cache, idf)
    found = few.score("the bread", [text])
    assert len(embedder.token_texts) == 2
    assert "bread" in embedder.token_texts[0] + embedder.token_texts[1]
    assert found.tolist() == every.score("the bread", [text]).tolist()
    assert len(embedder.token_texts) > 2
    tie = few._windows(section(filler), {"bread": 3.0})
    assert tie == embedder.tokenizer.windows(filler.strip(), embedder.window_tokens)[:2]


def test_the_best_window_gives_the_score(embedder: PieceEmbedder, cache: BlobCache) -> None:
    text = " ".join(f"word{i}" for i in range(200))
    windows = embedder.tokenizer.windows(text, embedder.window_tokens)
    assert len(windows) > 2
    query_vectors, spans = embedder.query_token_vectors("word150")
    scorer = LateInteractionScorer(embedder, cache, idf)
    stored = [dequantise(quantise(vectors)) for vectors in embedder.token_vectors(windows)]
    best = max(maxsim(query_vectors, scorer._weights("word150", spans), vectors) for vectors in stored)
    assert scorer.score("word150", [section(text)]).tolist() == [best]


def test_a_warm_cache_gives_bitwise_equal_scores_and_encodes_nothing(
    embedder: PieceEmbedder, cache: BlobCache
) -> None:
    sections = [section("bread and salt"), section("the state of bread", "Heading"), section("x " * 500)]
    scorer = LateInteractionScorer(embedder, cache, idf)
    cold = scorer.score("the bread", sections)
    n_encoded = len(embedder.token_texts)
    assert n_encoded > 3
    assert scorer.score("the bread", sections).tolist() == cold.tolist()
    assert LateInteractionScorer(embedder, cache, idf).score("the bread", sections).tolist() == cold.tolist()
    assert len(embedder.token_texts) == n_encoded


def test_only_new_text_is_encoded_and_equal_text_once(embedder: PieceEmbedder, cache: BlobCache) -> None:
    scorer = LateInteractionScorer(embedder, cache, idf)
    scorer.score("bread", [section("one"), section("two"), section("one")])
    assert sorted(embedder.token_texts) == ["one", "two"]
    scorer.score("salt", [section("two"), section("three")])
    assert sorted(embedder.token_texts) == ["one", "three", "two"]


def test_a_full_cache_still_scores(embedder: PieceEmbedder, tmp_path: Path) -> None:
    roomy, tight = (
        BlobCache(tmp_path / "roomy.sqlite"),
        BlobCache(tmp_path / "tight.sqlite", size_limit_bytes=1),
    )
    sections = [section(f"bread {i}") for i in range(40)]
    expected = LateInteractionScorer(embedder, roomy, idf).score("bread", sections)
    assert LateInteractionScorer(embedder, tight, idf).score("bread", sections).tolist() == expected.tolist()


@pytest.mark.parametrize("text", ["", " \n ", "## H\n"])
def test_an_empty_section_scores_zero(embedder: PieceEmbedder, cache: BlobCache, text: str) -> None:
    scorer = LateInteractionScorer(embedder, cache, idf)
    assert scorer.score("bread", [section(text, body_start=len(text))]).tolist() == [0.0]


def test_a_query_without_words_scores_zero(embedder: PieceEmbedder, cache: BlobCache) -> None:
    scorer = LateInteractionScorer(embedder, cache, idf)
    assert scorer.score("?!", [section("bread")]).tolist() == [0.0]
    assert scorer.score("", [section("bread")]).tolist() == [0.0]
    assert scorer.score("bread", []).shape == (0,)


def test_a_cross_encoder_scores_heading_and_body(tmp_path: Path) -> None:
    cross_encoder = CrossEncoderScorer(str(tiny_cross_encoder(tmp_path / "cross")))
    scorer = CrossEncoderSectionScorer(cross_encoder)
    sections = [section("## Dog\nthe cat\n", "Dog", body_start=7), section("of bread " * 40)]
    expected = cross_encoder.score("the cat", ["Dog\nthe cat", ("of bread " * 40).strip()])
    found = scorer.score("the cat", sections)
    assert found.dtype == np.float64
    assert found == pytest.approx(expected, abs=1e-5)
    assert not scorer.is_mixed
    assert scorer.score("the cat", []).shape == (0,)


class FullDisk(NoCache):
    """Can neither be read nor written."""

    def lookup(self, keys: Iterable[str]) -> dict[str, bytes]:
        raise StoreUnavailable(Path("cache"), "disk I/O error")

    def store(self, values: Mapping[str, bytes]) -> None:
        raise StoreUnavailable(Path("cache"), "database or disk is full")


@pytest.mark.parametrize("lost", [NoCache(), FullDisk()])
def test_scoring_goes_on_without_a_cache(embedder: PieceEmbedder, cache: BlobCache, lost: NoCache) -> None:
    sections = [section("bread"), section("salt")]
    expected = LateInteractionScorer(embedder, cache, idf).score("bread", sections)
    assert LateInteractionScorer(embedder, lost, idf).score("bread", sections).tolist() == expected.tolist()


# --- when time is short -------------------------------------------------------------------------------------------


def over_after(seconds: float, clock: Clock) -> Callable[[], bool]:
    return lambda: clock() >= seconds


def test_sections_are_encoded_in_order_until_the_time_is_over(cache: BlobCache) -> None:
    clock = Clock()
    embedder = SlowEmbedder(clock)
    sections = [section(f"bread {i}") for i in range(6)]
    scorer = LateInteractionScorer(embedder, cache, idf)
    scores = scorer.score("bread", sections, over_after(0.25, clock))
    assert embedder.token_texts == ["bread 0", "bread 1", "bread 2"]
    assert np.isnan(scores).tolist() == [False, False, False, True, True, True]
    unhurried = LateInteractionScorer(HashingEmbedder(), NoCache(), idf).score("bread", sections)
    assert scores[:3].tolist() == unhurried[:3].tolist()


def test_what_was_encoded_in_a_hurry_is_kept_for_the_next_query(cache: BlobCache) -> None:
    clock = Clock()
    embedder = SlowEmbedder(clock)
    sections = [section(f"bread {i}") for i in range(6)]
    scorer = LateInteractionScorer(embedder, cache, idf)
    scorer.score("bread", sections, over_after(0.25, clock))
    assert not np.isnan(scorer.score("bread", sections, over_after(0.55, clock))).any()
    assert embedder.token_texts == [f"bread {i}" for i in range(6)]


def test_sections_whose_vectors_are_kept_are_scored_before_others_are_encoded(cache: BlobCache) -> None:
    clock = Clock()
    embedder = SlowEmbedder(clock)
    sections = [section(f"bread {i}") for i in range(6)]
    scorer = LateInteractionScorer(embedder, cache, idf)
    scorer.score("bread", sections[3:5])
    scores = scorer.score("bread", sections, over_after(0.25, clock))  # 0.2 have passed
    assert np.isnan(scores).tolist() == [False, True, True, False, False, True]


def test_a_section_is_scored_by_all_of_its_windows_or_not_at_all(cache: BlobCache) -> None:
    clock = Clock()
    embedder = SlowEmbedder(clock)
    long = section(" ".join(f"word{i}" for i in range(150)))  # three windows
    scorer = LateInteractionScorer(embedder, cache, idf)
    scores = scorer.score("word140", [long, section("bread")], over_after(0.05, clock))
    assert len(embedder.token_texts) == 3
    assert np.isnan(scores).tolist() == [False, True]


def test_kept_vectors_are_no_reason_to_go_on_for_ever(cache: BlobCache) -> None:
    sections = [section(f"bread {i}") for i in range(40)]
    scorer = LateInteractionScorer(HashingEmbedder(), cache, idf)
    scorer.score("bread", sections)
    scores = scorer.score("bread", sections, lambda: True)
    assert np.isnan(scores).tolist() == [False] * 16 + [True] * 24


def test_a_cross_encoder_scores_batches_until_the_time_is_over(tmp_path: Path) -> None:
    scorer = CrossEncoderSectionScorer(CrossEncoderScorer(str(tiny_cross_encoder(tmp_path / "cross"))))
    sections = [section(f"the dog of {'bread ' * (i % 5)}") for i in range(20)]
    asked = iter([False, False, True])
    scores = scorer.score("the cat", sections, lambda: next(asked))
    assert np.isnan(scores).tolist() == [False] * 16 + [True] * 4
    assert scores[:16] == pytest.approx(scorer.score("the cat", sections)[:16], abs=1e-5)
