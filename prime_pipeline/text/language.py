"""Which language a text is in, by its function words and its script; no model, a dozen languages.

It answers only when it is sure: a list of names has no language.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import Final

_WORD: Final = re.compile(r"[^\W\d_]+")
FUNCTION_WORDS: Final[dict[str, frozenset[str]]] = {
    code: frozenset(words.split())
    for code, words in {
        "en": "the of and to in is that for with as are this on by be from an which we it has have or at was were can not but their these than into its such between also both each while they only more no when where there if then been does do our using used one two all over most other",
        "de": "der die das und ist von mit den des ein eine zu auf für dem im nicht sich als auch werden wird einer eines einen aus bei sind wurde durch nach oder wie um zum zur über dass daß wir sie es kann diese dieser am sowie nur noch hat haben",
        "fr": "le la les des et est de un une du que dans pour qui sur par avec au aux ne pas plus sont ce cette nous ou ont été il elle ses leur leurs entre comme mais peut être aussi d l",
        "es": "el la los las de que y en un una es por con para del se al lo como más su sus no son o este esta entre han ha fue también pero sobre sin cuando muy puede",
        "it": "il lo la i gli le di che e un una è per con del della dei delle in non si da al alla sono come più ha anche nel nella questo questa o ma su tra",
        "pt": "o a os as de que e em um uma é por com para do da dos das no na se ao como mais são não foi ou este esta entre também mas sobre pelo pela",
        "nl": "de het een en van in is dat op te met voor zijn niet aan er om door als ook bij uit naar worden wordt deze die of maar we kan tot",
        "sv": "och att det som en är av för på med den till inte ett har de om var från vi kan eller så men vid",
        "pl": "i w na z do jest się nie to że o jak dla przez po od oraz są które który która być tym ale lub",
        "tr": "ve bir bu için ile olarak da de daha olan gibi en çok değil veya ise kadar sonra",
        "ru": "и в не на что с как это по для из к а но мы от о при или так же его все который которые",
    }.items()
}  # fmt: skip
"""The commonest function words of each language."""


def language(text: str) -> str | None:
    """The language's code, the script's name (``CJK``, say) where that says enough, or None where it is not clear.

    A Latin or Cyrillic text needs three different function words of its language, and half as many again, repetitions
    counted, as of any other one.
    """
    if (foreign := script(text)) not in {"LATIN", "CYRILLIC", None}:
        return foreign
    counts = Counter(word for word in _WORD.findall(text.lower()) if word in _all_function_words())
    scores = sorted(
        ((sum(n for word, n in counts.items() if word in words), code) for code, words in FUNCTION_WORDS.items()),
        reverse=True,
    )  # fmt: skip
    (best, code), (second, _) = scores[:2]
    n_different = len(FUNCTION_WORDS[code].intersection(counts))
    return code if n_different >= 3 and best >= 1.5 * second else None


def script(text: str) -> str | None:
    """The script of more than half of the letters, as Unicode names it, with Han, Kana and Hangul as CJK."""
    counts: Counter[str] = Counter()
    for char, n in Counter(text).items():
        if char.isalpha():
            counts[_script_of(char)] += n
    if not counts:
        return None
    ((name, most),) = counts.most_common(1)
    return name if most * 2 > counts.total() else None


@cache
def _all_function_words() -> frozenset[str]:
    return frozenset().union(*FUNCTION_WORDS.values())


@cache
def _script_of(char: str) -> str:
    name = unicodedata.name(char, "UNKNOWN").split()[0].split("-")[0]
    return "CJK" if name in {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "IDEOGRAPHIC"} else name
