from __future__ import annotations

import pytest

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.judge import Patch
from prime_pipeline.text.protected import protect
from prime_pipeline_tests.gate_run import FAITHFUL, GATE, RAW, changed


def patch(rewrite: str) -> Patch | None:
    raw = protect(RAW)
    return GATE.patch(raw, rewrite, GATE.findings(raw, rewrite))


def test_a_missing_fact_is_appended_in_its_sentence() -> None:
    found = patch(changed(" from LibriVox", ""))
    assert found is not None
    (sentence,) = found.appended
    assert sentence.startswith("We train it on 286,938 sentences from LibriVox")
    assert found.text.endswith(f"\n\n{sentence}")
    assert GATE.findings(protect(RAW), found.text) == ()


def test_several_sentences_come_in_raw_order() -> None:
    rewrite = changed(" from LibriVox", "").replace(
        ", with a decoding time of 35 milliseconds per sentence", ""
    )
    found = patch(rewrite)
    assert found is not None
    assert [RAW.index(sentence) for sentence in found.appended] == sorted(map(RAW.index, found.appended))
    assert len(found.appended) == 2


def test_an_invention_is_never_patched() -> None:
    assert patch(changed(" from LibriVox", " from Audible")) is None
    assert patch(changed("which does not converge", "which converges")) is None


def test_nothing_to_heal_is_no_patch() -> None:
    assert patch(FAITHFUL) is None
    assert (
        GATE.patch(protect(RAW), FAITHFUL, (Finding("number_missing", "7", ("Not a raw sentence.",)),))
        is None
    )


def test_a_patch_keeps_the_bound_of_length() -> None:
    raw = protect("The value is 7. It is good.")
    rewrite = "Good, " * 12 + "good."
    assert GATE.patch(raw, rewrite, (Finding("number_missing", "7", ("The value is 7.",)),)) is None


RAW_PAIRS = """We train MTNet on 5,000 sentences of German speech. BaseNet is trained on 3,000 sentences of English text. \
Decoding takes 35 ms per sentence, and the error rate falls from 14.2% to 12.5%. The encoder is a GRU with attention. \
The decoder is an LSTM with dropout. The recordings come from LibriVox. The transcripts are those of Gutenberg. \
MTNet does not use 40 million extra tokens. The rate is `alpha` at first. Later the decay is `beta` only."""

REWRITTEN_PAIRS = """MTNet is trained on 5,000 sentences of German speech, BaseNet on 3,000 sentences of English text. \
Decoding takes 35 ms per sentence; the error rate falls from 14.2% to 12.5%. The encoder is a GRU with attention; \
the decoder is an LSTM with dropout. The recordings come from LibriVox, the transcripts from Gutenberg. \
MTNet does not use 40 million extra tokens. The rate is `alpha` at first; later, the decay is only `beta`."""


def test_the_faithful_rewrite_of_the_pairs_passes() -> None:
    assert GATE.findings(protect(RAW_PAIRS), REWRITTEN_PAIRS) == ()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("5,000", "3,000", "number_missing"),
        ("3,000 sentences", "5,000 sentences", "number_missing"),
        ("35 ms", "12.5 ms", "number_missing"),
        ("14.2%", "35%", "number_missing"),
        ("35 ms", "35%", "unit_missing"),
        ("a GRU", "an LSTM", "acronym_missing"),
        ("from LibriVox", "from Gutenberg", "entity_missing"),
        ("rate is `alpha`", "rate is `beta`", "inline_missing"),
        ("does not use 40 million extra tokens", "uses 40 million extra tokens", "negation_missing"),
        ("does not use 40 million extra tokens", "uses extra tokens", "number_missing"),
    ],
)
def test_what_was_replaced_by_something_of_another_place_is_never_patched(
    old: str, new: str, code: str
) -> None:
    assert REWRITTEN_PAIRS.count(old) == 1
    raw, rewrite = protect(RAW_PAIRS), REWRITTEN_PAIRS.replace(old, new)
    findings = GATE.findings(raw, rewrite)
    assert not any(finding.sources for finding in findings if finding.code == code)
    assert code in {finding.code for finding in findings}
    assert GATE.patch(raw, rewrite, findings) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("5,000 sentences of", "sentences of"),
        ("takes 35 ms per sentence", "takes time per sentence"),
        ("from 14.2% to 12.5%", "to 12.5%"),
        ("35 ms", "35"),
        ("a GRU with", "a network with"),
        ("MTNet does not use 40 million extra tokens. ", ""),
    ],
)
def test_what_was_only_dropped_is_patched(old: str, new: str) -> None:
    raw, rewrite = protect(RAW_PAIRS), REWRITTEN_PAIRS.replace(old, new)
    found = GATE.patch(raw, rewrite, GATE.findings(raw, rewrite))
    assert found is not None
    assert len(found.appended) == 1
