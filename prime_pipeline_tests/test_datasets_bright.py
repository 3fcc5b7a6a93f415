"""BRIGHT's queries: gold and excluded documents of both forms, and faults with file and row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.datasets.bright import bright_query
from prime_pipeline.datasets.queries import load_query_set
from prime_pipeline.datasets.reading import RecordError
from prime_pipeline.errors import EvaluationError
from prime_pipeline.records import Query
from prime_pipeline_tests.tables import write_bright


def example(query_id: str = "0", **fields: Any) -> dict[str, Any]:
    """A row as it is published: every column is there."""
    return {
        "query": "Why do moths fly to light?",
        "reasoning": "Because.",
        "id": query_id,
        "excluded_ids": ["N/A"],
        "gold_ids_long": ["insects/Phototaxis.txt"],
        "gold_ids": ["insects/Phototaxis_0.txt", "insects/Phototaxis_3.txt"],
        "gold_answer": "They do not.",
        **fields,
    }


EXAMPLES = [example(), example("1", query="How?", gold_ids=["a"], excluded_ids=["b", "c", "b"])]


def test_the_examples_of_a_task_are_its_queries(tmp_path: Path) -> None:
    found = load_query_set(f"bright:{write_bright(tmp_path, 'pony', {'a': 'x'}, EXAMPLES)}#pony")
    assert found.queries == (Query("0", "Why do moths fly to light?"), Query("1", "How?"))
    assert found.qrels == {
        "0": {"insects/Phototaxis_0.txt": 1, "insects/Phototaxis_3.txt": 1},
        "1": {"a": 1},
    }
    assert found.excluded == {"1": frozenset({"b", "c"})}
    assert (found.name, found.known_item, found.section_references) == ("bright/pony", False, {})


def test_whole_pages_have_judgements_of_their_own(tmp_path: Path) -> None:
    folder = write_bright(tmp_path, "pony", {"a": "x"}, EXAMPLES)
    found = load_query_set(f"bright:{folder}#pony/long")
    assert found.qrels == {"0": {"insects/Phototaxis.txt": 1}, "1": {"insects/Phototaxis.txt": 1}}
    assert found.name == "bright/pony/long"


def test_a_task_without_whole_pages_says_so_in_each_row(tmp_path: Path) -> None:
    folder = write_bright(tmp_path, "aops", {"a": "x"}, [example(gold_ids_long=["N/A"])])
    assert load_query_set(f"bright:{folder}#aops").name == "bright/aops"
    with pytest.raises(EvaluationError, match="no whole pages for aops"):
        load_query_set(f"bright:{folder}#aops/long")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": None}, '"id" must be a text'),
        ({"query": " "}, '"query" must be a text'),
        ({"gold_ids": None}, '"gold_ids" must be a list of document ids'),
        ({"gold_ids": ["a", None]}, '"gold_ids" must be a list of document ids'),
        ({"gold_ids": [""]}, '"gold_ids" must be a list of document ids'),
        ({"gold_ids": []}, "query '0': \"gold_ids\" names no document"),
        ({"gold_ids": ["N/A"]}, "query '0': \"gold_ids\" names no document"),
        ({"gold_ids": ["a\0"]}, "NUL"),
        ({"excluded_ids": None}, '"excluded_ids" must be a list of document ids'),
        (
            {"gold_ids": ["a", "b"], "excluded_ids": ["x", "b"]},
            "query '0': document 'b' is relevant and excluded",
        ),
        ({"id": "1"}, "query id '1' occurs twice"),
    ],
)
def test_faults_name_file_and_row(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    folder = write_bright(tmp_path, "pony", {"a": "x"}, [example("1"), example() | fields])
    place = "pony" if "twice" in message else r"examples/pony-00000-of-00001\.parquet:2"
    with pytest.raises(EvaluationError, match=f"{place}: .*{message}"):
        load_query_set(f"bright:{folder}#pony")


@given(
    st.dictionaries(
        st.sampled_from(["id", "query", "gold_ids", "excluded_ids"]),
        st.none()
        | st.text(max_size=3)
        | st.lists(st.none() | st.text(max_size=3), max_size=3)
        | st.integers(),
    )
)
def test_any_row_is_a_query_or_a_fault(fields: dict[str, Any]) -> None:
    record = example() | fields
    try:
        found = bright_query(record, "documents")
    except RecordError:
        return
    assert set(found.grades) == set(record["gold_ids"]) - {"N/A"}
    assert not found.excluded & found.grades.keys()


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("bright:{folder}", "write bright:<folder>#<task>"),
        ("bright:{folder}#tadpole", "no task 'tadpole'"),
        ("bright:{folder}#biology", r"expected {folder}/examples/biology-00000-of-00001\.parquet"),
        ("bright:{folder}/gone#pony", "cannot read .*gone/examples .*a query set needs it"),
    ],
)
def test_a_location_without_queries_says_why(tmp_path: Path, location: str, message: str) -> None:
    write_bright(tmp_path, "pony", {"a": "x"}, EXAMPLES)
    location, message = (text.replace("{folder}", str(tmp_path)) for text in (location, message))
    with pytest.raises(EvaluationError, match=message):
        load_query_set(location)
