"""Negations: dropped and added ones, and the many other ways to say them."""

from __future__ import annotations

import pytest

from prime_pipeline_tests.gate_run import changed, codes


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("works without a pretrained encoder", "uses a pretrained encoder", "negation_missing"),
        ("which does not converge", "which converges", "negation_missing"),
        ("`train.py` runs the code", "`train.py` does not run the code", "negation_added"),
    ],
)
def test_a_fault_is_refused_by_its_own_code(old: str, new: str, code: str) -> None:
    assert code in codes(changed(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("unavailable for some", "not available for all"),
        ("works without a pretrained encoder", "uses no pretrained encoder"),
        ("works without a pretrained encoder", "avoids a pretrained encoder"),
        ("does not converge", "cannot converge"),
        ("does not converge", "is unable to converge"),
    ],
)
def test_a_paraphrase_passes(old: str, new: str) -> None:
    assert codes(changed(old, new)) == set()


@pytest.mark.parametrize(
    ("raw", "rewrite", "code"),
    [
        (
            "The system does not generalize well to health data.",
            "The system transfers poorly to health data.",
            "",
        ),
        (
            "The system does not generalize well to health data.",
            "The system generalizes well to health data.",
            "negation_missing",
        ),
        (
            "We compare models with and without attention. The model with attention wins.",
            "With attention, the model wins over one that is compared.",
            "",
        ),
        (
            "Maps sometimes capture the real use of features, and sometimes do not.",
            "Maps sometimes capture the features' real use and sometimes do not.",
            "",
        ),
        (
            "The rule lends itself to gradients, thus bypassing the need for rewards.",
            "The rule suits gradients, so rewards are not needed.",
            "",
        ),
        ("In spite of noise the rule works for text.", "Despite noise, the rule works for text.", ""),
        (
            "The rule is supervised and works for text.",
            "The rule is unsupervised and works for text.",
            "negation_added",
        ),
        (
            "Detection is still feasible for people.",
            "For people, detection is not yet feasible.",
            "negation_added",
        ),
        (
            "In two cases it is not fulfilled: words A and B are not related in Twi.",
            "In two cases it is not fulfilled: words A and B are related in Twi.",
            "negation_missing",
        ),
        (
            "If tweets do not relate to a candidate nor make sense, annotators skip them.",
            "Annotators skip tweets that do not relate to a candidate or that do not make sense.",
            "",
        ),
        (
            "If tweets do not relate to a candidate nor make sense, annotators skip them.",
            "Annotators skip tweets that relate to a candidate or that do not make sense.",
            "negation_missing",
        ),
        (
            "A lack of data prevents researchers from engaging with the problem.",
            "A lack of data keeps researchers from engaging with the problem.",
            "",
        ),
        (
            "The dialogues not only cover one topic but span different ones.",
            "The dialogues do not cover only one topic but span different ones.",
            "",
        ),
        (
            "Metrics are non-differentiable functions of all decisions. We propose a differentiable relaxation.",
            "Metrics are differentiable functions of all decisions. A differentiable relaxation is proposed.",
            "negation_missing",
        ),
        (
            "Metrics are non-differentiable functions of all decisions. We propose a differentiable relaxation.",
            "A differentiable relaxation of metrics, non-differentiable functions of all decisions, is proposed.",
            "",
        ),
        (
            "Types are not modeled as exclusive, e.g., town and country are not exclusive.",
            "Types such as town and country are not exclusive.",
            "",
        ),
        (
            "Types are not modeled as exclusive, e.g., town and country are not exclusive.",
            "Types such as town and country are exclusive.",
            "negation_missing",
        ),
        (
            "The space grows fast. Thus, complete enumeration of the search space is impossible.",
            "The search space grows fast and cannot be enumerated completely.",
            "",
        ),
        (
            "It does not suffer from short output, but it is not able to match the best score.",
            "It no longer suffers from short output and matches the best score.",
            "negation_missing",
        ),
        (
            "These errors prevent the decoder from suffering from a frequent model error.",
            "These errors protect the decoder from a frequent model error.",
            "",
        ),
        ("* Do nothing. Codegen may get better.", "* Do nothing. Better codegen may come.", ""),
        ("Codegen may get better.", "* Do nothing. Codegen may get better.", "negation_added"),
        (
            "This may slightly simplify things in the current code.",
            "In the current code this may not simplify things.",
            "negation_added",
        ),
        (
            "This minimizes changes, but does not allow full chains of operators.",
            "It minimizes changes but rules out full chains of operators.",
            "",
        ),
        (
            "If this plan is not accepted, chained operators will be impossible to add.",
            "Rejecting this plan makes chained operators impossible to add.",
            "",
        ),
        (
            "We cannot speak of failing because of the ambiguity with task failure.",
            "Its ambiguity with a task means that we cannot speak of failing.",
            "",
        ),
        (
            "The data do not change it.Our model might not win the poll, and we do not know which one will.",
            "The data do not change it. The model might not win the poll; which one will is not known.",
            "",
        ),
    ],
)
def test_between_two_texts(raw: str, rewrite: str, code: str) -> None:
    """An empty code: it passes."""
    assert codes(rewrite, raw) == ({code} if code else set())


def test_high_costs_explain_what_is_not_done() -> None:
    raw = "Due to the high cost of pre-training the BERT model, we directly adopt parameters from Google."
    rewrite = "The BERT model is not pre-trained anew, owing to cost: parameters from Google are adopted."
    assert codes(rewrite, raw) == set()
    contrary = "The BERT model does not adopt parameters from Google, owing to the cost of pre-training."
    assert codes(contrary, raw) == {"negation_added"}


def test_an_added_failure_is_a_negation() -> None:
    raw = "The model will adapt to different masking strategies."
    assert codes("To different masking strategies the model adapts.", raw) == set()
    assert "negation_added" in codes("The model fails to adapt to different masking strategies.", raw)


def test_success_or_failure_means_both() -> None:
    raw = "Success or failure of the product depends on engineers who iterate quickly."
    assert codes("Success of the product depends on engineers who iterate quickly.", raw) == set()
    assert "negation_missing" in codes(
        "The product depends on engineers who iterate quickly.",
        "The failure of the product depends on engineers who iterate quickly.",
    )
