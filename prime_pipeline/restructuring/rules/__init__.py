"""The rules of the fidelity gate: pure functions from the features of two texts to findings, each with its own code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.rules import claims, facts, form, negation, places
from prime_pipeline.restructuring.rules.features import Features
from prime_pipeline.restructuring.rules.options import GateOptions

Rule = Callable[[Features, Features, GateOptions], list[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    form.placeholders,
    form.length,
    form.markup,
    form.chatter,
    form.same_language,
    form.echo,
    form.truncation,
    form.repetition,
    facts.numbers_missing,
    facts.numbers_invented,
    facts.numbers_replaced,
    facts.sequences_invented,
    facts.units,
    facts.acronyms_missing,
    facts.acronyms_invented,
    facts.names_missing,
    facts.names_invented,
    facts.inline,
    facts.pointers,
    negation.negations,
    claims.unsupported,
    places.swapped,
    claims.lost_sentences,
    form.headings,
    form.filler,
)
"""In order of importance. ``form.prompt_echo`` takes the prompt too and stands apart."""
