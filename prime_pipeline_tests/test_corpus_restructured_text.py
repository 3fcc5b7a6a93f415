"""reStructuredText made by hand; what directives must not do."""

from __future__ import annotations

from pathlib import Path

from prime_pipeline.corpus.restructured_text import parse_restructured_text
from prime_pipeline.records import Document


def parse(text: str) -> Document:
    document = parse_restructured_text(text, "docs/some_page.rst", "docs/some_page.rst")
    assert document.text == text
    return document


def test_sections_and_lines() -> None:
    document = parse(
        "=====\nTitle\n=====\n\nlead\n\n-----------------------\n:mod:`a.b` --- **bold**\n-----------------------\n\nx\n\n"
        "Deep\n^^^^\n\ny\n\n------\nSecond\n------\n\nz :ref:`l`\n\n.. toctree::\n   a\n"
    )
    assert (document.title, document.title_origin) == ("Title", "heading")
    assert [(s.heading, s.start_line, s.end_line) for s in document.sections] == [
        ("", 1, 6),
        ("a.b --- bold", 7, 17),
        ("Second", 18, 25),
    ]
    assert document.sections[0].body == "lead"
    assert document.sections[1].body.startswith("x\n\nDeep")
    assert [(h.level, h.text, h.line) for h in document.sections[1].headings] == [
        (2, "a.b --- bold", 7),
        (3, "Deep", 13),
    ]


def test_several_top_sections_have_no_title() -> None:
    document = parse("A\n=\n\na\n\nB\n=\n\nb\n")
    assert (document.title, document.title_origin) == ("some page", "file-name")
    assert [s.heading_path for s in document.sections] == [("A",), ("B",)]


def test_other_line_separators_do_not_shift_lines() -> None:
    document = parse("A\n=\n\nx\u2028y\x0cz\x85\n\nB\n=\n\nb\n")
    assert [s.start_line for s in document.sections] == [1, 6]


def test_directives_read_no_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("Leaked\n======\n\ntop-secret\n")
    directives = (
        f".. include:: {secret}\n\n.. raw:: html\n   :file: {secret}\n\n"
        f".. csv-table:: t\n   :file: {secret}\n\n.. literalinclude:: {secret}\n"
    )
    document = parse(f"A\n=\n\n{directives}\nB\n=\n\nb\n")
    assert "top-secret" not in repr(document)
    assert [s.heading for s in document.sections] == ["A", "B"]


def test_too_long_a_line_is_named() -> None:
    (warning,) = parse("A\n=\n\n" + "x" * 20_000 + "\n").warnings
    assert "Line 4" in warning


def test_words_of_a_monstrous_heading_are_cut_but_not_its_text() -> None:
    text = "".join(f"{':a' * 4000}\n{mark * 8000}\n\nbody\n\n" for mark in "=-")
    document = parse_restructured_text(text, "a.rst", "a.rst")
    assert document.text == text
    assert {len(h.text) for s in document.sections for h in s.headings} == {1000}


def test_monstrous_paragraphs_take_no_quadratic_time() -> None:
    # A minute and more for each when docutils reads the markup inside them.
    for unit in ("`a < ", "|a ", "*a ", ":a:`b "):
        paragraph = "\n".join([unit * (2_000 // len(unit))] * 50)
        document = parse(f"A\n=\n\n{paragraph}\n\nB\n=\n\nb\n")
        assert [s.heading for s in document.sections] == ["A", "B"]
