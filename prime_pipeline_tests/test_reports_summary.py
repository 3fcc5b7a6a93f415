"""The summary never claims more than the intervals allow."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.reports.content import EXTRACTIVE, Cell, Comparison, Contrast, Measured, ReportContent
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


def test_changes_are_listed_by_what_their_intervals_allow() -> None:
    def contrast(name: str, relative: Measured | None) -> Contrast:
        return Contrast(name, Measured(1.0), Measured(1.0), relative)

    rows = (
        contrast("mean IDF", Measured(0.2, 0.1, 0.3)),
        contrast("stop-word ratio", Measured(-0.3, -0.4, -0.2)),
        contrast("mrr", Measured(0.1, -0.1, 0.3)),
        contrast("map", Measured(0.9, reason="one document")),
        contrast("p@5", None),
    )
    assert sentences(replace(EMPTY, density=rows), "Text density") == [
        "Higher for the restructured text than for the raw: mean IDF +20.0% [+10.0%, +30.0%].",
        "Lower for the restructured text than for the raw: stop-word ratio −30.0% [−40.0%, −20.0%].",
        "No change from raw to restructured can be told: MRR +10.0% [−10.0%, +30.0%]; MAP +90.0% no interval: one document.",
    ]


# --- data, text, what is missing --------------------------------------------------------------------------------


def test_the_data_are_described() -> None:
    assert sentences(report_content(), "Data") == ["1,451 queries over 416 documents of qasper-test."]
    cells = tuple(Cell("a", "dense", f"r@{n}", Measured(0.1, n=n)) for n in (10, 20))
    assert sentences(replace(EMPTY, cells=cells), "Data") == [
        "10 to 20 queries of corpus, depending on the measure."
    ]
    assert sentences(replace(EMPTY, n_documents=1), "Data") == [
        "No queries were measured on corpus over 1 document."
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
        "2 of 107 cells could not be measured: no cross-encoder weights are in reach (2)."
    ]
    (nothing,) = sentences(EMPTY, "Missing")
    assert nothing.startswith("Nothing was measured for: Table 1. Shared pipeline; Table 2.")


@pytest.mark.parametrize("restructurer", [LLM, EXTRACTIVE])
def test_nothing_is_praised(restructurer: str) -> None:
    written = " ".join(str(s) for topic in summary(report_content(restructurer)).values() for s in topic)
    praise = r"\b(better|best|good|great|excellent|strong|robust|significant|impressive|improve\w*|superior|state.of)\b"
    assert not re.search(praise, written, re.IGNORECASE)
