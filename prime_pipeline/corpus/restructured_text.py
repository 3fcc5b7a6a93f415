"""reStructuredText to a document: docutils finds the headings, the text stays the raw source.

Nothing is executed and no other file is read: ``include``, ``raw`` and ``:file:`` are refused by docutils, and
the text would hold only the directive itself in any case. Roles and directives of Sphinx are left as written.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prime_pipeline.corpus.sectioning import Outline, PlacedHeading, n_lines, sectioned
from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document

if TYPE_CHECKING:
    from docutils import nodes

_MAX_LINE_CHARACTERS = 10_000  # docutils' own limit: above it no heading is found
_MAX_HEADING_CHARACTERS = 1000  # roles are found in quadratic time
_MAX_INLINE_CHARACTERS = 300
_ROLE = re.compile(r":[\w:.+-]+:`[!~]?([^`<]*?)\s*(?:<[^`>]*>)?`")
_OTHER_LINE_ENDS = str.maketrans(dict.fromkeys("\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", " "))


def parse_restructured_text(text: str, doc_id: str, source_path: str) -> Document:
    """The document of a reStructuredText with LF line ends; its text is the source, character for character.

    A level is the depth of the section, so a single top-level section that holds all others is the title.

    Raises:
        DocumentError: docutils cannot parse it.
    """
    lines = text.split("\n")
    try:
        headings = list(_headings(_parsed(text), lines))
    except Exception as error:
        reason = f"docutils cannot parse it ({type(error).__name__}: {error}): simplify its nesting or markup"
        raise DocumentError(source_path, reason) from error
    outline = Outline(text, headings, n_source_lines=n_lines(text), warnings=_warnings(lines))
    return sectioned(outline, doc_id, source_path, "text/x-rst")


def _parsed(text: str) -> nodes.document:
    from docutils import frontend, nodes, utils
    from docutils.parsers.rst import Parser
    from docutils.parsers.rst.states import Inliner

    inliner = Inliner()
    read = inliner.parse

    def read_short(text: str, lineno: int, memo: Any, parent: Any) -> Any:
        # Titles are short. In long texts docutils takes quadratic time to find markup that nobody asked for.
        return (
            read(text, lineno, memo, parent)
            if len(text) <= _MAX_INLINE_CHARACTERS
            else ([nodes.Text(text)], [])
        )

    # Not by a subclass: docutils looks for what it needs in the class itself and not in its bases.
    inliner.parse = read_short  # type: ignore[method-assign]
    settings = frontend.get_default_settings(Parser)
    settings.file_insertion_enabled = False
    settings.raw_enabled = False
    settings.report_level = settings.halt_level = 5
    settings.warning_stream = io.StringIO()
    settings.syntax_highlight = "none"
    settings.line_length_limit = _MAX_LINE_CHARACTERS
    document = utils.new_document("text", settings)
    # docutils breaks lines at more characters than LF, and its line numbers have to be ours.
    Parser(inliner=inliner).parse(text.translate(_OTHER_LINE_ENDS), document)
    return document


def _headings(document: nodes.document, lines: list[str]) -> Iterator[PlacedHeading]:
    from docutils import nodes

    for section in document.findall(nodes.section):
        title = section.next_node(nodes.title)
        if title is None or section.line is None:
            continue
        underline = section.line - 1
        start = underline - 2 if _has_overline(lines, underline) else underline - 1
        words = " ".join(_ROLE.sub(r"\1", title.astext()[:_MAX_HEADING_CHARACTERS]).split())
        yield PlacedHeading(min(6, _depth(section)), words, start, underline + 1, start + 1)


def _depth(section: nodes.section) -> int:
    from docutils import nodes

    depth, parent = 1, section.parent
    while isinstance(parent, nodes.section):
        depth, parent = depth + 1, parent.parent
    return depth


def _has_overline(lines: list[str], underline: int) -> bool:
    above, below = lines[underline - 2].rstrip() if underline > 1 else "", lines[underline].rstrip()
    return bool(above) and above == below


def _warnings(lines: list[str]) -> list[str]:
    too_long = next((n for n, line in enumerate(lines, 1) if len(line) > _MAX_LINE_CHARACTERS), None)
    if too_long is None:
        return []
    return [
        f"Line {too_long} is longer than {_MAX_LINE_CHARACTERS} characters, so no headings were read: break it."
    ]
