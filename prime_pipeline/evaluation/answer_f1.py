"""Answer-F1 as QASPER's official evaluator counts it (Dasigi et al. 2021), token for token.

Where predictions come from, and how references are written down in a file, is for others to know.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

from prime_pipeline.errors import EvaluationError

AnswerType = Literal["extractive", "abstractive", "boolean", "none"]
"""How an annotator answered: by spans of the paper, in own words, by yes or no, or that the paper does not say."""

UNANSWERABLE: Final = "Unanswerable"
"""The reference, and the right prediction, where the document holds no answer."""

_WITHOUT_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_ARTICLE: Final = re.compile(r"\b(?:a|an|the)\b")


@dataclass(frozen=True, slots=True)
class AnswerReference:
    """What one annotator answered.

    Attributes:
        text: The answer to compare with.
        type: See :data:`AnswerType`.
        evidence: Paragraphs of the document that support it, in the annotator's order; such as begin with
            ``FLOAT SELECTED`` stand for a figure or a table. Empty for ``none``, as the official evaluator has it.
    """

    text: str
    type: AnswerType
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerF1:
    """What predictions are worth.

    Attributes:
        per_query: Query id to F1 from 0 to 1, of every question with references, by ascending id.
        mean: Over all of them.
        types: Query id to the type of the reference that gave the F1, of every question with a prediction. It depends
            on the prediction: to compare systems type by type, group ``per_query`` by types fixed beforehand.
        means_by_type: Mean by that type, as the official evaluator prints it; only types that occur.
        n_queries: Questions with references.
        n_missing: Of these, without a prediction: 0 in ``mean``, and in no type.
        n_unjudged: Predictions to questions without references; they are ignored.
    """

    per_query: Mapping[str, float]
    mean: float
    types: Mapping[str, AnswerType]
    means_by_type: Mapping[AnswerType, float]
    n_queries: int
    n_missing: int
    n_unjudged: int


def answer_f1(
    predictions: Mapping[str, str], references: Mapping[str, Sequence[AnswerReference]]
) -> AnswerF1:
    """Score predicted answers: the best F1 over a question's references, and the mean over all questions.

    A question without a prediction counts 0; one whose references are empty is not judged. Among references with the
    same F1 the first gives the type.

    Args:
        predictions: Query id to answer.
        references: Query id to the answers of its annotators.

    Raises:
        EvaluationError: No question has a reference.
    """
    judged = {query: found for query, found in sorted(references.items()) if found}
    if not judged:
        raise EvaluationError(
            "no question has a reference answer: Answer-F1 needs a query set with answers, such as a QASPER file"
        )
    best = {q: _best(predictions[q], found) for q, found in judged.items() if q in predictions}
    per_query = {query: best[query][0] if query in best else 0.0 for query in judged}
    return AnswerF1(
        per_query=per_query,
        mean=fmean(per_query.values()),
        types={query: kind for query, (_, kind) in best.items()},
        means_by_type=_means_by_type(best.values()),
        n_queries=len(judged),
        n_missing=len(judged) - len(best),
        n_unjudged=len(predictions.keys() - judged.keys()),
    )


def token_f1(prediction: str, reference: str) -> float:
    """Harmonic mean of precision and recall of the tokens, as multisets; 0 without a common one, also for two empty texts."""
    predicted, wanted = Counter(answer_tokens(prediction)), Counter(answer_tokens(reference))
    n_common = (predicted & wanted).total()
    return 2 * n_common / (predicted.total() + wanted.total()) if n_common else 0.0


def answer_tokens(text: str) -> list[str]:
    """The words of an answer in lower case without ASCII punctuation and articles.

    Punctuation is deleted, not replaced: ``12.5 %`` is the one token ``125``. Typographic quotes and dashes stay.
    """
    return _ARTICLE.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split()


def _best(prediction: str, references: Sequence[AnswerReference]) -> tuple[float, AnswerType]:
    scored = [(token_f1(prediction, reference.text), reference.type) for reference in references]
    return max(scored, key=lambda pair: pair[0])  # the first of several


def _means_by_type(best: Iterable[tuple[float, AnswerType]]) -> dict[AnswerType, float]:
    values: dict[AnswerType, list[float]] = {}
    for value, kind in best:
        values.setdefault(kind, []).append(value)
    return {kind: fmean(values[kind]) for kind in sorted(values)}
