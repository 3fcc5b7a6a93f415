"""Discriminative terms: arithmetic on the page, and a second implementation of the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.terms import TermStatistics, is_candidate, word_reader

LITERAL = MetadataOptions(reading="paper_literal")
DOCUMENTS = st.lists(
    st.lists(st.sampled_from(["the", "alpha", "beta", "gamma", "42", "ox"]), max_size=12), max_size=6
)


def counted(*documents: list[str], headings: list[str] | None = None) -> TermStatistics:
    statistics = TermStatistics()
    for words in documents:
        statistics.add(words, headings or [])
    return statistics


def test_scores_are_the_formula_worked_by_hand() -> None:
    statistics = counted(["solar", "wind", "solar", "heat"], ["wind", "tide"], headings=["heat"])
    terms = dict(statistics.best_terms(MetadataOptions())[0])
    rare, common = math.log(3 / 2) + 1, math.log(3 / 3) + 1
    assert terms == pytest.approx(
        {
            "solar": 2 * rare * math.exp(-0.3 * 0 / 4),
            "wind": 1 * common * math.exp(-0.3 * 1 / 4),
            "heat": 1 * rare * math.exp(-0.3 * 3 / 4) * 2.0,
        }
    )
    assert list(terms) == ["solar", "heat", "wind"]


def test_stop_words_numbers_and_short_words_are_no_terms_but_have_a_frequency() -> None:
    statistics = counted(["the", "the", "model's", "ox", "2019", "10-20", "x-1", "don't", "wind"], ["the"])
    assert [[t for t, _ in best] for best in statistics.best_terms(MetadataOptions())] == [["wind"], []]
    assert statistics.document_frequencies()["the"] == 2
    assert (statistics.n_documents, statistics.vocabulary_size) == (2, 8)
    assert statistics.best_terms(LITERAL)[0][0][0] == "the"


@pytest.mark.parametrize("word", ["bm25", "o'reilly", "漢字仮名", "x-ray", "3d-printing"])
def test_candidates(word: str) -> None:
    assert is_candidate(word)


def test_ties_are_in_alphabetical_order_also_where_the_list_is_cut() -> None:
    # Without decay all four tie.
    statistics = counted(["delta", "charlie", "bravo", "alpha"])
    options = MetadataOptions(n_terms=3, alpha=0.0)
    assert [t for t, _ in statistics.best_terms(options)[0]] == ["alpha", "bravo", "charlie"]


@pytest.mark.parametrize("n_terms", [0, 1, 9])
def test_no_corpus_and_no_words_give_no_terms(n_terms: int) -> None:
    options = MetadataOptions(n_terms=n_terms)
    assert TermStatistics().best_terms(options) == []
    assert counted([], []).best_terms(options) == [(), ()]
    assert TermStatistics().document_frequencies() == {}


def test_heading_words_count_only_where_the_document_has_them() -> None:
    statistics = TermStatistics()
    statistics.add(["wind", "tide"], ["heat", "tide"])
    statistics.add(["heat"], ["tide", "unseen"])
    assert statistics.vocabulary_size == 3
    assert [best[0][0] for best in statistics.best_terms(MetadataOptions())] == ["tide", "heat"]
    assert statistics.best_terms(MetadataOptions())[1][0][1] == pytest.approx(math.log(3 / 2) + 1)


def plain_terms(documents: list[list[str]], headings: list[str], options: MetadataOptions) -> list[list[str]]:
    """The formula, word by word."""
    result = []
    for words in documents:
        scores = {}
        for word in words:
            df = sum(word in other for other in documents)
            idf = math.log((len(documents) + 1) / (df + 1)) + 1
            decay = math.exp(-options.alpha * (words.index(word) / len(words)))
            scores[word] = idf * words.count(word) * decay * (options.beta if word in headings else 1)
        kept = [w for w in scores if options.reading == "paper_literal" or is_candidate(w)]
        result.append(sorted(kept, key=lambda w: (-round(scores[w], 9), w))[: options.n_terms])
    return result


@given(
    DOCUMENTS,
    st.lists(st.sampled_from(["alpha", "beta", "the", "unseen"])),
    st.sampled_from(["default", "paper_literal"]),
)
def test_agrees_with_the_formula_word_by_word(
    documents: list[list[str]], headings: list[str], reading: str
) -> None:
    options = MetadataOptions(n_terms=6, reading="paper_literal" if reading == "paper_literal" else "default")
    best = counted(*documents, headings=headings).best_terms(options)
    rounded = [sorted(terms, key=lambda term: (-round(term[1], 9), term[0])) for terms in best]
    assert [[word for word, _ in terms] for terms in rounded] == plain_terms(documents, headings, options)
    assert [sorted(terms, key=lambda term: (-term[1], term[0])) for terms in best] == list(map(list, best))


@given(DOCUMENTS.filter(lambda documents: any(documents)))
def test_the_idf_is_that_of_scikit_learn(documents: list[list[str]]) -> None:
    vectorizer = TfidfVectorizer(analyzer=lambda words: words).fit(documents)
    theirs = dict(zip(vectorizer.get_feature_names_out(), vectorizer.idf_, strict=True))
    frequencies = counted(*documents).document_frequencies()
    ours = {word: math.log((len(documents) + 1) / (df + 1)) + 1 for word, df in frequencies.items()}
    assert ours == pytest.approx(theirs)


def test_the_reading_decides_what_a_word_is() -> None:
    text = "State-of-the-art."
    assert word_reader("default")(text) == ["state-of-the-art"]
    assert word_reader("paper_literal")(text) == ["stateoftheart"]


def columns(entries: dict[str, bytes]) -> dict[str, list[int]]:
    kinds = {"word": "<u4", "count": "<u4", "first_position": "<u4", "in_heading": "?"}
    return {name: np.frombuffer(entries[name], kind).tolist() for name, kind in kinds.items()}


def test_what_is_counted_is_word_count_first_position_and_heading_of_each_document_in_order() -> None:
    statistics = counted(["wind", "tide", "wind"], [], ["gale"], headings=["tide"])
    words, entries = statistics.counted([2, 1, 0])
    assert words == ["gale", "tide", "wind"]
    assert columns(entries) == {
        "word": [0, 2, 1],
        "count": [1, 2, 1],
        "first_position": [0, 0, 1],
        "in_heading": [0, 0, 1],
    }
    assert (statistics.lengths, statistics.sizes) == ([3, 0, 1], [2, 0, 1])


def test_words_that_left_with_their_document_are_unknown() -> None:
    words, entries = counted(["gale"], ["wind", "tide"]).counted([0, 1])
    statistics = TermStatistics()
    statistics.take_over(words, entries, [1, 2], {1: 2})
    assert statistics.document_frequencies() == {"tide": 1, "wind": 1}
    assert (statistics.n_documents, statistics.lengths, statistics.sizes) == (1, [2], [2])


def test_nothing_is_taken_over_from_nothing() -> None:
    statistics = TermStatistics()
    statistics.take_over([], {}, [], {})
    nothing: dict[str, list[int]] = {"word": [], "count": [], "first_position": [], "in_heading": []}
    assert columns(statistics.counted([])[1]) == nothing
    words, entries = counted([]).counted([0])
    statistics.take_over(words, entries, [0], {0: 0})
    assert (columns(statistics.counted([0])[1]), statistics.n_documents) == (nothing, 1)


@given(DOCUMENTS, DOCUMENTS, st.lists(st.sampled_from(["alpha", "the", "unseen"])))
def test_documents_that_were_taken_over_count_as_if_they_had_been_read(
    kept: list[list[str]], new: list[list[str]], headings: list[str]
) -> None:
    first, *others = [*new, ["beta"]]
    before = counted(["delta", "alpha"], *kept, headings=headings)
    words, entries = before.counted(range(before.n_documents))
    statistics = counted(first, headings=headings)  # numbers its words otherwise
    statistics.take_over(words, entries, before.sizes, {at: len(row) for at, row in enumerate(kept, start=1)})
    for document in others:
        statistics.add(document, headings)
    fresh = counted(first, *kept, *others, headings=headings)
    order = range(fresh.n_documents)
    assert statistics.counted(order) == fresh.counted(order)
    assert (statistics.lengths, statistics.sizes) == (fresh.lengths, fresh.sizes)
    assert statistics.document_frequencies() == fresh.document_frequencies()
    assert statistics.best_terms(MetadataOptions()) == fresh.best_terms(MetadataOptions())
