"""What a report refuses, and its JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.errors import ReportError
from prime_pipeline.reports.content import (
    AnswerRow,
    AuditRow,
    BreakEven,
    Cell,
    Comparison,
    Contrast,
    Measured,
    Profile,
    Property,
    ReportContent,
    SystemCost,
    bare_numbers,
    check,
)
from prime_pipeline.reports.report_json import SCHEMA_VERSION, from_json, to_json
from prime_pipeline_tests.report_content import report_content

CELL = Cell("structure-chunks", "dense", "ndcg@5", Measured(0.2, 0.1, 0.3, 50))
EMPTY = ReportContent("Empty", "nothing", "today")


# --- records ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(0.1, None), (None, 0.1), (0.3, 0.1)])
def test_half_an_interval_or_one_turned_round_is_refused(low: float | None, high: float | None) -> None:
    with pytest.raises(ReportError, match=r"interval of 0\.2"):
        Measured(0.2, low, high)


@pytest.mark.parametrize(
    ("low", "high", "excludes"),
    [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.1, False), (0.0, 0.1, False), (None, None, False)],
)
def test_an_interval_that_touches_zero_does_not_exclude_it(
    low: float | None, high: float | None, excludes: bool
) -> None:
    assert Measured(0.1, low, high).excludes_zero is excludes


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused_by_name(number: float) -> None:
    spoilt = replace(CELL, result=Measured(number))
    with pytest.raises(
        ReportError, match=r"cells\[1\] \(cell document, structure-chunks, dense, r@5\).result.value is"
    ):
        check(replace(EMPTY, cells=(CELL, replace(spoilt, measure="r@5"))))


def test_a_number_deep_in_a_mapping_is_refused_by_name() -> None:
    with pytest.raises(ReportError, match=r"costs\[0\]\.amounts\['vectors'\] is nan"):
        check(replace(EMPTY, costs=(SystemCost("chunk-256", {"vectors": math.nan}),)))


def test_two_cells_of_one_key_are_refused_also_where_one_leaves_the_data_set_out() -> None:
    with pytest.raises(ReportError, match="structure-chunks, dense, ndcg@5 twice"):
        check(replace(EMPTY, cells=(CELL, replace(CELL, dataset="nothing"))))


def test_a_break_even_without_cost_per_query_is_none() -> None:
    assert BreakEven(100.0, 0.0).n_queries is None
    assert BreakEven(56_000 * 416, 1_926).n_queries == pytest.approx(12_096, abs=1)


def test_a_number_without_interval_and_without_reason_is_bare() -> None:
    whole, bare = Measured(0.2, 0.1, 0.3), Measured(0.2, n=50)
    content = replace(
        EMPTY,
        cells=(CELL, replace(CELL, result=bare), replace(CELL, result=None, reason="no weights")),
        density=(Contrast("mean IDF", whole, bare, relative=bare), Contrast("mean IDF", whole, whole)),
        answers=(AnswerRow("raw-to-raw", whole, evidence_f1=bare),),
        profile=Profile("saturated", "none", properties=(Property("code", bare),)),
        costs=(SystemCost("chunk-256", {"vectors": 7}),),
        break_even=BreakEven(1.0, 2.0),
    )
    assert bare_numbers(content) == [
        "report.cells[1].result",
        "report.density[0].restructured",
        "report.density[0].relative",
        "report.answers[0].evidence_f1",
        "report.profile.properties[0].result",
    ]


def test_a_reason_stands_in_the_place_of_an_interval() -> None:
    told = replace(CELL, result=Measured(0.2, reason="one query only"))
    assert bare_numbers(replace(EMPTY, cells=(told,))) == []
    assert bare_numbers(report_content()) == []


# --- JSON -------------------------------------------------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=12)
counts = st.none() | st.integers(0, 10**6)


@st.composite
def measured(draw: st.DrawFn) -> Measured:
    low, high = sorted(draw(st.tuples(numbers, numbers)))
    n, reason = draw(counts), draw(texts)
    return (
        Measured(draw(numbers), low, high, n)
        if draw(st.booleans())
        else Measured(draw(numbers), None, None, n, reason)
    )


mappings = st.dictionaries(texts, numbers, max_size=3)
words = st.dictionaries(texts, texts, max_size=3)
optional = st.none() | measured()
cells = st.builds(Cell, result=optional, per_query=mappings)
contrasts = st.builds(Contrast, raw=measured(), restructured=measured(), relative=optional, n_clusters=counts)
contents = st.builds(
    ReportContent,
    cells=st.lists(cells, max_size=3, unique_by=lambda cell: cell.key[1:]).map(tuple),
    costs=st.lists(st.builds(SystemCost, amounts=mappings), max_size=2).map(tuple),
    comparisons=st.lists(
        st.builds(
            Comparison,
            difference=measured(),
            relative=optional,
            p_value=st.none() | numbers,
            p_adjusted=st.none() | numbers,
            minimum_detectable_effect=st.none() | numbers,
            n_clusters=counts,
            n_family=counts,
        ),
        max_size=2,
    ).map(tuple),
    density=st.lists(contrasts, max_size=2).map(tuple),
    evidence=st.lists(contrasts, max_size=2).map(tuple),
    answers=st.lists(st.builds(AnswerRow, f1=measured()), max_size=2).map(tuple),
    audit=st.lists(st.builds(AuditRow, share=measured(), n_clusters=counts), max_size=2).map(tuple),
    break_even=st.none() | st.builds(BreakEven, numbers, numbers),
    profile=st.none()
    | st.builds(Profile, properties=st.lists(st.builds(Property, result=measured()), max_size=2).map(tuple)),
    settings=words,
    fingerprints=words,
    commands=words,
)


@given(contents)
def test_json_gives_back_what_it_was_given(content: ReportContent) -> None:
    assert from_json(to_json(content)) == content


def test_json_gives_back_a_whole_report_and_half_a_character() -> None:
    content = replace(report_content(), title="a \ud83d b")
    text = to_json(content)
    assert from_json(text) == content
    assert text.isascii()


def test_the_order_of_a_mapping_does_not_change_the_bytes() -> None:
    left, right = (
        replace(EMPTY, settings=dict(pairs)) for pairs in ([("a", "1"), ("b", "2")], [("b", "2"), ("a", "1")])
    )
    assert to_json(left) == to_json(right)


def test_json_refuses_nan() -> None:
    with pytest.raises(ReportError, match=r"result\.value is nan"):
        to_json(replace(EMPTY, cells=(replace(CELL, result=Measured(math.nan)),)))
    text = to_json(replace(EMPTY, cells=(CELL,))).replace("0.2", "NaN")
    with pytest.raises(ReportError, match=r"result\.value is nan"):
        from_json(text)


@pytest.mark.parametrize("text", ["", "[]", "{}", '"report"', "[" * 100_000])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ReportError, match=r"this is no report.*report\.json"):
        from_json(text)


def test_another_version_is_refused() -> None:
    with pytest.raises(ReportError, match=f"version 99, this program reads {SCHEMA_VERSION}"):
        from_json(to_json(EMPTY).replace(f'"schema_version": {SCHEMA_VERSION}', '"schema_version": 99'))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("title",), 5, "report.title cannot be '5'"),
        (("cells", 0, "level"), "chapter", r"report.cells\[0\].level cannot be 'chapter'"),
        (("cells", 0, "value"), "high", r"report.cells\[0\].result.value cannot be 'high'"),
        (("cells", 0, "value"), True, r"result.value cannot be 'True'"),
        (("cells", 0, "colour"), "red", r"report.cells\[0\].colour cannot be 'red'"),
        (("cells",), {}, "report.cells cannot be"),
        (("settings",), [], "report.settings cannot be"),
    ],
)
def test_an_edited_report_is_refused_with_the_place(
    path: tuple[str | int, ...], value: object, message: str
) -> None:
    payload = json.loads(to_json(replace(EMPTY, cells=(CELL,))))
    node = payload
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    with pytest.raises(ReportError, match=message):
        from_json(json.dumps(payload))


def test_a_report_from_before_clusters_were_named_can_be_read() -> None:
    payload = json.loads(to_json(report_content()))
    for rows, names in (
        ("comparisons", {"n_clusters", "n_family"}),
        ("density", {"n_clusters"}),
        ("audit", {"n_clusters"}),
    ):
        for row in payload[rows]:
            for name in names:
                assert row.pop(name) is None
    assert from_json(json.dumps(payload)) == report_content()


def test_a_cell_is_flat_and_holds_what_its_system_costs() -> None:
    costs = (
        SystemCost("structure-chunks", {"vectors": 7}),
        SystemCost("structure-chunks", {"query_ms": 5}, "dense"),
        SystemCost("structure-chunks", {"query_ms": 9}, "hybrid"),
        SystemCost("chunk-256", {"vectors": 99}),
    )
    missing = Cell("raptor-lite", "dense", "r@5", None, "not run")
    payload = json.loads(to_json(replace(EMPTY, cells=(CELL, missing), costs=costs)))
    measured_cell, unavailable = payload["cells"]
    assert {n: measured_cell[n] for n in ("representation", "pipeline", "measure", "status")} == {
        "representation": "structure-chunks",
        "pipeline": "dense",
        "measure": "ndcg@5",
        "status": "measured",
    }
    assert (measured_cell["value"], measured_cell["low"], measured_cell["n_queries"]) == (0.2, 0.1, 50)
    assert measured_cell["cost"] == {"vectors": 7, "query_ms": 5}
    assert (unavailable["status"], unavailable["reason"], unavailable["value"]) == (
        "unavailable",
        "not run",
        None,
    )


def test_a_record_without_a_required_field_is_refused() -> None:
    payload = json.loads(to_json(EMPTY))
    del payload["title"]
    with pytest.raises(ReportError, match=r"report is incomplete .*title"):
        from_json(json.dumps(payload))
