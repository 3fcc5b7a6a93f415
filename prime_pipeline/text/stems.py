"""Word stems for comparing two texts of one author: nothing here is good enough to be indexed or shown.

The stemmer cuts more than Porter's: ``evaluate``, ``evaluation`` and ``evaluators`` meet, and now and then two words
meet that have nothing in common. Whoever compares texts by it errs on the side of likeness.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from prime_pipeline.text.stop_words import STOP_WORDS

WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W\d_]{1,3}\b)?")
"""A word without hyphens and underscores: the parts of a compound are words of their own."""

_AUXILIARIES: Final = frozenset(
    verb + ending
    for verb in ["does", "did", "do", "is", "are", "was", "were", "has", "have", "had", "ca", "wo"]
    for ending in ("", "n't", "n’t")
)
"""Auxiliaries that the list of stop words lacks, and their negations: whoever wants negations reads them as cues."""
_POSSESSIVE: Final = re.compile(r"['’]s?\Z")
_PLURAL_ACRONYM: Final = re.compile(r"(?<=[A-Z][A-Z])s\Z")
_PLURAL: Final = re.compile(r"(?<=[^s\Wui])s\Z|(?<=ss|sh|ch|.x|.z)es\Z|(?<=\w\w)ies\Z")
_SUFFIX: Final = re.compile(
    r"""(?<=\w{3})(?:
    i[sz]ations?|i[sz](?:e|ed|es|ing|ers?)|ifications?|ifi(?:ed|es|er|ers)|ify(?:ing)?
    |ational|ations?|at(?:e|es|ed|ing|ors?|ive|ively)|abilit(?:y|ies)|ibilit(?:y|ies)|ab(?:le|ly)|ib(?:le|ly)
    |ical(?:ly)?|ics?|al(?:ly|ity|ities|ity)?|it(?:y|ies)|ments?|ness|ful(?:ly|ness)?|ous(?:ly|ness)?
    |iv(?:e|es|ely|ity|eness)|ing(?:s|ly)?|ed(?:ly)?|[eo]rs?|est|ly|ions?|anc(?:e|es|y)|enc(?:e|es|y|ies)|ants?|ents?
    |ac(?:y|ies)|ures?|ism|ists?|(?<=ow)n|y|e|es
    )\Z""",
    re.VERBOSE,
)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of one word, lower-cased; three letters at least stay, digits and other scripts are left alone."""
    word = _PLURAL.sub("", _POSSESSIVE.sub("", _PLURAL_ACRONYM.sub("", word).lower()))
    for _ in range(2):
        shorter = _SUFFIX.sub("", word)
        if shorter == word:
            break
        word = shorter
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word


def content_stems(text: str) -> list[str]:
    """The stems of the words that are neither stop words nor bare numbers nor single letters, in order."""
    return [stem(word) for word in WORD.findall(text) if is_content(word)]


def is_content(word: str) -> bool:
    """Whether a word says something by itself."""
    lowered = word.lower()
    return (
        len(word) > 1 and not word[0].isdigit() and lowered not in STOP_WORDS and lowered not in _AUXILIARIES
    )
