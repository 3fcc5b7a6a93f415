"""Properties of a corpus: each counted by hand on a few documents."""

from __future__ import annotations

import math

import numpy as np
import pytest

from prime_pipeline.evaluation import corpus_properties as measured
from prime_pipeline.evaluation.corpus_properties import Property, from_parts
from prime_pipeline.records import Document, DocumentMetadata, Query, Section
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import WordTokenizer


def whole(doc_id: str, text: str, title: str = "T") -> Document:
    return Document(doc_id, title, "dataset", (Section(0, "whole", title, (), text),), "c.jsonl", "x")


def metadata(doc_id: str, *terms: str, headings: tuple[tuple[int, str], ...] = ()) -> DocumentMetadata:
    return DocumentMetadata(doc_id, tuple((term, 1.0) for term in terms), headings, "")


def value(item: Property | None) -> float:
    assert item is not None
    return item.value


def test_a_property_is_a_ratio_of_sums_with_its_interval() -> None:
    item = from_parts("of all", [(1, 2), (3, 4), (0, 0), (0, 4)])
    assert item is not None
    assert item.value == pytest.approx(4 / 10)
    assert item.interval.n == 3
    low, high = item.interval.low, item.interval.high
    assert low is not None
    assert high is not None
    assert 0 <= low < 0.4 < high <= 3 / 4


def test_the_interval_is_narrow_where_there_is_much_to_go_by() -> None:
    few, many = (from_parts("x", [(0, 1), (1, 1)] * n) for n in (5, 200))
    assert few is not None
    assert many is not None
    widths = [(item.interval.high or 0) - (item.interval.low or 0) for item in (few, many)]
    assert widths[1] < widths[0] / 3


def test_what_cannot_be_measured_is_none() -> None:
    assert from_parts("x", [(0, 0)]) is None
    assert measured.heading_coverage([]) is None
    assert measured.common_heading_share([metadata("a")]) is None
    assert measured.vocabulary_gap([whole("a", "x")], [], {}) is None
    assert measured.term_idf([whole("a", "...")], [metadata("a")]) is None
    assert measured.neighbor_agreement(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)) is None


def test_properties_read_as_sentences() -> None:
    assert (
        str(from_parts("of the documents are long", [(1, 1), (1, 1)]))
        == "100 % [34 %, 100 %] of the documents are long (n = 2)"
    )
    assert str(from_parts("tokens per word", [(3, 2)], is_share=False)) == "1.50 tokens per word (n = 1)"


def test_headings() -> None:
    documents = [make_document("a", "x", "y"), whole("b", "text")]
    items = [metadata("a", headings=((2, "One"), (3, "Two"), (2, "Three"))), metadata("b")]
    assert value(measured.heading_coverage(documents)) == 1 / 2
    assert value(measured.sections_per_document(documents)) == 3 / 2
    assert value(measured.heading_depth(items)) == 2 / 2


def test_a_heading_is_common_beyond_a_twentieth_of_the_documents_whatever_its_number() -> None:
    items = [metadata(f"d{i}", headings=((2, f"{i}. Results"), (2, f"Own {chr(97 + i)}"))) for i in range(3)]
    items += [metadata(f"e{i}") for i in range(37)]
    texts = [[text for _, text in item.headings] for item in items]
    assert measured.common_headings(texts) == {"results"}
    assert value(measured.common_heading_share(items)) == 1 / 2
    # A twentieth of 60 is 3, so three documents are none too many.
    assert measured.common_headings([*texts, *[[]] * 20]) == frozenset()


def test_the_window() -> None:
    tokenizer = WordTokenizer(window=4)
    documents = [whole("a", "T one two"), whole("b", "T one two three four five six seven")]
    assert value(measured.long_documents(documents, tokenizer)) == 1 / 2
    assert value(measured.long_sections(documents, tokenizer)) == 1 / 2
    assert value(measured.text_read(documents, tokenizer)) == (1 + 4 / 8) / 2
    assert value(measured.word_pieces(documents, tokenizer)) == 1


