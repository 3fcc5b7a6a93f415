"""Stage 2: the cheap order, the budget, the mixture of scores, and ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from prime_pipeline.indexes.builds import LEXICAL_FILE
from prime_pipeline.indexes.lexical import LexicalIndex, StoredSection
from prime_pipeline.retrieval.options import RetrievalOptions, SectionText
from prime_pipeline.retrieval.stage1 import Candidates
from prime_pipeline.retrieval.stage2 import (
    IsOver,
    ScoredSection,
    best_by_document,
    bm25_order,
    cheap_order,
    order_sections,
    rerank_sections,
    score_texts,
    z_normalised,
)
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document

EVERYTHING = RetrievalOptions(rerank_budget=0)


class LengthScorer:
    """Implements ``SectionScorer``: a section's score is the length of its text; remembers what it scored."""

    name = "length"

    def __init__(self, *, is_mixed: bool = False) -> None:
        self.is_mixed = is_mixed
        self.scored: list[tuple[str, int]] = []

    def score(
        self, query: str, sections: Sequence[StoredSection], is_over: IsOver | None = None
    ) -> NDArray[np.float64]:
        scores = np.full(len(sections), np.nan)
        for i, section in enumerate(sections):
            if is_over and is_over():
                break
            self.scored.append((section.doc_id, section.ordinal))
            scores[i] = len(section.text)
        return scores


class ConstantScorer(LengthScorer):
    """Finds all sections equally good."""

    def score(
        self, query: str, sections: Sequence[StoredSection], is_over: IsOver | None = None
    ) -> NDArray[np.float64]:
        return np.full(len(sections), 0.1)


@pytest.fixture
def lexical(tmp_path: Path) -> LexicalIndex:
    bench = Bench(tmp_path)
    bench.publish(
        make_document("a", "One: bread bread bread", "Two: nothing here", "Three: bread and butter and jam"),
        make_document("b", "One: salt", "Two: pepper"),
        make_document("c", "One: bread is the only word of c that counts"),
    )
    return LexicalIndex(bench.live() / LEXICAL_FILE)


def candidates(lexical: LexicalIndex, *ranking: str, query: str = "bread") -> Candidates:
    return Candidates([(doc_id, 1.0) for doc_id in ranking], {}, lexical.score_sections(query))


def names(lexical: LexicalIndex, ordered: Sequence[tuple[int, float]]) -> list[str]:
    found = [lexical.stored_section(position) for position, _ in ordered]
    return [f"{section.doc_id}{section.ordinal}" for section in found]


def test_without_a_scorer_sections_are_in_order_of_bm25_then_stage_1_then_ordinal(
    lexical: LexicalIndex,
) -> None:
    ordered = bm25_order(lexical, candidates(lexical, "b", "c", "a"), 30)
    assert names(lexical, ordered) == ["a1", "a3", "c1", "b1", "b2", "a2"]
    scores = [score for _, score in ordered]
    assert scores == sorted(scores, reverse=True)
    assert scores[3:] == [0.0, 0.0, 0.0]


def test_only_the_first_candidates_count(lexical: LexicalIndex) -> None:
    for order in (bm25_order, cheap_order):
        assert names(lexical, order(lexical, candidates(lexical, "b", "c", "a"), 2)) == ["c1", "b1", "b2"]
        assert order(lexical, candidates(lexical), 30) == []


def test_sections_are_scored_in_the_order_of_bm25_and_their_documents_score(lexical: LexicalIndex) -> None:
    found = replace(candidates(lexical), ranking=[("b", 0.9), ("c", 0.2), ("a", 0.1)])
    ordered = cheap_order(lexical, found, 30)
    assert sorted(ordered) == sorted(bm25_order(lexical, found, 30))
    # Sections of b share nothing with the query, and all the same come before two of a, for their document's sake.
    assert names(lexical, ordered) == ["a1", "b1", "b2", "a3", "c1", "a2"]


def test_without_a_scorer_the_order_of_bm25_stands(lexical: LexicalIndex) -> None:
    hits = order_sections(lexical, candidates(lexical, "a", "c"), 30, 2)
    assert [(hit.section.doc_id, hit.section.ordinal) for hit in hits] == [("a", 1), ("a", 3)]
    assert all(hit.signals == {"section_bm25": hit.score} for hit in hits)


