"""Protected blocks: the round trip for any text, what counts as a block, and linear time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_pipeline.text.protected import Block, inline_spans, protect

LINES = st.sampled_from(
    [
        "```",
        "~~~~",
        "``` py",
        "    code",
        "\tcode",
        "$$",
        "$$ x $$",
        r"\[",
        r"\]",
        r"\begin{align}",
        r"\end{align}",
        "|a|b|",
        "|-|-|",
        "+--+--+",
        "== ==",
        ".. code::",
        "   body",
        "text::",
        "<table>",
        "</table>",
        "<!-- x",
        "-->",
        "## h",
        "h",
        "===",
        "---",
        "^^^^",
        "![a](b)",
        "[x]: y",
        "prose",
        "",
        " ",
        "> ```",
        "- item",
        "[[block:a]]",
        "a\rb",
        "\r",
        "[[blocka:b]]",
        "title: x",
        "\x00",
        "\u2028",
    ]
)
TEXTS = st.text() | st.lists(LINES, max_size=25).map("\n".join) | st.lists(LINES, max_size=9).map("\r\n".join)


def blocks_of(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in protect(text).blocks]


@given(TEXTS)
def test_restoring_gives_the_text_back_and_each_placeholder_stands_alone(text: str) -> None:
    protected = protect(text)
    assert protected.restore(protected.text) == text
    placeholders = [block.placeholder for block in protected.blocks]
    assert protected.placeholders_in(protected.text) == placeholders
    assert [line for line in protected.text.split("\n") if line in placeholders] == placeholders


def test_replaces_whole_lines_and_keeps_the_blank_ones() -> None:
    protected = protect("# T\n\nSome prose.\n\n```sh\n## not a title\n```\n\n\nMore.\n")
    assert protected.text == "[[block:a]]\n\nSome prose.\n\n[[block:b]]\n\n\nMore.\n"
    assert protected.blocks == (
        Block("[[block:a]]", "# T", "heading"),
        Block("[[block:b]]", "```sh\n## not a title\n```", "code"),
    )


def test_restores_what_a_rewriting_moved_doubled_or_invented() -> None:
    protected = protect("# T\n\nprose\n\n$$ x $$")
    rewritten = "[[block:b]]\n[[block:b]] [[block:c]]\n[[block:a]]"
    assert protected.placeholders_in(rewritten) == [
        "[[block:b]]",
        "[[block:b]]",
        "[[block:c]]",
        "[[block:a]]",
    ]
    assert protected.restore(rewritten) == "$$ x $$\n$$ x $$ [[block:c]]\n# T"


def test_placeholders_are_numbered_in_letters() -> None:
    placeholders = [block.placeholder for block in protect("# h\n" * 703).blocks]
    assert [placeholders[i] for i in (0, 25, 26, 51, 52, 701, 702)] == [
        f"[[block:{letters}]]" for letters in ("a", "z", "aa", "az", "ba", "zz", "aaa")
    ]


@pytest.mark.parametrize(
    ("prose", "word"),
    [("[[block:a]]", "blocka"), ("[[block: and [[blocka:q]]", "blockb"), ("[[Block:a]]", "block")],
)
def test_takes_another_word_where_the_text_uses_the_form_itself(prose: str, word: str) -> None:
    protected = protect(f"{prose}\n\n# T\n")
    assert protected.text == f"{prose}\n\n[[{word}:a]]\n"
    assert protected.placeholders_in(protected.text) == [f"[[{word}:a]]"]


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        ("front-matter", "---\ntitle: x\ntags: [a]\n---"),
        ("heading", "## T ##"),
        ("heading", "Title\n-----"),
        ("heading", "Title\n~~~~~"),
        ("heading", "=====\nTitle\n====="),
        ("heading", "*****\nTitle\n*****"),
        ("code", "```\n# x\n\n~~~\n````"),
        ("code", "~~~~ py\n~~~\n```\n~~~~"),
        ("code", "    a = 1\n\n    b = 2"),
        ("code", "  ```\n  x\n  ```"),
        ("code", ".. code-block:: python\n   :linenos:\n\n   a = 1\n\n   b = 2"),
        ("math", ".. math:: x\n\n   y"),
        ("math", "$$\n## x\n\n\\ce{H2O}\n$$"),
        ("math", "$$ x = 1 $$."),
        ("math", "\\[\nx\n\\]"),
        ("math", "\\[ x \\]"),
        ("math", "\\begin{align*}\nx &= \\begin{array}{c} 1 \\end{array}\n\\end{align*}"),
        ("math", "\\begin{equation} x \\end{equation}"),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("table", "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+"),
        ("table", "=== ===\na   b\n=== ===\n1   2\n\n3   4\n=== ==="),
        ("html", "<table>\n<tr><td>a</td></tr>\n\n<tr></tr>\n</table>"),
        ("html", "<pre>\na\n\nb\n</pre>"),
        ("html", "<!-- a\n\n## b -->"),
        ("html", "<script>\n\nx\n</script>"),
        ("image", "![a](b.png 'c')"),
        ("image", "[![a](b.svg)](c) ![d][e]"),
        ("image", ".. image:: a.png\n   :alt: b"),
        ("definition", "[x]: https://example.org 'T'"),
        ("definition", ".. _x: https://example.org"),
        ("definition", ".. |x| replace:: y"),
    ],
)
def test_protects(kind: str, block: str) -> None:
    before = "" if kind == "front-matter" else "Prose before.\n\n"
    assert blocks_of(f"{before}{block}\n\nProse behind.\n") == [(kind, block)]


def test_a_literal_block_is_cut_off_the_paragraph_that_announces_it() -> None:
    protected = protect("As in::\n\n  x = 1\n\n  y = 2\n\nProse.")
    assert protected.text == "As in::\n\n[[block:a]]\n\nProse."


def test_an_unclosed_fence_reaches_to_the_end() -> None:
    assert blocks_of("a\n\n```\nb\n\n# c\n") == [("code", "```\nb\n\n# c")]


@pytest.mark.parametrize(
    "text",
    [
        "- item\n\n    goes on in the list",
        "wrapped\n    prose",
        "$$ never closed\n\nprose",
        "It costs $$ here.\n\nAnd $$ there.",
        "\\[1\\] is a reference.",
        "\\begin{align} never closed",
        "```inline``` code",
        "a line with ![an image](x.png) in it",
        "a | b without a delimiter row",
        "[^1]: A footnote in prose.",
        "Prose.\n\n---\n\nProse.",
        "---\n\nA rule, then prose.\n\n---\n",
    ],
)
def test_leaves_prose_alone(text: str) -> None:
    assert protect(text).text == text


def test_code_wins_over_dollar_signs_inside_it() -> None:
    assert blocks_of("```sh\necho $$\n```\n\nprose\n\n```sh\nkill $$\n```") == [
        ("code", "```sh\necho $$\n```"),
        ("code", "```sh\nkill $$\n```"),
    ]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("use `x` and ``a`b`` now", ["`x`", "``a`b``"]),
        ("set $x_1$ or \\(y\\), then $\\$5$", ["$x_1$", "\\(y\\)", "$\\$5$"]),
        ("amid $$a+b$$ prose", ["$$a+b$$"]),
        ("`$a$` and $b$ and `c`", ["`$a$`", "$b$", "`c`"]),
        ("$5 and $6, $HOME/$USER", []),
        ("an escaped \\$a$", []),
        ("an open ` tick\n\nand ` another, $a\n\nb$", []),
        ("\\`no code`", []),
        ("`twice` `twice`", ["`twice`", "`twice`"]),
    ],
)
def test_inline_spans(text: str, spans: list[str]) -> None:
    assert inline_spans(text) == spans


@pytest.mark.parametrize(
    "unit",
    [
        "$$ ",
        "$$ $$\n",
        "[[",
        "```\n",
        "$a",
        "`a``",
        "\\[\n",
        "\\(",
        "\\begin{array}",
        "[a]: b\n",
        "<table>\n\n",
        "> ",
        "- ",
        "![a](",
        "== ==\n",
        "+--+\n",
        ".. a::\n",
        "x::\n\n  ",
        "[[blocka:",
        "* a\n",
        "a\n====\n\n",
    ],
)
def test_hostile_text_takes_seconds_at_most(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    started_s = time.process_time()
    protected = protect(text)
    inline_spans(text)
    assert time.process_time() - started_s < 10
    assert protected.restore(protected.text) == text


def test_real_documents_come_back(test_data: Path) -> None:
    paths = sorted((test_data / "markdown").rglob("*.md"))
    assert len(paths) > 200
    for path in paths:
        text = path.read_text(encoding="utf-8")
        protected = protect(text)
        assert protected.restore(protected.text) == text, path
        assert not [line for line in protected.text.split("\n") if line.startswith(("## ", "```"))], path
