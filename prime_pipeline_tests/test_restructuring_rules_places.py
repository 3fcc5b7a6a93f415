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


@pytest.mark.parametrize(
    ("raw", "rewrite"),
    [
        (
            "We train the 21,350 parameters of the network for about 60 epochs.",
            "The network's 21,350 parameters are trained for about 60 epochs.",
        ),
        (
            "It contains 67 distinct predicates and 293 distinct subjects. For the 67, we hand-craft 163 templates.",
            "It has 67 distinct predicates (163 hand-crafted templates) and 293 distinct subjects.",
        ),
    ],
)
def test_numbers_in_another_order_that_count_what_they_counted_pass(raw: str, rewrite: str) -> None:
    assert codes(rewrite, raw) == set()
