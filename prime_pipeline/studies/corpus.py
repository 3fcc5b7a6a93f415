"""The corpus profile as a part of the report."""

from __future__ import annotations

from prime_pipeline.evaluation.corpus_profile import CorpusProfile
from prime_pipeline.reports.content import Profile, Property
from prime_pipeline.studies.findings import Findings, Row, measured, part


def profile_findings(profile: CorpusProfile) -> Findings:
    """What the corpus is like, the regime that its properties point to, and the evidence in words."""
    alternatives = ", ".join(
        f"{regime} ({score:.0%} of its rules hold)" for regime, score in profile.alternatives
    )
    evidence = profile.evidence + (
        (f"Other regimes that are not out of the question: {alternatives}.",) if alternatives else ()
    )
    properties = tuple(
        Property(name.replace("_", " "), measured(found.interval), found.meaning)
        for name, found in profile.properties.items()
    )
    shown = Profile(profile.regime, profile.recommended_mode or "none", evidence, properties)
    rows: list[Row] = [
        {
            "property": name,
            "value": found.value,
            "low": found.interval.low,
            "high": found.interval.high,
            "n": found.interval.n,
            "meaning": found.meaning,
        }
        for name, found in profile.properties.items()
    ]
    return Findings(part(profile=shown), {"corpus_properties": rows})
