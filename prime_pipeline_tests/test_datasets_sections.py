"""Sections that queries name, resolved against documents; faults name query and section."""

from __future__ import annotations

import pytest

from prime_pipeline.corpus.markdown import parse_markdown
from prime_pipeline.datasets.queries import QuerySet
from prime_pipeline.datasets.sections import section_judgements
from prime_pipeline.errors import EvaluationError
from prime_pipeline.records import Query
from prime_pipeline_tests.documents import make_document

GUIDE = make_document(
    "guide.md", "Install: Run it.", "How  to use: Call it.", "2024: News.", "Notes: a", "Notes: b"
)
DOCUMENTS = [GUIDE, make_document("other.md", "Install: Else.")]


def referring(**references: tuple[tuple[str, str], ...]) -> QuerySet:
    queries = tuple(Query(query_id, "x") for query_id in references)
    qrels = {query_id: {doc_id: 1 for doc_id, _ in places} for query_id, places in references.items()}
    return QuerySet("mine", queries, qrels, known_item=False, section_references=references)


@pytest.mark.parametrize(
    ("section", "ordinal"),
    [("1", 1), (" 2 ", 2), ("Install", 1), ("install", 1), (" HOW to\tuse ", 2), ("2024", 3), ("4", 4)],
)
def test_a_section_is_named_by_its_number_or_its_heading(section: str, ordinal: int) -> None:
    found = section_judgements(referring(q=(("guide.md", section),)), DOCUMENTS)
    assert found == {"q": {f"guide.md#{ordinal}": 1}}


def test_only_queries_that_name_sections_are_judged() -> None:
    queries = referring(
        q1=(("guide.md", "1"), ("guide.md", "Install"), ("other.md", "1")), q2=(("other.md", "1"),)
    )
    assert section_judgements(queries, iter(DOCUMENTS)) == {
        "q1": {"guide.md#1": 1, "other.md#1": 1},
        "q2": {"other.md#1": 1},
    }
    assert section_judgements(referring(), DOCUMENTS) == {}


def test_a_document_that_has_the_whole_text_as_its_id_wins() -> None:
    documents = [*DOCUMENTS, make_document("guide.md#1", "Alone: x")]
    queries = referring(q=(("guide.md", "1"), ("guide.md#1", "Alone"), ("guide.md", "2")))
    assert section_judgements(queries, documents) == {"q": {"guide.md#1#1": 1, "guide.md#2": 1}}


def test_what_search_never_returns_is_no_section() -> None:
    bare = parse_markdown("# Title\n\n## One\nx\n\n## Two\ny\n", "bare.md", "bare.md")
    assert [section.ordinal for section in bare.sections] == [0, 1, 2]
    with pytest.raises(
        EvaluationError, match=r"section '0' of 'bare\.md', and there is none \(1 'One', 2 'Two'\)"
    ):
        section_judgements(referring(q=(("bare.md", "0"),)), [bare])


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            ("guide.md", "Instal"),
            r"query 'q' names section 'Instal' of 'guide\.md', and there is none \(1 'Install'",
        ),
        (("guide.md", "01"), "section '01' .*there is none"),
        (("guide.md", "9" * 5000), "there is none"),
        (("guide.md", "notes"), r"section 'notes' .*several .*by its number \(4 'Notes', 5 'Notes'\)"),
        (("gone.md", "1"), r"query 'q' names section '1' of 'gone\.md', and the corpus has no such document"),
    ],
)
def test_faults_name_query_and_section(place: tuple[str, str], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        section_judgements(referring(ok=(("guide.md", "1"),), q=(place,)), DOCUMENTS)
