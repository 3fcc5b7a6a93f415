"""Metadata texts of hand-made documents, in both readings."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.synthesis import (
    EarlierSynthesis,
    SynthesisResult,
    bring_up_to_date,
    synthesise,
)
from prime_pipeline.records import Document, Heading, Section, SectionKind, TitleOrigin
from prime_pipeline_tests.documents import make_document, sealed
from prime_pipeline_tests.fakes import WordTokenizer

OPTIONS = MetadataOptions(n_terms=2)
LITERAL = MetadataOptions(n_terms=2, reading="paper_literal")


def section(ordinal: int, heading: str, body: str, kind: SectionKind = "section") -> Section:
    head = f"## {heading}\n" if kind == "section" else ""
    headings = (Heading(2, heading),) if kind == "section" else ()
    return Section(ordinal, kind, heading, (heading,), head + body, len(head), headings)


def document(doc_id: str, title: str, *sections: Section, origin: TitleOrigin = "heading") -> Document:
    return Document(doc_id, title, origin, sections, f"{doc_id}.md", "text/markdown")


UNFITTED = WordTokenizer(window=1_000_000)


TURBINE = document(
    "b",
    "Turbine Guide",
    section(0, "", "A turbine turns wind. ", kind="preamble"),
    section(1, "Introduction", "The turbine has blades.\n"),
    section(2, "Blade pitch", "Pitch it.\n"),
)
PUMP = document("a", "pump", section(1, "Introduction", "The pump pumps.\n"), origin="file-name")
NOTE = document("c", "note", section(0, "note", "Just some text.", kind="whole"), origin="file-name")


def texts_of(options: MetadataOptions, *documents: Document) -> list[str]:
    return [m.text for m in synthesise(documents, options, UNFITTED).metadata]


def test_a_full_text_is_title_and_sections_with_their_headings() -> None:
    (text,) = texts_of(MetadataOptions(n_terms=2, reading="full_text"), TURBINE)
    assert text == (
        "Turbine Guide\nA turbine turns wind.\n## Introduction\nThe turbine has blades.\n## Blade pitch\nPitch it."
    )


def test_title_lead_terms_and_distinctive_headings_in_that_order() -> None:
    result = synthesise([TURBINE, PUMP, NOTE], OPTIONS, UNFITTED)
    pump, turbine, note = result.metadata
    assert [m.doc_id for m in result.metadata] == ["a", "b", "c"]
    assert turbine.text == (
        "Turbine Guide\nA turbine turns wind.\nThe turbine has blades.\nPitch it.\nturbine, pitch\nBlade pitch"
    )
    assert turbine.headings == ((2, "Introduction"), (2, "Blade pitch"))
    assert pump.text == "The pump pumps.\nintroduction, pump"
    assert note.text == "Just some text."
    assert note.terms
    assert (result.n_documents, result.document_frequencies["the"]) == (3, 2)
    assert result.vocabulary_size == len(result.document_frequencies)


def test_the_literal_reading_has_title_terms_and_h2_headings_only() -> None:
    pump, turbine, note = texts_of(LITERAL, TURBINE, PUMP, NOTE)
    assert turbine == "Turbine Guide\nturbine pitch\nIntroduction\nBlade pitch"
    assert pump == "pump\nintroduction pump\nIntroduction"
    assert note == "note\njust some"


def test_the_literal_reading_takes_the_shallowest_headings_where_there_is_no_h2() -> None:
    deep = Section(1, "section", "One", ("One",), "x", headings=(Heading(3, "One"), Heading(4, "Deep")))
    assert texts_of(LITERAL, document("a", "T", deep))[0].splitlines() == ["T", "x", "One"]


def test_a_renamed_file_has_the_same_text() -> None:
    renamed = document("z", "other name", *NOTE.sections, origin="file-name")
    assert texts_of(OPTIONS, NOTE) == texts_of(OPTIONS, renamed)


@pytest.mark.parametrize("order", itertools.permutations([TURBINE, PUMP, NOTE]))
def test_the_order_of_the_documents_makes_no_difference(order: tuple[Document, ...]) -> None:
    assert synthesise(order, OPTIONS, UNFITTED) == synthesise([TURBINE, PUMP, NOTE], OPTIONS, UNFITTED)


@pytest.mark.parametrize("options", [OPTIONS, LITERAL])
@pytest.mark.parametrize(("title", "text"), [("picture", "picture"), ("", "id")])
def test_no_text_is_empty(options: MetadataOptions, title: str, text: str) -> None:
    blank = document("id", title, section(0, "", " \n", kind="whole"), origin="file-name")
    assert texts_of(options, blank) == [text]
    assert synthesise([blank], options, WordTokenizer(window=0)).metadata[0].text == text


def test_captions_are_no_opening() -> None:
    captions = section(1, "Figures", "Figure 1", kind="captions")
    assert texts_of(OPTIONS, document("a", "T", section(0, "", "Abstract.", kind="preamble"), captions)) == [
        "T\nAbstract."
    ]


def test_long_texts_are_cut_before_and_by_the_tokenizer() -> None:
    long = [document(f"{i:04}", "T", section(0, "T", "word " * 5000, kind="whole")) for i in range(600)]

    class Watched(WordTokenizer):
        def fit(self, texts: list[str]) -> list[str]:
            assert max(map(len, texts)) <= OPTIONS.max_characters
            sizes.append(len(texts))
            return super().fit(texts)

    sizes: list[int] = []
    result = synthesise(long, OPTIONS, Watched(window=3))
    assert {m.text for m in result.metadata} == {"T\nword word"}
    assert sizes == [256, 256, 88]


def test_a_long_lead_leaves_room_for_terms_and_headings() -> None:
    body = " ".join(f"word{i}" for i in range(500))
    pages = [section(i, f"Topic {chr(64 + i)}", body) for i in range(1, 5)]
    tokenizer = WordTokenizer(window=64)
    text = synthesise([document("a", "T", *pages)], OPTIONS, tokenizer).metadata[0].text
    title, lead, terms, headings = text.splitlines()
    assert (title, headings) == ("T", "Topic A; Topic B; Topic C; Topic D")
    assert terms.count(",") == 1
    assert tokenizer.count([text]) == [64]
    assert body.startswith(lead)


def test_many_long_headings_leave_half_of_the_window_to_the_lead() -> None:
    pages = [section(i, f"{chr(64 + i)} " + "heading " * 40, "Some prose. " * 40) for i in range(1, 5)]
    lead = (
        synthesise([document("a", "T", *pages)], OPTIONS, WordTokenizer(window=64))
        .metadata[0]
        .text.splitlines()[1]
    )
    assert len(lead.split()) >= 64 - 32 - 1


def test_at_most_so_many_headings() -> None:
    sections = [section(i, f"Topic {chr(65 + i)}", "x\n") for i in range(1, 20)]
    text = texts_of(OPTIONS, document("a", "T", *sections))[0]
    assert text.splitlines()[-1] == "; ".join(f"Topic {chr(65 + i)}" for i in range(1, 13))


class Tracked(Document):
    """A document that can be watched."""

    __slots__ = ("__weakref__",)


def test_documents_are_read_once_and_let_go() -> None:
    watched: list[weakref.ref[Tracked]] = []

    def stream() -> Iterator[Document]:
        for i in range(5):
            tracked = Tracked(
                str(i), "T", "heading", (section(1, f"Only {i}", "x"),), "d.md", "text/markdown"
            )
            watched.append(weakref.ref(tracked))
            yield tracked
            assert all(ref() is None for ref in watched[:-1])

    assert synthesise(stream(), OPTIONS, UNFITTED).n_documents == len(watched) == 5


def test_an_empty_corpus_has_no_metadata() -> None:
    result = synthesise([], OPTIONS, UNFITTED)
    assert (result.metadata, result.n_documents, result.vocabulary_size) == ((), 0, 0)


def up_to_date(
    documents: Sequence[Document],
    earlier: SynthesisResult | None = None,
    options: MetadataOptions = OPTIONS,
    encoder: str = "e",
) -> tuple[SynthesisResult, list[str]]:
    """The result, and the ids of the documents that were read for it."""
    by_id = {of_one.doc_id: of_one for of_one in documents}
    read: list[str] = []

    def load(doc_id: str, version: str) -> Document:
        assert (doc_id, version) in versions
        read.append(doc_id)
        return by_id[doc_id]

    versions = sealed(documents).documents
    left = None
    if earlier is not None:
        left = EarlierSynthesis(sorted(earlier.document_frequencies), earlier.metadata, earlier.counts)
    return bring_up_to_date(versions, load, options, WordTokenizer(window=20), encoder, left), read


CORPUS = [
    make_document(f"d{i}", f"Part {i % 3}: kiln{i} kiln{i} glaze{i % 4} clay", title=f"Kiln {i}")
    for i in range(12)
]


def test_brought_up_to_date_is_synthesised() -> None:
    result, read = up_to_date(CORPUS)
    whole = synthesise(CORPUS, OPTIONS, WordTokenizer(window=20))
    assert (result.metadata, result.n_documents) == (whole.metadata, whole.n_documents)
    assert result.document_frequencies == whole.document_frequencies
    assert sorted(read) == sorted(d.doc_id for d in CORPUS)
    assert [c.doc_id for c in result.counts.documents] == [m.doc_id for m in result.metadata]


def test_with_nothing_changed_nothing_is_read() -> None:
    first, _ = up_to_date(CORPUS)
    assert up_to_date(CORPUS, first) == (first, [])


CHANGED = make_document("d3", "Part 9: porcelain porcelain glaze3", title="Kiln 3")
ADDED = make_document("a", "Part 1: kiln5 majolica", title="Added")


@pytest.mark.parametrize(
    ("after", "read"),
    [
        ([*CORPUS[:3], CHANGED, *CORPUS[4:]], ["d3"]),
        ([ADDED, *CORPUS], ["a"]),
        (CORPUS[1:], []),
        ([replace(CORPUS[0], title="Renamed"), *CORPUS[1:]], ["d0"]),
    ],
    ids=["changed", "added", "removed", "renamed"],
)
def test_only_what_changed_is_read_and_the_result_is_that_of_reading_all(
    after: list[Document], read: list[str]
) -> None:
    first, _ = up_to_date(CORPUS)
    again, were_read = up_to_date(after, first)
    assert again == up_to_date(after)[0]
    assert were_read == read
    assert again.metadata != first.metadata


def test_a_document_is_read_again_where_other_terms_are_its_best_now() -> None:
    # As long as no other document has "glaze", it beats "kiln", which stands before it.
    one = make_document("one", "Part A: kiln glaze", title="-")
    others = [make_document(f"o{i}", "Part B: sand", title="-") for i in range(4)]
    options = MetadataOptions(n_terms=1)
    before = [one, *others, make_document("x", "Part C: kiln", title="-")]
    after = [one, *others, make_document("x", "Part C: glaze", title="-")]
    first, _ = up_to_date(before, options=options)
    again, read = up_to_date(after, first, options)
    assert sorted(read) == ["one", "x"]
    assert [m.terms[0][0] for m in (first.metadata[4], again.metadata[4])] == ["glaze", "kiln"]
    assert again == up_to_date(after, options=options)[0]


def test_a_document_is_read_again_where_a_heading_is_distinctive_no_more() -> None:
    one, other = make_document("one", "Kilns: a", title="-"), make_document("other", "Wheels: a", title="-")
    first, _ = up_to_date([one, other])
    again, read = up_to_date([one, make_document("other", "Kilns: a", title="-")], first)
    assert sorted(read) == ["one", "other"]
    assert [m.metadata[0].text.endswith("\nKilns") for m in (first, again)] == [True, False]


def test_other_options_or_another_encoder_compose_every_text_again() -> None:
    first, _ = up_to_date(CORPUS)
    fewer = MetadataOptions(n_terms=1)
    for options, encoder in ((fewer, "e"), (OPTIONS, "other")):
        again, read = up_to_date(CORPUS, first, options, encoder)
        assert sorted(read) == sorted(d.doc_id for d in CORPUS)
        assert again == up_to_date(CORPUS, None, options, encoder)[0]


def test_counts_of_the_other_reading_are_not_taken_over() -> None:
    hyphenated = [make_document(f"d{i}", "Part 1: glaze-free clay", title="-") for i in range(2)]
    first, _ = up_to_date(hyphenated, options=LITERAL)
    again, _ = up_to_date(hyphenated, first)
    assert again == up_to_date(hyphenated)[0]
    assert "glaze-free" in again.document_frequencies
