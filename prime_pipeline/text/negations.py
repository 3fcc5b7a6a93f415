"""Cues of negation in English prose, each with the words in its reach.

A *strong* cue negates by itself (not, no, never, without, ...). A *weak* one says in another way what a negation could
say (fails, lacks, only, rather than, unavailable, poorly, ...): it may stand for a strong one, but nobody misses it.
The *second* half of a pair (``neither ... nor``) negates as a strong one does, and need not be said again.
A *verb* is a weak cue that one misses all the same (``fails``, ``lacks``, ``prevents``). A *hint* sometimes does (a subset is not all, the largest has none above it), and needs more likeness to be believed. A *prefix* is any word
that may hold one (``indiscernible``, but ``include`` too): only a text that has the bare word can tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Strength = Literal["strong", "second", "verb", "weak", "hint", "prefix"]

_IDIOM: Final = re.compile(
    r"\b(?:how not to|not surprising(?:ly)?|not surprised|no doubt|no wonder|whether or not|or not\b|not to mention"
    r"|no matter|needless to say|not least|nothing but|cannot help|last but not least|if not|no\.? ?(?=\d)|without loss of generality)",
    re.IGNORECASE,
)
_STRONG: Final = re.compile(
    r"\b(?:(?:ca|do|does|did|is|are|was|were|has|have|had|would|could|should|need|wo|must|might)n['’]?t|cannot|not|never|nor|neither|none|nobody"
    r"|nothing|nowhere|no[ -]one|no(?!-)|without)\b",
    re.IGNORECASE,
)
_WEAK: Final = re.compile(
    r"""\b(?:
    not\ (?:only|just|merely|simply)|(?:ke(?:eps?|pt|eping)|(?:protect|shield|guard|insulat|sav)(?:e|s|es|ed|ing)?)\ (?:[\w-]+\ ){1,4}from|preclud\w+|rul(?:e|es|ed|ing)\ out|hinder\w*|hamper\w*|imped(?:e|es|ed|ing)|defeat\w*
    |failures?|inabilit\w+|incapable|absen(?:t|ce)|prohibit\w*|hardly|rarely|seldom|scarcely|barely
    |little|few|fewer|less|only|solely|exclusively|merely|alone|unlike|rather|instead|except(?:s|ed|ing)?|other\ than|beyond
    |exclud\w+|exclusion|ignor\w+|omit\w*|omission|skip(?:s|ped|ping)?|disregard\w*|drop(?:s|ped|ping)?|discard\w*|neglect\w*|missing|miss(?:es|ed)?|poor\w*|bad(?:ly)?
    |weak(?:ly)?|hard|difficult\w*|low|lower|limit(?:s|ed|ation|ations)?|insufficient\w*|reject\w*|refus\w+|den(?:y|ies|ied)|contradict\w*|contrary|contrast
    |(?:high|great|prohibitive|excessive)\ (?:\w+\ )?costs?\ of
    |too\ [\w-]+\ (?:[\w-]+\ ){0,3}(?:for|to)
    |independent\w*|irrespective|regardless|unless|impossib\w+|blind|cease\w*|stop(?:s|ped)?|negative\w*|zero|los(?:e|es|t|s|ing)|eliminat\w+|remov\w+|free
    |otherwise|else|struggl\w*|left\ out|leav(?:e|es|ing)\ out|rare|wrong\w*|false\w*|incorrect\w*|errone\w+|mis(?:match|align|class|label|lead)\w*|far\ from|at\ most|nonexistent
    |disjoint|devoid|bypass\w*|obviat\w+|circumvent\w*|sidestep\w*|dispens(?:e|es|ed|ing)|eschew\w*|suppress\w*|spar(?:e|es|ed|ing)|in\ place\ of|in\ lieu\ of|substitut\w+|no\ longer|forgo\w*|refrain\w*|violat\w+|differ(?:s|ed|ing)?|flaw\w*|worse|opposed
    |un(?!der|til|it|iq|iv|ifo|ify|ifi|igr|ion|less|like\b|able|ravel)[a-z]{4,}|non-?[a-z]{3,}
    |in(?:adequate|accurate|correct|complete|consistent|effective|efficient|visible|valid|distinguishable|feasible|comparable|appropriate|sensitive|frequent|flexible|significant|convenient|capable)\w*
    |im(?:perfect|precise|practical|plausible|possible|balanced)\w*|ir(?:relevant|regular)\w*|dis(?:agree|similar|able|connect|continu|joint|advantage|allow|card)\w*
    |(?!regard|neverthe|nonethe|unless|less)[a-z]{4,}less
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_VERB: Final = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure(?= to\b| of\b))?|lack(?:s|ed|ing)?|unable|avoid(?:s|ed|ing)?|prevent(?:s|ed|ing)?)\b",
    re.IGNORECASE,
)
_OTHER_CASE: Final = re.compile(
    r"\b(?:success\w*|succeeds?|pass(?:es)?|presence|existence|availability)(?: and | or |/)(?:the )?\Z",
    re.IGNORECASE,
)
_PREFIXED: Final = re.compile(
    r"\b(?!despite)(?:in|im|il|ir|dis|mis|de)[a-z]{5,}|\b\w{4,}less\b", re.IGNORECASE
)
_HINT: Final = re.compile(
    r"""\b(?:part|partly|partial\w*|subset|either|open|remain\w*|first|new|novel|unique|largest|biggest|best|most|separate\w*|distinct|different(?:ly)?|differences?
    |same|identical|unchanged|constant|problem\w*|challeng\w+|costly|expensive|replac\w+|against|just|minimal|negligible|despite|drawback\w*|shortcoming\w*
    |comparable|equal\w*|on\ par|sometimes|occasional\w*|robust\w*|fixed|frozen|static|private\w*|proprietary|future|optional\w*
    |small\w*|similar\w*|cheap\w*|far|too)\b""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class NegationCue:
    """One cue.

    Attributes:
        word: The cue itself, lower-cased.
        strength: Whether it negates by itself; the ``without`` of ``with and without`` is a hint.
        start: Offset of its first character.
        end: Offset behind it.
    """

    word: str
    strength: Strength
    start: int
    end: int


def negation_cues(text: str) -> list[NegationCue]:
    """All cues in order; idioms that negate nothing (``not only``, ``without loss of generality``) are left out.

    The cue of ``not only`` is weak: it negates what follows ``only``.
    """
    text = _IDIOM.sub(lambda found: " " * len(found[0]), text)
    strong = [_cue(found, _strength(text, found)) for found in _STRONG.finditer(text)]
    verbs = [_cue(found, "hint" if _is_outcome(text, found) else "verb") for found in _VERB.finditer(text)]
    weak = [_cue(found, "weak") for found in _WEAK.finditer(text)]
    hints = [_cue(found, "hint") for found in _HINT.finditer(text)]
    prefixed = [_cue(found, "prefix") for found in _PREFIXED.finditer(text)]
    # The strongest reading of a word stands; ``not only`` is one word.
    idioms = [cue for cue in weak if cue.word.startswith("not ")]
    first = {cue.start: cue for cue in [*prefixed, *hints, *weak, *verbs, *strong, *idioms]}
    return [first[start] for start in sorted(first)]


def _cue(found: re.Match[str], strength: Strength) -> NegationCue:
    return NegationCue(found[0].lower(), strength, found.start(), found.end())


def _strength(text: str, found: re.Match[str]) -> Strength:
    if _is_one_of_two(text, found):
        return "hint"
    return "second" if _is_second_half(text, found) else "strong"


def _is_one_of_two(text: str, found: re.Match[str]) -> bool:
    """Whether a ``with and without`` says that both cases are meant."""
    return found[0].lower() == "without" and text[
        max(0, found.start() - 12) : found.start()
    ].rstrip().lower().endswith(("with and", "with or"))


def _is_outcome(text: str, found: re.Match[str]) -> bool:
    """Whether a ``success or failure`` says that both cases are meant."""
    return bool(_OTHER_CASE.search(text, max(0, found.start() - 24), found.start()))


def _is_second_half(text: str, found: re.Match[str]) -> bool:
    before = text[max(0, found.start() - 150) : found.start()].lower()
    return found[0].lower() == "nor" and ("neither" in before or " not " in before or " no " in before)
