"""Each rule of the fidelity gate: what it must find, and the paraphrase that it must let pass."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_pipeline.restructuring.gate import FidelityGate
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.text.entities import RuleEntityFinder
from prime_pipeline.text.protected import protect

RAW = """In this paper we present MTNet, a network for speech translation BIBREF7. We train it on 286,938 sentences \
from LibriVox and 64M tokens of text (Smith et al., 2019). The word error rate (WER) falls from 14.2% to 12.5%, \
and decoding takes 35 ms per sentence. Unlike earlier systems, MTNet does not use a pretrained encoder, because \
transcripts are not available for all languages. MTNet outperforms BaseNet on every test set. Note that BaseNet fails \
to converge without warm-up. The learning rate is $\\alpha$ and the code runs with `train.py`. Table 3 shows details."""

FAITHFUL = """MTNet is a network for speech translation. Its training data are 286938 sentences from LibriVox and 64 \
million tokens of text. It lowers the word error rate (WER) from 14.2 percent to twelve point five per cent, with a \
decoding time of 35 milliseconds per sentence. MTNet works without a pretrained encoder, as transcripts are \
unavailable for some languages; earlier systems use one. On every test set, MTNet outperforms BaseNet, which does not converge \
without warm-up. The learning rate is $\\alpha$, and `train.py` runs the code."""

GATE = FidelityGate(
    GateOptions(),
    RuleEntityFinder(),
    prompt="Rewrite what follows so that a machine reads every fact in it at once.",
)


def codes(rewrite: str, raw: str = RAW, gate: FidelityGate = GATE) -> set[str]:
    return {finding.code for finding in gate.findings(protect(raw), rewrite)}


def changed(old: str, new: str) -> str:
    assert FAITHFUL.count(old) == 1, old
    return FAITHFUL.replace(old, new)


def test_a_faithful_paraphrase_passes() -> None:
    assert GATE.findings(protect(RAW), FAITHFUL) == ()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("twelve point five", "15.2", "number_invented"),
        ("14.2 percent", "41.2 percent", "number_missing"),
        (", with a decoding time of 35 milliseconds per sentence", "", "number_missing"),
        ("35 milliseconds", "35 seconds", "unit_changed"),
        ("14.2 percent to twelve point five per cent", "14.2 to 12.5", "unit_missing"),
        ("286938 sentences", "286938 words", "unit_changed"),
        ("64 million", "64 thousand", "number_missing"),
        ("word error rate (WER)", "word error rate", "acronym_missing"),
        ("(WER)", "(BLEU)", "acronym_invented"),
        (" from LibriVox", "", "entity_missing"),
        ("from LibriVox", "from LibriVox, read by Johanna Keller,", "entity_invented"),
        ("works without a pretrained encoder", "uses a pretrained encoder", "negation_missing"),
        ("which does not converge", "which converges", "negation_missing"),
        ("`train.py` runs the code", "`train.py` does not run the code", "negation_added"),
        ("MTNet outperforms BaseNet, which", "BaseNet outperforms MTNet; it", "swapped"),
        ("`train.py` runs the code", "a script runs the code", "inline_missing"),
        ("$\\alpha$", "$\\beta$", "inline_invented"),
        ("LibriVox and", "LibriVox (https://librivox.org) and", "url_invented"),
        ("LibriVox and", "LibriVox (Table 9) and", "reference_invented"),
        ("MTNet works", "Volunteers recorded audio books at home. MTNet works", "unsupported"),
        ("MTNet is a", "# MTNet\n\nMTNet is a", "heading_invented"),
        ("MTNet is a", "Sure! Here is the rewritten section.\n\nMTNet is a", "chatter"),
        ("MTNet is a", "Rewrite the section below; keep every number. MTNet is a", "prompt_echo"),
        ("MTNet is a", "So that a machine reads every fact in it at once, MTNet is a", "prompt_echo"),
        (
            "MTNet works",
            "This overview provides valuable insights for a broad audience. MTNet works",
            "filler",
        ),
        (", and `train.py` runs the code.", ", and `train.py` runs", "truncated"),
        (
            "MTNet works",
            "MTNet wird ohne einen Encoder verwendet, weil die Daten nicht da sind. MTNet works",
            "language",
        ),
        ("It lowers", "本文研究语音翻译的网络模型。It lowers", "language"),
    ],
)
def test_a_fault_is_refused_by_its_own_code(old: str, new: str, code: str) -> None:
    assert code in codes(changed(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("286938", "286,938"),
        ("64 million tokens", "64M tokens"),
        ("twelve point five per cent", "12.5 %"),
        ("35 milliseconds", "35 ms"),
        ("unavailable for some", "not available for all"),
        ("works without a pretrained encoder", "uses no pretrained encoder"),
        ("works without a pretrained encoder", "avoids a pretrained encoder"),
        ("does not converge", "cannot converge"),
        ("does not converge", "is unable to converge"),
        ("MTNet is a network", "The authors propose MTNet (BIBREF7), a new network"),
        (
            "On every test set, MTNet outperforms BaseNet",
            "BaseNet is outperformed by MTNet on every test set",
        ),
        ("`train.py` runs the code.", "`train.py` runs the code (details: Table 3)."),
        ("word error rate (WER)", "Word Error Rate (WER)"),
    ],
)
def test_a_paraphrase_passes(old: str, new: str) -> None:
    assert codes(changed(old, new)) == set()


def test_the_second_half_missing_is_found_with_its_sources() -> None:
    half = FAITHFUL[: FAITHFUL.index(" MTNet works")]
    truncated = [f for f in GATE.findings(protect(RAW), half) if f.code == "truncated"]
    assert truncated
    assert truncated[0].sources[-1].startswith("The learning rate")


def test_other_lengths() -> None:
    assert "empty" in codes("")
    assert "too_long" in codes(f"{FAITHFUL} {FAITHFUL} {FAITHFUL}")
    assert "repetition" in codes(f"{FAITHFUL} {FAITHFUL}")
    assert "too_short" in codes("MTNet is a network.", RAW + " " + RAW.replace("MTNet", "XNet"))


def test_echo_is_the_only_finding_of_the_raw_text() -> None:
    assert codes(RAW) == {"echo"}
    assert codes("  " + RAW.replace(". ", ".\n")) == {"echo"}


PLACED = "First comes text about models.\n\n```\na = 1\n```\n\nThen more text follows.\n\n$$\nx\n$$\n\nLast comes text."


@pytest.mark.parametrize(
    ("rewrite", "code"),
    [
        ("Text about models.\n\n[[block:a]]\n\nMore text, then the last.", "placeholder_missing"),
        ("Text about models.\n\n[[block:a]]\n[[block:a]]\n[[block:b]]\n\nLast text.", "placeholder_repeated"),
        ("Text about models.\n\n[[block:a]]\n[[block:b]]\n[[block:c]]\n\nLast text.", "placeholder_invented"),
        ("Text about models.\n\n[[block:b]]\n\n[[block:a]]\n\nLast text.", "placeholder_order"),
    ],
)
def test_placeholders(rewrite: str, code: str) -> None:
    assert code in codes(rewrite, PLACED)


def test_placeholders_that_all_come_back_pass() -> None:
    assert codes("Text about models.\n\n[[block:a]]\n\nMore.\n\n[[block:b]]\n\nLast text.", PLACED) == set()


def test_text_of_another_language_is_held_to_it() -> None:
    raw = "Das Modell wird mit den Daten trainiert, die wir haben, und es ist nicht sehr groß."
    assert "language" not in codes(
        "Das Modell ist nicht sehr groß und wird mit den Daten trainiert, die wir haben.", raw
    )
    assert "language" in codes("The model is not very large and is trained on the data that we have.", raw)


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
        "$",
        "(",
        "1,",
        "a\n",
    ],
)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    text = piece * (50_000 // len(piece))
    started = time.perf_counter()
    GATE.findings(protect(text), "".join(random.Random(1).sample(text, len(text) // 2)))
    GATE.findings(protect(text), text + " end.")
    assert time.perf_counter() - started < 10
