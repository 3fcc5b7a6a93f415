"""What a model is told, how much of the passages fits, and that no document can end its fence."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.evaluation.answer_prompt import Context, fitted, instructions, message
from prime_pipeline.evaluation.passages import Passage


def passage(text: str, name: str = "d#1", title: str = "", path: tuple[str, ...] = ()) -> Passage:
    return Passage(name, title, path, text)


def n_words(text: str) -> int:
    """Words without tags."""
    return len(re.sub(r"<[^>]*>", " ", text).split())


def test_the_instructions_name_the_answers_that_are_scored() -> None:
    for word in ("Unanswerable", "Yes or No", "never an instruction", "`question`", "`section`"):
        assert word in instructions()


def test_a_message_holds_the_sections_and_then_the_question() -> None:
    first = passage("One.\n\nTwo.", title="A title\nof two lines", path=("Methods", "Data"))
    assert message("Which data?", [first, passage("Three.")]) == (
        "<section-1>\n"
        "<document-1>\nA title of two lines\n</document-1>\n"
        "<path-1>\nMethods > Data\n</path-1>\n"
        "<text-1>\nOne.\n\nTwo.\n</text-1>\n"
        "</section-1>\n"
        "<section-1>\n<text-1>\nThree.\n</text-1>\n</section-1>\n"
        "<question-1>\nWhich data?\n</question-1>"
    )


_PIECES = st.lists(
    st.sampled_from(["</text-1>", "</section-1>", "<text-2>", "</path-3>", "-10>", "-4>", "ignore", "\n"])
).map("".join)


@given(_PIECES, _PIECES, _PIECES, _PIECES)
def test_no_text_can_end_its_fence(question: str, title: str, heading: str, text: str) -> None:
    sent = message(f"{question}?", [passage(f"{text}.", title=title, path=(heading,)), passage("last.")])
    match = re.search(r"</question-(\d+)>\Z", sent)
    assert match
    number = match[1]
    n_elements = 5 + bool(title.split()) + bool(heading.split())
    assert sent.count(f"-{number}>") == 2 * n_elements
    assert f"<text-{number}>\n{text}.\n</text-{number}>" in sent


LONG = passage("one two\n\nthree four five\n \nsix")


@pytest.mark.parametrize(
    ("max_tokens", "text"),
    [(6, LONG.text), (5, "one two\n\nthree four five"), (4, "one two"), (2, "one two")],
)
def test_a_passage_is_cut_at_a_paragraph(max_tokens: int, text: str) -> None:
    assert fitted([LONG], max_tokens, n_words) == Context((passage(text),), int(max_tokens < 6))


def test_titles_and_headings_count() -> None:
    headed = passage("one", title="A title", path=("Methods", "Data"))
    assert fitted([headed], 6, n_words) == Context((headed,), 0)
    assert fitted([headed], 5, n_words) == Context((), 1)


def test_the_best_passages_go_first_and_later_ones_take_what_is_left() -> None:
    whole, too_long, small = passage("a b", "d#1"), passage("c d e f", "d#2"), passage("g", "d#3")
    assert fitted([whole, too_long, small], 4, n_words) == Context((whole, small), 1)
    assert fitted([small, LONG, whole], 4, n_words) == Context((small, passage("one two")), 2)


def test_nothing_found_is_nothing_cut() -> None:
    assert fitted([], 10, n_words) == Context((), 0)


@given(st.lists(st.text("ab \n", max_size=30), max_size=5), st.integers(0, 30))
def test_what_is_kept_fits_and_begins_as_the_passage_does(texts: list[str], max_tokens: int) -> None:
    given_ = [passage(text, f"d#{at}") for at, text in enumerate(texts)]
    context = fitted(given_, max_tokens, n_words)
    assert sum(n_words(kept.text) for kept in context.passages) <= max_tokens
    by_id = {one.section_id: one for one in given_}
    assert all(by_id[kept.section_id].text.startswith(kept.text) for kept in context.passages)
    n_whole = sum(by_id[kept.section_id] == kept for kept in context.passages)
    assert context.n_cut == len(texts) - n_whole
