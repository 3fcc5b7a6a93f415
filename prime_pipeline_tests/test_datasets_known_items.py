"""Known-item queries: what they are made of, what is relevant to them, and that they are the same in every run."""

from __future__ import annotations

import pytest

from prime_pipeline.datasets.known_items import KINDS, MAX_WORDS, KnownItems, known_item_queries
from prime_pipeline.errors import EvaluationError
from prime_pipeline.records import Document, Section
from prime_pipeline.text.words import term_words
from prime_pipeline_tests.documents import make_document

ANIMALS = ["badger", "otter", "heron", "weasel", "kestrel", "salmon", "beaver", "ferret", "marten", "curlew"]


def animal(name: str) -> Document:
    """A document of three sections; one heading is its own, two stand in all such documents."""
    return make_document(
        name,
        "Motivation: Somebody must write about it.",
        f"Burrow {name} habitat: The {name} digs tunnels beneath riverbanks, gathers moss, feeds cautiously at dusk.",
        "2024: It is.",
        title=f"On the {name}",
    )


CORPUS = [animal(name) for name in ANIMALS]


def texts(made: KnownItems) -> dict[str, str]:
    return {query.query_id: query.text for query in made.query_set.queries}


def test_a_heading_query_is_made_of_distinctive_headings_without_the_title() -> None:
    made = known_item_queries(CORPUS, kinds=["heading"])
    # "Motivation" and "2024" are common or bare, and the name of the animal stands in the title.
    assert texts(made) == {f"heading:{name}": "burrow habitat" for name in sorted(ANIMALS)}


def test_the_section_it_was_made_from_is_relevant_and_its_document() -> None:
    made = known_item_queries(CORPUS, name="animals")
    assert (made.query_set.name, made.query_set.known_item) == ("animals", True)
    assert made.query_set.qrels["sentence:otter"] == {"otter": 1}
    assert made.section_qrels["sentence:otter"] == {"otter#2": 1}
    assert made.query_set.types == {f"{kind}:{name}": kind for kind in KINDS for name in ANIMALS}
    assert made.query_set.qrels.keys() == made.section_qrels.keys()


def test_a_sentence_query_holds_two_thirds_of_the_content_words_in_another_order() -> None:
    text = texts(known_item_queries(CORPUS, kinds=["sentence"]))["sentence:otter"]
    sentence = [
        "otter",
        "digs",
        "tunnels",
        "beneath",
        "riverbanks",
        "gathers",
        "moss",
        "feeds",
        "cautiously",
        "dusk",
    ]
    words = text.split()
    assert len(words) == round(len(sentence) * 2 / 3)
    assert set(words) < set(sentence)
    assert words != [word for word in sentence if word in words]


def test_the_distinctive_sentence_of_a_section_is_taken() -> None:
    dull = "People usually consider several common ordinary general matters."
    rare = "Zirconium alloys outlast vanadium fittings underneath tidal turbines."
    others = [make_document(f"d{i}", dull) for i in range(20)]
    made = known_item_queries([*others, make_document("own", f"{dull} {rare}")], kinds=["sentence"])
    assert set(texts(made)["sentence:own"].split()) < set(term_words(rare))


def test_queries_are_short() -> None:
    long = " ".join(f"word{chr(97 + i)}{chr(97 + j)}" for i in range(5) for j in range(5))
    made = known_item_queries([make_document("d", f"{long}: Prose about {long} ends.")])
    assert [len(text.split()) for text in texts(made).values()] == [MAX_WORDS, MAX_WORDS]


def test_the_order_of_documents_makes_no_difference_and_the_seed_does() -> None:
    made = known_item_queries(CORPUS, 7)
    assert known_item_queries(CORPUS[::-1], 7) == made
    assert known_item_queries(CORPUS, 7, seed=1) != made


def test_n_is_the_limit_and_a_larger_sample_holds_a_smaller_one() -> None:
    few, many = (texts(known_item_queries(CORPUS, n)) for n in (5, 12))
    assert (len(few), len(many)) == (5, 12)
    assert few.items() <= many.items()


def test_a_new_document_leaves_the_queries_of_others_alone() -> None:
    before = texts(known_item_queries(CORPUS, kinds=["sentence"]))
    after = texts(known_item_queries([*CORPUS, animal("dipper")], kinds=["sentence"]))
    assert before.items() <= after.items()


def test_a_document_without_headings_gets_no_heading_query() -> None:
    text = "Boundary layers separate behind blunt bodies at supersonic speeds."
    whole = Document(
        "a", "Blunt bodies", "dataset", (Section(0, "whole", "Blunt bodies", (), text),), "c.jsonl", "x"
    )
    (query,) = known_item_queries([whole]).query_set.queries
    assert query.query_id == "sentence:a"


def test_code_tables_and_citation_marks_are_no_words_of_a_query() -> None:
    body = (
        "```\nforbidden listing with several identifiers inside fences\n```\n\n| forbidden | cells |\n\n"
        "Parsers BIBREF3 reject malformed headers quickly during startup checks (FIGREF5)."
    )
    (query,) = known_item_queries(
        [make_document("d", f"Setup: {body}")], kinds=["sentence"]
    ).query_set.queries
    assert set(query.text.split()) <= {
        "parsers",
        "reject",
        "malformed",
        "headers",
        "quickly",
        "startup",
        "checks",
    }


@pytest.mark.parametrize("documents", [[], [make_document("d", "Intro: Too short.")]])
def test_no_query_at_all_is_an_error(documents: list[Document]) -> None:
    with pytest.raises(EvaluationError, match=r"no document yields.*give a query set"):
        known_item_queries(documents)


def test_asking_for_none_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="ask for 1 or more"):
        known_item_queries(CORPUS, 0)
