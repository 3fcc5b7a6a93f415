"""Cuts inside one sentence: discourse markers, filler, pointers in passing and citation marks. Data and how it applies.

A sentence comes with its code, math, links and quotations hidden. Whether a cut may stand is for the caller to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from prime_pipeline.restructuring.extractive_facts import CITATION, REFERENCE

_SHOWN: Final = (
    "(?:shown|seen|illustrated|depicted|presented|displayed|reported|listed|summari[sz]ed|described|mentioned|"
    "discussed|explained|introduced|noted|stated|detailed|outlined)"
)
_EARLIER: Final = "(?:above|below|before|earlier|previously)"
_AS_SHOWN: Final = (
    rf"as (?:(?:is|was|are|were|we|it|can be|we can|we have|already) ){{0,2}}{_SHOWN}"
    rf"(?: {_EARLIER}|(?: (?:in|by|from|on))? (?:the )?{REFERENCE})"
)
_LIST_MARK: Final = re.compile(r"(?:(?:[-*+•>]|\d{1,3}[.)]|\([\divx]{1,4}\))\s+)*")
_OPENERS: Final = re.compile(
    rf"""(?:
    (?: moreover | further(?:more)? | additionally | in\ addition | also | besides | (?:more\ )?specifically
      | in\ particular | particularly | (?:more\ )?precisely | more\ concretely | concretely | indeed | in\ fact
      | of\ course | interestingly | importantly | notably | remarkably | needless\ to\ say | in\ other\ words
      | that\ is(?:\ to\ say)? | to\ (?:this|that)\ (?:end|aim) | with\ this\ in\ mind | in\ (?:short|summary|conclusion)
      | to\ (?:summari[sz]e|conclude|sum\ up) | to\ the\ best\ of\ (?:our|my)\ knowledge | to\ our\ knowledge
      | as\ far\ as\ we\ know | as\ we\ (?:can\ )?(?:see|know) | as\ can\ be\ seen | in\ this\ regard
      | {_AS_SHOWN.replace(" ", chr(92) + " ")}
      | as\ {REFERENCE}\ (?:shows|illustrates|depicts) )\s?,\s+
    | (?:in\ this\ (?:paper|work|study|article|report|section|subsection|chapter)|here)\s?,?\s+(?=(?:we|our)\b)
    | (?P<claim>(?:(?:from|in)\ {REFERENCE}\s?,\s+)?(?:
        (?:please\ )?note(?:\ also)?\ that | we\ (?:also\ )?note\ that | we\ (?:can\ |could\ )?(?:also\ )?(?:see|observe)\ that
      | it\ (?:can|could|may)\ be\ (?:seen|observed|noted|noticed)\ that | it\ (?:should|must)\ (?:also\ )?be\ (?:noted|mentioned|pointed\ out)\ that
      | it\ is\ (?:also\ )?(?:important|interesting|worth(?:while)?|useful)\ (?:to\ )?(?:not(?:e|ing)|mention(?:ing)?|point(?:ing)?\ out)\ that
      | it\ (?:is\ (?:clear|obvious|evident)|turns\ out)\ that | we\ would\ like\ to\ (?:note|point\ out|emphasi[sz]e|mention)\ that
      )\s?,?\s+)
    )+""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_CLAUSE: Final = re.compile(r"(?:\band|\bor|\bbut|,) that\b|\A(?:in|from|on)\b[^,]*\Z")

_SPOILING: Final = {
    "also": re.compile(r"\b(?:not (?:only|just|merely)|but also)\b", re.IGNORECASE),
    "very": re.compile(
        r"\b(?:not?|nor|never|neither|none|nothing|without|hardly|cannot)\b|n['’]t\b", re.IGNORECASE
    ),
}
"""What in a sentence makes a word more than filler: "not only ... but also", and "not very"."""

