"""Metadata texts of hand-made documents, in both readings."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator

import pytest

from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.synthesis import synthesise
from prime_pipeline.records import Document, Heading, Section, SectionKind, TitleOrigin
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