@pytest.mark.parametrize(("budget", "n_scored"), [(1, 1), (3, 3), (100, 6), (0, 6)])
def test_the_budget_bounds_what_is_scored(lexical: LexicalIndex, budget: int, n_scored: int) -> None:
    scorer = LengthScorer()
    found = candidates(lexical, "b", "c", "a")
    hits = rerank_sections("bread", lexical, found, scorer, RetrievalOptions(rerank_budget=budget))
    cheap = [lexical.stored_section(position) for position, _ in cheap_order(lexical, found, 30)]
    assert scorer.scored == [(section.doc_id, section.ordinal) for section in cheap[:n_scored]]
    assert [hit.score for hit in hits] == sorted((float(len(s.text)) for s in cheap[:n_scored]), reverse=True)


def test_a_scorer_may_be_mixed_with_bm25(lexical: LexicalIndex) -> None:
    found = candidates(lexical, "b", "c", "a")
    hits = rerank_sections("bread", lexical, found, LengthScorer(is_mixed=True), EVERYTHING)
    bm25 = np.array([hit.signals["section_bm25"] for hit in hits])
    length = np.array([hit.signals["length"] for hit in hits])
    assert length == pytest.approx([len(hit.section.text) for hit in hits])
    expected = (bm25 - bm25.mean()) / bm25.std() + (length - length.mean()) / length.std()
    assert [hit.score for hit in hits] == pytest.approx(expected)


def test_signals_are_told_as_they_were_added_up(lexical: LexicalIndex) -> None:
    found = candidates(lexical, "b", "c", "a")
    mixed = rerank_sections("bread", lexical, found, LengthScorer(is_mixed=True), EVERYTHING)
    assert all(hit.added.keys() == {"section_bm25", "length", "stage1"} for hit in mixed)
    assert [sum(hit.added.values()) for hit in mixed] == pytest.approx([hit.score for hit in mixed])
    alone = rerank_sections("bread", lexical, found, LengthScorer(), EVERYTHING)
    assert all(hit.added == {} for hit in alone)


def after(n_questions: int) -> IsOver:
    """Time that is over when it has been asked about so often."""
    asked = iter(range(n_questions))
    return lambda: next(asked, None) is None


@pytest.mark.parametrize(
    ("n_in_time", "at_least", "n_scored"), [(0, 1, 1), (0, 2, 2), (2, 1, 3), (2, 2, 4), (5, 1, 6), (9, 9, 6)]
)
def test_when_time_is_over_the_budget_shrinks_from_the_end_of_the_cheap_order(
    lexical: LexicalIndex, n_in_time: int, at_least: int, n_scored: int
) -> None:
    scorer, found = LengthScorer(is_mixed=True), candidates(lexical, "b", "c", "a")
    hits = rerank_sections(
        "bread", lexical, found, scorer, EVERYTHING, is_over=after(n_in_time), at_least=at_least
    )
    cheap = [lexical.stored_section(position) for position, _ in cheap_order(lexical, found, 30)]
    assert scorer.scored == [(section.doc_id, section.ordinal) for section in cheap[:n_scored]]
    assert {(hit.section.doc_id, hit.section.ordinal) for hit in hits} == set(scorer.scored)
    # As if nothing else had been there: the scores are normalised over what was scored.
    assert hits == rerank_sections(
        "bread", lexical, found, LengthScorer(is_mixed=True), RetrievalOptions(rerank_budget=n_scored)
    )


def test_each_part_of_a_mixed_score_has_its_weight(lexical: LexicalIndex) -> None:
    found = Candidates([("b", 0.5), ("c", 0.3), ("a", 0.1)], {}, lexical.score_sections("bread"))
    options = RetrievalOptions(rerank_budget=0, scorer_weight=2.0, stage1_weight=3.0)
    hits = rerank_sections("bread", lexical, found, LengthScorer(is_mixed=True), options)
    parts = [z_normalised(np.array([hit.signals[name] for hit in hits])) for name in hits[0].signals]
    assert list(hits[0].signals) == ["section_bm25", "length", "stage1"]
    assert {hit.section.doc_id: hit.signals["stage1"] for hit in hits} == {"a": 0.1, "b": 0.5, "c": 0.3}
    shares = np.array([{"a": 1 / 3, "b": 1 / 2, "c": 1.0}[hit.section.doc_id] for hit in hits])
    assert [hit.score for hit in hits] == pytest.approx(parts[0] + 2 * parts[1] + 3 * shares * parts[2])
    alone = rerank_sections("bread", lexical, found, LengthScorer(), options)
    assert [hit.score for hit in alone] == sorted((len(hit.section.text) for hit in alone), reverse=True)


