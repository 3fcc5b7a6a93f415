"""Audits through a cache: what is audited again, and that the sum is the audit without a cache."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from prime_pipeline.evaluation.fidelity_audit import FidelityAudit, audit
from prime_pipeline.models.nli import ContradictionModel
from prime_pipeline.records import Document
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.documents import document_version
from prime_pipeline.studies.audits import cached_audit
from prime_pipeline.text.entities import RuleEntityFinder
from prime_pipeline_tests.documents import make_document


class CountingFinder:
    """Finds names by rule, and remembers which texts it was shown."""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.texts: list[str] = []
        self._rule = RuleEntityFinder()

    def find(self, text: str) -> list[str]:
        self.texts.append(text)
        return list(self._rule.find(text))

    def saw(self, *words: str) -> list[bool]:
        """Which of the words occur in any text."""
        return [any(word in text for text in self.texts) for word in words]


class NotIsContradiction:
    """A whole NLI model: what says "not" contradicts."""

    name = "not-1"

    def __init__(self, fingerprint: str = "f") -> None:
        self.fingerprint = fingerprint
        self.n_pairs = 0

    def contradiction_probabilities(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self.n_pairs += len(pairs)
        return np.array([" not " in hypothesis for _, hypothesis in pairs], dtype=np.float32)

    def is_cut(self, hypothesis: str) -> bool:
        return "Long" in hypothesis


def rewritten(document: Document, *bodies: str | None) -> Document:
    sections = zip(document.sections, bodies, strict=True)
    return replace(document, sections=tuple(replace(section, rewritten=body) for section, body in sections))


BREAD = rewritten(
    make_document("bread", "Dough: Anna Berg mixes 12 loaves.", "Ovens: The oven has 3 doors. Rest it."),
    "Anna Berg mixes 13 loaves.",
    None,
)
STARS = rewritten(
    make_document("stars", "Sky: A star of Orion burns."), "A star of Orion does not burn. Long."
)
EVIDENCE = {"bread": ["Anna Berg mixes 12 loaves.", "Rest it.", "Nowhere."], "stars": ["A star"]}


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[BlobCache]:
    with closing(BlobCache(tmp_path / "audits.sqlite")) as opened:
        yield opened


def audited(
    cache: BlobCache,
    *documents: Document,
    finder: CountingFinder | None = None,
    nli: ContradictionModel | None = None,
    evidence: Mapping[str, Sequence[str]] = EVIDENCE,
) -> FidelityAudit:
    versioned = [(document_version(document), document) for document in documents]
    return cached_audit(versioned, len(documents), finder or CountingFinder(), evidence, nli, cache)


def test_documents_audited_one_by_one_add_up_to_the_audit_of_all(cache: BlobCache) -> None:
    nli = NotIsContradiction()
    whole = audit([BREAD, STARS], CountingFinder(), EVIDENCE, nli)
    assert audited(cache, BREAD, STARS, nli=nli) == whole
    assert audited(cache, BREAD, STARS, nli=nli) == whole  # as it was kept
    assert [section.section_id for section in whole.sections] == ["bread#1", "bread#2", "stars#1"]
    assert (whole.n_cut_sentences, whole.n_spans_nowhere, whole.nli_model) == (1, 1, "not-1")


def test_a_second_audit_looks_at_nothing_again(cache: BlobCache) -> None:
    first, second, nli = CountingFinder(), CountingFinder(), NotIsContradiction()
    audited(cache, BREAD, STARS, finder=first, nli=nli)
    assert first.saw("loaves", "Orion") == [True, True]
    n_pairs = nli.n_pairs
    assert n_pairs > 0
    audited(cache, BREAD, STARS, finder=second, nli=nli)
    assert (second.texts, nli.n_pairs) == ([], n_pairs)


def test_a_changed_document_is_audited_alone(cache: BlobCache) -> None:
    before = audited(cache, BREAD, STARS)
    changed = rewritten(make_document("stars", "Sky: A star of Orion burns."), "A star of Orion glows.")
    finder = CountingFinder()
    after = audited(cache, BREAD, changed, finder=finder)
    assert finder.saw("loaves", "glows") == [False, True]
    assert after.sections[:2] == before.sections[:2]
    assert after.sections[2] != before.sections[2]
    again = CountingFinder()
    assert audited(cache, BREAD, STARS, finder=again) == before  # and back to what it was before
    assert again.texts == []


@pytest.mark.parametrize(
    "other",
    [
        {"evidence": {**EVIDENCE, "stars": ["Orion"]}},
        {"evidence": {"bread": EVIDENCE["bread"]}},
        {"nli": NotIsContradiction()},
    ],
)
def test_what_determines_an_audit_makes_another(cache: BlobCache, other: dict[str, object]) -> None:
    audited(cache, BREAD, STARS)
    finder = CountingFinder()
    told = {"evidence": EVIDENCE, "nli": None, **other}
    audited(cache, BREAD, STARS, finder=finder, **told)  # type: ignore[arg-type]
    assert finder.saw("Orion") == [True]
    assert finder.saw("loaves") == ["nli" in other]  # only new evidence leaves the other document alone


def test_another_finder_or_model_makes_another_audit(cache: BlobCache) -> None:
    audited(cache, BREAD, nli=NotIsContradiction("old weights"))
    finder, nli = CountingFinder("other"), NotIsContradiction("new weights")
    assert audited(cache, BREAD, nli=nli).nli_model == "not-1"
    assert nli.n_pairs > 0
    assert audited(cache, BREAD, finder=finder, nli=nli).entity_finder == "other"
    assert finder.texts != []


@pytest.mark.parametrize("evidence", [{}, EVIDENCE])
def test_equal_texts_of_two_documents_stay_apart(
    cache: BlobCache, evidence: Mapping[str, Sequence[str]]
) -> None:
    versioned = [("same", STARS), ("same", replace(STARS, doc_id="twin"))]
    found = cached_audit(versioned, 2, CountingFinder(), evidence, None, cache)
    assert [section.doc_id for section in found.sections] == ["stars", "twin"]
    assert ["evidence_verbatim" in section.shares for section in found.sections] == [bool(evidence), False]


@pytest.mark.parametrize("damage", [b"", b"\xff", b"[]", b"{}", b'{"sections": [{}]}', b'{"sections": 1}'])
def test_a_damaged_entry_is_made_again(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "audits.sqlite"
    with closing(BlobCache(path)) as cache:
        found = audited(cache, BREAD, STARS)
    with sqlite3.connect(path) as connection:
        changed = connection.execute("UPDATE blobs SET value = ?", (damage,)).rowcount
    connection.close()
    assert changed == 2
    finder = CountingFinder()
    with closing(BlobCache(path)) as cache:
        assert audited(cache, BREAD, STARS, finder=finder) == found
    assert finder.saw("loaves", "Orion") == [True, True]


def test_progress_is_told_of_every_document_kept_or_not(cache: BlobCache) -> None:
    audited(cache, BREAD)
    told: list[tuple[str, int, int | None]] = []
    versioned = [(document_version(document), document) for document in (BREAD, STARS)]
    cached_audit(versioned, 2, CountingFinder(), EVIDENCE, None, cache, lambda *step: told.append(step))
    assert told == [("fidelity audit", 1, 2), ("fidelity audit", 2, 2)]


def test_no_document_is_an_empty_audit(cache: BlobCache) -> None:
    assert audited(cache) == FidelityAudit((), "counting", None, 0, 0, ())
