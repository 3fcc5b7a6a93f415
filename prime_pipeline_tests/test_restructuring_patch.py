from __future__ import annotations

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.judge import Patch
from prime_pipeline.text.protected import protect
from prime_pipeline_tests.test_restructuring_gate import FAITHFUL, GATE, RAW, changed


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
