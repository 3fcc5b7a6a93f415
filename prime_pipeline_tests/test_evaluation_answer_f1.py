"""Answer-F1: worked by hand, with the oddities of the official evaluator, and its properties on random texts."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.answer_f1 import (
    AnswerReference,
    AnswerType,
    answer_f1,
    answer_tokens,
    token_f1,
)


def reference(text: str, kind: AnswerType = "extractive") -> AnswerReference:
    return AnswerReference(text, kind)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The cat, an Owl and A dog!", ["cat", "owl", "and", "dog"]),
        ("state-of-the-art", ["stateoftheart"]),
        ("12.5 %  of 1,451", ["125", "of", "1451"]),
        ("-0.5", ["05"]),
        ("theory of another", ["theory", "of", "another"]),
        ("A.", []),
        ("“the cat” – naïve", ["“", "cat”", "–", "naïve"]),
        ("a\tb\n the\u00a0c", ["b", "c"]),
        ("U.S.A.", ["usa"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert answer_tokens(text) == tokens


@pytest.mark.parametrize(
    ("prediction", "wanted", "f1"),
    [
        ("BERT and a CRF", "BERT, CRF", 2 * (2 / 3) * 1 / (2 / 3 + 1)),
        ("word word word", "word word", 2 * (2 / 3) * 1 / (2 / 3 + 1)),
        ("The answer is yes", "Yes", 2 * (1 / 3) * 1 / (1 / 3 + 1)),
        ("yes.", "Yes", 1.0),
        ("Unanswerable.", "Unanswerable", 1.0),
        ("", "Unanswerable", 0.0),
        ("not answerable", "Unanswerable", 0.0),
        ("12.5", "125", 1.0),
        ("15.2", "12.5", 0.0),
        ("“BERT”", "BERT", 0.0),
        ("", "", 0.0),
        ("the", "a", 0.0),
    ],
)
def test_token_f1_by_hand(prediction: str, wanted: str, f1: float) -> None:
    assert token_f1(prediction, wanted) == pytest.approx(f1)


def test_the_best_reference_counts_and_gives_the_type() -> None:
    references = {
        "q2": [reference("English"), reference("English and Chinese", "abstractive")],
        "q1": [reference("Unanswerable", "none"), reference("No", "boolean")],
        "q3": [reference("never asked")],
    }
    found = answer_f1({"q1": "no", "q2": "English, Chinese", "q9": "who?"}, references)
    assert list(found.per_query.items()) == [("q1", 1.0), ("q2", pytest.approx(0.8)), ("q3", 0.0)]
    assert found.mean == pytest.approx((1 + 0.8 + 0) / 3)
    assert found.types == {"q1": "boolean", "q2": "abstractive"}
    assert found.means_by_type == {"abstractive": pytest.approx(0.8), "boolean": 1.0}
    assert (found.n_queries, found.n_missing, found.n_unjudged) == (3, 1, 1)


def test_of_equal_references_the_first_gives_the_type() -> None:
    references = [reference("x", "abstractive"), reference("y", "none"), reference("x")]
    assert answer_f1({"q": "x"}, {"q": references}).types == {"q": "abstractive"}
    assert answer_f1({"q": "zzz"}, {"q": references[1:]}).types == {"q": "none"}


def test_an_empty_prediction_is_wrong_but_not_missing() -> None:
    found = answer_f1({"q": ""}, {"q": [reference("Unanswerable", "none")]})
    assert (found.mean, found.n_missing, found.means_by_type) == (0.0, 0, {"none": 0.0})


def test_a_question_without_references_is_not_judged() -> None:
    found = answer_f1({"q1": "x", "q2": "x"}, {"q1": [reference("x")], "q2": []})
    assert (found.mean, found.n_queries, found.n_unjudged) == (1.0, 1, 1)


@pytest.mark.parametrize("references", [{}, {"q": []}])
def test_without_any_reference_nothing_can_be_scored(references: dict[str, list[AnswerReference]]) -> None:
    with pytest.raises(EvaluationError, match="no question has a reference answer"):
        answer_f1({"q": "x"}, references)


TEXTS = st.lists(st.sampled_from(["the", "Cat", "cat!", "12.5", "–", "dog", "a"]), max_size=8).map(" ".join)


@given(TEXTS, TEXTS)
def test_f1_is_symmetric_and_one_exactly_for_the_same_tokens(one: str, other: str) -> None:
    value = token_f1(one, other)
    assert value == token_f1(other, one)
    assert 0 <= value <= 1
    tokens = Counter(answer_tokens(one))
    assert (value == 1) == (bool(tokens) and tokens == Counter(answer_tokens(other)))


@given(TEXTS, TEXTS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(prediction: str, wanted: str) -> None:
    predicted, left = answer_tokens(prediction), answer_tokens(wanted)
    n_wanted, n_common = len(left), 0
    for token in predicted:
        if token in left:
            left.remove(token)
            n_common += 1
    if n_common:
        precision, recall = n_common / len(predicted), n_common / n_wanted
        assert token_f1(prediction, wanted) == pytest.approx(2 / (1 / precision + 1 / recall))
    else:
        assert token_f1(prediction, wanted) == 0
