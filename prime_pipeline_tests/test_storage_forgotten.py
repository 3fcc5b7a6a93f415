"""The list of exclusions: what is on it, and that it is never read as shorter than it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prime_pipeline.errors import SchemaMismatch, UnreadableExclusions
from prime_pipeline.storage.forgotten import ForgottenDocuments


@pytest.fixture
def excluded(tmp_path: Path) -> ForgottenDocuments:
    return ForgottenDocuments(tmp_path / "forgotten.json")


def test_documents_stay_on_the_list_until_they_are_taken_off(excluded: ForgottenDocuments) -> None:
    assert (excluded.ids(), excluded.fingerprint) == (frozenset(), "")
    excluded.add(["b", "a"])
    assert [(entry.doc_id, entry.is_complete) for entry in excluded.entries()] == [("a", False), ("b", False)]
    excluded.complete(["a"])
    assert [(entry.doc_id, entry.is_complete) for entry in excluded.entries()] == [("a", True), ("b", False)]
    first = excluded.fingerprint
    since = excluded.entries()[0].since
    excluded.add(["a"])  # once more: not finished again, and as old as it was
    entry = excluded.entries()[0]
    assert (entry.since, entry.is_complete) == (since, False)
    assert excluded.fingerprint == first
    excluded.remove(["a"])
    assert excluded.ids() == {"b"}
    assert excluded.fingerprint != first


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"\xff", b'{"schema_version": 1, "documents": [{}]}'])
def test_a_damaged_list_is_no_empty_one(excluded: ForgottenDocuments, tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "forgotten.json").write_bytes(damage)
    with pytest.raises(UnreadableExclusions, match="nothing is read without it"):
        excluded.ids()
    with pytest.raises(UnreadableExclusions):
        excluded.add(["a"])


def test_a_list_of_another_version_is_named(excluded: ForgottenDocuments, tmp_path: Path) -> None:
    (tmp_path / "forgotten.json").write_text(json.dumps({"schema_version": 99, "documents": []}))
    with pytest.raises(SchemaMismatch):
        excluded.ids()