_INTENSIFIER: Final = "(?:very|really|basically|actually|simply)"
_WEAKENED: Final = r"(?=(?-i:[a-z]))(?!(?:few|little|much|many|same|well|first|last|not|no|never|because|by|due|that|if|more|less)\b)"
_ADDED: Final = r"(?=(?-i:[a-z]))(?!(?:not|no|known|called|termed|referred|named|if|when|because)\b)"
_NO_PREPOSITION: Final = "(?!(?:of|in|to|on|by|and|or|but|for|from|with|at|after) )"
_DONE: Final = (
    "(?:analy[sz]|compar|conduct|demonstrat|describ|develop|discuss|evaluat|explor|implement|introduc|investigat|observ|"
    "perform|present|propos|review)ed"
)
_FILLER: Final = tuple(
    (
        re.compile(rf"(?<![\w-])(?:{pattern})(?:(?<=\s)|(?![\w-]))", re.IGNORECASE),
        template,
        next((spoilt for word, spoilt in _SPOILING.items() if word in pattern), None),
    )
    for pattern, template in (
        (r"in order to|so as to|in an effort to|in an attempt to", "to"),
        (r"(?:due to|owing to|because of|in view of|in light of) the fact that", "because"),
        (r"given the fact that", "given that"),
        (r"a (?:very )?(?:large|great|huge) number of|a (?:wide|large|broad|great) (?:variety|range) of(?= (?:[\w-]+ )?[\w-]+s\b)", "many"),
        (r"a lot of(?= (?:[\w-]+ )?[\w-]+s\b)", "many"),
        (r"a variety of(?= (?:[\w-]+ )?[\w-]+s\b)", "various"),
        (r"(?<!is )a number of", "several"),
        (r"(?:is|are) able to", "can"),
        (r"make use of", "use"),
        (r"makes use of", "uses"),
        (r"made use of", "used"),
        (r"making use of", "using"),
        (r"in the (?:context|field|area|domain) of", "in"),
        (r"for the (?:task|purposes?) of", "for"),
        (r"on the task of", "on"),
        (r"by means of|by the use of", "by"),
        (r"(?:through|with) the use of", "with"),
        (r"with the help of", "with"),
        (r"prior to", "before"),
        (r"in spite of", "despite"),
        (r"with regards? to|in regards? to", "regarding"),
        (r"at this point in time|at the present time", "now"),
        (r"in the event that", "if"),
        (r"each and every", "each"),
        (r"and also", "and"),
        (r"we would like to(?= (?:thank|acknowledge)\b)", "we"),
        (r"(\w) a total of (?=\d)", r"\1 "),
        (r"([,;]|and) it (?:should|must) be noted that", r"\1"),
        (rf"(?<!\S)(?!(?:so|too|how|the|as|an?) )(\S+) {_INTENSIFIER} {_WEAKENED}", r"\1 "),
        (rf"(a) {_INTENSIFIER} (?=[b-df-gj-np-tv-z]){_WEAKENED}", r"\1 "),
        (rf"(?!(?:but|see|not|nor|or|as|because) )([a-z\d][\w'’)-]*) also {_ADDED}", r"\1 "),
        (r"(our) proposed (?=(?:model|method|approach|framework|system|algorithm)s?\b)", r"\1 "),
        (r"all of (?=(?:the|these|those|our|their)\b)", "all "),
        (r"by (?:using|utilizing|employing|leveraging|making use of)", "using"),
        (rf"(we) have (?={_DONE}\b)", r"\1 "),
        (r"based on the fact that", "because"),
        (rf"{_NO_PREPOSITION}((?-i:[a-z\d])[\w-]*(?: ?,)?) which (?:is|are|was|were) (?=\w+ed\b)", r"\1 "),
    )
)  # fmt: skip
_PASSING: Final = re.compile(
    rf"(?<!\s)(?:\s*+,)?+\s*+(?:{_AS_SHOWN}|which (?:is|are) {_SHOWN} in {REFERENCE})\s*(?=[.;!?]\s*$|[.;]\s)"
    rf"|(?<!\s)\s++\((?:(?:see|see also|cf\.|also|(?:as )?{_SHOWN} in|refer to)\s+)?(?:the )?{REFERENCE}"
    r"(?:,? for (?:(?:an?|the|more|further|some) )?(?:examples?|details|overview|illustration|information))?\s*\)",
    re.IGNORECASE,
)
_CITED: Final = re.compile(rf"(?<![ \t])[ \t]++{CITATION}[ \t]*(?P<next>[^\s\w]|\w[\w-]*|$)")
_BEFORE_OBJECT: Final = frozenset(
    """
    a about above according across after against also an and are as at based be been before behind below beside besides between
    both but by compared concerning consult despite during e.g e.g. equation except follow followed for from had has have i.e. i.e
    in inside into is like near of off on onto or our over per regarding see since so such than that the their these this
    those through to towards under unlike until upon versus via vs vs. was we were where whereas whether which while with
    within without recently later then here interval range vector list array scale
    adapt adopt apply beat build call cite combine compare consider contact contrast describe employ examine explore extend
    find generalise generalize implement improve include introduce investigate mention modify outperform propose read refer replicate
    reproduce review show study surpass take use utilize
    """.split()  # noqa: SIM905
)
_NOUNS_IN_ING: Final = re.compile(
    r"(?:.*(?:learn|process|train|embedd|model|pars|cluster|tagg|encod|answer|link|match|understand|sampl|averag|search|"
    r"mapp|hash|rank|segment|label|schedul|pool|smooth|decod|filter|stemm|bootstrapp|boost|bagg|mean|sett|find|index|"
    r"summari[sz]|paraphras|min|reason|comput|prun|build))ing",
    re.IGNORECASE,
)
_GOES_ON: Final = frozenset(
    """
    and or of to for on in with by from as at which that is are was were has have had can where when while but into via over
    using based within through between than so because since during without under after before
    dataset datasets corpus corpora model models algorithm algorithms method methods optimizer embeddings task framework
    toolkit architecture network networks
    """.split()  # noqa: SIM905
)


