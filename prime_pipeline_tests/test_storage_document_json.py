"""A document comes back from JSON as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.records import Document, Heading, Section
from prime_pipeline.storage.document_json import decode_document, document_bytes, encode_document
from prime_pipeline.storage.documents import document_version
from prime_pipeline_tests.documents import make_document

texts = st.text(max_size=20)
lines = st.none() | st.integers(1, 10**6)
headings = st.builds(Heading, st.integers(1, 6), texts, lines)
sections = st.builds(
    Section,
    ordinal=st.integers(0, 100),
    kind=st.sampled_from(["preamble", "section", "whole", "captions"]),
    heading=texts,
    heading_path=st.lists(texts, max_size=3).map(tuple),
    text=texts,
    body_start=st.integers(0, 20),
    headings=st.lists(headings, max_size=3).map(tuple),
    start_line=lines,
    end_line=lines,
)
documents = st.builds(
    Document,
    doc_id=texts,
    title=texts,
    title_origin=st.sampled_from(["front-matter", "heading", "dataset", "file-name"]),
    sections=st.lists(sections, max_size=3).map(tuple),
    source_path=texts,
    media_type=texts,
    properties=st.dictionaries(texts, texts, max_size=3),
    warnings=st.lists(texts, max_size=2).map(tuple),
)


@given(documents)
def test_round_trip(document: Document) -> None:
    payload = json.loads(document_bytes(document, "v"))
    assert decode_document(payload["document"]) == document
    assert document_version(decode_document(encode_document(document))) == document_version(document)


@given(documents, documents)
def test_the_version_tells_documents_apart(one: Document, other: Document) -> None:
    assert (document_version(one) == document_version(other)) == (one == other)


def test_half_a_surrogate_pair_cannot_be_written() -> None:
    with pytest.raises(UnicodeEncodeError):
        document_bytes(make_document("a", "half \ud83d"), "v")


@pytest.mark.parametrize(
    "data", [{}, [], None, {"doc_id": "a"}, {**encode_document(make_document("a")), "sections": 1}]
)
def test_anything_else_is_refused(data: object) -> None:
    with pytest.raises((KeyError, TypeError)):
        decode_document(data)  # type: ignore[arg-type]
