"""Rules on what is said: nothing claimed out of nowhere, no statement gone without a trace.

Both compare stems of content words; synonyms are not known, so each rule asks for several words at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.judge import SentenceSimilarity
from prime_pipeline.restructuring.rules.features import Features
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.restructuring.rules.paraphrase import PARAPHRASE_STEMS
from prime_pipeline.restructuring.rules.support import claim, is_paraphrase, novelty, stray_share
from prime_pipeline.text.references import references
from prime_pipeline.text.stems import content_stems

_CLAUSE_END: Final = re.compile(
    r"[,;:()–—]\s|\s(?:and|but|because|which|while|whereas|since|so that|although)\s"
)

_MAX_RAW_SENTENCES: Final = 300
_MAX_PASSAGES: Final = 60
"""What is compared in meaning at most: a section that a model can rewrite has less."""


def unsupported(raw: Features, rewrite: Features, options: GateOptions) -> list[Finding]:
    """No sentence and no clause is made of words that the raw text does not have, those of paraphrase apart."""
    findings = []
    for sentence in rewrite.sentences:
        for part in [sentence.text, *_CLAUSE_END.split(sentence.text)]:
            new = novelty(raw, part, options)
            if part != sentence.text and is_paraphrase(new.stems):
                continue
            if new.n_stems > 2 and new.weight >= options.min_novelty and new.share > options.max_novel_share:
                detail = f"not in the raw text: {', '.join(new.stems[:6])} (in {part.strip()[:80]!r})"
                findings.append(Finding("unsupported", detail))
                break
    return findings


def unlike(
    raw: Features, rewrite: Features, options: GateOptions, similarity: SentenceSimilarity
) -> list[Finding]:
    """No sentence is unlike everything in the raw text in its meaning; the fewer words of its place, the more alike.

    Sentences whose words one place of the raw text has are not compared.
    """
    strays = list(_stray_passages(raw, rewrite, options))[:_MAX_PASSAGES]
    texts = [sentence.text for sentence in raw.sentences[:_MAX_RAW_SENTENCES]]
    if not strays or not texts:
        return []
    windows = [texts[i : i + size] for size in (1, 2, 3) for i in range(len(texts) - size + 1)]
    windows += [[raw.context.text]] if raw.context else []
    best = similarity([passage for passage, _ in strays], windows).max(axis=1)
    return [
        Finding("unsupported", f"like nothing in the raw text: {passage.strip()[:100]!r}")
        for (passage, stray), cosine in zip(strays, best.tolist(), strict=True)
        if cosine < options.min_similarity + options.similarity_per_stray * (stray - options.min_stray_share)
    ]


def _stray_passages(raw: Features, rewrite: Features, options: GateOptions) -> Iterator[tuple[str, float]]:
    """Sentences whose words no place of the raw text has, with their share of such words.

    What points at a table or a section is like nothing, and no claim; nor is ``Several problems exist``.
    """
    for sentence in rewrite.sentences:
        if sentence.is_road_map or references(sentence.text):
            continue
        stems = {*content_stems(claim(sentence.text))} & sentence.stems
        stray = stray_share(raw, stems)
        says_something = len(stems - PARAPHRASE_STEMS) > 1
        if says_something and len(stems) >= options.min_compared_stems and stray >= options.min_stray_share:
            yield sentence.text, stray


def lost_sentences(raw: Features, rewrite: Features, options: GateOptions) -> list[Finding]:
    """No raw sentence of some length vanished without a trace."""
    return [
        Finding("statement_missing", sentence.text[:120], (sentence.text,))
        for sentence in raw.sentences
        if len(sentence.stems) >= 6
        and not sentence.is_road_map
        and len(sentence.stems & rewrite.stems.keys()) < options.min_sentence_coverage * len(sentence.stems)
    ]
