"""The corpus profile: rules on made-up properties, and whole corpora of which the answer is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.source import SourceEntry
from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.corpus_profile import (
    MIN_DOCUMENTS,
    MODES,
    UNLIKELY,
    CorpusProfile,
    Mode,
    PropertyName,
    Regime,
    predict,
    profile_corpus,
)
from prime_pipeline.evaluation.corpus_properties import Property
from prime_pipeline.evaluation.statistics import Interval
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.synthesis import synthesise
from prime_pipeline.records import Document, Query, Section
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import WordTokenizer

Values = dict[PropertyName, float]

STRUCTURED: Values = {
    "heading_coverage": 0.9,
    "sections_per_document": 6.0,
    "common_headings": 0.2,
    "text_read": 0.2,
    "unread_metadata": 0.5,
    "neighbor_agreement": 0.2,
    "word_pieces": 1.3,
    "term_idf": 0.7,
    "code": 0.0,
    "formulas": 0.0,
    "dangling_sections": 0.05,
    "chained_sections": 0.0,
}
BARE: Values = {**STRUCTURED, "heading_coverage": 0.0, "sections_per_document": 1.0}
TOKENIZER = WordTokenizer(window=180)


def profile_of(values: Values, n_documents: int = 100) -> CorpusProfile:
    made: dict[PropertyName, Property] = {
        name: Property(f"of {name}", Interval(value, value, value, n_documents, n_documents, "bca"))
        for name, value in values.items()
    }
    return predict(made, n_documents)


@pytest.mark.parametrize(
    ("changes", "regime", "mode"),
    [
        ({}, "structure-exploiting", "metadata"),
        ({"dangling_sections": 0.3}, "structure-exploiting", "full"),
        ({"dangling_sections": 0.3, "code": 0.3}, "structure-exploiting", "metadata"),
        ({"word_pieces": 1.9, "code": 0.2}, "deficit-bridging", "metadata"),
        (
            {"common_headings": 0.8, "unread_metadata": 0.1, "text_read": 0.9, "neighbor_agreement": 0.7},
            "saturated",
            "full text",
        ),
        ({"heading_coverage": 0.1, "sections_per_document": 1.2}, "structure-absent", "full text"),
        (
            {
                "formulas": 0.4,
                "chained_sections": 0.2,
                "dangling_sections": 0.2,
                "common_headings": 0.9,
                "unread_metadata": 0.1,
            },
            "chain-fragmenting",
            "full text",
        ),
    ],
)
def test_each_regime_has_its_corpus(changes: Values, regime: Regime, mode: Mode) -> None:
    profile = profile_of({**STRUCTURED, **changes})
    assert (profile.regime, profile.recommended_mode) == (regime, mode)


def test_without_headings_the_evidence_says_that_metadata_will_not_help() -> None:
    evidence = profile_of(BARE).evidence
    assert evidence[0] == ("0 % [0 %, 0 %] of heading_coverage (n = 100): heading trees are sparse or empty.")
    assert evidence[-1].startswith("Metadata will not help")


def test_evidence_against_stands_behind_evidence_for() -> None:
    profile = profile_of({**STRUCTURED, "common_headings": 0.7})
    assert profile.regime == "structure-exploiting"
    *_, against, unlikely, advice = profile.evidence
    assert unlikely == "Unlikely: saturated (40% of its rules hold)."
    assert against.endswith("it does not hold that most headings tell a document from others.")
    assert advice.startswith("Index metadata")


def test_a_regime_with_few_of_its_rules_met_is_unlikely_and_one_with_half_of_them_is_not() -> None:
    # Of the five rules of saturated the first holds; of the first four, two.
    few = profile_of(STRUCTURED)
    assert few.alternatives == ()
    assert few.evidence[-2] == "Unlikely: saturated (20% of its rules hold)."
    known = {**STRUCTURED, "text_read": 0.9}
    del known["neighbor_agreement"]
    half = profile_of(known)
    assert half.alternatives == (("saturated", 0.5),)
    assert not any("Unlikely" in sentence for sentence in half.evidence)


def test_from_too_few_documents_no_regime_is_called_unlikely() -> None:
    assert not any("Unlikely" in sentence for sentence in profile_of(STRUCTURED, MIN_DOCUMENTS - 1).evidence)


def test_too_few_documents_tell_nothing() -> None:
    assert profile_of(BARE, MIN_DOCUMENTS).regime == "structure-absent"
    profile = profile_of(BARE, MIN_DOCUMENTS - 1)
    assert (profile.regime, profile.recommended_mode) == ("inconclusive", None)
    assert profile.evidence[-1].startswith("With 19 of at least 20 documents no regime")
    assert profile.alternatives[0] == ("structure-absent", 1.0)


def test_contradictory_evidence_is_inconclusive() -> None:
    # As much speaks for metadata that adds something as for metadata that adds nothing.
    half: Values = {"common_headings": 0.6, "text_read": 0.9, "neighbor_agreement": 0.7}
    profile = profile_of({**STRUCTURED, **half})
    assert profile.regime == "inconclusive"
    assert "it fits structure-exploiting about as well as saturated" in profile.evidence[-1]
    assert {regime for regime, _ in profile.alternatives} == {"saturated", "structure-exploiting"}


def test_weak_evidence_is_inconclusive() -> None:
    weak: Values = {"heading_coverage": 0.4, "common_headings": 0.6, "word_pieces": 1.3}
    assert "no regime has two thirds" in profile_of({**STRUCTURED, **weak}).evidence[-1]


def test_regimes_that_recommend_the_same_do_not_contradict_each_other() -> None:
    profile = profile_of({**STRUCTURED, "word_pieces": 1.7, "code": 0.1})
    assert profile.regime == "deficit-bridging"
    assert profile.alternatives[0] == ("structure-exploiting", 0.8)


def test_a_required_property_that_is_unknown_rules_a_regime_out() -> None:
    known = dict(STRUCTURED)
    del known["heading_coverage"]
    assert profile_of(known).regime == "inconclusive"


@given(st.fixed_dictionaries({name: st.sampled_from([0.0, 0.05, 0.3, 0.6, 1.0, 2.5]) for name in STRUCTURED}))
def test_whatever_the_properties_the_answer_is_consistent(values: Values) -> None:
    profile = profile_of(values)
    assert profile.recommended_mode in {MODES[profile.regime], "full"}
    assert profile.regime not in dict(profile.alternatives)
    scores = [score for _, score in profile.alternatives]
    assert scores == sorted(scores, reverse=True)
    assert all(UNLIKELY <= score <= 1 for score in scores)
    assert profile.evidence


# --- whole corpora --------------------------------------------------------------------------------------------------


def profiled(documents: list[Document]) -> CorpusProfile:
    metadata = synthesise(documents, MetadataOptions(), TOKENIZER).metadata
    return profile_corpus(documents, metadata, TOKENIZER)


def loaded(location: Path) -> list[Document]:
    entries = open_corpus(str(location)).entries()
    return [entry.parse() for entry in entries if isinstance(entry, SourceEntry)]


def without_headings(document: Document) -> Document:
    text = "\n\n".join(section.body for section in document.sections)
    return replace(document, sections=(Section(0, "whole", document.title, (), text),))


def test_metadata_will_not_help_cranfield(test_data: Path) -> None:
    profile = profiled(loaded(test_data / "cranfield")[:300])
    assert (profile.regime, profile.recommended_mode) == ("structure-absent", "full text")
    assert profile.evidence[-1].startswith("Metadata will not help, there are no headings")


def test_papers_have_structure_until_their_headings_are_removed(test_data: Path) -> None:
    papers = loaded(test_data / "qasper-mini" / "qasper-mini.json")
    assert profiled(papers).regime == "structure-exploiting"
    assert profiled([without_headings(paper) for paper in papers]).regime == "structure-absent"


def test_queries_and_vectors_add_their_properties_and_order_makes_no_difference() -> None:
    documents = [make_document(f"d{i:02}", f"Topic {i}: body {i} text") for i in range(25)]
    metadata = synthesise(documents, MetadataOptions(), TOKENIZER).metadata
    vectors = np.eye(25, 8, dtype=np.float32) + np.float32(0.1)
    queries, qrels = [Query("q", "unheard topic")], {"q": {"d03": 1}}
    profile = profile_corpus(
        documents, metadata, TOKENIZER, queries=queries, qrels=qrels, vectors=(vectors, vectors)
    )
    assert profile.properties["vocabulary_gap"].value == 1 / 2
    assert profile.properties["neighbor_agreement"].value == 1
    turned = profile_corpus(
        documents[::-1], metadata[::-1], TOKENIZER, queries=queries, qrels=qrels, vectors=(vectors, vectors)
    )
    assert turned == profile
    assert {"vocabulary_gap", "neighbor_agreement"}.isdisjoint(
        profile_corpus(documents, metadata, TOKENIZER).properties
    )


def test_an_empty_corpus_is_inconclusive() -> None:
    assert profile_corpus([], [], TOKENIZER).regime == "inconclusive"


def test_what_does_not_belong_together_is_refused() -> None:
    documents = [make_document("a", "x"), make_document("b", "y")]
    metadata = synthesise(documents, MetadataOptions(), TOKENIZER).metadata
    with pytest.raises(EvaluationError, match="2 documents and 1 metadata records"):
        profile_corpus(documents, metadata[:1], TOKENIZER)
    one = np.ones((1, 4), dtype=np.float32)
    with pytest.raises(EvaluationError, match="1 vectors for 2 documents"):
        profile_corpus(documents, metadata, TOKENIZER, vectors=(one, one))
