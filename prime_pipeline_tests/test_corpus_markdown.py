"""Markdown documents made by hand, arbitrary ones, and real ones."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.corpus.decoding import decoded
from prime_pipeline.corpus.markdown import parse_markdown
from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document


def parse(text: str, path: str = "notes/some-file_name.md") -> Document:
    document = parse_markdown(text, path, path)
    assert document.text == text
    return document


def paths(document: Document) -> list[tuple[str, ...]]:
    return [section.heading_path for section in document.sections if section.kind == "section"]


def test_comment_in_fence_is_no_heading() -> None:
    fence = "```sh\n## not a title\nls\n```\n"
    document = parse(f"# T\n\n## One\n\n{fence}\n## Two\n\ntext\n")
    assert paths(document) == [("One",), ("Two",)]
    assert fence in document.sections[1].text


def test_underlined_headings_and_the_paragraph_above_dashes() -> None:
    document = parse("# T\n\nFirst\n-----\n\na\n\none\ntwo\nthree\n---\n\nb\n\n---\n\nc\n")
    assert paths(document) == [("First",), ("one two three",)]
    assert document.sections[1].body == "a"
    (warning,) = document.warnings
    assert "Lines 8 to 11" in warning
    assert parse("# T\n\nFirst\n-----\n\none\ntwo\n\n---\n").warnings == ()


def test_equal_headings_below_two_parents_are_two_sections() -> None:
    document = parse("# A\n\n## Results\n\n1.5\n\n# B\n\n## Results\n\n2.5\n")
    assert paths(document) == [("A", "Results"), ("B", "Results")]
    assert [section.body for section in document.sections] == ["1.5", "2.5"]
    assert [section.ordinal for section in document.sections] == [1, 2]
    assert (document.title, document.own_title) == ("some file name", "")
    assert [h.text for h in document.sections[1].headings] == ["B", "Results"]


def test_shallower_heading_with_text_is_a_section() -> None:
    document = parse("# A\n\nown\n\n## R\n\n1\n\n# B\n\n# C\n\n## S\n")
    assert paths(document) == [("A",), ("A", "R"), ("B",), ("C", "S")]
    assert [section.body for section in document.sections] == ["own", "1", "", ""]


def test_tree_has_no_stale_parents() -> None:
    document = parse("# T\n\n### Early\n\ne\n\n## Two\n\nt\n\n### Three\n\nx\n")
    preamble, two = document.sections
    assert (preamble.kind, preamble.ordinal, preamble.heading_path) == ("preamble", 0, ())
    assert preamble.body == "### Early\n\ne"
    assert two.heading_path == ("Two",)
    assert [(h.level, h.text, h.line) for h in two.headings] == [(2, "Two", 7), (3, "Three", 11)]
    assert [(s.start_line, s.end_line) for s in document.sections] == [(1, 6), (7, 13)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n\na\n\n# B\n\nb\n", [("A",), ("B",)]),
        ("# T\n\n### A\n\n#### x\n\n### B\n", [("A",), ("B",)]),
        ("# T\n\n### A\n\n#### x\n\n#### y\n", [("A", "x"), ("A", "y")]),
        ("# T\n\n### only\n\ntext\n", []),
        ("words\n", []),
        ("> ## quoted\n\n- ## listed\n\n## real\n", [("real",)]),
    ],
)
def test_section_level(text: str, expected: list[tuple[str, ...]]) -> None:
    document = parse(text)
    assert paths(document) == expected
    if not expected:
        assert [(s.kind, s.heading) for s in document.sections] == [("whole", document.title)]


@pytest.mark.parametrize(
    ("text", "title", "origin"),
    [
        ("---\ntitle: 'A: b'\ndate: 2024-01-02\n---\n# H\n", "A: b", "front-matter"),
        ("intro\n\n# H *x* `y`\n\n## S\n", "H x y", "heading"),
        ("## S\n\n# Late\n\ntext\n", "some file name", "file-name"),
        ("# [Link][l] &amp; ![alt](u) <b>bold</b>\n\n[l]: http://x\n", "Link & alt bold", "heading"),
        ('<h1 align="center">Raw &amp; <i>HTML</i></h1>\n\n## S\n', "Raw & HTML", "heading"),
    ],
)
def test_title(text: str, title: str, origin: str) -> None:
    document = parse(text)
    assert (document.title, document.title_origin) == (title, origin)


def test_body_starts_behind_front_matter_and_title() -> None:
    document = parse("---\ntitle: F\ntags: [a]\ndraft: true\n---\n\n# H\n\nlead\n\n## S\n")
    assert document.properties == {"title": "F", "tags": "a", "draft": "true"}
    assert [section.body for section in document.sections] == ["lead", ""]
    assert not parse("---\ntitle: F\n---\n\n# H\n\n## S\n").sections[0].body
    assert parse("note\n\n# H\n\nlead\n\n## S\n").sections[0].body == "note\n\n# H\n\nlead"


@pytest.mark.parametrize("front", ["title: a: b", "x: [", "a: &a [*a]"])
def test_broken_front_matter_is_text_with_a_warning(front: str) -> None:
    document = parse(f"---\n{front}\n---\n\n## S\n\ntext\n")
    assert len(document.warnings) == 1
    assert document.sections[0].body_start == 0
    assert document.properties == {}
    assert paths(document) == [("S",)]


def test_rules_around_prose_are_no_front_matter() -> None:
    assert paths(parse("---\n\n## One\n\ntext\n\n---\n\n## Two\n")) == [("One",), ("Two",)]
    assert parse("---\n# Title\n\n---\n").title == "Title"
    assert parse("---\ntitle: F\nx: " + "y" * 70_000 + "\n---\n").title_origin == "file-name"


def test_alias_bomb_is_harmless() -> None:
    rows = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))
    assert parse(f"---\ntitle: F\na0: &a0 [x]\n{rows}\n---\ntext\n").title == "F"


def test_lists_in_front_matter_are_kept_with_commas() -> None:
    front = "title: [no, title]\ntags:\n- retries\n-  back  off\n- [nested]\nkeywords: [a, 2]\nempty: []"
    document = parse(f"---\n{front}\n---\n# H\n")
    assert document.properties == {"tags": "retries, back off", "keywords": "a, 2"}
    assert document.title == "H"


def test_aliases_cannot_make_properties_longer_than_front_matter_may_be() -> None:
    many = ", ".join(["*s"] * 5_000)
    document = parse(f"---\ntitle: F\ns: &s {'x' * 1_000}\nall: &all [{many}]\nagain: *s\n---\ntext\n")
    assert set(document.properties) == {"title", "s"}


def test_hashes_in_display_math_are_no_headings() -> None:
    math = "$$\n\\frac{a}{b}\n## c\n= d\n---\n$$\n"
    document = parse(f"# T\n\n## One\n\n{math}\n## Two\n\n$$x$$\n\n## Three\n")
    assert paths(document) == [("One",), ("Two",), ("Three",)]
    assert math in document.sections[1].text
    assert paths(parse("## One\n\n```\n$$\n```\n\n## Two\n\n$$ open\n\n## Three\n")) == [
        ("One",),
        ("Two",),
        ("Three",),
    ]


def test_deep_nesting_is_refused_or_read() -> None:
    deep = "---\na: " + "[" * 5000 + "\n---\n"
    with pytest.raises(DocumentError, match="nested too deeply"):
        parse(deep)
    assert parse(">" * 5000 + " x\n").sections[0].kind == "whole"


def test_many_headings_take_linear_time() -> None:
    assert len(parse("## x\n" * 20_000).sections) == 20_000


LINES = (
    "# A|## B|### C|  ## D|B|---|===|| |text|```|~~~|$$|> ## q|- # l|    code|<h2>raw</h2>|<div>|\u2028## x|\x0c|"
    "title: t|#|\t|[l]: u|* x|1. y"
)


@given(st.lists(st.sampled_from(LINES.split("|")), max_size=25), st.booleans())
def test_sections_reassemble(lines: list[str], last_line_end: bool) -> None:
    document = parse("\n".join(lines) + "\n" * last_line_end)
    ordinals = [section.ordinal for section in document.sections]
    assert ordinals in (list(range(len(ordinals))), list(range(1, len(ordinals) + 1)))
    for section in document.sections:
        assert section.start_line is not None
        assert section.end_line is not None
        assert 0 <= section.body_start <= len(section.text)
        lines_of_section = document.text.split("\n")[section.start_line - 1 : section.end_line]
        assert "\n".join(lines_of_section) == section.text.removesuffix("\n")


@given(st.text())
def test_any_text_reassembles(text: str) -> None:
    parse(text.replace("\x00", "").replace("\r", "\n"))


def test_real_documents(test_data: Path) -> None:
    root = test_data / "markdown"
    documents = {}
    files = sorted(root.rglob("*.md"))
    for path in files:
        text = decoded(path.read_bytes(), path.name)
        document = documents[path.stem] = parse(text, path.relative_to(root).as_posix())
        lines = text.split("\n")
        for section in document.sections:
            assert section.start_line is not None
            assert "\n".join(lines[section.start_line - 1 : section.end_line]) == section.text.removesuffix(
                "\n"
            )
    assert len(files) == 245
    assert documents["0235-collections-conventions"].title == "0235 collections conventions"
    assert paths(documents["2302-tuple-struct-self-ctor"])[:2] == [("Summary",), ("Motivation",)]
    assert ("Motivation", "Benefit: Faster loading") in paths(documents["3834-export-visibility"])
    assert "[features]" not in str(paths(documents["3143-cargo-weak-namespaced-features"]))
    assert documents["capability-matrix"].own_title == "Reference Capability Matrix"


@pytest.mark.parametrize(
    "heading",
    [
        f"# {'[' * 1_000_000}",
        f"# {'<![CDATA[' * 50_000}",
        f"<h1>{'<' * 500_000}</h1>",
        f"<h1>{'<a ' * 500_000}</h1>",
        f"<h1>&#{'9' * 100_000}</h1>",
    ],
    ids=lambda heading: heading[:9],
)
def test_words_of_a_monstrous_heading_are_cut_but_not_its_text(heading: str) -> None:
    started = time.process_time()
    document = parse(f"{heading}\n\nbody\n")
    assert time.process_time() - started < 10
    assert 0 < len(document.title) <= 1000
    assert document.text == f"{heading}\n\nbody\n"
