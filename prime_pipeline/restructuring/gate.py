"""The fidelity gate: whether a rewrite says what the raw text says, nothing less and nothing else; it never rewrites.

It reads English prose without a model: values of numbers, acronyms, names, negations and stems of words. What it
cannot see: a synonym that is wrong (``rises`` for ``falls``), an invented clause made of the raw text's own words, a
negation said in words that it has no list of, most exchanges of two names, a number gone from one of its places
(versions apart), a counted noun that is none of the common ones, a made-up name in small letters. With a similarity
of sentences it also sees sentences that are like nothing in the raw text, whatever words they are made of. A rewrite
in another language is recognised, and text in another language is held to its own, but its negations and its numbers
in words are not read.
What an extraction garbled is not read either: formulas without their marks, algorithm listings, stray
headings, lengths of TeX's.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import lru_cache
from typing import Final
from unicodedata import normalize

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.judge import Patch, SentenceSimilarity
from prime_pipeline.restructuring.patch import patched
from prime_pipeline.restructuring.rules import RULES
from prime_pipeline.restructuring.rules.claims import unlike
from prime_pipeline.restructuring.rules.features import Features, features, with_context
from prime_pipeline.restructuring.rules.form import prompt_echo
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.text.entities import EntityFinder
from prime_pipeline.text.protected import Protected

GATE_VERSION: Final = 7
"""Raised whenever a rule finds something else than before, so that stored verdicts are not taken for new ones."""


class FidelityGate:
    """Judges rewrites; see :class:`prime_pipeline.restructuring.judge.Judge`.

    Safe to share between threads if the entity finder is. Two gates of one fingerprint find the same.
    """

    def __init__(
        self,
        options: GateOptions,
        entities: EntityFinder,
        prompt: str = "",
        similarity: SentenceSimilarity | None = None,
    ) -> None:
        """Judge by ``options``; ``prompt`` is what the model was told, which must not come back.

        ``similarity`` is asked for sentences only of which no place of the raw text has the words.
        """
        self._options = options
        self._entities = entities
        self._prompt = prompt
        self._similarity = similarity
        self._raw_features = lru_cache(maxsize=8)(self._features_of_raw)

    @property
    def fingerprint(self) -> str:
        """Hash of the gate's version, the options, the entity finder's name, the prompt and the similarity's model."""
        model = self._similarity.fingerprint if self._similarity else None
        return fingerprint([GATE_VERSION, asdict(self._options), self._entities.name, self._prompt, model])

    def findings(self, raw: Protected, rewrite: str, context: str = "") -> tuple[Finding, ...]:
        """Everything that speaks against the rewrite, in order of importance; empty if it is faithful."""
        if raw.text == rewrite:
            return (Finding("echo", "the text came back as it was"),) if rewrite.strip() else ()
        before, after = self._raw_features(raw, context), features(raw, rewrite, self._entities)
        found = [finding for rule in RULES for finding in rule(before, after, self._options)]
        if self._similarity:
            found += unlike(before, after, self._options, self._similarity)
        return (*prompt_echo(before, after, self._options, self._prompt), *found)

    def patch(
        self, raw: Protected, rewrite: str, findings: tuple[Finding, ...], context: str = ""
    ) -> Patch | None:
        """The rewrite with the missing facts' sentences as a last paragraph, if that passes; else None."""
        composed = replace(raw, text=normalize("NFC", raw.text))  # as the sources of the findings are
        return patched(self, composed, rewrite, findings, context)

    def _features_of_raw(self, raw: Protected, context: str) -> Features:
        return with_context(features(raw, raw.text, self._entities), context, self._entities)
