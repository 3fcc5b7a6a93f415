"""HTML documents made by hand."""

from __future__ import annotations

import time

import pytest

from prime_pipeline.corpus.html import decoded_html, parse_html
from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document


def parse(text: str) -> Document:
    return parse_html(text, "page.html", "page.html")


PAGE = """<!doctype html>
<html><head><title>The  page</title>
<style>h2 { color: red }</style></head>
<body><nav><h2>Menu</h2><a href="/">home</a></nav>
<h1>Page</h1>
<p>Lead <b>text</b>.<br>More.</p>
<section><h2>First <code>x</code><a class="headerlink">¶</a></h2>
<ul><li>one<li>two<ul><li>deep</ul></ul>
<pre>
## no heading
  y = 1
</pre>
<script>var a = "<h2>no</h2>";</script>
</section>
<h2>Second</h2>
<table><tr><th>a<th>b</tr><tr><td>1</td><td><p>2</p></td></tr></table>
</body></html>
"""


def test_page_is_cut_and_traced_to_its_lines() -> None:
    document = parse(PAGE)
    assert (document.title, document.title_origin) == ("The page", "front-matter")
    assert [s.text for s in document.sections] == [
        "# Page\n\nLead text. More.\n\n",
        "## First x\n\n- one\n- two\n  - deep\n\n```\n## no heading\n  y = 1\n```\n\n",
        "## Second\n\n| a | b |\n| 1 | 2 |\n",
    ]
    assert [(s.start_line, s.end_line) for s in document.sections] == [(1, 6), (7, 14), (15, 17)]
    assert document.sections[0].body == "Lead text. More."


def test_lines_are_unknown_where_headings_do_not_agree() -> None:
    document = parse("<h2>a</h2><p>x<h2>b</h2><template><h2>c</h2></template>")
    assert [(s.heading, s.start_line) for s in document.sections] == [("a", None), ("b", None)]


def test_headings_in_layout_tables_are_headings() -> None:
    document = parse("<table><tr><td><h2>A</h2>text</td><td><h2>B</h2>more</td></tr></table>")
    assert [(s.heading, s.body) for s in document.sections] == [("A", "text"), ("B", "more")]


def test_sole_heading_is_the_title() -> None:
    document = parse("<h1>Only</h1>text")
    assert (document.title, document.title_origin) == ("Only", "heading")
    assert document.sections[0].kind == "whole"


def test_first_heading_that_repeats_the_title_is_no_section() -> None:
    document = parse("<title>T</title><h1>T</h1>lead<h1>A</h1>a<h1>B</h1>b")
    assert [(s.kind, s.heading_path, s.body) for s in document.sections] == [
        ("preamble", (), "lead"),
        ("section", ("A",), "a"),
        ("section", ("B",), "b"),
    ]


@pytest.mark.parametrize(
    "bomb",
    [
        "<div>" * 100_000,
        "<p><i>" * 100_000,
        "<div></x>" * 100_000,
        "<div/>" * 100_000,
        "<svg><title>" + "<div>" * 100_000,
    ],
)
def test_bombs_are_refused_at_once(bomb: str) -> None:
    with pytest.raises(DocumentError, match="nested too deeply"):
        parse(f"{bomb}text")


def test_unclosed_paragraphs_are_no_bomb() -> None:
    assert parse("<p>x<li>y" * 2000).sections[0].text.count("x") == 2000


@pytest.mark.parametrize("empty", ["<script>x</script>", "<nav>menu</nav>", "<!-- c -->"])
def test_no_words(empty: str) -> None:
    with pytest.raises(DocumentError, match="holds no text"):
        parse(empty)


def test_character_set_is_named_by_the_page() -> None:
    page = '<meta charset="iso-8859-1"><p>Caf\u00e9 \u201cx\u201d'
    assert decoded_html(page.encode("cp1252"), "p") == page
    assert decoded_html(page.encode(), "p") == page
    for name in (b"klingon", b"base64"):
        with pytest.raises(DocumentError, match="byte 26 is not UTF-8"):
            decoded_html(b'<meta charset="' + name + b'"> ' + b" " * (8 - len(name)) + b"\xff", "p")


MONSTERS = [
    "<a " * 1_000_000,
    "</" * 1_000_000,
    "<?" * 1_000_000,
    "<!--" * 1_000_000,
    "<![CDATA[" * 500_000,
    '<a x="' * 500_000,
    """<a x='" """ * 500_000,
    "<script>" * 200_000,
    "<title></title" * 200_000,
    "<a " + "=" * 1_000_000,
    "<![ x",
]


@pytest.mark.parametrize("monster", MONSTERS, ids=lambda monster: monster[:9])
def test_unfinished_markup_takes_linear_time(monster: str) -> None:
    started = time.process_time()
    assert parse(f"<h2>a</h2><p>word</p>{monster}").sections[0].heading == "a"
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    "monster",
    [
        "<select>" + "<option>x</option>" * 200_000,
        "<p " + " ".join(f"a{i}=1" for i in range(200_000)) + ">",
        "".join(f"<body a{i}='1'>" for i in range(200_000)),
        "".join(f"<x{i}></x{i}>" for i in range(200_000)),
    ],
    ids=["options", "attributes", "attributes of body", "names"],
)
def test_what_the_parser_compares_pair_by_pair_is_refused(monster: str) -> None:
    started = time.process_time()
    with pytest.raises(DocumentError, match="line 2 brings too many"):
        parse(f"word\n{monster}")
    assert time.process_time() - started < 10


def test_large_pages_of_common_markup_are_read() -> None:
    countries = "<select>" + "<option value=x>x</option>" * 250 + "</select>"
    rows = "<tr id='r' class='a b c'><td>x<td><svg><path d='M0/1'/></svg>" * 2000
    assert parse(countries * 100 + f"<table>{rows}</table>").text.count("| x |") == 2000


def test_lines_count_only_tags_that_open_a_heading() -> None:
    page = """<title><h2></title><!-- <h2> --><a title="<h2>">x</a><!--><textarea><h2></textarea>
<script>s = "<h2>" </script>
<svg><title>t</title><path/></svg>
<h2
 class=x>a</h2></ h2><?h2 <h2>
<H2>b</H2>"""
    document = parse(page)
    assert [(s.heading, s.start_line) for s in document.sections[1:]] == [("a", 4), ("b", 6)]
