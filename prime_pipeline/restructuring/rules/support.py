"""How far the words of a passage are the raw text's own."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from prime_pipeline.restructuring.rules.features import Features
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.restructuring.rules.paraphrase import MEASURE_STEMS, PARAPHRASE_STEMS
from prime_pipeline.text.quantities import without_summary_counts
from prime_pipeline.text.stems import content_stems

_WHO: Final = r"(?:our|their|the authors?['’]?)"
_EPISTEMIC: Final = re.compile(
    rf"\b(?:to (?:the best of )?{_WHO} (?:best )?knowledge|to the best of the knowledge of the authors"
    r"|(?:as|so|in so) far as (?:we|they|the authors?|is|it is) (?:currently )?(?:knows?|known|are aware|is aware|can tell|could tell)"
    r"|(?:we|they|the authors) (?:are aware|know) of|known to (?:us|the authors?)|(?:we|they|the authors?) (?:believe|think|know)s?(?: that)?"
    r"|in (?:our|their|the authors['’]) (?:view|opinion))\b",
    re.IGNORECASE,
)
_FEW: Final = 3
"""Words that may all be those of a paraphrase: more of them say something."""
_MAX_PLACES: Final = 40
"""Sentences with one stem that are looked at; a word that stands in more of them tells nothing of the place."""


@dataclass(frozen=True, slots=True)
class Novelty:
    """The content words of a passage that the raw text lacks.

    Attributes:
        stems: Their stems, in order.
        weight: Their number, those of paraphrase counted in part.
        n_stems: All content words of the passage, each once.
    """

    stems: tuple[str, ...]
    weight: float
    n_stems: int

    @property
    def share(self) -> float:
        """The weight over all content words; 0 for a passage without any."""
        return self.weight / self.n_stems if self.n_stems else 0.0


def claim(passage: str) -> str:
    """A passage without what claims nothing of the matter: whose knowledge it is, how many things follow."""
    return _EPISTEMIC.sub(" ", without_summary_counts(passage))


def novelty(raw: Features, passage: str, options: GateOptions) -> Novelty:
    """What in a passage of a rewrite does not come from the raw text."""
    stems = [s for s in dict.fromkeys(content_stems(claim(passage))) if s not in MEASURE_STEMS]
    new = tuple(s for s in stems if s not in raw.stems and not (len(s) > 5 and s[:5] in raw.families))
    weight = sum(options.paraphrase_weight if s in PARAPHRASE_STEMS else 1.0 for s in new)
    return Novelty(new, weight, len(stems))


def is_paraphrase(stems: tuple[str, ...]) -> bool:
    """Whether words that the raw text lacks are so few and so general that they only tell it in another way."""
    return len(stems) <= _FEW and PARAPHRASE_STEMS.issuperset(stems)


def stray_share(raw: Features, stems: Iterable[str]) -> float:
    """The share of stems that the best place of the raw text, three neighbouring sentences, does not have.

    Title and headings are part of every place. The place is sought around the sentence with most of the stems.
    """
    wanted = frozenset(stems) - MEASURE_STEMS
    if not wanted:
        return 0.0
    index, known = _index(raw), raw.context.stems.keys() if raw.context else frozenset()
    counts = Counter(i for s in sorted(wanted) for i in index.get(s[:5], ())[:_MAX_PLACES])
    likeliest = [i for i, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]]
    firsts = {max(0, i - back) for i in likeliest for back in (0, 1, 2)}
    n_kept = max((_n_in_place(raw, first, wanted, known) for first in firsts), default=0)
    return 1 - n_kept / len(wanted)


def _n_in_place(raw: Features, first: int, wanted: Iterable[str], known: Iterable[str]) -> int:
    place = {s for sentence in raw.sentences[first : first + 3] for s in sentence.stems}.union(known)
    families = {s[:5] for s in place}
    return sum(s in place or (len(s) > 5 and s[:5] in families) for s in wanted)


@lru_cache(maxsize=4)
def _index(raw: Features) -> Mapping[str, list[int]]:
    """The sentences that hold a word, by its stem's first five letters."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for position, sentence in enumerate(raw.sentences):
        for family in {s[:5] for s in sentence.stems}:
            found[family].append(position)
    return found
