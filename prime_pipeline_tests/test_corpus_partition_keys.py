"""Partition keys of clean, odd and hostile ids."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.corpus.partition_keys import partition_key

ODD = [
    "a, b",
    "a/b",
    "..",
    "...",
    "a...b",
    "[x]",
    "\U0001f600",
    "x" * 5000,
    "",
    ".a",
    "-a",
    "a\n",
    "\udcff",
    "é",
]


@pytest.mark.parametrize("doc_id", ["a.md", "1909.00694", "x_y-z", "A" * 80, "0"])
def test_a_clean_id_is_its_own_key(doc_id: str) -> None:
    assert partition_key(doc_id) == doc_id


def test_key_is_readable_and_fixed() -> None:
    digest = hashlib.sha256(b"docs/a b.md").hexdigest()
    assert partition_key("docs/a b.md") == f"docs-a-b.md-{digest[:10]}"


def test_a_key_taken_as_id_gets_another_key() -> None:
    key = partition_key("a/b")
    assert partition_key(key) != key


@given(st.lists(st.one_of(st.sampled_from(ODD), st.text(), st.from_regex(r"[a-z./ -]{1,90}")), unique=True))
def test_keys_are_valid_and_distinct(ids: list[str]) -> None:
    keys = [partition_key(doc_id) for doc_id in ids]
    assert len(set(keys)) == len(ids)
    for key in keys:
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}", key)
        assert "..." not in key
