"""Markdown (CommonMark with tables and front matter) to a document. The grammar is markdown-it's, not ours.

Readings of our own:

* Only headings at the top level count, not those inside quotes and lists.
* A heading's words are read from its first 1,000 characters; the section's text is not cut.
* A raw HTML block that is just one ``<h1>`` to ``<h6>`` counts as that heading.
* Display math: a line that starts with ``$$`` opens a block, whose lines are no headings until the closing ``$$``.
* Front matter is YAML between ``---`` lines at the very top. What is no mapping is read as text instead, as is all
  front matter above 64 KiB; broken YAML counts as text, with a warning, but holds no headings.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from prime_pipeline.corpus.sectioning import Outline, PlacedHeading, n_lines, sectioned
from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAX_FRONT_MATTER_CHARACTERS = 64 * 1024
_HTML_HEADING = re.compile(r"\s*<h([1-6])\b[^>]*>(.*?)</h\1\s*>\s*", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_MAX_HEADING_CHARACTERS = 1000  # parsing words takes quadratic time on rows of brackets

LineRange = tuple[int, int]
"""0-based first line, and the line behind the last."""


def parse_markdown(text: str, doc_id: str, source_path: str) -> Document:
    """The document of a Markdown text with LF line ends.

    Raises:
        DocumentError: It is nested too deeply to be parsed.
    """
    try:
        outline = _outline(text)
    except RecursionError as error:
        raise DocumentError(
            source_path, "nested too deeply: flatten its quotes, lists or front matter"
        ) from error
    return sectioned(outline, doc_id, source_path, "text/markdown")


def _outline(text: str) -> Outline:
    parser = _parser()
    environment: dict[str, Any] = {}
    tokens = parser.parse(text, environment)
    properties, end, warnings = _front_matter(tokens)
    if properties is None:
        tokens = parser.disable("front_matter").parse(text, environment)
    headings = _outside_math(_headings(parser, tokens, environment), text, tokens)
    return Outline(
        text=text,
        headings=headings,
        front_matter_end=end,
        declared_title=(properties or {}).get("title", ""),
        n_source_lines=n_lines(text),
        properties=properties or {},
        warnings=[*warnings, *_setext_warnings(headings, tokens)],
    )


def _parser() -> MarkdownIt:
    """A parser of blocks only: words are parsed for headings alone, which is several times as fast."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    parser = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
    return parser.disable("inline")


def _lines(token: Token) -> LineRange:
    start, end = token.map or (0, 0)
    return start, end


def _front_matter(tokens: Sequence[Token]) -> tuple[dict[str, str] | None, int, list[str]]:
    """The texts of the front matter, the line behind it, warnings; None: parse again without it."""
    if not tokens or tokens[0].type != "front_matter":
        return {}, 0, []
    import yaml

    if len(tokens[0].content) > _MAX_FRONT_MATTER_CHARACTERS:
        return None, 0, []
    try:
        # The base loader keeps scalars as the author wrote them and constructs no other objects.
        values = yaml.load(tokens[0].content, Loader=yaml.BaseLoader)  # noqa: S506
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "unreadable"
        return (
            {},
            0,
            [f"The front matter is not valid YAML ({problem}) and counts as text: quote its values."],
        )
    if not isinstance(values, dict):
        return (None, 0, []) if tokens[0].content.strip() else ({}, _lines(tokens[0])[1], [])
    return _texts(values), _lines(tokens[0])[1], []


def _texts(values: dict[Any, Any]) -> dict[str, str]:
    """Scalars as they are written, and lists of scalars (tags, say) with commas between them; a title is no list.

    Aliases can make the values far longer than the front matter is: those from where they do on are left out.
    """
    texts: dict[str, str] = {}
    n_characters = 0
    for key, value in values.items():
        items = value if isinstance(value, list) and key != "title" else [value]
        written = [item for item in items if isinstance(item, str)]
        n_characters += sum(map(len, written))
        if n_characters > _MAX_FRONT_MATTER_CHARACTERS:
            break
        text = ", ".join(" ".join(item.split()) for item in written)
        if isinstance(key, str) and text and text not in {"null", "~"}:
            texts[key] = text
    return texts


def _headings(
    parser: MarkdownIt, tokens: Sequence[Token], environment: dict[str, Any]
) -> Iterator[PlacedHeading]:
    for position, token in enumerate(tokens):
        start, end = _lines(token)
        if token.type == "heading_open" and token.level == 0:
            words = _words(parser, tokens[position + 1].content, environment)
            yield PlacedHeading(int(token.tag[1]), words, start, end, start + 1)
        elif token.type == "html_block" and token.level == 0 and (found := _html_heading(token.content)):
            yield PlacedHeading(*found, start, end, start + 1)


def _html_heading(block: str) -> tuple[int, str] | None:
    """Level and words of a raw HTML block that is one heading; an image without words is none."""
    found = _HTML_HEADING.fullmatch(block)
    bare = _TAG.sub(" ", found[2]).strip()[:_MAX_HEADING_CHARACTERS] if found else ""
    words = " ".join(html.unescape(bare).split())
    return (int(found[1]), words) if found and words else None


def _words(parser: MarkdownIt, source: str, environment: dict[str, Any]) -> str:
    """The words of a heading without markup; an image stands for its alternative text."""
    tokens: list[Token] = []
    parser.inline.parse(source[:_MAX_HEADING_CHARACTERS], parser, environment, tokens)
    words = (
        " " if t.type in {"softbreak", "hardbreak"} else "" if t.type == "html_inline" else t.content
        for t in tokens
    )
    return " ".join("".join(words).split())


def _outside_math(
    headings: Iterator[PlacedHeading], text: str, tokens: Sequence[Token]
) -> list[PlacedHeading]:
    code = [_lines(t) for t in tokens if t.type in {"fence", "code_block"}]
    blocks = _math_blocks(text.split("\n"), {line for lines in code for line in range(*lines)})
    math = {line for lines in blocks for line in range(*lines)}
    return [h for h in headings if math.isdisjoint(range(h.start, h.end))]


def _math_blocks(lines: Sequence[str], code: set[int]) -> Iterator[LineRange]:
    """Display math of more than one line; without a closing mark the opening one is no math."""
    opened: int | None = None
    for number, line in enumerate(lines):
        if "$$" not in line or number in code:
            continue
        if opened is not None:
            yield opened, number + 1
            opened = None
        elif line.lstrip().startswith("$$") and line.count("$$") == 1:
            opened = number


def _setext_warnings(headings: Sequence[PlacedHeading], tokens: Sequence[Token]) -> Iterator[str]:
    underlined = {_lines(t)[0] for t in tokens if t.type == "heading_open" and t.markup in {"-", "="}}
    for heading in headings:
        if heading.start in underlined and heading.end - heading.start > 2:
            yield (
                f"Lines {heading.start + 1} to {heading.end} are one heading, because a line of dashes or equals signs "
                "stands directly below the paragraph: put a blank line between if it was meant as a rule."
            )
