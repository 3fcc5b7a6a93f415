"""The regime of a corpus, as its properties predict it before anything is retrieved, and what to index accordingly.

Properties are measured elsewhere; a prediction is checked by measuring retrieval, which is not done here either.

The regimes are the PRIME paper's (section on BRIGHT, "each predicted by corpus properties that can be assessed before
retrieval"). The paper gives no numbers, so the thresholds of :data:`RULES` are ours: round figures that put its words into
properties. While they were chosen four corpora were looked at: 50 QASPER papers, the same without headings, the Cranfield
abstracts, and the tutorial of the Pony language (the source of one of the paper's examples). No other corpus was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation import corpus_properties as measured
from prime_pipeline.evaluation.corpus_properties import Property
from prime_pipeline.models.tokenizer import Tokenizer
from prime_pipeline.records import Document, DocumentMetadata, Qrels, Query

if TYPE_CHECKING:
    from prime_pipeline.evaluation.corpus_properties import Vectors

Regime = Literal[
    "deficit-bridging",
    "structure-exploiting",
    "saturated",
    "structure-absent",
    "chain-fragmenting",
    "inconclusive",
]
"""What metadata does for retrieval.

``deficit-bridging``: the encoder knows such text badly, and discriminative terms are a bridge to it.
``structure-exploiting``: headings and terms say what the encoder does not get to read. ``saturated``: there is structure,
and it adds nothing to what the full text tells the encoder. ``structure-absent``: there is none. ``chain-fragmenting``:
headings cut a chain of reasoning into pieces that mean nothing alone (in the paper the fourth mode, TheoremQA).
"""

Mode = Literal["metadata", "full", "full text"]
"""What to index: metadata of the original text (the offline mode), restructured text and its metadata (the full mode),
or the full text itself, because metadata will not help."""

PropertyName = Literal[
    "heading_coverage",
    "heading_depth",
    "sections_per_document",
    "common_headings",
    "long_sections",
    "long_documents",
    "text_read",
    "unread_metadata",
    "word_pieces",
    "stop_words",
    "shared_terms",
    "term_idf",
    "dangling_sections",
    "chained_sections",
    "code",
    "formulas",
    "vocabulary_gap",
    "unknown_query_words",
    "embedding_agreement",
    "neighbor_agreement",
]

MIN_DOCUMENTS: Final = 20
"""With fewer documents a share's interval spans half of the scale, and no regime is told."""
MIN_SCORE: Final = 2 / 3
"""A regime whose rules hold by less than two thirds is not told: the evidence is contradictory."""
UNLIKELY: Final = 1 / 2
"""A regime with less than half of its rules on its side is called unlikely."""
MIN_LEAD: Final = 0.15
"""A regime is not told either if one with another recommendation is this close."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One piece of evidence for a regime.

    Attributes:
        regime: For which.
        property: What is compared; a rule whose property is unknown has no say.
        low: The property must be at least this.
        high: And below this.
        reason: Why it speaks for the regime, as it goes on from the number.
        is_required: Whether the regime is out of the question where the rule does not hold.
    """

    regime: Regime
    property: PropertyName
    low: float
    high: float
    reason: str
    is_required: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value of the property is within the bounds."""
        return self.low <= value < self.high


_ANY: Final = float("inf")
_STRUCTURED: Final = "there is structure to speak of"

RULES: Final[tuple[Rule, ...]] = (
    # "Sparse or empty heading trees": three in four documents have none.
    Rule(
        "structure-absent", "heading_coverage", 0, 0.25, "heading trees are sparse or empty", is_required=True
    ),
    Rule("structure-absent", "sections_per_document", 0, 2, "a document is one piece"),
    # "Prose already well-embedded": the encoder reads most of it, and metadata repeats what it has read.
    Rule("saturated", "heading_coverage", 0.25, _ANY, _STRUCTURED, is_required=True),
    Rule("saturated", "text_read", 0.5, _ANY, "full-text vectors see most of the text"),
    Rule("saturated", "common_headings", 0.5, _ANY, "most headings tell no document from another"),
    Rule("saturated", "unread_metadata", 0, 0.25, "metadata repeats what the encoder reads anyway"),
    Rule(
        "saturated", "neighbor_agreement", 0.5, _ANY, "metadata and full text put the same documents together"
    ),
    # "Typical structured documents": sections under headings of their own, in language the encoder knows.
    Rule(
        "structure-exploiting",
        "heading_coverage",
        0.5,
        _ANY,
        "most documents are structured",
        is_required=True,
    ),
    Rule("structure-exploiting", "sections_per_document", 3, _ANY, "documents are made of several sections"),
    Rule("structure-exploiting", "common_headings", 0, 0.5, "most headings tell a document from others"),
    Rule(
        "structure-exploiting", "unread_metadata", 0.25, _ANY, "metadata tells what the encoder does not read"
    ),
    Rule("structure-exploiting", "word_pieces", 0, 1.6, "the encoder knows the words"),
    # "Dense API reference documentation is poorly represented by the encoder's pretraining": words fall to pieces.
    Rule("deficit-bridging", "heading_coverage", 0.25, _ANY, _STRUCTURED, is_required=True),
    Rule(
        "deficit-bridging", "word_pieces", 1.6, _ANY, "words fall to pieces in the encoder", is_required=True
    ),
    Rule("deficit-bridging", "code", 0.05, _ANY, "code is a regular part of the text"),
    Rule("deficit-bridging", "unread_metadata", 0.25, _ANY, "metadata tells what the encoder does not read"),
    Rule("deficit-bridging", "term_idf", 0.5, _ANY, "the terms are discriminative"),
    # "LaTeX blocks are parsed as H2 sections but fragment mathematical proofs".
    Rule("chain-fragmenting", "heading_coverage", 0.25, _ANY, _STRUCTURED, is_required=True),
    Rule("chain-fragmenting", "formulas", 0.1, _ANY, "formulas carry the text", is_required=True),
    Rule("chain-fragmenting", "chained_sections", 0.1, _ANY, "sections go on from the one before"),
    Rule("chain-fragmenting", "dangling_sections", 0.1, _ANY, "sections lean on the one before"),
)
"""All rules of a regime weigh the same. Bounds include the lower end."""

MODES: Final[Mapping[Regime, Mode | None]] = {
    "deficit-bridging": "metadata",
    "structure-exploiting": "metadata",
    "saturated": "full text",
    "structure-absent": "full text",
    "chain-fragmenting": "full text",
    "inconclusive": None,
}
_ADVICE: Final[Mapping[Regime, str]] = {
    "deficit-bridging": "Index metadata: its terms are a bridge to text that the encoder knows badly.",
    "structure-exploiting": "Index metadata: headings and terms tell what full-text vectors leave out.",
    "saturated": "Metadata will not help, it adds little to what the encoder reads: index the full text.",
    "structure-absent": "Metadata will not help, there are no headings to make it of: index the full text.",
    "chain-fragmenting": "Headings cut chains of reasoning apart, so metadata will not help: index the full text.",
}
_REMEDY: Final = "Measure metadata and full text with queries of your own."
FULL_MODE: Final[Mapping[PropertyName, tuple[float, float]]] = {
    "dangling_sections": (0.25, _ANY),
    "code": (0.0, 0.25),
    "formulas": (0.0, 0.1),
}
"""When structured documents are worth rewriting before they are indexed, as [low, high).

