"""Studies: when they are made again, how they are merged and drawn, and what a report shows of their statistics."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.evaluation.statistics import Interval, Method, paired_difference
from prime_pipeline.reports.content import (
    AuditRow,
    BreakEven,
    Cell,
    Measured,
    Profile,
    ReportContent,
    bare_numbers,
    check,
)
from prime_pipeline.studies.findings import (
    MAX_DOCUMENTS,
    Findings,
    Row,
    comparisons,
    contrast,
    difference,
    drawn,
    few_clusters_note,
    made,
    measured,
    merged,
    part,
    read_study,
    sampling_note,
)
from prime_pipeline_tests.report_content import report_content

ROWS: Mapping[str, list[Row]] = {
    "first": [{"doc_id": "a \ud83d", "value": 0.1, "n": 3}, {"doc_id": "b", "value": None, "n": 0}],
    "second": [],
}
HEAD = ReportContent("Mine", "corpus", "Monday")


class Making:
    """Makes findings, and counts how often."""

    def __init__(self, findings: Findings) -> None:
        self.findings, self.n_made = findings, 0

    def __call__(self) -> Findings:
        self.n_made += 1
        return self.findings


# --- kept and made again ------------------------------------------------------------------------------------------


def test_a_study_comes_back_whole(tmp_path: Path) -> None:
    making = Making(Findings(report_content(), ROWS, {"encoded": 7}))
    path = tmp_path / "reports" / "text_density.json"
    first = made(path, {"corpus": "1"}, making)
    assert (first.name, first.changed, first.findings) == ("text_density", True, making.findings)
    second = made(path, {"corpus": "1"}, making)
    assert making.n_made == 1
    assert second == read_study(path)
    assert (second.name, second.changed) == ("text_density", False)
    assert second.fingerprint == first.fingerprint
    assert second.findings == replace(making.findings, counts={})  # nothing was encoded this time
    assert second.seconds == round(first.seconds, 3)


@pytest.mark.parametrize("other", [{"corpus": "2"}, {"corpus": 1}, {"corpus": "1", "n": None}, {}, []])
def test_other_determinants_make_another_study(tmp_path: Path, other: Any) -> None:
    path = tmp_path / "s.json"
    making = Making(Findings(part(notes=("old",)), ROWS))
    before = made(path, {"corpus": "1"}, making)
    making.findings = Findings(part(notes=("new",)))
    after = made(path, other, making)
    assert (after.changed, after.findings.content.notes) == (True, ("new",))
    assert after.fingerprint != before.fingerprint
    seconds = round(after.seconds, 3)
    assert made(path, other, making) == read_study(path) == replace(after, changed=False, seconds=seconds)
    assert making.n_made == 2


def test_the_order_of_determinants_does_not_matter(tmp_path: Path) -> None:
    making = Making(Findings())
    made(tmp_path / "s.json", {"a": 1, "b": [2, 3]}, making)
    assert not made(tmp_path / "s.json", {"b": [2, 3], "a": 1}, making).changed
    assert made(tmp_path / "s.json", {"b": [3, 2], "a": 1}, making).changed


def test_a_study_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    def failing() -> Findings:
        raise RuntimeError("no such model")

    path = tmp_path / "s.json"
    made(path, 1, Making(Findings(rows=ROWS)))
    written = path.read_bytes()
    with pytest.raises(RuntimeError, match="no such model"):
        made(path, 2, failing)
    assert path.read_bytes() == written


def test_there_is_no_study_before_it_is_made(tmp_path: Path) -> None:
    assert read_study(tmp_path / "s.json") is None


Damage = Callable[[dict[str, Any]], object]


def without(name: str) -> Damage:
    return lambda fields: fields.pop(name)


def with_others(name: str, *values: object) -> list[Damage]:
    return [lambda fields, value=value: fields.update({name: value}) for value in values]  # type: ignore[misc]


@pytest.mark.parametrize(
    "damage",
    [
        *map(without, ("fingerprint", "seconds", "content", "rows")),
        *with_others("content", None, [], "", {"schema_version": 99}),
        *with_others("rows", None, 3, [], {"first": 3}, {"first": None}, {"first": [1]}),
        *with_others("seconds", None, "soon", []),
        *with_others("fingerprint", 1),
    ],
)
def test_an_edited_study_is_made_again(tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "s.json"
    making = Making(Findings(report_content(), ROWS))
    made(path, 1, making)
    fields = json.loads(path.read_text())
    damage(fields)
    path.write_text(json.dumps(fields))
    assert made(path, 1, making).changed
    assert read_study(path) == made(path, 1, making)
    assert making.n_made == 2


@pytest.mark.parametrize("content", [b"", b"{", b"3", b'"x"', b"[1]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_study_is_made_again(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.json"
    making = Making(Findings(rows=ROWS))
    made(path, 1, making)
    path.write_bytes(content)
    assert read_study(path) is None
    assert made(path, 1, making).changed
    assert made(path, 1, making).findings.rows == ROWS


# --- one report of many parts -------------------------------------------------------------------------------------


def test_parts_are_joined_in_their_order() -> None:
    first, second = (
        part(
            cells=(Cell(name, "dense", "mrr", None),),
            audit=(AuditRow("A", name, Measured(0.5)),),
            notes=(name,),
        )
        for name in ("first", "second")
    )
    for parts in ([first, second], [second, first]):
        found = merged(HEAD, parts)
        names = [each.notes[0] for each in parts]
        assert [cell.representation for cell in found.cells] == names
        assert [row.dimension for row in found.audit] == names
        assert list(found.notes) == names


def test_what_is_said_twice_is_told_once_and_what_is_measured_twice_stays() -> None:
    row = AuditRow("A", "numbers", Measured(0.5))
    each = part(conventions=("ties", "means"), notes=("sampled",), audit=(row,))
    found = merged(
        replace(HEAD, notes=("own", "sampled")), [each, replace(each, conventions=("means", "new"))]
    )
    assert found.conventions == ("ties", "means", "new")
    assert found.notes == ("own", "sampled")
    assert found.audit == (row, row)


def test_of_what_there_is_once_the_first_that_has_it_decides() -> None:
    profile = Profile("saturated", "full text")
    parts = [
        part(known_item=True, restructurer="extractive", settings={"a": "first", "b": "first"}),
        part(n_documents=7, break_even=BreakEven(1.0, 2.0), restructurer="llm", settings={"b": "second"}),
        part(n_documents=8, break_even=BreakEven(3.0, 4.0), profile=profile, title="Part", created="Friday"),
    ]
    found = merged(HEAD, parts)
    assert (found.title, found.dataset, found.created) == ("Mine", "corpus", "Monday")
    assert (found.known_item, found.n_documents, found.restructurer) == (True, 7, "extractive")
    assert (found.break_even, found.profile) == (BreakEven(1.0, 2.0), profile)
    assert found.settings == {"a": "first", "b": "first"}
    assert merged(replace(HEAD, settings={"a": "head"}), parts).settings == {"a": "head", "b": "first"}
    assert merged(replace(HEAD, n_documents=9), parts).n_documents == 9


def test_only_the_head_says_when_a_report_was_made() -> None:
    assert merged(replace(HEAD, created=""), [part(created="Friday")]).created == ""


def test_a_report_of_no_parts_is_its_head() -> None:
    assert merged(HEAD, []) == merged(HEAD, [part(), part()]) == HEAD


def test_a_whole_report_outlives_being_a_part() -> None:
    whole = report_content()
    assert (
        merged(replace(HEAD, title=whole.title, dataset=whole.dataset, created=whole.created), [whole])
        == whole
    )


# --- documents drawn ----------------------------------------------------------------------------------------------

IDS = st.sets(st.text(max_size=4), max_size=12)


@given(IDS, st.integers(0, 12), st.text(max_size=4))
def test_a_document_that_comes_or_goes_changes_the_draw_by_one_at_most(
    ids: set[str], n: int, new: str
) -> None:
    without_it, with_it = drawn(ids - {new}, n), drawn(ids | {new}, n)
    assert len(without_it - with_it) <= 1
    assert with_it - without_it <= {new}
    assert len(without_it) == min(n, len(ids - {new}))


@given(IDS, st.integers(0, 12), st.integers(0, 12))
def test_a_smaller_draw_is_part_of_a_larger_one(ids: set[str], n: int, more: int) -> None:
    assert drawn(ids, n) <= drawn(sorted(ids, reverse=True), n + more) <= ids


def test_a_draw_is_the_same_on_every_machine() -> None:
    assert drawn("abcdefgh", 3) == {"c", "e", "f"}
    assert drawn(["\ud83d"]) == {"\ud83d"}


def test_so_many_documents_are_drawn_and_no_more() -> None:
    ids = [f"d{at}" for at in range(MAX_DOCUMENTS + 1)]
    assert drawn(ids[:-1]) == frozenset(ids[:-1])
    assert len(drawn(ids)) == MAX_DOCUMENTS


def test_a_sample_is_told() -> None:
    assert sampling_note("Costs", 500) == ("Costs: 500 of the documents, drawn by hashes of their ids.",)


@pytest.mark.parametrize(
    ("n_documents", "is_told"), [(0, False), (1, False), (2, True), (19, True), (20, False)]
)
def test_few_documents_are_told(n_documents: int, is_told: bool) -> None:
    told = f"Retrieval: from {n_documents} documents only, so that the intervals are narrower than they should be."
    assert few_clusters_note("Retrieval", n_documents) == ((told,) if is_told else ())


# --- what a report shows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("bca", ""),
        ("percentile", ""),
        ("wilson", ""),
        ("single", "one query or document only, which says nothing about others"),
        ("unbounded", "the base is zero in some resample"),
    ],
)
def test_an_interval_is_shown_with_its_bounds_or_with_the_reason_why_there_are_none(
    method: Method, reason: str
) -> None:
    low, high = (None, None) if reason else (0.1, 0.3)
    assert measured(Interval(0.2, low, high, 9, 4, method)) == Measured(0.2, low, high, 9, reason)


def test_a_difference_is_left_minus_right() -> None:
    found = difference(paired_difference({"a": 0.5, "b": 0.75}, {"a": 0.25, "b": 0.5}))
    assert found == Measured(0.25, 0.25, 0.25, 2)


def test_comparisons_name_what_was_resampled_and_the_size_of_their_family() -> None:
    values = {
        name: {"q1": value, "q2": 0.5, "q3": 0.25} for name, value in (("a", 0.1), ("b", 0.2), ("c", 0.3))
    }
    pairs = [("a", "b"), ("a", "c")]
    found = comparisons("family", "mrr", pairs, values, {"q1": "d", "q2": "d", "q3": "e"})
    assert [(c.left, c.right, c.n_clusters, c.n_family) for c in found] == [
        ("a", "b", 2, 2),
        ("a", "c", 2, 2),
    ]
    assert comparisons("family", "mrr", pairs[:1], values, None)[0].n_clusters == 3


def test_a_contrast_names_what_was_resampled() -> None:
    values = {"q1": 0.2, "q2": 0.4}
    assert contrast("mrr", values, values, {"q1": "d", "q2": "d"}).n_clusters == 1
    assert contrast("mrr", values, values).n_clusters == 2


def test_a_contrast_worked_by_hand() -> None:
    # Every value grows by a half, so that resampling cannot change the ratio.
    found = contrast("mrr", {"a": 0.25, "b": 0.5}, {"a": 0.375, "b": 0.75}, question_type="boolean")
    assert (found.measure, found.question_type) == ("mrr", "boolean")
    assert found.raw == Measured(0.375, 0.25, 0.5, 2)
    assert found.restructured == Measured(0.5625, 0.375, 0.75, 2)
    assert found.relative == Measured(0.5, 0.5, 0.5, 2)


def test_one_document_has_a_reason_in_the_place_of_an_interval() -> None:
    raw, restructured = {"q1": 0.2, "q2": 0.4}, {"q1": 0.3, "q2": 0.3}
    found = contrast("mrr", raw, restructured, {"q1": "d", "q2": "d"})
    assert found.relative is not None
    for shown in (found.raw, found.restructured, found.relative):
        assert (shown.low, shown.high, shown.n) == (None, None, 2)
        assert "says nothing about others" in shown.reason
    content = part(evidence=(found,))
    check(content)
    assert bare_numbers(content) == []
    assert contrast("mrr", raw, restructured, {"q1": "d", "q2": "e"}).raw.low == pytest.approx(0.2)


def test_a_base_of_zero_has_no_relative_change() -> None:
    found = contrast("mrr", {"a": 0.0, "b": 0.0}, {"a": 0.5, "b": 0.0})
    assert (found.raw, found.relative) == (Measured(0.0, 0.0, 0.0, 2), None)
    check(part(evidence=(found,)))


def test_a_base_that_may_be_zero_has_a_relative_change_without_an_interval() -> None:
    found = contrast("mrr", {"a": 0.0, "b": 0.5}, {"a": 0.5, "b": 0.5})
    assert found.relative == Measured(1.0, None, None, 2, "the base is zero in some resample")
    assert found.raw.low == 0.0
