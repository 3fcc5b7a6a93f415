"""What people see of an explanation and of warming, printed to a console of eighty columns."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from prime_pipeline.console.explaining import explanation_view, warmed_view
from prime_pipeline.records import CutShort, Finding, SectionHit
from prime_pipeline.reporting.explaining import Verdict
from prime_pipeline.retrieval.explanation import ArmPlace, Explanation, HitExplanation, QueryWord
from prime_pipeline.retrieval.warming import Warmed

HIT = SectionHit(
    rank=1,
    score=1.75,
    doc_id="food/bread.md",
    section_id="food/bread.md#2",
    title="Bread",
    heading_path=("Dough", "Rising"),
    text="## Rising\n\nLet it rest.\n",
    source_path="food/bread.md",
    start_line=3,
    end_line=5,
    stage1_rank=2,
    arm_ranks={"document_bm25": 1, "metadata_vector": 4},
    signals={"section_bm25": 9.25, "late_interaction": 0.5},
)
LET, REST, DRY = QueryWord("let", 40, 1.9), QueryWord("rest", 1, 4.9), QueryWord("dry", 3, 4.2)
NOWHERE = QueryWord("quark", 0, 5.6)
EXPLAINED = HitExplanation(
    hit=HIT,
    arms={"document_bm25": ArmPlace(1, 12.345), "section_bm25": None, "metadata_vector": ArmPlace(4, -0.25)},
    fused_score=0.03226,
    added={"section_bm25": 2.0, "late_interaction": -0.25},
    words=(REST, LET),
)
WORDS = (LET, REST, DRY, NOWHERE)
RAW = Verdict("raw", "the offline index serves every section as it was read")


def shown(view: Any, width: int = 80) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(view)
    return file.getvalue()


def panel(explained: HitExplanation = EXPLAINED, verdict: Verdict = RAW) -> list[str]:
    """The lines of a hit's panel, without its frame."""
    text = shown(explanation_view(Explanation("q", 119, WORDS, (explained,)), [verdict]))
    return [line.strip("│ \n") for line in text.splitlines() if line.startswith("│")]


def test_the_words_of_the_query_stand_first_the_rarest_on_top() -> None:
    lines = shown(explanation_view(Explanation("q", 119, WORDS), [])).splitlines()
    assert lines[0] == "Words of the query, as the lexical index finds them"
    assert [line.split()[:5] for line in lines[2:6]] == [
        ["quark", "0", "of", "119", "5.60"],
        ["rest", "1", "of", "119", "4.90"],
        ["dry", "3", "of", "119", "4.20"],
        ["let", "40", "of", "119", "1.90"],
    ]
    assert lines[2].rstrip().endswith("in no document")
    bars = [line.count("━") for line in lines[3:6]]
    assert bars == sorted(bars, reverse=True)
    assert lines[-1] == "nothing found"


def test_a_hit_shows_where_its_raw_text_stands() -> None:
    text = shown(explanation_view(Explanation("q", 119, WORDS, (EXPLAINED,)), [RAW]))
    assert "─ 1. Bread › Dough › Rising ─" in text
    assert panel()[0] == "food/bread.md:3-5"


def test_both_stages_stand_side_by_side_with_all_numbers() -> None:
    lines = [re.split(r"  +", line) for line in panel()]
    assert lines[2:7] == [
        ["stage 1: document", "rank", "score", "stage 2: section", "score", "share"],
        ["document BM25", "1", "12.345", "section BM25", "9.250", "+2.000"],
        ["section BM25", "–", "–", "late interaction", "0.500", "−0.250"],
        ["metadata vector", "4", "−0.250", "score", "+1.750"],
        ["fused", "2", "0.0323"],
    ]


def test_one_signal_alone_has_no_z_score() -> None:
    crossed = replace(HIT, score=-3.5, signals={"section_bm25": 9.25, "cross_encoder": -3.5})
    lines = panel(replace(EXPLAINED, hit=crossed, added={}))
    assert "share" not in " ".join(lines)
    assert lines[4].endswith("cross-encoder     −3.500")
    assert lines[5].endswith("score             −3.500")


def test_the_score_of_stage_1_is_named_where_it_is_added() -> None:
    hit = replace(HIT, score=2.0, signals={**HIT.signals, "stage1": 0.03226})
    lines = panel(replace(EXPLAINED, hit=hit, added={**EXPLAINED.added, "stage1": 0.25}))
    assert re.split(r"  +", lines[5])[3:] == ["fused (stage 1)", "0.032", "+0.250"]
    assert re.split(r"  +", lines[6])[3:] == ["score", "+2.000"]


def test_words_that_matched_are_told_from_those_that_did_not() -> None:
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in panel()[8:])
    assert facts["matched"] == "rest (1 document) · let (40)"
    assert facts["not in it"] == "dry (3 documents)"
    none = dict(re.split(r"  +", line, maxsplit=1) for line in panel(replace(EXPLAINED, words=()))[8:])
    assert none["matched"] == "no word of the query"
    assert none["not in it"] == "rest (1 document) · dry (3) · let (40)"
    assert "not in it" not in " ".join(panel(replace(EXPLAINED, words=(LET, REST, DRY))))