def cuts(sentence: str, *, numeric_marks: bool) -> Iterator[Callable[[str], str]]:
    """The cuts in the order in which they apply, each a function of the sentence as the ones before left it.

    Args:
        sentence: The sentence as it stands; one that says "not only ... but also" keeps its "also".
        numeric_marks: Whether ``[3]`` is a citation mark in this document.
    """
    yield partial(_without_citations, numeric_marks=numeric_marks)
    yield partial(_PASSING.sub, "")
    yield _without_opener
    for pattern, template, spoilt in _FILLER:
        if spoilt is None or not spoilt.search(sentence):
            yield partial(_replaced, pattern=pattern, template=template)


def _replaced(sentence: str, *, pattern: re.Pattern[str], template: str) -> str:
    return pattern.sub(lambda found: _cased(found.expand(template), found[0]), sentence)


def _cased(replacement: str, replaced: str) -> str:
    return replacement[:1].upper() + replacement[1:] if replaced[:1].isupper() else replacement


def _without_opener(sentence: str) -> str:
    mark = _LIST_MARK.match(sentence)
    start = mark.end() if mark else 0
    found = _OPENERS.match(sentence, start)
    if found is None or len(sentence[found.end() :].split(maxsplit=3)) < 3:
        return sentence
    rest = sentence[found.end() :]
    if found["claim"] and _NO_CLAUSE.search(rest):
        return sentence
    return sentence[:start] + (_capitalised(rest) if found[0][0].isupper() else rest)


def _capitalised(text: str) -> str:
    """With a capital at the start, unless the first word is written in a way of its own (``k-means``, ``iPhone``)."""
    found = re.match(r"[a-z][a-z]*(?=['’,]?\s)|[a-z]{2,}(?=-[a-z])", text)
    return text[0].upper() + text[1:] if found else text


def _without_citations(sentence: str, *, numeric_marks: bool) -> str:
    def kept(found: re.Match[str]) -> str:
        if ("[" in found[0] and not numeric_marks) or not _is_aside(sentence, found):
            return found[0]
        following = found["next"]
        blank = "" if following in {"", *".,;:!?)"} else " "
        return blank + following

    return _CITED.sub(kept, sentence)


def _is_aside(sentence: str, found: re.Match[str]) -> bool:
    """Whether the marks stand behind what they cite, so that the sentence is whole without them."""
    before = sentence[max(0, found.start() - 60) : found.start()]
    word = (before.split() or [""])[-1].strip("\"'“”‘’*_[{").lower()
    named = word.endswith(("al.", ")")) or bool(re.fullmatch(r"(?:19|20)\d\d[a-z]?", word))
    if not named and (not word or not _can_be_cited(word, before)):
        return False
    return named or not found["next"].strip(".,;:!?)") or found["next"].lower() in _GOES_ON


def _can_be_cited(word: str, before: str) -> bool:
    if word[-1] in ".,;:(–—-=" or word in _BEFORE_OBJECT or word.endswith("ly"):
        return False
    if word.endswith("ing"):
        return bool(_NOUNS_IN_ING.fullmatch(word))
    if word.endswith("ed"):
        return bool(re.search(r"\b(?:is|are|was|were|be|been|being)\b(?:\s+\w+){0,2}\s*$", before))
    return not (word.endswith("s") and (word[:-1] in _BEFORE_OBJECT or word[:-2] in _BEFORE_OBJECT))
