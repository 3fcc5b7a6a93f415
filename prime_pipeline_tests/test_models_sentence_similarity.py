"""Cosines between passages and windows of sentences."""

from __future__ import annotations

import numpy as np

from prime_pipeline.models.sentence_similarity import EmbedderSimilarity
from prime_pipeline_tests.fakes import HashingEmbedder


def test_a_window_is_like_its_own_sentences_and_not_like_others() -> None:
    similarity = EmbedderSimilarity(HashingEmbedder())
    cosines = similarity(["red green", "blue"], [["red green"], ["red green", "blue"], ["black white"]])
    assert cosines.shape == (2, 3)
    assert np.isclose(cosines[0, 0], 1.0)
    assert cosines[0, 1] > 0.5 > cosines[0, 2]
    assert cosines[1, 1] > 0.5 > cosines[1, 0]


def test_each_sentence_of_the_windows_is_encoded_once() -> None:
    embedder = HashingEmbedder()
    similarity = EmbedderSimilarity(embedder)
    windows = [["a b"], ["c d"], ["a b", "c d"]]
    assert np.array_equal(similarity(["a"], windows), similarity(["a"], windows))
    assert embedder.texts_encoded.count("a b") == embedder.texts_encoded.count("c d") == 1


def test_nothing_to_compare_needs_no_model() -> None:
    embedder = HashingEmbedder()
    similarity = EmbedderSimilarity(embedder)
    assert similarity([], [["a"]]).shape == (0, 1)
    assert similarity(["a"], []).shape == (1, 0)
    assert embedder.texts_encoded == []


def test_an_empty_window_is_like_nothing() -> None:
    similarity = EmbedderSimilarity(HashingEmbedder())
    assert similarity(["a b"], [[], ["a b"]]).round(6).tolist() == [[0.0, 1.0]]


def test_the_fingerprint_is_the_models() -> None:
    prints = {EmbedderSimilarity(HashingEmbedder(name)).fingerprint for name in ("one", "two")}
    assert len(prints) == 2
