"""Word stems for comparing texts."""

from __future__ import annotations

import pytest

from prime_pipeline.text.stems import content_stems, stem


@pytest.mark.parametrize(
    "family",
    [
        "evaluate evaluates evaluation evaluators",
        "compute computation computable",
        "annotate annotation annotators",
        "study studies",
        "class classes classify classification",
        "know known",
    ],
)
def test_families_meet_in_one_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


def test_unrelated_words_keep_apart() -> None:
    words = [
        "character",
        "charge",
        "train",
        "translation",
        "model",
        "mode",
        "corpus",
        "correct",
        "speech",
        "speaker",
    ]
    assert len({stem(word) for word in words}) == len(words)


def test_content_stems_leave_out_stop_words_and_numbers() -> None:
    assert content_stems("The 12 state-of-the-art models are not trained") == [
        "stat",
        "art",
        "model",
        "train",
    ]


def test_plurals_of_acronyms() -> None:
    assert stem("GPUs") == stem("GPU") == "gpu"
