"""No claim out of nowhere, no statement gone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from prime_pipeline.models.sentence_similarity import EmbedderSimilarity
from prime_pipeline.restructuring.gate import FidelityGate
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.text.entities import RuleEntityFinder
from prime_pipeline_tests.fakes import HashingEmbedder
from prime_pipeline_tests.gate_run import FAITHFUL, RAW, changed, codes


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("MTNet works", "Volunteers recorded audio books at home. MTNet works", "unsupported"),
    ],
)
def test_a_fault_is_refused_by_its_own_code(old: str, new: str, code: str) -> None:
    assert code in codes(changed(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("MTNet works", "Accordingly, the approach of MTNet works"),
    ],
)
def test_a_paraphrase_passes(old: str, new: str) -> None:
    assert codes(changed(old, new)) == set()


def test_a_statement_that_left_no_trace_is_missing() -> None:
    rewrite = changed("MTNet is a network for speech translation. ", "")
    assert codes(rewrite.replace(" BaseNet, which does not converge without warm-up.", " BaseNet."))


class NothingAlike:
    """Finds nothing like anything, and remembers what it was asked for."""

    fingerprint = "nothing"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, passages: Sequence[str], windows: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        self.asked += passages
        return np.zeros((len(passages), len(windows)), dtype=np.float32)


CLAIM = "Speech decoding improves word tests of sentences in earlier training."
"""Made of the raw text's own words, from all its places."""


def test_a_claim_of_the_raw_texts_own_words_is_refused_by_its_meaning() -> None:
    alike = FidelityGate(GateOptions(), RuleEntityFinder(), similarity=NothingAlike())
    assert codes(f"{FAITHFUL} {CLAIM}") == set()
    assert codes(f"{FAITHFUL} {CLAIM}", gate=alike) == {"unsupported"}


def test_who_is_alike_passes() -> None:
    gate = FidelityGate(GateOptions(), RuleEntityFinder(), similarity=EmbedderSimilarity(HashingEmbedder()))
    assert codes(FAITHFUL, gate=gate) == set()


def test_only_sentences_that_stray_from_their_place_are_compared() -> None:
    similarity = NothingAlike()
    gate = FidelityGate(GateOptions(), RuleEntityFinder(), similarity=similarity)
    extract = (
        "Note that BaseNet fails to converge without warm-up. MTNet outperforms BaseNet on every test set."
    )
    assert "unsupported" not in codes(extract, gate=gate)
    assert "unsupported" not in codes(f"{extract} Table 3 summarises many further results.", gate=gate)
    assert similarity.asked == []
    codes(f"{extract} {CLAIM}", RAW, gate)
    assert CLAIM in similarity.asked


@pytest.mark.parametrize(
    "sentence",
    [
        "MTNet is, as far as the authors know, a network for speech translation.",
        "To the authors' knowledge, MTNet is a network for speech translation.",
    ],
)
def test_whose_knowledge_it_is_claims_nothing(sentence: str) -> None:
    assert codes(changed("MTNet is a network for speech translation.", sentence)) == set()


def test_a_count_of_what_follows_claims_nothing() -> None:
    assert codes(f"The contribution is twofold: a net and its data. {FAITHFUL}") == set()
    assert "unsupported" in codes(
        f"{FAITHFUL} Its contribution is twofold: quantum biology explains it, and mice rejoice."
    )
