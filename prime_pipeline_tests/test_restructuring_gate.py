"""The fidelity gate as a whole: its verdicts are alike, follow its options and its context, and come in time."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_pipeline.models.sentence_similarity import EmbedderSimilarity
from prime_pipeline.restructuring.gate import FidelityGate
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.text.entities import RuleEntityFinder
from prime_pipeline.text.protected import protect
from prime_pipeline_tests.fakes import HashingEmbedder
from prime_pipeline_tests.gate_run import FAITHFUL, GATE, RAW, changed, codes


def test_a_faithful_paraphrase_passes() -> None:
    assert GATE.findings(protect(RAW), FAITHFUL) == ()


@pytest.mark.parametrize(
    ("old", "new", "context"),
    [
        ("MTNet is a network", "MTNet is a Marian network", "Speech Translation with Marian"),
        ("MTNet is a network", "MTNet is a CTC network", "Experiments\nModels with CTC"),
        ("MTNet is a network", "MTNet is a network of 2031", "The 2031 Shared Task"),
        (
            "MTNet is a network",
            "MTNet, trained without alignments, is a network",
            "Training without alignments",
        ),
    ],
)
def test_title_and_headings_are_no_inventions(old: str, new: str, context: str) -> None:
    assert codes(changed(old, new)) != set()
    assert codes(changed(old, new), context=context) == set()


def test_nothing_of_title_and_headings_is_required() -> None:
    assert codes(FAITHFUL, context="Marian 3\nResults of the CTC models, not of others: 77 %") == set()


def test_missing_facts_name_the_sentences_that_hold_them() -> None:
    (finding,) = GATE.findings(protect(RAW), changed(" from LibriVox", ""))
    assert finding.sources == (
        "We train it on 286,938 sentences from LibriVox and 64M tokens of text (Smith et al., 2019).",
    )


def test_fingerprint_follows_options_finder_and_prompt() -> None:
    class OtherFinder(RuleEntityFinder):
        name = "other"

    gates = [
        FidelityGate(GateOptions(), RuleEntityFinder()),
        FidelityGate(replace(GateOptions(), max_length_ratio=2.0), RuleEntityFinder()),
        FidelityGate(GateOptions(), OtherFinder()),
        FidelityGate(GateOptions(), RuleEntityFinder(), prompt="p"),
        FidelityGate(
            GateOptions(), RuleEntityFinder(), similarity=EmbedderSimilarity(HashingEmbedder("one"))
        ),
        FidelityGate(
            GateOptions(), RuleEntityFinder(), similarity=EmbedderSimilarity(HashingEmbedder("two"))
        ),
    ]
    assert len({gate.fingerprint for gate in gates}) == len(gates)
    assert gates[0].fingerprint == FidelityGate(GateOptions(), RuleEntityFinder()).fingerprint


def test_a_threshold_is_obeyed() -> None:
    lenient = FidelityGate(replace(GateOptions(), max_length_ratio=9.0), RuleEntityFinder())
    assert "too_long" not in codes(f"{FAITHFUL} {FAITHFUL} {FAITHFUL}", gate=lenient)


_PIECES = st.lists(
    st.sampled_from(
        [
            "not ",
            "12.5 % ",
            "GRU ",
            "No. ",
            "$x$ ",
            "`",
            "[[block:a]]",
            "(",
            "Paris ",
            "\n\n",
            "- ",
            "# ",
            "不",
            "than ",
        ]
    )
    | st.text(max_size=8)
).map("".join)


@settings(max_examples=150, deadline=None)
@given(_PIECES, _PIECES)
def test_any_two_texts_are_judged_and_always_alike(raw: str, rewrite: str) -> None:
    protected = protect(raw)
    assert GATE.findings(protected, rewrite) == GATE.findings(protected, rewrite)
    assert {f.code for f in GATE.findings(protected, protected.text)} <= {"echo"}


@pytest.mark.parametrize(
    "piece",
    [
        "A does not beat B without 5 ms. ",
        "five hundred and ",
        "(A B, 2019; ",
        "GRU LSTM Xyz ",
        "not ",
        "A-B-",
        "from 5 to 6 ",
        "1 000 ",
        "$",
        "(",
        "1,",
        "a\n",
    ],
)
def test_work_grows_with_the_length_of_a_text_not_with_its_square(piece: str) -> None:
    """Four times the text takes about four times as long; a pattern that compares all with all takes sixteen times.

    Other work on the machine may disturb one comparison, hardly three.
    """
    assert any(_seconds(piece, 40_000) < 8 * _seconds(piece, 10_000) + 0.3 for _ in range(3))


def _seconds(piece: str, n_characters: int) -> float:
    """Of the processor, for two verdicts."""
    text = piece * (n_characters // len(piece))
    shuffled = "".join(random.Random(1).sample(text, len(text) // 2))
    started = time.process_time()
    GATE.findings(protect(text), shuffled)
    GATE.findings(protect(text), text + " end.")
    return time.process_time() - started
