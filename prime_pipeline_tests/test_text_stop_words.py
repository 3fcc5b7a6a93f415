"""The stop words are scikit-learn's."""

from __future__ import annotations

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from prime_pipeline.text.stop_words import STOP_WORDS


def test_is_the_list_of_scikit_learn() -> None:
    assert STOP_WORDS == ENGLISH_STOP_WORDS