def test_a_verdict_comes_with_its_reason_and_findings() -> None:
    assert panel()[-1] == "verdict     raw: the offline index serves every section as it was read"
    findings = (Finding("number_missing", "12.5"), Finding("too_long", ""))
    lines = panel(verdict=Verdict("patched", "rewritten, with raw sentences appended", findings))
    assert lines[-3:] == [
        "verdict     patched: rewritten, with raw sentences appended",
        "• number missing: 12.5",
        "• too long",
    ]


def test_long_lists_are_cut_and_say_so() -> None:
    words = tuple(QueryWord(f"word{i}", i + 1, 5 - i / 10) for i in range(30))
    findings = tuple(Finding("number_missing", str(i)) for i in range(8))
    explained = replace(EXPLAINED, words=words[:20])
    text = shown(
        explanation_view(Explanation("q", 119, words, (explained,)), [Verdict("raw", "x", findings)])
    )
    assert "and 18 that are no rarer" in text
    assert re.search(r"matched .*word0 \(1 document\) · word1 \(2\)", text)
    assert "and 8 more" in text  # of the twenty words that matched
    assert "word20 (21 documents)" in text
    assert "• number missing: 4" in text
    assert "and 3 more, see prime diff" in text
    assert "number missing: 5" not in text


@pytest.mark.parametrize("n_words", [1, 40])
def test_nothing_is_wider_than_eighty_columns(n_words: int) -> None:
    words = tuple(QueryWord("w" * 90 + str(i), 99_999, 1.5) for i in range(n_words))
    hit = replace(
        HIT, source_path="a/" * 60, heading_path=("Heading " * 30,), score=-123_456.789, stage1_rank=99_999
    )
    arms = dict.fromkeys(EXPLAINED.arms, ArmPlace(99_999, 12_345.678))
    explained = replace(EXPLAINED, hit=hit, words=words, arms=arms)
    verdict = Verdict("patched", "because " * 30, (Finding("number_missing", "1" * 200),))
    lines = shown(explanation_view(Explanation("q", 123_456, words, (explained,)), [verdict])).splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(lines).count("a/") >= 60 - 2  # the path is whole, but for two halves at line ends
    assert "12,345.678" in "".join(lines)


def test_scoring_that_was_cut_short_is_told_with_the_remedy() -> None:
    cut = replace(EXPLAINED, hit=replace(HIT, cut_short=CutShort(12, 48, 500)))
    text = " ".join(shown(explanation_view(Explanation("q", 119, WORDS, (cut,)), [RAW]), width=200).split())
    assert text.endswith(
        "note: 12 of 48 sections were scored within 500 ms; prime warm fills the cache ahead"
    )


def test_neither_a_document_nor_a_query_can_steer_the_terminal() -> None:
    evil = "a\x1b]0;t\x07b\x9bc\u202ed [bold]x[/bold]"
    word = QueryWord(evil, 1, 2.0)
    hit = replace(HIT, title=evil, heading_path=(evil,), source_path=evil, doc_id=evil)
    explained = replace(EXPLAINED, hit=hit, words=(word,), added={})
    verdict = Verdict("raw", "x", (Finding(evil, evil),))
    view = explanation_view(Explanation("q", 119, (word, DRY), (explained,)), [verdict])
    text = shown(view, width=300)
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert text.count("a]0;tbcd [bold]x[/bold]") == 7


# --- warming ------------------------------------------------------------------------------------------------------

DONE = Warmed("late_interaction", 3_000, 1_000, 2_000, 60_000_000, 120_000_000)


def test_warming_tells_what_was_there_and_what_was_made() -> None:
    text = shown(warmed_view(DONE, 1 << 30))
    assert re.search(r"windows +3,000\n", re.sub(" +\n", "\n", text))
    assert re.search(r"there already +1,000 \(60\.0 MB\)", text)
    assert re.search(r"made +2,000 \(120\.0 MB\)", text)
    assert "left out" not in text


def test_what_was_left_out_is_told_with_the_setting_that_helps() -> None:
    text = " ".join(shown(warmed_view(replace(DONE, n_windows=6_000), 200_000_000), width=400).split())
    assert "3,000 were left out: the cache, limited to 200.0 MB, would have dropped others of them." in text
    assert "All take about 360.0 MB: set token_vector_cache_bytes = 450_000_000 or more." in text


@pytest.mark.parametrize("scorer", ["none", "cross_encoder"])
def test_nothing_to_do_is_said(scorer: Any) -> None:
    assert shown(warmed_view(Warmed(scorer), 1 << 30), width=200) == (
        f"Nothing to do: retrieval.scorer is {scorer}, and only late_interaction keeps token vectors.\n"
    )
