"""Rules on what is said: nothing claimed out of nowhere, no statement gone without a trace.

Both compare stems of content words; synonyms are not known, so each rule asks for several words at once.
"""

from __future__ import annotations

import re
from typing import Final

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.rules.features import Features
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.restructuring.rules.support import novelty

_CLAUSE_END: Final = re.compile(
    r"[,;:()–—]\s|\s(?:and|but|because|which|while|whereas|since|so that|although)\s"
)


def unsupported(raw: Features, rewrite: Features, options: GateOptions) -> list[Finding]:
    """No sentence and no clause is made of words that the raw text does not have, those of paraphrase apart."""
    findings = []
    for sentence in rewrite.sentences:
        for part in [sentence.text, *_CLAUSE_END.split(sentence.text)]:
            new = novelty(raw, part, options)
            if new.n_stems > 2 and new.weight >= options.min_novelty and new.share > options.max_novel_share:
                detail = f"not in the raw text: {', '.join(new.stems[:6])} (in {part.strip()[:80]!r})"
                findings.append(Finding("unsupported", detail))
                break
    return findings


def lost_sentences(raw: Features, rewrite: Features, options: GateOptions) -> list[Finding]:
    """No raw sentence of some length vanished without a trace."""
    return [
        Finding("statement_missing", sentence.text[:120], (sentence.text,))
        for sentence in raw.sentences
        if len(sentence.stems) >= 6
        and not sentence.is_road_map
        and len(sentence.stems & rewrite.stems.keys()) < options.min_sentence_coverage * len(sentence.stems)
    ]
