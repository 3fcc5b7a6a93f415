"""Cells of the experiment over three documents, and the comparisons that are declared of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import log2
from typing import Any

import pytest

from prime_pipeline.baselines.pooled_vectors import PooledVectors
from prime_pipeline.baselines.representations import CONTROLS as CONTROL_NAMES
from prime_pipeline.baselines.representations import RECIPES
from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.evaluation.measures import CONVENTIONS
from prime_pipeline.records import Query
from prime_pipeline.refresh.evaluation import MEASURES
from prime_pipeline.reports import content as reports
from prime_pipeline.reports.content import (
    EXTRACTIVE,
    Cell,
    Comparison,
    Measured,
    ReportContent,
    SystemCost,
    bare_numbers,
    check,
)
from prime_pipeline.retrieval.options import Arm, RetrievalOptions
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.studies.experiment import (
    BASELINES,
    COMPARED,
    CONTROLS,
    PIPELINES,
    RERANKED,
    CellName,
    CellPlace,
    Embedded,
    Pipeline,
    amounts,
    cell_findings,
    comparison_findings,
    pipeline_options,
    unavailable,
)
from prime_pipeline.studies.findings import Findings
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import WordTokenizer

SCORER = "late interaction of hashing"

# --- pipelines ----------------------------------------------------------------------------------------------------

CHOSEN = RetrievalOptions(
    arms=("section_bm25",),
    arm_depth=7,
    rrf_k=9,
    n_candidates=3,
    scorer="late_interaction",
    rerank_budget=5,
    windows_per_section=2,
    top_k=1,
    section_text="raw",
)
HYBRID: tuple[Arm, ...] = ("document_bm25", "metadata_vector")


@pytest.mark.parametrize(
    ("pipeline", "expected"),
    [
        ("dense", RetrievalOptions(arms=("metadata_vector",), arm_depth=7, scorer="none")),
        ("hybrid", RetrievalOptions(arms=HYBRID, arm_depth=7, rrf_k=9, scorer="none")),
        (
            "hybrid-sections",
            RetrievalOptions(
                arms=("document_bm25", "section_bm25", "metadata_vector"),
                arm_depth=7,
                rrf_k=9,
                scorer="none",
            ),
        ),
        ("hybrid+rerank", replace(CHOSEN, arms=HYBRID, top_k=5)),
    ],
)
def test_a_pipeline_has_the_options_that_change_its_rankings(
    pipeline: Pipeline, expected: RetrievalOptions
) -> None:
    assert pipeline_options(pipeline, CHOSEN) == expected


def test_windows_are_cut_for_late_interaction_only() -> None:
    by_cross_encoder = replace(CHOSEN, scorer="cross_encoder")
    assert pipeline_options(RERANKED, CHOSEN).windows_per_section == 2
    assert pipeline_options(RERANKED, by_cross_encoder) == replace(
        by_cross_encoder, arms=HYBRID, top_k=5, windows_per_section=4
    )


def test_pipelines_have_their_place_in_the_report() -> None:
    assert set(PIPELINES) < set(reports.PIPELINES)
    assert RERANKED in PIPELINES


# --- cells --------------------------------------------------------------------------------------------------------

DOCUMENTS = [
    make_document("a", "Dough: Knead the dough of the bread.", title="Baking"),
    make_document("b", "Engines: An engine burns the fuel.", title="Cars"),
    make_document("c", "Stars: A star shines.", title="Sky"),
]
# The vectors are about other things than the documents: what is found by them is not found by words.
UNITS = [("a", "engine fuel"), ("b", "star"), ("b", "engine"), ("c", "dough")]
QUERIES = QuerySet(
    "mine",
    (Query("q1", "engine fuel"), Query("q2", "?!"), Query("q3", "engine fuel")),
    {"q1": {"b": 1}, "q2": {"b": 1}, "q3": {"b": 1}},
    known_item=False,
    types={"q1": "easy", "q2": "hard", "q3": "easy"},
    excluded={"q3": frozenset({"a", "gone"})},
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("bench"))
    bench.publish(*DOCUMENTS)
    return bench


@pytest.fixture
def retriever(bench: Bench) -> Iterator[Retriever]:
    with bench.retriever() as retriever:
        yield retriever


@pytest.fixture
def embedded(bench: Bench) -> Embedded:
    vectors = bench.embedder.encode([text for _, text in UNITS])
    return Embedded(PooledVectors([doc_id for doc_id, _ in UNITS], vectors), {"vectors": 4})


def place(pipeline: Pipeline, representation: str = "structure-chunks") -> CellPlace:
    return CellPlace(representation, pipeline, reranker=SCORER)


def checked(findings: Findings) -> ReportContent:
    check(findings.content)
    assert bare_numbers(findings.content) == []
    return findings.content


def values(found: ReportContent, measure: str = "mrr") -> Mapping[str, float]:
    (cell,) = [c for c in found.cells if c.measure == measure and not c.question_type]
    return cell.per_query


@pytest.mark.parametrize(
    ("pipeline", "of_q1"),
    [
        # By vectors a is before b; BM25 over documents knows b only, and fusion makes 1/61 + 1/62 of that against 1/61.
        ("dense", 1 / 2),
        ("hybrid", 1.0),
        ("hybrid-sections", 1.0),
        ("hybrid+rerank", 1.0),
    ],
)
def test_a_cell_ranks_by_the_representation_s_own_vectors(
    embedded: Embedded, retriever: Retriever, pipeline: Pipeline, of_q1: float
) -> None:
    found = checked(cell_findings(place(pipeline), embedded, retriever, QUERIES))
    # A query without a word finds nothing, and what the third excludes has left its ranking.
    assert values(found) == {"q1": of_q1, "q2": 0.0, "q3": 1.0}


def test_a_cell_has_every_measure_with_its_interval(embedded: Embedded, retriever: Retriever) -> None:
    found = checked(cell_findings(place("dense"), embedded, retriever, QUERIES))
    measured: list[object] = [(c.measure, c.result.value, c.result.n) for c in found.cells if c.result]
    assert measured == [
        ("ndcg@5", pytest.approx((1 / log2(3) + 1) / 3), 3),
        ("ndcg@10", pytest.approx((1 / log2(3) + 1) / 3), 3),
        ("p@5", pytest.approx(2 / 5 / 3), 3),
        ("r@5", pytest.approx(2 / 3), 3),
        ("mrr", pytest.approx(1.5 / 3), 3),
        ("map", pytest.approx(1.5 / 3), 3),
    ]
    assert [cell.measure for cell in found.cells] == list(MEASURES)
    for cell in found.cells:
        assert (cell.representation, cell.pipeline, cell.restructurer, cell.reranker) == (
            *("structure-chunks", "dense"),
            *("", ""),
        )
        assert cell.result is not None
        assert cell.result.low is not None
        assert cell.result.low <= cell.result.value
    assert (found.known_item, found.conventions) == (False, CONVENTIONS)


def test_questions_of_a_document_are_resampled_together(embedded: Embedded, retriever: Retriever) -> None:
    nested = replace(QUERIES, known_item=True)
    found = checked(cell_findings(place("dense"), embedded, retriever, nested))
    assert found.known_item
    assert {cell.result.reason for cell in found.cells if cell.result} == {
        "one query or document only, which says nothing about others"
    }


def test_only_reranked_representations_are_broken_down_by_type_of_question(
    embedded: Embedded, retriever: Retriever
) -> None:
    def types(of: CellPlace) -> list[tuple[str, str, float]]:
        found = checked(cell_findings(of, embedded, retriever, QUERIES))
        return [
            (c.question_type, c.measure, c.result.value) for c in found.cells if c.question_type and c.result
        ]

    assert types(place("hybrid+rerank")) == [("easy", COMPARED, 1.0), ("hard", COMPARED, 0.0)]
    assert types(place("hybrid")) == []
    assert types(place("hybrid+rerank", "control-identity")) == []


def test_a_cell_says_who_restructured_and_what_reranked(embedded: Embedded, retriever: Retriever) -> None:
    of = CellPlace("prime-full", "hybrid+rerank", EXTRACTIVE, SCORER)
    found = checked(cell_findings(of, embedded, retriever, QUERIES))
    assert {(c.restructurer, c.reranker) for c in found.cells} == {(EXTRACTIVE, SCORER)}
    assert {cost.restructurer for cost in found.costs} == {EXTRACTIVE}
    assert replace(of, pipeline="hybrid").bare == Cell(
        "prime-full", "hybrid", "", None, restructurer=EXTRACTIVE
    )


def test_a_cell_costs_what_its_vectors_cost_and_the_time_of_its_queries(
    embedded: Embedded, retriever: Retriever
) -> None:
    found = checked(cell_findings(place("hybrid+rerank"), embedded, retriever, QUERIES))
    of_vectors, of_queries = found.costs
    assert of_vectors == SystemCost("structure-chunks", {"vectors": 4})
    assert replace(of_queries, amounts={}) == SystemCost(
        "structure-chunks", {}, pipeline="hybrid+rerank", reranker=SCORER
    )
    assert list(of_queries.amounts) == ["query_ms"]
    assert of_queries.amounts["query_ms"] >= 0


def test_every_query_is_told(embedded: Embedded, retriever: Retriever) -> None:
    told: list[tuple[str, int, int | None]] = []
    cell_findings(
        place("dense"), embedded, retriever, QUERIES, lambda what, n, of: told.append((what, n, of))
    )
    assert told == [("structure-chunks, dense", n, 3) for n in (1, 2, 3)]


UNUSED: list[tuple[Pipeline, dict[str, Any]]] = [
    ("dense", {"rrf_k": 1}),
    *(("dense", {name: 1}) for name in ("n_candidates", "rerank_budget", "windows_per_section", "top_k")),
    *(("hybrid-sections", {name: 1}) for name in ("n_candidates", "rerank_budget", "top_k")),
    ("hybrid", {"section_text": "raw"}),
    ("hybrid", {"scorer": "none"}),
    ("hybrid", {"arms": ("section_bm25",)}),
    ("hybrid+rerank", {"top_k": 1}),
    ("hybrid+rerank", {"arms": ("section_bm25",)}),
]


@pytest.mark.parametrize(("pipeline", "changed"), UNUSED)
def test_an_option_that_is_left_out_changes_no_ranking(
    retriever: Retriever, pipeline: Pipeline, changed: dict[str, Any]
) -> None:
    usual, other = retriever.options, replace(retriever.options, **changed)
    options = pipeline_options(pipeline, usual)
    assert pipeline_options(pipeline, other) == options
    as_chosen = replace(other, arms=options.arms, scorer=options.scorer)
    for query in ("engine fuel", "the star of bread"):
        assert retriever.rank(query, as_chosen).documents == retriever.rank(query, options).documents


def test_an_unavailable_cell_says_why_in_every_measure() -> None:
    found = checked(
        unavailable(CellPlace("bge-m3-chunk-256", "hybrid+rerank", reranker=SCORER), "no weights")
    )
    assert [(c.measure, c.status, c.reason, c.reranker) for c in found.cells] == [
        (measure, "unavailable", "no weights", SCORER) for measure in MEASURES
    ]
    assert found.costs == ()


def test_amounts_count_what_is_embedded_and_what_is_stored() -> None:
    texts = ["one two", "one two three four five six"]
    counted = {
        "embedded_tokens_text": 8,
        "embedded_tokens_read": 6,  # a window of four
        "vectors": 2,
        "index_bytes": 1000 + 2 * 16 * 4,
    }
    assert amounts(texts, WordTokenizer(4), 16, 1000, 1.256) == {**counted, "build_seconds": 1.26}


# --- comparisons --------------------------------------------------------------------------------------------------

IDS = tuple(f"q{at}" for at in range(6))
SIX = QuerySet("six", tuple(Query(q, q) for q in IDS), {q: {"d": 1} for q in IDS}, known_item=False)
NO_GAIN = dict.fromkeys(IDS, 0.0)
HALF = NO_GAIN | dict.fromkeys(IDS[:3], 0.125)
ALL = dict.fromkeys(IDS, 0.125)


def compared(
    cells: Mapping[CellName, Mapping[str, float]], queries: QuerySet = SIX
) -> tuple[Comparison, ...]:
    return checked(comparison_findings(cells, EXTRACTIVE, SCORER, queries)).comparisons


def names(found: tuple[Comparison, ...]) -> list[tuple[str, str, str, str]]:
    return [(c.family, c.pipeline, c.left, c.right) for c in found]


def test_the_families_are_declared_whatever_the_values() -> None:
    every: dict[CellName, Mapping[str, float]] = {
        (name, pipeline): ALL for name in RECIPES for pipeline in PIPELINES
    }
    others = [name for name in RECIPES if name not in {*BASELINES, *CONTROL_NAMES}]
    assert len(others) == 9
    found = compared(every)
    assert names(found) == [
        *(
            ("representations", pipeline, left, right)
            for pipeline in PIPELINES
            for left, right in (
                ("full-text", "chunk-256"),
                ("structure-chunks", "chunk-256"),
                *((name, "chunk-256") for name in others[1:]),
                *((name, "structure-chunks") for name in others),
            )
        ),
        *(
            ("controls", pipeline, left, right)
            for pipeline in PIPELINES
            for left, right in (
                ("control-identity", "prime-offline"),
                ("control-random-terms", "prime-offline"),
                ("control-shuffled", "prime-full"),
            )
        ),
    ]
    assert {(c.measure, c.level, c.difference.value, c.p_adjusted) for c in found} == {
        (COMPARED, "document", 0.0, 1.0)
    }
    assert compared(dict(reversed(every.items()))) == found


def test_comparisons_worked_by_hand() -> None:
    found = compared(
        {("chunk-256", "dense"): NO_GAIN, ("structure-chunks", "dense"): HALF, ("default", "dense"): ALL}
    )
    # Six gains of one sign: 2 of 64 patterns of signs are as extreme. Three gains: 2 of 8.
    assert [(c.left, c.right, c.difference.value, c.p_value) for c in found] == [
        ("structure-chunks", "chunk-256", 0.0625, 2 / 8),
        ("default", "chunk-256", 0.125, 2 / 64),
        ("default", "structure-chunks", 0.0625, 2 / 8),
    ]
    # Holm: the least times 3, the next times 2, and the last not below that.
    assert [c.p_adjusted for c in found] == [2 * 2 / 8, 3 * 2 / 64, 2 * 2 / 8]
    assert [c.relative for c in found] == [
        None,
        None,
        Measured(1.0, None, None, 6, "the base is zero in some resample"),
    ]
    assert (found[0].minimum_detectable_effect or 0) > 0


def test_all_pipelines_are_adjusted_together_and_controls_apart() -> None:
    cells: dict[CellName, Mapping[str, float]] = {
        **{("chunk-256", pipeline): NO_GAIN for pipeline in ("dense", "hybrid")},
        **{("prime-offline", pipeline): ALL for pipeline in ("dense", "hybrid")},
        ("control-random-terms", "dense"): NO_GAIN,
    }
    found = compared(cells)
    assert [(c.family, c.pipeline, c.difference.value, c.p_adjusted) for c in found] == [
        ("representations", "dense", 0.125, 2 * 2 / 64),
        ("representations", "hybrid", 0.125, 2 * 2 / 64),
        ("controls", "dense", -0.125, 2 / 64),
    ]


def test_only_what_was_restructured_or_reranked_is_said_to_be() -> None:
    of = ("chunk-256", "prime-offline", "prime-full", "control-shuffled", "control-identity")
    found = compared({(name, pipeline): ALL for name in of for pipeline in ("hybrid", "hybrid+rerank")})
    for comparison in found:
        is_rewritten = not {"prime-full", "control-shuffled"}.isdisjoint({comparison.left, comparison.right})
        assert comparison.restructurer == (EXTRACTIVE if is_rewritten else "")
        assert comparison.reranker == (SCORER if comparison.pipeline == "hybrid+rerank" else "")
    assert len(found) == 8


def test_controls_are_searched_beside_the_same_text_as_what_they_control() -> None:
    assert {control for control, _ in CONTROLS} == set(CONTROL_NAMES)
    assert all(RECIPES[control].text == RECIPES[name].text for control, name in CONTROLS)


@pytest.mark.parametrize("cells", [{}, {("default", "dense"): ALL}, {("control-shuffled", "dense"): ALL}])
def test_a_side_that_is_missing_is_not_compared(cells: Mapping[CellName, Mapping[str, float]]) -> None:
    assert compared(cells) == ()


def test_few_documents_are_told() -> None:
    nested = replace(SIX, known_item=True, qrels={q: {f"d{q > 'q2'}": 1} for q in IDS})
    cells = {("chunk-256", "dense"): NO_GAIN, ("default", "dense"): ALL}
    found = checked(comparison_findings(cells, "", SCORER, nested))
    assert found.notes == (
        "Comparisons: from 2 documents only, so that the intervals are narrower than they should be.",
    )
    assert found.comparisons[0].p_value == 2 / 4  # the signs of a document's questions change together
    assert checked(comparison_findings(cells, "", SCORER, SIX)).notes == ()
