"""No claim out of nowhere, no statement gone."""

from __future__ import annotations

import pytest

from prime_pipeline_tests.gate_run import changed, codes


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
