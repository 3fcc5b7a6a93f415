"""How numbers and names are worded."""

from __future__ import annotations

import pytest

from prime_pipeline.reports import published, wording
from prime_pipeline.reports.content import EXTRACTIVE, REPRESENTATIONS, Measured


@pytest.mark.parametrize(
    ("worded", "expected"),
    [
        (wording.score(0.20149), "0.201"),
        (wording.score(21.44), "21.4"),
        (wording.score(12_096.4), "12,096"),
        (wording.score(0.0), "0.000"),
        (wording.signed(0.012), "+0.0120"),
        (wording.signed(-0.012), "−0.0120"),
        (wording.signed(0.0), "0.0000"),
        (wording.signed(0.00001), "+1e−05"),
        (wording.percent(0.632), "63.2%"),
        (wording.signed_percent(-0.363), "−36.3%"),
        (wording.points(0.031), "+3.1 points"),
        (wording.points(-0.25), "−25.0 points"),
        (wording.points(0.0), "0.0 points"),
        (wording.queries_about(189, 50), "189 queries about 50 documents"),
        (wording.queries_about(1, 1), "1 query"),
        (wording.queries_about(9, None), "9 queries"),
        (wording.recommendation("full"), 'restructured text and its metadata (PRIME full, mode = "full")'),
        (wording.recommendation("something else"), "something else"),
        (wording.p_value(0.0004), "< 0.001"),
        (wording.p_value(0.036), "0.036"),
        (wording.amount("index_bytes", 9_400_000), "9.4 MB"),
        (wording.amount("index_bytes", 12), "12 B"),
        (wording.amount("index_bytes", -9_400_000), "−9.4 MB"),
        (wording.byte_size(1_073_741_824), "1.1 GB"),
        (wording.amount("vectors", 5_589), "5,589"),
        (wording.amount("money", 11.84), "11.84"),
    ],
)
def test_numbers(worded: str, expected: str) -> None:
    assert worded == expected


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        (416, 9_318, "22.4× less"),
        (300, 100, "3.0× more"),
        (100, 101, "1.010× less"),
        (7, 7, "the same"),
        (0, 7, "none"),
        (7, 0, "base: none"),
    ],
)
def test_ratios(value: float, base: float, expected: str) -> None:
    assert wording.ratio(value, base) == expected


def test_a_missing_interval_says_why() -> None:
    assert wording.interval(Measured(0.1, 0.05, 0.2), wording.score) == "[0.050, 0.200]"
    assert wording.interval(Measured(0.1, reason="one query"), wording.score) == "no interval: one query"
    assert wording.interval(Measured(0.1), wording.score) == "no interval: not computed"


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_extractive_text_is_never_called_sr(representation: str) -> None:
    label = wording.representation_label(representation, EXTRACTIVE)
    assert "SR" not in label
    assert label.endswith("(extractive)")


def test_names() -> None:
    assert wording.representation_label("sr-full-text", "gpt") == "SR full-text (gpt)"
    assert wording.representation_label("sr-full-text") == "restructured full-text"
    assert wording.representation_label("my own") == "my own"
    assert wording.pipeline_label("hybrid+rerank", "mine") == "hybrid + mine"
    assert wording.pipeline_label("hybrid+rerank") == "hybrid + reranker"
    assert [wording.measure_label(m) for m in ("ndcg@10", "r@5", "mrr", "other")] == [
        "NDCG@10",
        "R@5",
        "MRR",
        "other",
    ]


def test_published_numbers_agree_with_one_another() -> None:
    dense = {name: published.TABLE_2[name, "dense"].value for name in ("chunk-256", "prime-full")}
    assert dense["prime-full"] == pytest.approx(1.222 * (dense["chunk-256"] or 0), abs=0.0005)
    assert published.TABLE_4["prime-offline"].value == pytest.approx(0.374 * (1 - 0.195), abs=0.0005)
    assert published.ANSWERS["full-to-full"].value == pytest.approx(0.0842 * 1.137, abs=0.0001)
    assert published.BREAK_EVEN.value == pytest.approx(56_000 * 416 / 1_926, abs=1)


def test_every_published_number_has_its_place() -> None:
    tables = (published.TABLE_1, published.TABLE_3, published.TABLE_4, published.DENSITY, published.EVIDENCE)
    others = (published.ANSWERS, published.AUDIT, published.COSTS)
    numbers = [number for table in (*tables, *others) for number in table.values()]
    assert {number.place.split(",")[0] for number in (*numbers, *published.TABLE_2.values())} == {
        "§ 4.1",
        "§ 4.2",
        "Table 3",
    }
