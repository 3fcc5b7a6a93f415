"""The corpus profile as a report and the warehouse have it."""

from __future__ import annotations

import pytest

from prime_pipeline.evaluation.corpus_profile import CorpusProfile, PropertyName, predict
from prime_pipeline.evaluation.corpus_properties import Property
from prime_pipeline.evaluation.statistics import Interval
from prime_pipeline.refresh.warehouse import CORPUS_PROPERTIES
from prime_pipeline.reports.content import Measured, Profile, bare_numbers, check
from prime_pipeline.reports.content import Property as Shown
from prime_pipeline.studies.corpus import profile_findings

COVERAGE = Property("of the documents have headings", Interval(0.75, 0.5, 1.0, 40, 40, "bca"))
SECTIONS = Property("sections in a document", Interval(3.5, None, None, 1, 1, "single"), is_share=False)
PROPERTIES: dict[PropertyName, Property] = {"heading_coverage": COVERAGE, "sections_per_document": SECTIONS}


def test_properties_are_shown_with_their_intervals() -> None:
    found = profile_findings(CorpusProfile(PROPERTIES, "saturated", "full text", ("It is so.",), ()))
    assert found.content.profile == Profile(
        "saturated",
        "full text",
        ("It is so.",),
        (
            Shown("heading coverage", Measured(0.75, 0.5, 1.0, 40), "of the documents have headings"),
            Shown(
                "sections per document",
                Measured(3.5, None, None, 1, "one query or document only, which says nothing about others"),
                "sections in a document",
            ),
        ),
    )
    check(found.content)
    assert bare_numbers(found.content) == []


def test_a_row_for_every_property() -> None:
    rows = profile_findings(CorpusProfile(PROPERTIES, "saturated", "full text", (), ())).rows
    assert rows == {
        "corpus_properties": [
            {
                "property": "heading_coverage",
                "value": 0.75,
                "low": 0.5,
                "high": 1.0,
                "n": 40,
                "meaning": "of the documents have headings",
            },
            {
                "property": "sections_per_document",
                "value": 3.5,
                "low": None,
                "high": None,
                "n": 1,
                "meaning": "sections in a document",
            },
        ]
    }
    assert [tuple(row) for row in rows["corpus_properties"]] == [tuple(CORPUS_PROPERTIES)] * 2


@pytest.mark.parametrize("mode", ["metadata", "full"])
def test_the_other_regimes_are_told_behind_the_evidence(mode: str) -> None:
    profile = CorpusProfile(
        {},
        "structure-exploiting",
        "metadata" if mode == "metadata" else "full",
        ("For it.", "Index metadata."),
        (("saturated", 0.8), ("deficit-bridging", 2 / 3)),
    )
    shown = profile_findings(profile).content.profile
    assert shown is not None
    assert (shown.regime, shown.recommended_mode) == ("structure-exploiting", mode)
    assert shown.evidence == (
        "For it.",
        "Index metadata.",
        (
            "Other regimes that are not out of the question: saturated (80% of its rules hold), deficit-bridging (67% of "
            "its rules hold)."
        ),
    )


def test_no_regime_recommends_nothing() -> None:
    profile = predict(PROPERTIES, n_documents=3)
    shown = profile_findings(profile).content.profile
    assert shown is not None
    assert (shown.regime, shown.recommended_mode) == ("inconclusive", "none")
    assert shown.evidence[: len(profile.evidence)] == profile.evidence
    assert "With 3 of at least 20 documents" in profile.evidence[-1]


def test_a_corpus_without_properties_has_no_rows() -> None:
    assert profile_findings(predict({}, 0)).rows == {"corpus_properties": []}