Rewriting makes sections stand alone (the paper's explication), so it pays where one section in four does not, and harms
code and formulas. It costs lexical matches (the paper's Table 2), so denser text alone is no reason.
"""


@dataclass(frozen=True, slots=True)
class CorpusProfile:
    """What a corpus is like and what follows from it.

    Attributes:
        properties: By name; those that could be measured.
        regime: The prediction.
        recommended_mode: What to index; None if inconclusive.
        evidence: Sentences with the numbers that speak for the regime, then those that speak against it, then one on the
            regimes that are unlikely; the last one says what to do.
        alternatives: The other regimes with half of their rules on their side or more, with their scores up to 1, best
            first.
    """

    properties: Mapping[PropertyName, Property]
    regime: Regime
    recommended_mode: Mode | None
    evidence: tuple[str, ...]
    alternatives: tuple[tuple[Regime, float], ...]


def profile_corpus(
    documents: Sequence[Document],
    metadata: Sequence[DocumentMetadata],
    tokenizer: Tokenizer,
    *,
    queries: Sequence[Query] = (),
    qrels: Qrels | None = None,
    vectors: tuple[Vectors, Vectors] | None = None,
) -> CorpusProfile:
    """Measure what can be measured and say what it predicts.

    Args:
        documents: All, or a sample, in any order.
        metadata: Of the same documents.
        tokenizer: Of the encoder in question.
        queries: A sample of real queries, for the vocabulary gap.
        qrels: Their judgements.
        vectors: Unit vectors of the metadata and of the full text (:func:`~prime_pipeline.evaluation.corpus_properties.full_text`),
            each of shape (n_documents, dim), rows in ascending order of document id.

    Raises:
        EvaluationError: Metadata or vectors are not those of the documents.
    """
    documents = sorted(documents, key=lambda document: document.doc_id)
    metadata = sorted(metadata, key=lambda item: item.doc_id)
    _check(documents, metadata, vectors)
    code, formulas = measured.code_and_formulas(documents)
    openings = measured.section_openings(documents)
    found: dict[PropertyName, Property | None] = {
        "heading_coverage": measured.heading_coverage(documents),
        "heading_depth": measured.heading_depth(metadata),
        "sections_per_document": measured.sections_per_document(documents),
        "common_headings": measured.common_heading_share(metadata),
        "long_sections": measured.long_sections(documents, tokenizer),
        "long_documents": measured.long_documents(documents, tokenizer),
        "text_read": measured.text_read(documents, tokenizer),
        "unread_metadata": measured.unread_metadata(documents, metadata, tokenizer),
        "word_pieces": measured.word_pieces(documents, tokenizer),
        "stop_words": measured.stop_word_share(documents),
        "shared_terms": measured.shared_terms(metadata),
        "term_idf": measured.term_idf(documents, metadata),
        "dangling_sections": measured.dangling_sections(openings),
        "chained_sections": measured.chained_sections(openings),
        "code": code,
        "formulas": formulas,
        "vocabulary_gap": measured.vocabulary_gap(documents, queries, qrels or {}),
        "unknown_query_words": measured.unknown_query_words(documents, queries),
        "embedding_agreement": measured.embedding_agreement(*vectors) if vectors else None,
        "neighbor_agreement": measured.neighbor_agreement(*vectors) if vectors else None,
    }
    return predict({name: item for name, item in found.items() if item is not None}, len(documents))


def predict(properties: Mapping[PropertyName, Property], n_documents: int) -> CorpusProfile:
    """The regime whose rules hold best, unless the corpus is too small or the evidence contradictory.

    A regime's score is the share of its rules that hold, of those whose property is known; 0 if a required one does
    not. Equal scores go by the order of :data:`RULES`. Values decide, not their intervals: these tell the reader of the
    evidence how close a call it was.
    """
    scores = _scores(properties)
    best: Regime = max(scores, key=lambda regime: scores[regime])
    doubt = _doubt(scores, best, n_documents)
    regime: Regime = "inconclusive" if doubt else best
    others = sorted(((r, s) for r, s in scores.items() if r != regime and s), key=lambda pair: -pair[1])
    alternatives = tuple((r, s) for r, s in others if s >= UNLIKELY)
    unlikely = _unlikely([pair for pair in others if pair not in alternatives], n_documents)
    mode = _mode(regime, properties)
    evidence = (*_told(properties, best), *unlikely, doubt or _advice(regime, mode))
    return CorpusProfile(properties, regime, mode, evidence, alternatives)


def _scores(properties: Mapping[PropertyName, Property]) -> dict[Regime, float]:
    scores: dict[Regime, float] = {}
    for regime in dict.fromkeys(rule.regime for rule in RULES):
        rules = [rule for rule in RULES if rule.regime == regime]
        held = [r.holds(properties[r.property].value) for r in rules if r.property in properties]
        required = [r for r in rules if r.is_required]
        possible = all(r.property in properties and r.holds(properties[r.property].value) for r in required)
        scores[regime] = sum(held) / len(held) if possible else 0.0
    return scores


def _doubt(scores: Mapping[Regime, float], best: Regime, n_documents: int) -> str | None:
    """Why no regime is told; None if one is."""
    if n_documents < MIN_DOCUMENTS:
        return f"With {n_documents} of at least {MIN_DOCUMENTS} documents no regime can be told. {_REMEDY}"
    if scores[best] < MIN_SCORE:
        return f"The evidence is contradictory: no regime has two thirds of its rules on its side. {_REMEDY}"
    for regime, score in scores.items():
        if MODES[regime] != MODES[best] and score > scores[best] - MIN_LEAD:
            return f"The evidence is contradictory: it fits {regime} about as well as {best}. {_REMEDY}"
    return None


def _mode(regime: Regime, properties: Mapping[PropertyName, Property]) -> Mode | None:
    known = [(properties[name].value, *bounds) for name, bounds in FULL_MODE.items() if name in properties]
    pays = len(known) == len(FULL_MODE) and all(low <= value < high for value, low, high in known)
    return "full" if pays and MODES[regime] == "metadata" else MODES[regime]


def _told(properties: Mapping[PropertyName, Property], regime: Regime) -> list[str]:
    """The rules of a regime in words, those that hold first."""
    rules = [rule for rule in RULES if rule.regime == regime and rule.property in properties]
    held = {rule: rule.holds(properties[rule.property].value) for rule in rules}
    order = sorted(rules, key=lambda rule: not held[rule])
    return [
        f"{properties[rule.property]}: {'' if held[rule] else 'it does not hold that '}{rule.reason}."
        for rule in order
    ]


def _unlikely(scores: Sequence[tuple[Regime, float]], n_documents: int) -> list[str]:
    """A sentence on regimes that few of their rules speak for; none from too few documents to tell a regime."""
    if not scores or n_documents < MIN_DOCUMENTS:
        return []
    named = ", ".join(f"{regime} ({score:.0%} of its rules hold)" for regime, score in scores)
    return [f"Unlikely: {named}."]


def _advice(regime: Regime, mode: Mode | None) -> str:
    if mode == "full":
        return "Rewrite sections first (full mode): many do not stand alone, and little of the text is code or formulas."
    return _ADVICE[regime]


def _check(
    documents: Sequence[Document],
    metadata: Sequence[DocumentMetadata],
    vectors: tuple[Vectors, Vectors] | None,
) -> None:
    if [document.doc_id for document in documents] != [item.doc_id for item in metadata]:
        raise EvaluationError(
            f"{len(documents)} documents and {len(metadata)} metadata records do not belong together: make the metadata of "
            "just these documents"
        )
    for rows in vectors or ():
        if len(rows) != len(documents):
            raise EvaluationError(
                f"{len(rows)} vectors for {len(documents)} documents: give one row for each, in order of document id"
            )
