"""Cues of negation."""

from __future__ import annotations

import pytest

from prime_pipeline.text.negations import negation_cues


@pytest.mark.parametrize(
    ("text", "cues"),
    [
        ("It does not converge without warm-up.", [("not", "strong"), ("without", "strong")]),
        ("They can't, cannot and don't.", [("can't", "strong"), ("cannot", "strong"), ("don't", "strong")]),
        ("It fails to converge.", [("fails", "verb")]),
        ("Neither A nor B. Nor C.", [("neither", "strong"), ("nor", "second"), ("nor", "second")]),
        ("No-one knows how not to do it.", [("no-one", "strong")]),
        ("Delays keep good comments from appearing.", [("keep good comments from", "weak")]),
        ("Errors protect the decoder from it.", [("protect the decoder from", "weak")]),
        ("Not only A but B, no doubt; No-RL is No. 3.", [("not only", "weak")]),
        ("Labels are unavailable.", [("unavailable", "weak")]),
        ("It rules out cycles.", [("rules out", "weak")]),
        ("The failure to stop is a failure.", [("failure", "verb"), ("stop", "weak"), ("failure", "weak")]),
    ],
)
def test_negation_cues(text: str, cues: list[tuple[str, str]]) -> None:
    assert [(cue.word, cue.strength) for cue in negation_cues(text) if cue.strength != "prefix"] == cues


def test_with_and_without_is_only_a_hint() -> None:
    (cue,) = negation_cues("models with and without attention")
    assert (cue.word, cue.strength) == ("without", "hint")
