"""Costs of two small documents, counted in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prime_pipeline.evaluation.cost import PAPER_RERANKING_TOKENS
from prime_pipeline.reports.content import ReportContent, check
from prime_pipeline.reports.tables import report_tables
from prime_pipeline.reports.wording import COSTS
from prime_pipeline.studies.costs import COST_CONVENTIONS, BuildCost, cost_findings
from prime_pipeline.studies.findings import merged
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import WordTokenizer

# In words, "##" being one: sections of 5, 3 and 4, documents of 8 and 4.
DOCUMENTS = (
    make_document("a", "Bread: one two three\n", "Ovens: four\n"),
    make_document("b", "Stars: five six\n"),
)
LITERAL = ("Baking one", "Sky one two three four five")
OFFLINE = BuildCost(["Baking", "Sky a b c d e f"], lexical_bytes=1_000, section_runs={}, section_texts={})
FULL = BuildCost(
    ["Baking", "Sky a b"],
    lexical_bytes=700,
    section_runs={},
    section_texts={},
    llm_tokens=19_260,
    money=0.25,
    restructurer="gpt",
)
TOKENIZER = WordTokenizer(window=4)
Amounts = dict[tuple[str, str], dict[str, float]]


def content(*builds: BuildCost, is_whole: bool = True) -> ReportContent:
    found = cost_findings(DOCUMENTS, LITERAL, builds, TOKENIZER, 8, is_whole=is_whole).content
    check(found)
    return found


def amounts(found: ReportContent) -> Amounts:
    """Representation and restructurer to costs."""
    return {(cost.representation, cost.restructurer): dict(cost.amounts) for cost in found.costs}


def counts(texts: int, read: int, vectors: int, lexical_bytes: int) -> dict[str, float]:
    return {
        "embedded_tokens_text": texts,
        "embedded_tokens_read": read,
        "vectors": vectors,
        "index_bytes": lexical_bytes + vectors * 8 * 4,
    }


def test_costs_worked_by_hand() -> None:
    found = content(OFFLINE, FULL)
    assert amounts(found) == {
        ("structure-chunks", ""): counts(5 + 3 + 4, 4 + 3 + 4, 3, 1_000),
        ("full-text", ""): counts(8 + 4, 4 + 4, 2, 1_000),
        ("prime-offline", ""): counts(2 + 6, 2 + 4, 2, 1_000),
        ("default", ""): counts(1 + 7, 1 + 4, 2, 1_000),
        ("default", "gpt"): {**counts(1 + 3, 1 + 3, 2, 700), "llm_tokens": 19_260, "money": 0.25},
    }
    assert len({cost.key for cost in found.costs}) == 5
    assert found.conventions == COST_CONVENTIONS


def test_every_cost_has_its_words() -> None:
    read = replace(FULL, section_runs={"q": ["a#1"]}, section_texts={"a#1": "one two"})
    named = {name for cost in content(OFFLINE, read).costs for name in cost.amounts}
    assert named < COSTS.keys()
    assert "query_read_tokens" in named


def test_structure_chunks_are_the_base_of_the_ratios() -> None:
    whole = merged(ReportContent("Mine", "corpus", "Monday"), [content(OFFLINE)])
    (table,) = [table for table in report_tables(whole) if table.id == "cost"]
    beside = {row[0].text: dict(zip(table.columns, row, strict=True))["vectors"].detail for row in table.rows}
    assert beside == {
        "structure-chunks": "",
        **dict.fromkeys(("full-text", "PRIME offline", "default"), "1.5× less"),
        "PRIME offline, published": "§ 4.1",
    }


def test_a_preamble_without_text_is_no_chunk() -> None:
    document = DOCUMENTS[1]
    (section,) = document.sections
    titled = replace(
        document, sections=(replace(section, ordinal=0, kind="preamble", body_start=99), section)
    )
    found = cost_findings([titled], [], [], TOKENIZER, 8, is_whole=True).content
    assert amounts(found)["structure-chunks", ""]["vectors"] == 1
    assert amounts(found)["full-text", ""]["embedded_tokens_text"] == 8


def test_what_is_known_of_the_whole_corpus_is_not_told_of_a_sample() -> None:
    whole, sample = (amounts(content(OFFLINE, FULL, is_whole=is_whole)) for is_whole in (True, False))
    of_the_whole = {"index_bytes", "llm_tokens", "money"}
    for name, costs in whole.items():
        assert sample[name] == {cost: amount for cost, amount in costs.items() if cost not in of_the_whole}


def test_before_anything_is_published_only_vectors_take_room() -> None:
    found = amounts(content())
    assert list(found) == [("structure-chunks", ""), ("full-text", ""), ("prime-offline", "")]
    assert [costs["index_bytes"] for costs in found.values()] == [3 * 32, 2 * 32, 2 * 32]


# --- what a query reads -------------------------------------------------------------------------------------------

TEXTS = {"a#1": "one two three", "a#2": "four", "b#1": "five six"}


def read_tokens(build: BuildCost) -> float | None:
    return amounts(content(build))["default", ""].get("query_read_tokens")


def test_a_query_reads_its_best_sections() -> None:
    runs = {"q1": ["a#1", "b#1"], "q2": ["a#2", "b#1"], "q3": []}
    assert (
        read_tokens(replace(OFFLINE, section_runs=runs, section_texts=TEXTS)) == 3
    )  # (5 + 3 + 0) / 3, rounded


def test_the_sixth_section_is_not_read() -> None:
    runs = {"q1": ["a#1", "a#2", "a#1", "b#1", "a#2", "gone#1"]}
    assert read_tokens(replace(OFFLINE, section_runs=runs, section_texts=TEXTS)) == 3 + 1 + 3 + 2 + 1


@pytest.mark.parametrize("runs", [{}, {"q1": []}, {"q1": ["a#1"], "q2": ["gone#1"]}])
def test_what_a_query_reads_is_left_out_where_it_is_not_known(runs: dict[str, list[str]]) -> None:
    assert read_tokens(replace(OFFLINE, section_runs=runs, section_texts=TEXTS)) is None


# --- what restructuring cost --------------------------------------------------------------------------------------


def test_break_even_is_told_where_a_language_model_was_paid() -> None:
    found = content(OFFLINE, FULL).break_even
    assert found is not None
    assert (found.restructuring_tokens, found.reranking_tokens_per_query) == (19_260, PAPER_RERANKING_TOKENS)
    assert found.n_queries == pytest.approx(10)


def test_restructuring_by_rules_costs_nothing_and_never_breaks_even() -> None:
    found = content(OFFLINE, replace(FULL, llm_tokens=0, money=0.0, restructurer="extractive"))
    assert found.break_even is None
    extractive = amounts(found)["default", "extractive"]
    assert (extractive["llm_tokens"], extractive["money"]) == (0, 0.0)
    assert content(OFFLINE).break_even is None


def test_money_that_is_not_known_is_not_nothing() -> None:
    found = amounts(content(OFFLINE, replace(FULL, money=None)))
    assert "money" not in found["default", "gpt"]
    assert "llm_tokens" in found["default", "gpt"]
    assert {"llm_tokens", "money"}.isdisjoint(found["default", ""])
