"""What a profile's recommendation means for the build, and how the decision is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from prime_pipeline.evaluation.corpus_profile import MODES
from prime_pipeline.metadata.options import MetadataOptions, Reading
from prime_pipeline.refresh.mode import (
    UNDECIDED,
    ModeDecision,
    decided_options,
    read_decision,
    write_decision,
)


@pytest.mark.parametrize(
    ("recommended", "variant", "embeds_full_text"),
    [
        ("metadata", "offline", False),
        ("full", "full", False),
        ("full text", "offline", True),
        ("none", "offline", False),
    ],
)
def test_a_recommendation_decides_variant_and_vectors(
    recommended: str, variant: str, embeds_full_text: bool
) -> None:
    decision = ModeDecision.following("some regime", recommended, ("Because.",))
    assert (decision.variant, decision.embeds_full_text) == (variant, embeds_full_text)
    assert decision.reasons == ("Because.",)


def test_every_mode_that_a_profile_recommends_is_followed() -> None:
    assert {mode for mode in MODES.values() if mode} <= {"metadata", "full", "full text"}
    labels = {ModeDecision.following("r", mode or "none", ()).label for mode in {*MODES.values(), "full"}}
    assert labels == {
        "auto: offline, vectors of metadata (r)",
        "auto: full, vectors of metadata (r)",
        "auto: offline, vectors of full texts (r)",
    }


@pytest.mark.parametrize(
    ("configured", "embeds_full_text", "reading"),
    [
        ("default", True, "full_text"),
        ("default", False, "default"),
        ("paper_literal", True, "paper_literal"),
        ("full_text", False, "full_text"),
    ],
)
def test_full_texts_take_the_place_of_our_metadata_only(
    configured: Reading, embeds_full_text: bool, reading: str
) -> None:
    options = MetadataOptions(reading=configured, n_terms=3)
    decided = decided_options(options, ModeDecision("offline", embeds_full_text, "r", ()))
    assert (decided.reading, decided.n_terms) == (reading, 3)


def test_without_a_decision_the_settings_stand() -> None:
    options = MetadataOptions(reading="paper_literal")
    assert decided_options(options, None) == options


def test_a_decision_is_read_as_it_was_written(tmp_path: Path) -> None:
    decision = ModeDecision("full", False, "deficit-bridging", ("Words fall to pieces.", "Rewrite first."))
    write_decision(tmp_path / "mode.json", decision)
    assert read_decision(tmp_path / "mode.json") == decision


@pytest.mark.parametrize(
    "damaged",
    ["", "[]", '{"variant": "full"}', '{"variant": "x", "embeds_full_text": 1, "regime": "", "reasons": []}'],
)
def test_a_decision_that_cannot_be_read_is_none(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "mode.json"
    assert read_decision(path) == UNDECIDED
    path.write_text(damaged)
    assert read_decision(path) == UNDECIDED
