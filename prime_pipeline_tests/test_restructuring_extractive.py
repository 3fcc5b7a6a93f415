"""Extractive restructuring: what goes, what stays, and that doing it twice changes nothing more."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.source import SourceEntry
from prime_pipeline.records import Document
from prime_pipeline.restructuring.extractive import extract
from prime_pipeline.restructuring.extractive_facts import facts, hide, reveal, turning_words
from prime_pipeline.restructuring.extractive_pointers import is_pointer
from prime_pipeline_tests.documents import make_document


def shortened(*bodies: str) -> list[str]:
    """The bodies as extraction leaves them; a heading keeps colons in them from being read as one."""
    document = make_document("d", *(f"Method: {body}" for body in bodies))
    changed = extract(document)
    return [changed.get(section.ordinal, section.body) for section in document.sections]


def rewritten(document: Document) -> Document:
    changed = extract(document)
    sections = tuple(replace(s, rewritten=changed.get(s.ordinal)) for s in document.sections)
    return replace(document, sections=sections).restructured


# --- inside a sentence --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("Moreover, the model is fast and it is small.", "The model is fast and it is small."),
        ("- Furthermore, the model is fast.\n- It is small.", "- The model is fast.\n- It is small."),
        ("moreover , the model is fast and it is small .", "the model is fast and it is small ."),
        ("In addition, k-means is what we run on it.", "k-means is what we run on it."),
        ("It is worth noting that it is slow on the long ones.", "It is slow on the long ones."),
        ("As mentioned above, it is slow on the long ones.", "It is slow on the long ones."),
        ("As shown in Figure 3, it is slow on the long ones.", "It is slow on the long ones."),
        ("We can see that in Figure 3 of the appendix.", "We can see that in Figure 3 of the appendix."),
        ("In this paper we train a parser on it.", "We train a parser on it."),
        ("In order to train it, we have a lot of examples.", "To train it, we have many examples."),
        ("It fails due to the fact that it is in the cloud.", "It fails because it is in the cloud."),
        ("We also train a very large parser on all of the trees.", "We train a large parser on all the trees."),
        ("It is a very large parser for the trees.", "It is a large parser for the trees."),
        ("We take the features which are listed in the lexicon.", "We take the features listed in the lexicon."),
        ("It is slow on the long ones, as shown in Figure 3.", "It is slow on the long ones."),
        ("It is slow on the long ones (see Section 4) and on these.", "It is slow on the long ones and on these."),
    ],
)  # fmt: skip
def test_filler_goes(raw: str, expected: str) -> None:
    assert shortened(raw) == [expected]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("It is a parser BIBREF3 , BIBREF4 .", "It is a parser."),
        ("We use embeddings BIBREF3 and a parser for it.", "We use embeddings and a parser for it."),
        ("It is by the team ( BIBREF3 ) and it is a parser.", "It is by the team and it is a parser."),
        ("The parser (Smith et al., 2019; Lee and Kim, 2020) is in it.", "The parser is in it."),
        ("Smith et al. BIBREF3 train a parser of their own.", "Smith et al. train a parser of their own."),
    ],
)
def test_a_citation_mark_in_passing_goes(raw: str, expected: str) -> None:
    assert shortened(raw) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "BIBREF3 show that it is a parser for the few.",
        "It is the one that was proposed by BIBREF7 for this.",
        "We follow BIBREF7 in that, and it is as in [12] for the rest.",
        "Recently BIBREF3 trained a parser for it.",
        "We extend BIBREF9 by a parser, and there is more to it.",
        "It was in the conference (May 2019) and it is over.",
        "However, it is fast, although it is not very good.",
        "Unlike the others, this one isn't very good if it is cold.",
        "It is not only a parser, but also a tagger for the text.",
        "For example, it is the fastest of them; therefore we have it.",
        "It is the interval [1, 5] that we have here.",
        "We have limited access to it, and this is all we have.",
        "He said \"it is very, very good in order to\" and that is all of it.",
        "We have the code `it is very good` and the math $x$ in it.",
    ],
)  # fmt: skip
def test_what_carries_meaning_stays(body: str) -> None:
    assert shortened(body) == [body]


def test_numbers_in_brackets_are_citations_only_where_there_are_many() -> None:
    few = "This is a parser [3] of the old kind."
    many = [f"This is one of the parsers [{number}] of the old kind." for number in range(1, 6)]
    assert shortened(few) == [few]
    assert shortened(" ".join(many)) == [" ".join(["This is one of the parsers of the old kind."] * 5)]


# --- whole sentences ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pointer",
    [
        "The rest of the paper is organized as follows.",
        "The paper is structured as follows: in Section 2 we present the data.",
        "In this section, we describe the parser.",
        "Section 3 presents the parser.",
        "The results are shown in Table TABREF19.",
        "Figure 2 shows an overview of the parser.",
        "We discuss the parser in the next section.",
        "See Section 4 for more details.",
        "We thank the anonymous reviewers for their comments.",
    ],
)
def test_pure_pointers_go(pointer: str) -> None:
    kept = "A parser of this kind is fast on the long ones."
    assert shortened(f"{kept} {pointer}") == [kept]


@pytest.mark.parametrize(
    "sentence",
    [
        "Table 2 shows that the parser outperforms the others.",
        "In this section, we show that it is slow because it is large.",
        "Figure 2 shows an overview of the parser, which achieves the best score.",
        "The results are shown in Table 3, and they are good.",
        "We present a parser for the long ones.",
        "The parser is organized as follows:",
    ],
)
def test_a_sentence_that_claims_something_is_no_pointer(sentence: str) -> None:
    assert not is_pointer(sentence)


def test_a_pointer_stays_where_the_next_sentence_looks_back_at_it() -> None:
    body = "The parser is fast. In the next section, we describe the parser. It is the best of its kind."
    assert shortened(body) == [body]


@pytest.mark.parametrize("last", ["WordNet", "2048 trees", "the three taggers", "the “long” ones", "`parse`"])
def test_a_pointer_stays_if_it_alone_names_something(last: str) -> None:
    pointer = f"In the next section, we describe {last}."
    assert shortened(f"The parser is fast on all of it. {pointer}")[0].endswith(pointer)
    assert pointer not in shortened(f"The parser is as fast as {last} on it. {pointer}")[0]


REPEATED = "We release a new corpus of annotated German dialogues from public meetings."


def test_the_later_copy_in_a_later_section_goes() -> None:
    later = "In this paper, we release a corpus of annotated German dialogues from public meetings."
    rest = "German is the language of it all."
    assert shortened(REPEATED, f"{rest} {later}") == [REPEATED, rest]


@pytest.mark.parametrize(
    "later",
    [
        "We release a new corpus of annotated German dialogues from private meetings.",
        "We never release a new corpus of annotated German dialogues from public meetings.",
        "A new German corpus of public dialogues is what we release from annotated meetings.",
        REPEATED.replace("German", "French"),
        REPEATED.replace("a new corpus", "a new `corpus`").replace("dialogues", "`letters`"),
    ],
)
def test_what_says_something_else_is_no_copy(later: str) -> None:
    bodies = [REPEATED, f"German and French are the languages of it. {later}"]
    assert shortened(*bodies) == bodies


def test_a_copy_stays_if_its_section_would_lose_a_name_or_comes_from_the_same_section() -> None:
    lost = [REPEATED, f"This is what there is to it. {REPEATED}"]
    assert shortened(*lost) == lost
    same = f"{REPEATED} German is the language. {REPEATED}"
    assert shortened(same) == [same]


# --- the text around ----------------------------------------------------------------------------------------------


def test_blocks_lists_and_paragraphs_keep_their_lines() -> None:
    body = (
        "Moreover, it is what we have in the list:\n\n* Also, this one is in it\n  and is very long\n* this\n\n"
        "```\nMoreover, in order to be very very [12]\n```\n\n| in order to | very |\n| --- | --- |\n| really | so |\n\n"
        "The results are shown in Table 3.\n\nIn order to be in it, it is here."
    )
    expected = (
        "It is what we have in the list:\n\n* This one is in it\n  and is long\n* this\n\n"
        "```\nMoreover, in order to be very very [12]\n```\n\n| in order to | very |\n| --- | --- |\n| really | so |\n\n"
        "To be in it, it is here."
    )
    assert shortened(body) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "The rest of this paper is organized as follows.",
        "Moreover, das Modell ist sehr schnell und wird hier beschrieben BIBREF3 .",
        "Moreover, le modèle est très rapide et nous le décrivons ici en détail BIBREF3 .",
        "",
    ],
)
def test_nothing_left_or_not_english_stays(body: str) -> None:
    assert extract(make_document("d", body)) == {}


def test_captions_stay() -> None:
    document = make_document("d", "Moreover, it is what we have in the list.")
    captions = tuple(replace(section, kind="captions") for section in document.sections)
    assert extract(document) != {}
    assert extract(replace(document, sections=captions)) == {}


PHRASES = st.sampled_from(
    [
        "Moreover, ",
        " Furthermore , ",
        " Note that ",
        " In order to ",
        " a lot of ",
        " parsers ",
        " very ",
        " not ",
        " also ",
        " BIBREF3 ",
        " , ",
        " . ",
        "\n    and ",
        " the model ",
        " is ",
        " WordNet ",
        " 12.5 ",
        " as shown in Figure 3 ",
        " (see Table 2) ",
        " In this section, we describe ",
        " [4] ",
        "\n    which was trained ",
        " We ",
        " it ",
        " The results are shown in Table 3. ",
        " `very` ",
        " $x$ ",
        ' " ',
        " * ",
        " - ",
        "\n",
        "\n\n",
    ]
)


@given(st.lists(st.lists(PHRASES, max_size=30).map(" ".join), min_size=1, max_size=3))
def test_extracting_twice_changes_nothing_and_loses_no_fact_of_a_section(bodies: list[str]) -> None:
    document = make_document("d", *(f"Method: {body}" for body in bodies))
    again = rewritten(document)
    assert extract(again) == {}
    assert set(turning_words(document.text)) == set(turning_words(again.text))
    for raw, short in zip(document.sections, again.sections, strict=True):
        assert set(facts(raw.body)) - {"Moreover", "Furthermore", "Note"} <= set(facts(short.body))


@given(st.text(alphabet='ab `$*"“”<>\n\ue000'))
def test_hidden_passages_come_back(text: str) -> None:
    hidden = hide(text)
    assert (hidden is None) == ("\ue000" in text)
    assert hidden is None or reveal(*hidden) == text


def test_papers_are_shortened_mildly_and_once(test_data: Path) -> None:
    entries = open_corpus(str(test_data / "qasper-mini" / "qasper-mini.json")).entries()
    documents = [
        e.parse()
        for e in entries
        if isinstance(e, SourceEntry) and e.doc_id.startswith(("test-00", "test-01"))
    ]
    assert len(documents) >= 5
    for document in documents:
        again = rewritten(document)
        assert 0.88 < len(again.text.split()) / len(document.text.split()) < 1
        assert extract(again) == {}


@pytest.mark.parametrize(
    "hostile",
    [
        "Moreover, ",
        "very ",
        "in order to ",
        "BIBREF1 , ",
        "( BIBREF1 ",
        "Section 1 , ",
        "[1] ",
        "x" + " " * 50,
        "the ( ",
    ],
)
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    document = make_document(
        "d", "Method: " + "It is what we have of the all. " * 500 + hostile * (60_000 // len(hostile))
    )
    started = time.monotonic()
    extract(document)
    assert time.monotonic() - started < 10
