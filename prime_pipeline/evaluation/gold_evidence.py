"""What gold evidence spans say of ranked sections: judgements of sections, Token-Recall@k, and evidence F1.

Spans are what annotators marked in documents, as QASPER has them. What restructuring did to each span is the fidelity
audit's to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Final, NamedTuple

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.measures import ranking
from prime_pipeline.records import Document, Qrels, Run, Section, SectionKind, section_id
from prime_pipeline.text.words import literal_words

FLOAT_MARK: Final = "FLOAT SELECTED"
"""A QASPER span that begins so names a figure or table by its caption: ``FLOAT SELECTED: Table 1: Sizes.``"""


@dataclass(frozen=True, slots=True)
class GoldEvidence:
    """What annotators marked for one query.

    Attributes:
        spans: The spans of all annotators; repeated ones count once.
        doc_id: The document that holds them; None if any document may, as with queries over a whole corpus.
    """

    spans: tuple[str, ...]
    doc_id: str | None = None


@dataclass(frozen=True, slots=True)
class EvidenceMap:
    """Which sections hold the gold evidence.

    Attributes:
        qrels: Query id to section id to 1. Queries none of whose spans were found are left out.
        n_spans: Distinct spans, summed over queries.
        n_found: Of these, spans that at least one section holds.
        unfound: The others, as (query id, span with blanks squeezed), by query id and in the order given.
    """

    qrels: Qrels
    n_spans: int
    n_found: int
    unfound: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TokenRecall:
    """Token-Recall@k, and what it takes to read that much.

    Attributes:
        per_query: Query id to recall from 0 to 1, by ascending id, of every query whose evidence has tokens.
        mean: Over these queries.
        tokens_per_query: Query id to the tokens of the sections read, for the same queries.
        mean_tokens: Over these queries: the evidence tokens per query.
    """

    per_query: Mapping[str, float]
    mean: float
    tokens_per_query: Mapping[str, int]
    mean_tokens: float


@dataclass(frozen=True, slots=True)
class EvidenceF1:
    """What predicted evidence is worth.

    Attributes:
        per_query: Query id to F1 from 0 to 1, by ascending id, of every query with references.
        mean: Over these queries.
        n_missing: Queries with references and without prediction; they count as 0.
    """

    per_query: Mapping[str, float]
    mean: float
    n_missing: int


class _Searched(NamedTuple):
    section_id: str
    kind: SectionKind
    text: str


def section_qrels(evidence: Mapping[str, GoldEvidence], documents: Mapping[str, Document]) -> EvidenceMap:
    """Judge sections: relevant is each whose text holds a gold span of the query, heading included.

    Blanks are squeezed on both sides; nothing else is: case counts, and no likeness suffices. Spans of figures and
    tables (:data:`FLOAT_MARK`) are looked for by their captions, in sections of kind ``captions`` only. Blank spans are
    ignored.

    Section ids are unique in a corpus and outlive restructuring, so these judgements serve for runs within one document
    and over all of them, over raw and over restructured text. For the paper's protocol instead see :func:`kept` and
    :func:`shared_queries`.

    Args:
        evidence: Query id to its gold evidence.
        documents: Document id to document.

    Raises:
        EvaluationError: A query's document is not among the documents.
    """

    @cache
    def searched(doc_id: str) -> list[_Searched]:
        return list(_searched(documents[doc_id]))

    qrels: dict[str, dict[str, int]] = {}
    spans = [(query, span) for query in sorted(evidence) for span in _distinct(evidence[query].spans)]
    unfound = []
    for query, span in spans:
        doc_ids = _doc_ids(query, evidence[query], documents)
        homes = [
            section.section_id for doc_id in doc_ids for section in searched(doc_id) if _holds(section, span)
        ]
        if homes:
            qrels.setdefault(query, {}).update(dict.fromkeys(homes, 1))
        else:
            unfound.append((query, span))
    return EvidenceMap(qrels, len(spans), len(spans) - len(unfound), tuple(unfound))


def kept(evidence: Mapping[str, GoldEvidence], documents: Mapping[str, Document]) -> EvidenceMap:
    """Judge sections by the spans that their restructured text still holds word for word: the paper's protocol.

    A section whose rewriting has put a span in other words counts as not relevant here.

    Args:
        evidence: Query id to its gold evidence.
        documents: Document id to document, rewritten bodies beside the raw ones.
    """
    return section_qrels(evidence, {doc_id: document.restructured for doc_id, document in documents.items()})


def shared_queries(raw: EvidenceMap, restructured: EvidenceMap) -> tuple[Qrels, Qrels]:
    """The judgements of both texts, limited to queries that have some in both (PRIME paper, Table 5 B).

    Each judges runs over its own text. What restructuring lost altogether does not count against it: print
    the number of queries, and the measures by the raw text's judgements beside these.
    """
    shared = sorted(raw.qrels.keys() & restructured.qrels.keys())
    return (
        {query: raw.qrels[query] for query in shared},
        {query: restructured.qrels[query] for query in shared},
    )


def section_texts(documents: Iterable[Document]) -> dict[str, str]:
    """The text of every section that search may return, by section id; for restructured text, pass it as such."""
    return {
        section_id(document.doc_id, section.ordinal): section.text
        for document in documents
        for section in document.content_sections
    }


def token_recall(
    run: Run, evidence: Mapping[str, GoldEvidence], texts: Mapping[str, str], k: int = 5
) -> TokenRecall:
    """The share of the tokens of a query's gold spans that occur in its top k sections, and the tokens of these.

    Tokens are those of :func:`~prime_pipeline.text.words.literal_words`: lower-cased, without punctuation, cut at white
    space. Both sides are multisets: a token that the spans hold three times must occur three times. Spans count once
    each, of figures and tables the caption counts; sections are ranked as in the measures. A query that the run lacks
    has recall 0 and no tokens; one whose evidence has no token is left out.

    Args:
        run: Query id to section id to score.
        evidence: Query id to its gold evidence.
        texts: Section id to text, of the corpus that the run is over.
        k: How many sections are read, from 1.

    Raises:
        EvaluationError: No query has evidence, a section of the top k has no text, a score is not finite, or ``k`` is
            below 1.
    """
    if k < 1:
        raise EvaluationError(f"cannot read the top {k} sections: k starts at 1")
    gold = {
        query: _tokens(map(evidence_text, _distinct(evidence[query].spans))) for query in sorted(evidence)
    }
    gold = {query: tokens for query, tokens in gold.items() if tokens}
    if not gold:
        raise EvaluationError("no query has gold evidence: Token-Recall needs a data set with evidence spans")

    @cache
    def tokens_of(found: str) -> Counter[str]:
        if found not in texts:
            raise EvaluationError(
                f"section {found!r} is in the run and not among the texts: run and texts must be of the same corpus"
            )
        return _tokens([texts[found]])

    read = {
        query: sum(map(tokens_of, ranking(query, run.get(query, {}))[:k]), Counter[str]()) for query in gold
    }
    recall = {query: (tokens & read[query]).total() / tokens.total() for query, tokens in gold.items()}
    n_tokens = {query: tokens.total() for query, tokens in read.items()}
    return TokenRecall(recall, fmean(recall.values()), n_tokens, fmean(n_tokens.values()))


def paragraph_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """F1 of predicted paragraphs against one annotator's, as QASPER's official evaluator has it (Dasigi et al. 2021).

    Paragraphs are compared as whole strings. What both hold is counted as a set, but divided by the lengths of the
    lists, so that a repeated paragraph costs. Both empty gives 1.
    """
    if not predicted and not gold:
        return 1.0
    # 2PR / (P + R), with P = same / predicted and R = same / gold.
    return 2 * len(set(predicted) & set(gold)) / (len(predicted) + len(gold))


def evidence_f1(
    predictions: Mapping[str, Sequence[str]],
    references: Mapping[str, Sequence[Sequence[str]]],
    *,
    text_only: bool = False,
) -> EvidenceF1:
    """Evidence F1 as QASPER's official evaluator has it: for each query the best over its annotators, then the mean.

    A query without prediction counts 0, unlike one with an empty prediction, which is right for an unanswerable
    question. Queries without annotators are ignored.

    Args:
        predictions: Query id to paragraphs, see :func:`evidence_paragraphs`.
        references: Query id to the paragraphs of each annotator.
        text_only: Leave references to figures and tables out, as the official ``--text_evidence_only`` does.

    Raises:
        EvaluationError: No query has a reference.
    """
    judged = {query: references[query] for query in sorted(references) if references[query]}
    if not judged:
        raise EvaluationError("no query has reference evidence: evidence F1 needs a data set with annotators")
    per_query = {
        query: max(
            paragraph_f1(predictions[query], _selected(gold, text_only=text_only)) for gold in annotators
        )
        if query in predictions
        else 0.0
        for query, annotators in judged.items()
    }
    return EvidenceF1(per_query, fmean(per_query.values()), len(judged.keys() - predictions.keys()))


def evidence_paragraphs(sections: Iterable[Section]) -> list[str]:
    """The paragraphs of raw sections as QASPER's annotators marked them, a prediction for :func:`evidence_f1`.

    Bodies are cut at blank lines, so a paragraph of the paper that holds a blank line matches no reference. Captions
    are written with :data:`FLOAT_MARK`.
    """
    return [
        f"{FLOAT_MARK}: {paragraph}" if section.kind == "captions" else paragraph
        for section in sections
        for paragraph in section.body.split("\n\n")
        if paragraph.strip()
    ]


def _doc_ids(query: str, gold: GoldEvidence, documents: Mapping[str, Document]) -> Iterable[str]:
    if gold.doc_id is None:
        return documents
    if gold.doc_id not in documents:
        raise EvaluationError(
            f"the evidence of query {query!r} is in document {gold.doc_id!r}, which is not among the documents: add the "
            "document, or leave the query out"
        )
    return (gold.doc_id,)


def _searched(document: Document) -> Iterator[_Searched]:
    for section in document.content_sections:
        yield _Searched(section_id(document.doc_id, section.ordinal), section.kind, _squeezed(section.text))


def _holds(section: _Searched, span: str) -> bool:
    if span.startswith(FLOAT_MARK):
        return section.kind == "captions" and evidence_text(span) in section.text
    return span in section.text


def evidence_text(span: str) -> str:
    """What a span says: the caption that a span of a figure or table names; any other span as it is."""
    return span.removeprefix(FLOAT_MARK).lstrip(": ") if span.startswith(FLOAT_MARK) else span


def _distinct(spans: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, map(_squeezed, spans))))


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _tokens(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in literal_words(text))


def _selected(gold: Sequence[str], *, text_only: bool) -> list[str]:
    return [paragraph for paragraph in gold if not (text_only and FLOAT_MARK in paragraph)]
