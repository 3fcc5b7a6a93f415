"""Units of every representation, worked by hand, and what the negative controls leave as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.baselines.representations import (
    CHUNK_TOKENS,
    CONTROLS,
    RECIPES,
    REPRESENTATIONS,
    SUMMARY_TOKENS,
    Corpus,
    Unit,
    shuffled,
    units,
)
from prime_pipeline.metadata.options import MetadataOptions
from prime_pipeline.metadata.terms import is_candidate
from prime_pipeline.records import Document, Section
from prime_pipeline.reports import content
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import WordTokenizer

TOKENIZER = WordTokenizer(window=64)


def rewritten(document: Document, **bodies: str) -> Document:
    """The document with rewritten bodies by heading."""
    sections = tuple(replace(s, rewritten=bodies.get(s.heading)) for s in document.sections)
    return replace(document, sections=sections)


def plain(doc_id: str, *texts: str, title: str = "") -> Document:
    """A document without headings, its title that of the file unless there is one."""
    whole = tuple(Section(at, "whole", "", (), text) for at, text in enumerate(texts))
    origin = "heading" if title else "file-name"
    return Document(doc_id, title or doc_id, origin, whole, f"{doc_id}.md", "text/markdown")  # type: ignore[arg-type]


BREAD = make_document("bread", "Dough: Knead dough.\n", "Ovens: Heat ovens.\n", title="Baking")
STARS = plain("stars", "Stars shine.")
RESTRUCTURED = rewritten(BREAD, Dough="Dough rests.")


def corpus(
    raw: Sequence[Document] = (BREAD, STARS),
    restructured: Sequence[Document] = (RESTRUCTURED, STARS),
    options: MetadataOptions | None = None,
    summaries: Mapping[str, str] | None = None,
) -> Corpus:
    return Corpus(raw, restructured, options or MetadataOptions(), TOKENIZER, summaries)


def texts(name: str, of: Corpus) -> list[tuple[str, str]]:
    return [(unit.doc_id, unit.text) for unit in units(name, of)]


# --- representations ----------------------------------------------------------------------------------------------

BREAD_TEXT = "Baking\n## Dough\nKnead dough.\n## Ovens\nHeat ovens.\n"
SECTIONS = [
    ("bread", "## Dough\nKnead dough.\n"),
    ("bread", "## Ovens\nHeat ovens.\n"),
    ("stars", "Stars shine."),
]
WHOLE = [("bread", BREAD_TEXT), ("stars", "Stars shine.")]
# All words stand in one document only, so that what orders them is how often, whether in a heading, and how early.
LITERAL = "Baking\ndough ovens knead heat\nDough\nOvens"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("full-text", WHOLE),
        ("chunk-256", WHOLE),
        ("bge-m3-chunk-256", WHOLE),
        ("structure-chunks", SECTIONS),
        ("raptor-lite", SECTIONS + WHOLE),
        (
            "summary-augmented",
            [
                ("bread", f"Baking\nKnead dough.\nHeat ovens.\n{BREAD_TEXT}"),
                ("stars", "Stars shine.\nStars shine."),
            ],
        ),
        ("prime-offline", [("bread", LITERAL), ("stars", "stars\nstars shine")]),
        (
            "prime-full-text",
            [("bread", f"{LITERAL}\n{BREAD_TEXT}"), ("stars", "stars\nstars shine\nStars shine.")],
        ),
        (
            "sr-full-text",
            [("bread", BREAD_TEXT.replace("Knead dough.", "Dough rests.")), ("stars", "Stars shine.")],
        ),
        (
            "prime-full",
            [("bread", "Baking\ndough ovens rests heat\nDough\nOvens"), ("stars", "stars\nstars shine")],
        ),
        (
            "default",
            [
                ("bread", "Baking\nKnead dough.\nHeat ovens.\ndough, ovens, knead, heat\nDough; Ovens"),
                ("stars", "Stars shine."),
            ],
        ),
    ],
)
def test_units(name: str, expected: list[tuple[str, str]]) -> None:
    assert texts(name, corpus()) == expected


def test_every_representation_has_a_recipe_and_a_place_in_the_report() -> None:
    assert tuple(RECIPES) == (*REPRESENTATIONS, *CONTROLS)
    assert set(REPRESENTATIONS) == set(content.REPRESENTATIONS)
    of_rewritten = {name for name, recipe in RECIPES.items() if recipe.text == "restructured"}
    assert of_rewritten == {"sr-full-text", "prime-full", "control-shuffled"}
    with pytest.raises(KeyError):
        units("chunk-512", corpus())


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.text == "restructured"])
def test_without_restructured_text_nothing_is_made_of_it(name: str) -> None:
    assert units(name, corpus(restructured=())) == []


@pytest.mark.parametrize("name", RECIPES)
def test_only_what_is_called_configured_depends_on_the_options(name: str) -> None:
    others = [MetadataOptions(n_terms=1, max_headings=1), MetadataOptions(min_lead_words=1)]
    found = [texts(name, corpus(options=options)) for options in (MetadataOptions(), *others)]
    assert RECIPES[name].is_configured == (found != [found[0]] * 3)


@pytest.mark.parametrize("name", RECIPES)
def test_units_are_the_same_every_time(name: str) -> None:
    assert texts(name, corpus()) == texts(name, corpus())


# --- windows and summaries ----------------------------------------------------------------------------------------

WORDS = [f"w{at}" for at in range(600)]
LONG = plain("long", " ".join(WORDS), title="w0 w1")


def test_chunks_are_windows_that_hold_every_word_once() -> None:
    found = [text.split() for _, text in texts("chunk-256", corpus([LONG]))]
    assert [len(words) for words in found] == [256, 256, 88]
    assert [word for words in found for word in words] == WORDS


def test_chunks_behind_a_summary_are_shorter_and_fit_together_with_it() -> None:
    found = [text.split() for _, text in texts("summary-augmented", corpus([LONG]))]
    room = CHUNK_TOKENS - SUMMARY_TOKENS
    assert [len(words) for words in found] == [256, 256, 256, SUMMARY_TOKENS + 600 - 3 * room]
    assert all(words[:SUMMARY_TOKENS] == ["w0", "w1", *WORDS[: SUMMARY_TOKENS - 2]] for words in found)
    assert [word for words in found for word in words[SUMMARY_TOKENS:]] == WORDS


def test_a_summary_may_be_given() -> None:
    found = corpus([BREAD, LONG], summaries={"bread": "How bread is made.", "long": "a " * 100})
    assert found.summary(BREAD) == "Baking\nHow bread is made."
    assert found.summary(LONG).split() == ["w0", "w1", *["a"] * (SUMMARY_TOKENS - 2)]
    assert found.summary(STARS) == "Stars shine."


def test_a_summary_takes_as_much_of_the_lead_as_the_options_say() -> None:
    brief = corpus(options=MetadataOptions(min_lead_words=1))
    assert brief.summary(BREAD) == "Baking\nKnead dough."


# --- blanks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["structure-chunks", "raptor-lite"])
def test_a_blank_section_is_left_out(name: str) -> None:
    gaps = plain("gaps", " \n", "Text.", "\n\n")
    assert texts(name, corpus([gaps]))[0] == ("gaps", "Text.")
    assert all(text.strip() for _, text in texts(name, corpus([gaps])))


@pytest.mark.parametrize("name", ["full-text", "chunk-256", "structure-chunks", "summary-augmented"])
def test_a_document_without_text_keeps_a_unit(name: str) -> None:
    found = texts(name, corpus([plain("blank", " \n"), STARS]))
    assert [doc_id for doc_id, _ in found] == ["blank", "stars"]
    assert found[0][1].strip() == ""


@pytest.mark.parametrize("name", ["prime-offline", "default", "control-identity", "control-random-terms"])
def test_metadata_of_a_document_without_text_is_its_name(name: str) -> None:
    assert texts(name, corpus([plain("blank", " \n")])) == [("blank", "blank")]


def test_a_preamble_of_nothing_but_the_title_is_no_section() -> None:
    title = Section(0, "preamble", "", (), "# Baking\n", body_start=9)
    titled = Document("titled", "Baking", "heading", (title,), "titled.md", "text/markdown")
    assert texts("structure-chunks", corpus([titled])) == []
    assert texts("raptor-lite", corpus([titled])) == texts("full-text", corpus([titled]))


# --- controls -----------------------------------------------------------------------------------------------------

BODIES = st.sampled_from(["", " \n", "Knead the dough.", "One.\n\nTwo of them.\n", "  dough\t"])
DOCUMENTS = st.lists(st.lists(BODIES, min_size=1, max_size=4), min_size=1, max_size=4).map(
    lambda found: [make_document(f"d{at}", *bodies, title=f"T{at}") for at, bodies in enumerate(found)]
)


@given(documents=DOCUMENTS)
def test_text_that_is_rewritten_as_it_was_has_the_metadata_of_the_raw_text(documents: list[Document]) -> None:
    of = corpus(documents, restructured=())
    assert units("control-identity", of) == units("prime-offline", of)


def numbered(n_sections: Sequence[int]) -> list[Document]:
    """Documents of so many sections each; every second body is rewritten, and no two are alike."""
    made = []
    for at, n in enumerate(n_sections):
        document = make_document(f"d{at}", *(f"H{o}: raw {at} {o}\n" for o in range(n)), title=f"T{at}")
        made.append(rewritten(document, **{f"H{o}": f"rewritten {at} {o} and more" for o in range(0, n, 2)}))
    return made


def bodies(documents: Sequence[Document]) -> dict[tuple[str, int], str]:
    found = ((d, s) for d in documents for s in d.content_sections)
    return {(d.doc_id, s.ordinal): s.body if s.rewritten is None else s.rewritten for d, s in found}


def n_words(documents: Sequence[Document]) -> int:
    return sum(len(document.restructured.text.split()) for document in documents)


@given(n_sections=st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(lambda counts: sum(counts) > 1))
def test_no_shuffled_section_keeps_its_own_body(n_sections: list[int]) -> None:
    documents = numbered(n_sections)
    made = shuffled(documents)
    before, after = bodies(documents), bodies(made)
    assert before.keys() == after.keys()
    assert all(before[place] != after[place] for place in before)
    assert Counter(before.values()) == Counter(after.values())
    assert n_words(made) == n_words(documents)
    assert [d.doc_id for d in made] == [d.doc_id for d in documents]
    for ours, theirs in zip(documents, made, strict=True):
        assert [s.text for s in ours.sections] == [s.text for s in theirs.sections]
    assert bodies(shuffled(documents[::-1])) == after


def test_the_only_section_of_a_corpus_keeps_its_own_body() -> None:
    assert bodies(shuffled(numbered([1]))) == {("d0", 1): "rewritten 0 0 and more"}


def test_shuffled_metadata_keeps_titles_and_headings_and_takes_words_from_elsewhere() -> None:
    two = [make_document(name, f"{name}: {name}word\n", title=name.upper()) for name in ("a", "b")]
    of = corpus(two, two)
    assert texts("prime-full", of) == [("a", "A\na aword\na"), ("b", "B\nb bword\nb")]
    assert texts("control-shuffled", of) == [("a", "A\na bword\na"), ("b", "B\nb aword\nb")]


POTS = [
    make_document(f"p{at}", f"Pots: {text}\n", title=f"Pot {at}")
    for at, text in enumerate(["clay kiln glaze wheel potter", "iron forge hammer anvil smith", "a of"])
]


def test_random_terms_are_as_many_words_of_the_corpus_between_the_same_title_and_headings() -> None:
    of = corpus(POTS)
    known = set(
        filter(
            is_candidate,
            ["pots", "clay", "kiln", "glaze", "wheel", "potter", "iron", "forge", "hammer", "anvil", "smith"],
        )
    )
    literal, drawn = texts("prime-offline", of), texts("control-random-terms", of)
    assert [doc_id for doc_id, _ in drawn] == ["p0", "p1", "p2"]
    for (_, ours), (_, theirs) in zip(literal, drawn, strict=True):
        (title, terms, *headings), (same_title, chosen, *same_headings) = ours.split("\n"), theirs.split("\n")
        assert (title, headings) == (same_title, same_headings)
        assert len(set(chosen.split())) == len(chosen.split()) == len(terms.split())
        assert set(chosen.split()) <= known
    chosen_of = {doc_id: text.split("\n")[1] for doc_id, text in drawn}
    assert len(set(chosen_of.values())) == 3
    assert all(set(text.split("\n")[1].split()) != set(chosen_of[doc_id].split()) for doc_id, text in literal)


def test_terms_that_stand_in_the_title_too_are_drawn_behind_it() -> None:
    documents = [plain("pot", "kiln", title="The kiln"), plain("anvil", "anvil hammer", title="Anvils")]
    title, term = dict(texts("control-random-terms", corpus(documents)))["pot"].split("\n")
    assert title == "The kiln"
    assert term in {"anvil", "hammer"}


def test_a_corpus_with_few_words_lends_as_many_as_it_has() -> None:
    (found,) = units("control-random-terms", corpus([plain("few", "a of the kiln")]))
    assert found == Unit("few", "few\nkiln")
