"""The summary never claims more than the intervals allow."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.reports.content import (
    EXTRACTIVE,
    AnswerRow,
    AuditRow,
    Cell,
    Comparison,
    Contrast,
    Measured,
    Profile,
    ReportContent,
)
from prime_pipeline.reports.summary import MAX_COMPARISONS, comparison_sentence, summary
from prime_pipeline_tests.report_content import LLM, report_content

EMPTY = ReportContent("Empty", "corpus", "today")
HIGHER = Comparison(
    "family",
    "ndcg@5",
    "dense",
    "prime-offline",
    "chunk-256",
    Measured(0.021, 0.009, 0.033, 300),
    Measured(0.12, 0.05, 0.19),
    0.001,
    0.004,
    0.017,
)


def sentences(content: ReportContent, topic: str) -> list[str]:
    return [str(sentence) for sentence in summary(content).get(topic, ())]


# --- differences ------------------------------------------------------------------------------------------------


def test_a_difference_is_stated_with_interval_p_and_number_of_queries() -> None:
    assert str(comparison_sentence(HIGHER)) == (
        "PRIME offline is higher than chunk-256 by 0.0210, or +12.0%, in NDCG@5, dense. (difference +0.0210; 95% interval "
        "+0.0090 to +0.0330; adjusted p = 0.004; 300 queries)"
    )


def test_a_negative_difference_is_lower() -> None:
    lower = replace(HIGHER, difference=Measured(-0.02, -0.03, -0.01, 1), relative=None, level="section")
    assert (
        comparison_sentence(lower).claim
        == "PRIME offline is lower than chunk-256 by 0.0200 in NDCG@5 of sections, dense."
    )
    assert "1 query" in comparison_sentence(lower).evidence


def test_an_interval_that_spans_zero_tells_no_difference_and_what_would_have_been_seen() -> None:
    spans = replace(HIGHER, difference=Measured(0.004, -0.011, 0.019, 300), p_adjusted=0.6)
    assert str(comparison_sentence(spans)) == (
        "No difference between PRIME offline and chunk-256 can be told in NDCG@5, dense. (difference +0.0040; 95% interval "
        "−0.0110 to +0.0190; adjusted p = 0.600; MDE 0.0170; 300 queries)"
    )


def test_a_small_p_cannot_overrule_the_interval() -> None:
    spans = replace(HIGHER, difference=Measured(0.004, 0.0, 0.019), p_adjusted=0.0001)
    assert comparison_sentence(spans).claim.startswith("No difference")


def test_an_interval_cannot_overrule_the_adjusted_p() -> None:
    sentence = comparison_sentence(replace(HIGHER, p_adjusted=0.05))
    assert sentence.claim.startswith("No difference")
    assert "the p-value adjusted for the family is too large" in sentence.claim


def test_without_an_interval_nothing_is_claimed() -> None:
    sentence = comparison_sentence(replace(HIGHER, difference=Measured(0.4, reason="one query")))
    assert sentence.claim.endswith("Without an interval nothing is claimed.")
    assert "no interval: one query" in sentence.evidence


def test_an_unadjusted_p_is_called_so() -> None:
    assert "p not adjusted" in comparison_sentence(replace(HIGHER, p_adjusted=None)).evidence


bounds = st.floats(-1, 1)


@given(bounds, bounds, st.none() | st.floats(0, 1))
def test_higher_and_lower_are_said_only_where_the_interval_excludes_zero(
    first: float, second: float, p_adjusted: float | None
) -> None:
    low, high = sorted((first, second))
    comparison = replace(HIGHER, difference=Measured((low + high) / 2, low, high), p_adjusted=p_adjusted)
    claim = comparison_sentence(comparison).claim
    claims = bool(re.search(r"\b(higher|lower)\b", claim))
    assert claims == ((low > 0 or high < 0) and (p_adjusted is None or p_adjusted < 0.05))
    assert not claims or ("higher" in claim) == (low > 0)


def test_only_the_first_comparisons_have_sentences_of_their_own() -> None:
    many = tuple(replace(HIGHER, measure=f"ndcg@{k}") for k in range(1, MAX_COMPARISONS + 4))
    elsewhere = replace(HIGHER, dataset="bright/pony", p_adjusted=0.9)
    found = sentences(replace(EMPTY, comparisons=(elsewhere, *many)), "Retrieval")
    assert len(found) == MAX_COMPARISONS + 1
    assert found[-1].startswith("Of 4 further comparisons, in 3 the two can be told apart")


def test_the_documents_that_queries_are_about_are_told() -> None:
    evidence = comparison_sentence(replace(HIGHER, n_clusters=50)).evidence
    assert evidence.endswith("; 300 queries about 50 documents")
    assert comparison_sentence(replace(HIGHER, n_clusters=300)).evidence.endswith("; 300 queries")


@pytest.mark.parametrize(("n_clusters", "is_told"), [(19, True), (20, False)])
def test_few_documents_make_an_interval_too_narrow_and_the_sentence_says_so(
    n_clusters: int, is_told: bool
) -> None:
    evidence = comparison_sentence(replace(HIGHER, n_clusters=n_clusters)).evidence
    assert evidence.endswith("documents, so few that the interval is too narrow") is is_told


# Signs of 7 documents give no p below 2 / 2**7 = 1/64, and three times that is 0.047; four times that is 0.063.


def untold(n_clusters: int, n_family: int) -> Comparison:
    difference = Measured(0.4, 0.3, 0.5, 30)
    return replace(HIGHER, difference=difference, p_adjusted=0.2, n_clusters=n_clusters, n_family=n_family)


@pytest.mark.parametrize(("n_family", "has_effect"), [(3, True), (4, False)])
def test_an_effect_is_called_detectable_only_where_some_difference_could_have_been_told(
    n_family: int, has_effect: bool
) -> None:
    evidence = comparison_sentence(untold(7, n_family)).evidence
    assert ("MDE 0.0170" in evidence) is has_effect
    assert evidence.endswith("too few to tell any difference in a family of 4 comparisons") is not has_effect


def test_a_family_that_could_tell_nothing_is_called_so_before_its_comparisons() -> None:
    found = sentences(replace(EMPTY, comparisons=(untold(7, 4),) * 4), "Retrieval")
    assert found[0] == (
        "With 7 documents and a family of 4 comparisons no difference could have been told apart, however large. (the least "
        "that an adjusted p could have been is 0.062)"
    )
    assert len(found) == 5
    assert "MDE" not in " ".join(found)


def test_queries_that_stand_for_themselves_may_be_too_few_as_well() -> None:
    five = replace(untold(5, 1), difference=Measured(0.4, 0.3, 0.5, 5))
    first, *_ = sentences(replace(EMPTY, comparisons=(five,)), "Retrieval")
    assert first.startswith("With 5 queries and one comparison no difference could have been told apart")


def test_what_a_detectable_effect_leaves_out_is_told() -> None:
    told = sentences(replace(EMPTY, comparisons=(untold(7, 3),)), "Retrieval")[-1]
    assert told == (
        "Where no difference can be told, one below the minimum detectable effect (MDE) would often go unseen; the adjustment "
        "for the family asks for a larger one still."
    )


# --- changes from raw to restructured text ----------------------------------------------------------------------


def contrast(name: str, relative: Measured | None, n: int = 40, n_clusters: int | None = None) -> Contrast:
    return Contrast(name, Measured(1.0, n=n), Measured(1.0, n=n), relative, n_clusters=n_clusters)


MORE = Measured(0.2, 0.1, 0.3)
LESS = Measured(-0.3, -0.4, -0.2)
ALONE = "95% bootstrap intervals, each for one change alone"


def test_changes_are_listed_by_what_their_intervals_allow() -> None:
    rows = (
        contrast("mean IDF", MORE),
        contrast("stop-word ratio", LESS),
        contrast("mrr", Measured(0.1, -0.1, 0.3)),
        contrast("map", Measured(0.9, reason="one document")),
        contrast("p@5", None),
    )
    rest = f" (40 documents; {ALONE}; not adjusted for the 4 measures)"
    assert sentences(replace(EMPTY, density=rows), "Text density") == [
        f"Higher for the restructured text than for the raw: mean IDF +20.0% [+10.0%, +30.0%].{rest}",
        f"Lower for the restructured text than for the raw: stop-word ratio −30.0% [−40.0%, −20.0%].{rest}",
        f"No change from raw to restructured can be told: MRR +10.0% [−10.0%, +30.0%]; MAP +90.0% no interval: one document.{rest}",
    ]


def test_one_measure_needs_no_adjustment() -> None:
    (found,) = sentences(replace(EMPTY, density=(contrast("mean IDF", MORE),)), "Text density")
    assert found.endswith(f"(40 documents; {ALONE})")


def test_measures_over_other_numbers_of_queries_name_the_least_and_the_most() -> None:
    rows = (contrast("mrr", MORE, 40, 30), contrast("map", MORE, 44, 26), contrast("p@5", MORE, 42, 28))
    (found,) = sentences(replace(EMPTY, evidence=rows), "Evidence")
    assert "(40 queries about 30 documents to 44 queries about 26 documents; " in found


@pytest.mark.parametrize(
    ("n_clusters", "claim", "told"),
    [
        (5, "No change", "5 documents, so few that the intervals are too narrow and no change could be told"),
        (6, "Higher", "6 documents, so few that the intervals are too narrow"),
        (20, "Higher", "20 documents"),
    ],
)
def test_few_documents_are_told_where_the_change_is_claimed_and_very_few_claim_none(
    n_clusters: int, claim: str, told: str
) -> None:
    # A sign-flip test of 5 documents gives no p below 2 / 2**5 = 0.0625.
    row = contrast("mrr", MORE, 44, n_clusters)
    (found,) = sentences(replace(EMPTY, evidence=(row,)), "Evidence")
    assert found.startswith(claim)
    assert found.endswith(f"(44 queries about {told}; {ALONE})")


def test_two_protocols_of_a_measure_are_told_from_each_other() -> None:
    carried = replace(contrast("ndcg@5", MORE, 44, 26), follows_paper=False)
    papers = replace(contrast("ndcg@5", LESS, 23, 20), question_type="evidence in both texts")
    assert sentences(replace(EMPTY, evidence=(carried, papers)), "Evidence") == [
        (
            "Higher for the restructured text than for the raw, by the evidence of the raw text, carried over: NDCG@5 +20.0% "
            f"[+10.0%, +30.0%]. (44 queries about 26 documents; {ALONE})"
        ),
        (
            "Lower for the restructured text than for the raw, by the paper's protocol (evidence in both texts): NDCG@5 −30.0% "
            f"[−40.0%, −20.0%]. (23 queries about 20 documents; {ALONE})"
        ),
    ]


def test_types_of_questions_are_left_to_the_table() -> None:
    rows = (contrast("mrr", MORE), replace(contrast("mrr", LESS), question_type="boolean"))
    assert len(sentences(replace(EMPTY, evidence=rows), "Evidence")) == 1


# --- shares and means -------------------------------------------------------------------------------------------


def test_shares_are_told_with_what_they_are_of() -> None:
    rows = (
        AuditRow("B", "numbers", Measured(0.5, 0.4, 0.6, 90), 30),
        AuditRow("B", "acronyms", Measured(1.0, 0.9, 1.0, 70), 25),
    )
    (found,) = sentences(replace(EMPTY, audit=rows), "Fidelity")
    assert found == (
        "Facts: numbers 50.0% of 90 [40.0%, 60.0%]; acronyms 100.0% of 70 [90.0%, 100.0%]. (95% intervals, each for one share "
        "alone; items in 25 to 30 documents)"
    )


@pytest.mark.parametrize(
    ("share", "n_clusters", "is_told"), [(0.5, 4, True), (1.0, 4, False), (0.5, 90, False)]
)
def test_intervals_of_shares_are_called_too_narrow_where_few_documents_were_resampled(
    share: float, n_clusters: int, is_told: bool
) -> None:
    row = AuditRow("B", "numbers", Measured(share, 0.4, 1.0, 90), n_clusters)
    (found,) = sentences(replace(EMPTY, audit=(row,)), "Fidelity")
    assert ("too narrow" in found) is is_told


def test_answers_are_told_with_the_number_of_questions() -> None:
    rows = (
        AnswerRow("raw-to-raw", Measured(0.1, 0.05, 0.2, 30)),
        AnswerRow("full-to-full", Measured(0.2, n=31)),
    )
    first, _ = sentences(replace(EMPTY, answers=rows), "Answers")
    assert first.endswith("(30 to 31 questions; 95% bootstrap intervals, each for one mean alone)")


@pytest.mark.parametrize(
    ("regime", "mode", "told"),
    [
        (
            "saturated",
            "full text",
            'point to this regime: saturated. Recommended: full text rather than metadata (retrieval.arms without "metadata_vector").',
        ),
        (
            "structure-exploiting",
            "metadata",
            'point to this regime: structure-exploiting. Recommended: metadata (PRIME offline, mode = "offline").',
        ),
        (
            "inconclusive",
            "none",
            "are inconclusive. Recommended: nothing yet; measure metadata and full text with queries of your own.",
        ),
    ],
)
def test_a_recommendation_names_the_setting(regime: str, mode: str, told: str) -> None:
    assert sentences(replace(EMPTY, profile=Profile(regime, mode)), "Corpus") == [
        f"Properties measured before retrieval {told}"
    ]


# --- data, text, what is missing --------------------------------------------------------------------------------


def test_the_data_are_described() -> None:
    assert sentences(report_content(), "Data") == ["416 documents; 1,451 queries from “qasper-test”."]
    cells = tuple(Cell("a", "dense", f"r@{n}", Measured(0.1, n=n)) for n in (10, 20))
    assert sentences(replace(EMPTY, cells=cells), "Data") == [
        "10 to 20 queries from “corpus”, depending on the measure."
    ]
    assert sentences(replace(EMPTY, n_documents=1), "Data") == [
        "1 document; no queries were measured on “corpus”."
    ]


def test_known_item_queries_are_called_so() -> None:
    assert "known-item" not in " ".join(sentences(EMPTY, "Data"))
    assert "known-item" in " ".join(sentences(replace(EMPTY, known_item=True), "Data"))


def test_extractive_text_is_called_so_and_never_sr() -> None:
    written = [str(sentence) for topic in summary(report_content(EXTRACTIVE)).values() for sentence in topic]
    assert any(
        "extractive: rules cut it, and no language model took part" in sentence for sentence in written
    )
    assert not re.search(r"\bSR\b", " ".join(written))
    assert sentences(report_content(), "Text") == [f"Semantic restructuring (SR) was done by {LLM}."]
    assert sentences(EMPTY, "Text") == ["No restructured text was measured."]


def test_what_is_missing_is_counted_and_named() -> None:
    assert sentences(report_content(), "Missing") == [
        "2 of 113 cells could not be measured: no cross-encoder weights are in reach (2)."
    ]
    (nothing,) = sentences(EMPTY, "Missing")
    assert nothing.startswith("Nothing was measured for: Table 1. Shared pipeline; Table 2.")


@pytest.mark.parametrize("restructurer", [LLM, EXTRACTIVE])
def test_nothing_is_praised(restructurer: str) -> None:
    written = " ".join(str(s) for topic in summary(report_content(restructurer)).values() for s in topic)
    praise = r"\b(better|best|good|great|excellent|strong|robust|significant|impressive|improve\w*|superior|state.of)\b"
    assert not re.search(praise, written, re.IGNORECASE)
