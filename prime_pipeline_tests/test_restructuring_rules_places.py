"""Comparisons and numbers keep their places."""

from __future__ import annotations

import pytest

from prime_pipeline_tests.gate_run import changed, codes


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("MTNet outperforms BaseNet, which", "BaseNet outperforms MTNet; it", "swapped"),
    ],
)
def test_a_fault_is_refused_by_its_own_code(old: str, new: str, code: str) -> None:
    assert code in codes(changed(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "On every test set, MTNet outperforms BaseNet",
            "BaseNet is outperformed by MTNet on every test set",
        ),
    ],
)
def test_a_paraphrase_passes(old: str, new: str) -> None:
    assert codes(changed(old, new)) == set()


@pytest.mark.parametrize(
    ("raw", "rewrite", "code"),
    [
        ("The error falls from 14.2 to 12.5 points.", "Error falls, from 14.2 to 12.5 points.", ""),
        (
            "The error falls from 14.2 to 12.5 points.",
            "The error falls, from 12.5 to 14.2 points.",
            "swapped",
        ),
        ("Precision is 0.71 and recall is 0.64 on news.", "On news, precision is 0.71 and recall 0.64.", ""),
        (
            "Precision is 0.71 and recall is 0.64 on news.",
            "On news, precision is 0.64 and recall is 0.71.",
            "swapped",
        ),
    ],
)
def test_between_two_texts(raw: str, rewrite: str, code: str) -> None:
    """An empty code: it passes."""
    assert codes(rewrite, raw) == ({code} if code else set())
