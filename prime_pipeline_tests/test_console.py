"""What people see, printed to a console of a hundred columns."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from prime_pipeline.console.parts import (
    counts_table,
    cut_short_notes,
    excerpt,
    hits_view,
    measures_table,
    message,
    messages,
    progress_on,
    source_of,
)
from prime_pipeline.console.restructuring import diff_view, estimate_view
from prime_pipeline.errors import DocumentError
from prime_pipeline.evaluation.statistics import Interval
from prime_pipeline.llm.budget import Prices
from prime_pipeline.progress import silent
from prime_pipeline.records import CutShort, DocumentOutcome, Finding, SectionHit, SectionOutcome, Spending
from prime_pipeline.refresh.pricing import Quote
from prime_pipeline.refresh.sampling import Sample, SampledSection
from prime_pipeline.restructuring.estimate import DocumentEstimate, Estimate
from prime_pipeline_tests.documents import make_document

HIT = SectionHit(
    rank=1,
    score=1.23456,
    doc_id="food/bread.md",
    section_id="bread#1",
    title="Bread",
    heading_path=("Dough", "Rising"),
    text="## Rising\n\nLet it rest.\n",
    source_path="food/bread.md",
    start_line=3,
    end_line=5,
    stage1_rank=1,
    arm_ranks={"document_bm25": 1, "metadata_vector": 4},
    signals={},
)


def shown(*views: Any, styled: bool = False, width: int = 100) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=styled, color_system="standard" if styled else None
    )
    for view in views:
        console.print(view)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_a_hit_shows_where_it_stands_and_what_found_it() -> None:
    text = shown(hits_view([HIT, replace(HIT, rank=2, title="Other")]))
    assert "1. Bread › Dough › Rising" in text
    assert "2. Other › Dough › Rising" in text
    assert "Let it rest." in text
    assert "food/bread.md:3-5   score 1.235   found by document_bm25 #1, metadata_vector #4" in text


def interval(value: float) -> Interval:
    return Interval(value, value - 0.1, value + 0.1, 9, 9, "bca")


MARKUP = "[bold]x[/bold] [/] [link=file:///x]y[/link] :smile: [red"


def test_what_looks_like_markup_is_shown_literally() -> None:
    hit = replace(HIT, title=MARKUP, heading_path=(MARKUP[:8],), text=MARKUP, source_path="[i]a.md")
    text = shown(hits_view([hit]))
    assert text.count("[bold]x[/bold] [/] [link=file:///x]y[/link]") == 2
    assert ":smile: [red" in text
    assert "[i]a.md:3-5" in text


@pytest.mark.parametrize(
    "table",
    [
        lambda: counts_table(MARKUP, {"a": 1}),
        lambda: counts_table("t", {MARKUP: 1}),
        lambda: counts_table("t", {"a": MARKUP}),
        lambda: measures_table(MARKUP, {"bm25": {"mrr": interval(0.5)}}, ("mrr",)),
        lambda: measures_table("t", {MARKUP: {"mrr": interval(0.5)}}, ("mrr",)),
    ],
)
def test_tables_show_markup_literally(table: Callable[[], Any]) -> None:
    assert MARKUP in shown(table())


def test_a_document_cannot_steer_the_terminal() -> None:
    evil = "a\x1b]0;title\x07b\x1b[2Jc\x9bd\x08e"
    text = shown(hits_view([replace(HIT, title=evil, text=f"{evil}\n\tkept", source_path=evil)]))
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\x08"}
    assert text.count("a]0;titleb[2Jcde") == 3
    assert "kept" in text


@pytest.mark.parametrize(
    ("lines", "expected"), [((3, 5), "food/bread.md:3-5"), ((None, None), "food/bread.md")]
)
def test_sources_have_lines_where_the_format_has(lines: tuple[int | None, int | None], expected: str) -> None:
    assert source_of(replace(HIT, start_line=lines[0], end_line=lines[1])) == expected


def test_sources_that_hold_several_documents_name_the_document() -> None:
    hit = replace(HIT, doc_id="1909.00694", source_path="papers.json", start_line=None, end_line=None)
    assert source_of(hit) == "papers.json (1909.00694)"


@pytest.mark.parametrize(
    ("scorer", "remedy"), [("late_interaction", "; prime warm fills the cache ahead"), ("cross_encoder", "")]
)
def test_hits_of_scoring_that_was_cut_short_say_how_far_it_came(scorer: str, remedy: str) -> None:
    hit = replace(HIT, signals={scorer: 1.0}, cut_short=CutShort(1_012, 4_800, 1_500))
    (note,) = cut_short_notes([hit, hit])
    assert note.plain == f"note: 1,012 of 4,800 sections were scored within 1,500 ms{remedy}"
    assert list(cut_short_notes([HIT])) == list(cut_short_notes([])) == []


def test_long_lists_say_how_much_is_left_out() -> None:
    lines = [line.plain for line in messages("failed:", [f"{i}.md: broken" for i in range(1_023)])]
    assert lines[0] == "failed: 0.md: broken"
    assert lines[-1] == "failed: and 1,003 more, see --json or the Dagster UI"
    assert len(lines) == 21


def test_a_message_stays_on_its_line_and_keeps_its_direction() -> None:
    assert message("failed:", "a\nerror: forged \u202egpj.exe").plain == "failed: a error: forged gpj.exe"


def test_a_short_excerpt_is_the_text_without_blank_lines() -> None:
    assert excerpt("## A  \n\n\n  b\n \nc\n") == "## A\n  b\nc"
    assert excerpt("") == ""
    assert excerpt("x" * 420) == "x" * 420


def test_a_long_excerpt_ends_between_words() -> None:
    text = excerpt("word " * 200)
    assert text == ("word " * 84).rstrip() + " …"
    assert excerpt("line\n" * 200).endswith("line …")


def test_a_long_excerpt_without_blanks_near_its_end_is_cut_there() -> None:
    assert excerpt("short " + "面" * 900) == "short " + "面" * 414 + " …"


def test_counts_have_thousands_separated() -> None:
    text = shown(counts_table("Refresh", {"documents": 12345, "embedder": "mini", "corpus": None}))
    assert "Refresh" in text
    assert "12,345" in text
    assert "mini" in text


SYSTEMS = {
    "bm25": {"ndcg@5": interval(0.5), "mrr": interval(0.75)},
    "mine": {"ndcg@5": interval(0.625), "mrr": Interval(0.25, None, None, 9, 1, "single")},
}


def test_measures_stand_by_system_with_the_best_in_bold() -> None:
    text = shown(measures_table("Quality", SYSTEMS, ("ndcg@5", "mrr")))
    assert "NDCG@5" in text
    row = next(line for line in text.splitlines() if "BM25 over documents" in line)
    assert "0.500" in row
    assert "0.750" in row
    assert "[0.400, 0.600] │ [0.650, 0.850]" in text
    assert text.count("[") == 3  # what has no interval shows none
    styled = shown(measures_table("Quality", SYSTEMS, ("ndcg@5", "mrr")), styled=True)
    bold = re.findall(r"\x1b\[1m *([\d.]+)\x1b\[0m", styled)
    assert bold == ["0.750", "0.625"]


def test_no_systems_make_an_empty_table() -> None:
    assert "NDCG@5" in shown(measures_table("Quality", {}, ("ndcg@5",)))


def progress_shown(*reports: tuple[str, int, int | None]) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    with progress_on(console, enabled=True) as listener:
        for report in reports:
            listener(*report)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_progress_ends_with_what_was_done_of_all() -> None:
    text = progress_shown(("lexical index", 1, 4), ("lexical index", 4, 4))
    assert "lexical index" in text
    assert "4/4" in text


def test_an_activity_of_unknown_length_is_complete_at_the_end() -> None:
    text = progress_shown(("scan", 1, None), ("scan", 7, None), ("[bold]odd", 1, 1))
    assert "7/7" in text
    assert "[bold]odd" in text


def test_a_total_may_become_known_and_change() -> None:
    text = progress_shown(("scan", 1, None), ("scan", 2, 3), ("scan", 5, 5))
    assert "5/5" in text


def test_an_error_passes_through_the_progress() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)

    def interrupted() -> None:
        with progress_on(console, enabled=True) as listener:
            listener("scan", 1, None)
            raise LookupError

    with pytest.raises(LookupError):
        interrupted()


def test_progress_that_is_off_is_silent() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    with progress_on(console, enabled=False) as listener:
        assert listener is silent
    file = console.file
    assert isinstance(file, io.StringIO)
    assert file.getvalue() == ""


# --- what restructuring did -------------------------------------------------------------------------------------


DOCUMENT = make_document(
    "bread", "Mixing: Well, mix the flour.", "Resting: You see, rest. Not dry!", "Baking: Bake."
)
OUTCOME = DocumentOutcome(
    "bread",
    (
        SectionOutcome(1, "accepted", "Mix the flour."),
        SectionOutcome(
            2, "patched", "Rest. Not dry!", (Finding("negation_missing", "“not”"),), ("Not dry!",)
        ),
        SectionOutcome(3, "raw", None, (Finding("too_long", ""),), refused="Bake hot."),
    ),
)


def test_changes_stand_side_by_side_where_there_is_room() -> None:
    lines = shown(diff_view(DOCUMENT, OUTCOME, 1)).splitlines()
    assert lines[0].startswith("╭─ 1. Mixing  accepted ─")
    (row,) = [line for line in lines if "mix-]" in line]
    assert re.search(r"\[-Well, mix-\] the flour\. +\{\+Mix\+\} the flour\.", row)


def test_changes_stand_one_under_the_other_where_there_is_not() -> None:
    lines = shown(diff_view(DOCUMENT, OUTCOME, 1), width=99).splitlines()
    raw, new = ([n for n, line in enumerate(lines) if word in line] for word in ("[-Well", "{+Mix"))
    assert len(raw) == len(new) == 1
    assert raw < new


def test_changes_are_told_apart_by_style() -> None:
    text = shown(diff_view(DOCUMENT, OUTCOME, None), styled=True)
    assert "\x1b[9;31mWell, mix\x1b[0m" in text  # struck through, red
    assert "\x1b[4;32mMix\x1b[0m" in text  # underlined, green
    assert "\x1b[1;33mNot dry!\x1b[0m" in text  # bold, yellow
    assert not {"[-", "{+"} & {text[n : n + 2] for n in range(len(text)) if text[n - 1] != "\x1b"}


def test_all_sections_come_with_reasons_refusals_and_a_sum() -> None:
    text = shown(diff_view(DOCUMENT, OUTCOME, None))
    assert re.findall(r"╭─ (.*?) ─", text) == ["1. Mixing  accepted", "2. Resting  patched", "3. Baking  raw"]
    assert "• negation missing: “not”" in text
    assert re.search("• too long +│", text)
    assert "{++Not dry!++}" in text
    assert "refused, never served" in text
    assert "{+hot+}" in text
    assert text.splitlines()[-1] == "Title: 10 → 7 words, 30% saved; sections: 1 accepted, 1 patched, 1 raw"


def test_one_section_is_shown_with_the_sum_of_all() -> None:
    text = shown(diff_view(DOCUMENT, OUTCOME, 3))
    assert "Mixing" not in text
    assert text.splitlines()[-1].startswith("Title: 10 → 7 words")


def test_a_section_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(DocumentError, match=r"^bread\.md: there is no section 7: choose one of 1, 2, 3$"):
        diff_view(DOCUMENT, OUTCOME, 7)


def test_neither_a_document_nor_a_model_can_steer_the_terminal() -> None:
    evil = f"a\x1b]0;t\x07b\x9bc\u202ed {MARKUP}"
    document = make_document("evil", f"One: {evil}", f"Two: {evil}", title=evil)
    first, second = document.sections
    document = replace(document, sections=(replace(first, heading_path=(evil,)), second))
    findings = (Finding("evil\x1b", evil),)
    outcome = DocumentOutcome(
        "evil",
        (
            SectionOutcome(1, "patched", f"new {evil}", findings, (evil,)),
            SectionOutcome(2, "raw", None, findings, refused=f"{evil} more"),
        ),
    )
    text = shown(diff_view(document, outcome, None), width=400)
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert text.count(f"a]0;tbcd {MARKUP}") == 9


DOCUMENTS = tuple(DocumentEstimate(f"d{n:02}.md", 4, 1, 1, 2, 900 - n, 300) for n in range(25))
PRICES = Prices(1.0, 2.0, "EUR")


def quote(sample: Sample | None = None, prices: Prices | None = PRICES) -> Quote:
    return Quote("llm:m/full-1", Estimate(DOCUMENTS, seconds_per_call=2.0), sample, prices, 4)


def test_an_estimate_shows_totals_and_the_largest_documents() -> None:
    text = shown(estimate_view(quote()))
    assert "calls to pay" in text
    assert "25 (33%)" in text
    assert "22,200" in text  # 25 x (900 - n)
    assert "0.0372 EUR" in text  # 22,200 x 1 + 7,500 x 2, per million
    assert "25 s" in text  # 50 calls of 2 s, 4 at once
    assert text.index("d00.md") < text.index("d19.md")
    assert "d20.md" not in text
    assert "and 5 more" in text


def test_an_estimate_without_a_price_or_a_model_says_so() -> None:
    assert "no price set" in shown(estimate_view(quote(prices=None)))
    assert "costs nothing" in shown(estimate_view(Quote("extractive-1", None, None, None, 1)))


def test_a_sample_corrects_the_estimate_and_shows_its_verdicts() -> None:
    document = make_document("a", "Head: text", title="Title")
    spent = Spending(calls=2, prompt_tokens=400, completion_tokens=150)
    finding = Finding("number_missing", "12.5")
    outcome = SectionOutcome(1, "repaired", "x", (finding,), spending=spent)
    sampled = Sample((SampledSection(document, document.sections[0], outcome, 200, 100),))
    corrected = quote(sampled)
    assert (corrected.prompt_tokens, corrected.completion_tokens) == (44_400, 11_250)
    text = shown(estimate_view(corrected))
    assert "44,400" in text
    assert "Title › Head" in text
    assert "repaired" in text
    assert "number_missing" in text