def test_ties_are_in_order_of_document_and_ordinal(lexical: LexicalIndex) -> None:
    hits = rerank_sections("bread", lexical, candidates(lexical, "c", "b", "a"), ConstantScorer(), EVERYTHING)
    order = [(hit.section.doc_id, hit.section.ordinal) for hit in hits]
    assert order == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("c", 1)]


class WrittenLengthScorer(LengthScorer):
    """A section's score is the length of its rewritten text, or of its raw one where it has none."""

    def score(
        self, query: str, sections: Sequence[StoredSection], is_over: IsOver | None = None
    ) -> NDArray[np.float64]:
        self.scored = [(section.doc_id, section.ordinal) for section in sections]
        texts = (section.text if section.rewritten is None else section.rewritten for section in sections)
        return np.array([float(len(text)) for text in texts])


@pytest.mark.parametrize(
    ("section_text", "scores"),
    [("restructured", {2.0, 40.0, 15.0}), ("raw", {10.0, 20.0, 15.0}), ("both", {10.0, 40.0, 15.0})],
)
def test_a_rewritten_section_is_scored_by_the_text_that_is_asked_for(
    section_text: SectionText, scores: set[float]
) -> None:
    sections = [
        StoredSection("a", 1, "a", (), "x" * 10, 0, "a", None, None, "y" * 2),
        StoredSection("a", 2, "a", (), "x" * 20, 0, "a", None, None, "y" * 40),
        StoredSection("a", 3, "a", (), "x" * 15, 0, "a", None, None),
    ]
    scorer = WrittenLengthScorer()
    assert set(score_texts("bread", sections, scorer, section_text).tolist()) == scores
    assert len(scorer.scored) == (5 if section_text == "both" else 3)


def test_a_section_that_is_read_twice_is_scored_twice_or_not_at_all() -> None:
    rewritten = [StoredSection("a", i, "a", (), "x" * 10, 0, "a", None, None, "y" * i) for i in range(4)]
    scores = score_texts("bread", rewritten, LengthScorer(), "both", after(3))
    assert np.isnan(scores).tolist() == [False, True, True, True]


def test_nothing_to_score_gives_nothing(lexical: LexicalIndex) -> None:
    scorer = LengthScorer(is_mixed=True)
    assert rerank_sections("bread", lexical, candidates(lexical), scorer, RetrievalOptions()) == []


@pytest.mark.parametrize(
    "scores", [[], [3.0], [0.0, 0.0], [0.1, 0.1, 0.1], [0.1, 0.1 + 1e-12, 0.1], [-5.0, -5.0 - 1e-9]]
)
def test_scores_that_do_not_differ_are_normalised_to_zero(scores: list[float]) -> None:
    assert z_normalised(np.array(scores)).tolist() == [0.0] * len(scores)


@given(st.lists(st.integers(-1000, 1000), min_size=2).filter(lambda scores: len(set(scores)) > 1))
def test_normalised_scores_keep_their_order(scores: list[int]) -> None:
    normalised = z_normalised(np.array(scores, dtype=np.float64))
    assert normalised.mean() == pytest.approx(0, abs=1e-9)
    assert normalised.std() == pytest.approx(1)
    assert np.array_equal(np.argsort(normalised, kind="stable"), np.argsort(scores, kind="stable"))


def scored(doc_id: str, ordinal: int, score: float) -> ScoredSection:
    section = StoredSection(doc_id, ordinal, doc_id, (), "", 0, doc_id, None, None)
    return ScoredSection(section, score, {})


def test_a_document_is_as_good_as_its_best_section() -> None:
    sections = [scored("b", 1, 2.0), scored("a", 1, -1.0), scored("b", 2, 5.0), scored("c", 1, 5.0)]
    assert best_by_document(sections) == [("b", 5.0), ("c", 5.0), ("a", -1.0)]
    assert best_by_document([]) == []