def test_the_title_stands_in_the_full_text_once() -> None:
    assert measured.full_text(whole("a", "body", title="Name")) == "Name\nbody"
    assert measured.full_text(whole("a", "# Name\nbody", title="Name")) == "# Name\nbody"


def test_metadata_that_the_encoder_does_not_read() -> None:
    documents = [whole("a", "alpha beta gamma delta omega"), whole("b", "alpha")]
    items = [
        metadata("a", "alpha", "omega", headings=((2, "Shared"), (2, "Omega kappa"))),
        metadata("b", "alpha", headings=((2, "Shared"),)),
    ]
    # Of a: alpha is read behind the title, omega and kappa are not. "Shared" is common and does not count.
    assert value(measured.unread_metadata(documents, items, WordTokenizer(window=3))) == 2 / 4


def test_words() -> None:
    documents = [whole("a", "the cat and the dog"), whole("b", "cat")]
    items = [metadata("a", "cat", "dog"), metadata("b", "cat")]
    assert value(measured.stop_word_share(documents)) == 3 / 6
    assert value(measured.shared_terms(items)) == 2 / 3
    common, own = math.log(3 / 3) + 1, math.log(3 / 2) + 1
    assert value(measured.term_idf(documents, items)) == pytest.approx((2 * common + own) / (3 * own))


def test_the_vocabulary_gap() -> None:
    documents = [whole("a", "turbines rotate"), whole("b", "wings bend")]
    queries = [Query("q", "which turbine bends unicorns?"), Query("unjudged", "zebras")]
    qrels = {"q": {"a": 1, "b": 0, "elsewhere": 1}}
    # "bend" stands in another document; "unicorn" and "zebra" in none.
    assert value(measured.vocabulary_gap(documents, queries, qrels)) == 2 / 3
    assert value(measured.unknown_query_words(documents, queries)) == 2 / 4


@pytest.mark.parametrize(
    ("opening", "dangles", "goes_on"),
    [
        ("This makes it slow.", 1, 0),
        ("This section explains caching.", 0, 0),
        ("As mentioned above, it fails.", 1, 0),
        ("**The former** is faster.", 1, 0),
        ("Therefore the sum converges.", 0, 1),
        ("By Lemma 3, the sum converges.", 0, 1),
        ("```\nthis = code\n```\n\nThese values are kept.", 1, 0),
        ("Italy is warm. This is known.", 0, 0),
        ("Thistles grow here.", 0, 0),
    ],
)
def test_sections_that_lean_on_the_one_before(opening: str, dangles: int, goes_on: int) -> None:
    documents = [make_document("a", "First: This one has none before it.", f"Second: {opening}")]
    openings = measured.section_openings(documents)
    assert value(measured.dangling_sections(openings)) == dangles
    assert value(measured.chained_sections(openings)) == goes_on


def test_code_and_formulas() -> None:
    text = "Use `ab` now.\n\n```\ncode\n```\n\nAnd $x+y$ holds, as INLINEFORM3 does.\n"
    code, formulas = measured.code_and_formulas([whole("a", text)])
    assert value(code) == (len("`ab`") + len("```\ncode\n```")) / len(text)
    assert value(formulas) == (len("$x+y$") + len("INLINEFORM3")) / len(text)


def test_agreement_of_embeddings() -> None:
    angles = np.radians([0, 1, 3, 90, 92, 95])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    same = measured.neighbor_agreement(vectors, vectors)
    assert value(same) == 1
    assert value(measured.embedding_agreement(vectors, vectors)) == pytest.approx(1)
    shuffled = vectors[[0, 3, 1, 4, 2, 5]]
    assert value(measured.neighbor_agreement(shuffled, vectors)) < 1 / 2
    assert value(measured.embedding_agreement(-vectors, vectors)) == pytest.approx(-1)
