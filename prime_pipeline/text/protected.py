r"""Blocks that no rewriting may touch: cut out, replaced by placeholders, and put back byte for byte.

What a block is, is read off the text alone, whatever its format: Markdown by markdown-it's grammar; display math and
the tables, directives and literal blocks of reStructuredText by lines of our own. Where the readings overlap, the
union is protected: too much stays as it was, nothing is damaged. Inline code and inline math stay in the text;
:func:`inline_spans` names them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BlockKind = Literal["front-matter", "heading", "code", "math", "table", "html", "image", "definition"]
"""What a block is; ``definition`` is one of a link, a target or a substitution."""

PLACEHOLDER_LINE: Final = re.compile(r"[ \t]*\[\[[a-z]+:[a-z]+\]\]\s*")
"""A line that is only a placeholder, whatever its word."""

_WORD: Final = "block"


@dataclass(frozen=True, slots=True)
class Block:
    """One protected block.

    Attributes:
        placeholder: What stands for it, ``[[block:a]]`` for the first one.
        text: Its whole lines, verbatim, without the line end of the last.
        kind: What it is.
    """

    placeholder: str
    text: str
    kind: BlockKind


@dataclass(frozen=True, slots=True)
class Protected:
    """A text whose blocks are replaced by placeholders.

    Attributes:
        text: The text with each block's placeholder alone on its line. Placeholders are of letters only, so that
            rules on numbers and acronyms do not see them.
        blocks: In order; each placeholder occurs once in ``text``.
        word: The word inside the placeholders: ``block``, or another where the original holds that form itself.
    """

    text: str
    blocks: tuple[Block, ...]
    word: str = _WORD

    def restore(self, text: str) -> str:
        """``text`` with every known placeholder replaced by its block, as often as it occurs.

        Restoring this record's own text gives the original, character for character. Unknown placeholders stay.
        """
        blocks = {block.placeholder: block.text for block in self.blocks}
        return self._placeholder.sub(lambda found: blocks.get(found[0], found[0]), text)

    def placeholders_in(self, text: str) -> list[str]:
        """All placeholders in a text, known or not, in order and with repetitions."""
        return self._placeholder.findall(text)

    @property
    def _placeholder(self) -> re.Pattern[str]:
        return re.compile(rf"\[\[{self.word}:[a-z]+\]\]")


@dataclass(frozen=True, slots=True)
class _Span:
    """Lines from ``start`` to before ``end``, counted from 0."""

    start: int
    end: int
    kind: BlockKind


def protect(text: str) -> Protected:
    """Replace headings, code, display math, tables, raw HTML, lone images and link definitions by placeholders.

    Blocks are whole lines and end before blank lines, which stay. The time is linear in the length of the text. What is
    nested more than 20 deep in quotes and lists is not looked at.
    """
    lines = text.split("\n")
    word = _free_word(text)
    kept: list[str] = []
    blocks: list[Block] = []
    done = 0
    for span in _united(_spans(lines), lines):
        placeholder = f"[[{word}:{_letters(len(blocks))}]]"
        kept += [*lines[done : span.start], placeholder]
        blocks.append(Block(placeholder, "\n".join(lines[span.start : span.end]), span.kind))
        done = span.end
    return Protected("\n".join([*kept, *lines[done:]]), tuple(blocks), word)


def _free_word(text: str) -> str:
    taken = set(re.findall(r"\[\[([a-z]+):", text))
    words = (_WORD + suffix for suffix in ("", *map(_letters, range(len(taken)))))
    return next(word for word in words if word not in taken)


def _letters(number: int) -> str:
    """0 is a, 25 is z, 26 is aa: a spreadsheet's columns."""
    letters = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        letters = chr(ord("a") + digit) + letters
    return letters


def _spans(lines: Sequence[str]) -> Iterator[_Span]:
    markdown = [*_markdown_spans(lines)]
    code = {line for span in markdown if span.kind == "code" for line in range(span.start, span.end)}
    yield from markdown
    for reading in (_dollar_math, _bracket_math, _environments, _rest_tables, _rest_blocks, _images):
        yield from reading(lines, code)


def _united(spans: Iterable[_Span], lines: Sequence[str]) -> list[_Span]:
    """Overlapping spans as one, of the kind of the one that starts first (of these, the longest); no outer blanks."""
    united: list[_Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end, s.kind)):
        if united and span.start < united[-1].end:
            last = united[-1]
            united[-1] = _Span(last.start, max(last.end, span.end), last.kind)
        else:
            united.append(span)
    trimmed = (_without_blank_ends(span, lines) for span in united)
    return [span for span in trimmed if span.start < span.end]


def _without_blank_ends(span: _Span, lines: Sequence[str]) -> _Span:
    start, end = span.start, min(span.end, len(lines))
    while start < end and not lines[end - 1].strip():
        end -= 1
    while start < end and not lines[start].strip():
        start += 1
    return _Span(start, end, span.kind)


# --- Markdown -----------------------------------------------------------------------------------------------------

_MARKDOWN_KINDS: Final[dict[str, BlockKind]] = {
    "front_matter": "front-matter",
    "heading_open": "heading",
    "fence": "code",
    "code_block": "code",
    "html_block": "html",
    "table_open": "table",
    "definition": "definition",
}
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(?P<info>.*)", re.DOTALL)
_ADORNMENT: Final = re.compile(r"([!-/:-@\[-`{-~])\1{2,}")
_FRONT_MATTER_FIELD: Final = re.compile(r"[\w.-]+:(?:\s|\Z)")


def _markdown_spans(lines: Sequence[str]) -> Iterator[_Span]:
    table_ends = [number for number, line in enumerate(lines) if "</table" in line.lower()]
    parser = _markdown_parser(has_front_matter=_begins_with_front_matter(lines))
    for token in parser.parse("\n".join(_markdown_view(lines))):
        kind = _MARKDOWN_KINDS.get(token.type)
        if kind is None or token.map is None:
            continue
        start, end = token.map
        if kind == "heading" and _is_overline(lines, start, end):
            start -= 1
        elif kind == "html":
            end = max(end, _table_end(token, table_ends))
        yield _Span(start, end, kind)


def _begins_with_front_matter(lines: Sequence[str]) -> bool:
    # A section may begin with a rule; only a field makes it front matter.
    return lines[0].rstrip() == "---" and len(lines) > 1 and _FRONT_MATTER_FIELD.match(lines[1]) is not None


@cache
def _markdown_parser(*, has_front_matter: bool) -> MarkdownIt:
    """One of two parsers for all texts and threads: making one takes longer than parsing a section."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    parser = MarkdownIt("commonmark", {"inline_definitions": True}).enable("table").disable("inline")
    if has_front_matter:
        parser.use(front_matter_plugin)
    parser.parse("text")  # rules are put in order at the first text, and no other thread may see them half so
    return parser


def _markdown_view(lines: Sequence[str]) -> Iterator[str]:
    """The lines for markdown-it: CR is no line end here, and each underline of reStructuredText one of dashes.

    Without that, a title underlined by tildes would open a fence that never closes.
    """
    fence = ""
    for number, line in enumerate(lines):
        if not fence and _is_underline(lines, number):
            yield "-" * len(line.rstrip())
            continue
        if found := _FENCE.match(line):
            fence = _fence_after(fence, found)
        yield line.replace("\r", " ")


def _fence_after(fence: str, found: re.Match[str]) -> str:
    """The open fence behind a line of backticks or tildes; empty for none."""
    if not fence:
        return "" if found[1][0] == "`" and "`" in found["info"] else found[1]
    return "" if found[1].startswith(fence) and not found["info"].strip() else fence


def _is_underline(lines: Sequence[str], number: int) -> bool:
    """Whether this is the underline of a one-line title in reStructuredText (four characters or more)."""
    line = lines[number].rstrip()
    if len(line) < 4 or number == 0 or not _ADORNMENT.fullmatch(line):
        return False
    title = lines[number - 1].strip()
    above = lines[number - 2].rstrip() if number > 1 else ""
    return bool(title) and len(title) <= len(line) and above in {"", line} and not _ADORNMENT.fullmatch(title)


def _is_overline(lines: Sequence[str], start: int, end: int) -> bool:
    underline = lines[end - 1].rstrip()
    return start > 0 and lines[start - 1].rstrip() == underline and bool(_ADORNMENT.fullmatch(underline))


def _table_end(token: Token, table_ends: Sequence[int]) -> int:
    """The line behind a raw HTML table, which CommonMark would end at its first blank line."""
    if "<table" not in token.content.lower() or token.map is None:
        return 0
    return _first_from(table_ends, token.map[0], missing=-1) + 1


def _first_from(numbers: Sequence[int], start: int, missing: int) -> int:
    """The first of the ascending numbers that is not below ``start``."""
    position = bisect_left(numbers, start)
    return numbers[position] if position < len(numbers) else missing


# --- display math -------------------------------------------------------------------------------------------------

_ENVIRONMENT: Final = re.compile(r"\\(begin|end)\{([A-Za-z]+)\*?\}")
_ENVIRONMENTS: Final[dict[BlockKind, re.Pattern[str]]] = {
    "math": re.compile(
        "equation|align(?:ed|at)?|flalign|gather(?:ed)?|multline|eqnarray|split|cases|array|(?:display)?math|"
        "[pbBvV]?matrix|smallmatrix"
    ),
    "table": re.compile("tabularx?|longtable|table"),
    "code": re.compile("verbatim|lstlisting|minted|algorithm(?:ic)?"),
}


def _dollar_math(lines: Sequence[str], code: Collection[int]) -> Iterator[_Span]:
    """``$$`` pairs: alone on a line or over several. Only one that begins a line reaches across blank lines."""
    opened, reaches_far = None, False
    for number, line in enumerate(lines):
        if opened is not None and not reaches_far and not line.strip():
            opened = None
        if number in code or "$$" not in line:
            continue
        bare = line.strip()
        if opened is not None:
            yield _Span(opened, number + 1, "math")
            opened = None
        elif line.count("$$") % 2:
            opened, reaches_far = number, bare.startswith("$$")
        elif bare.startswith("$$") and bare.rstrip(".,;").endswith("$$") and bare.count("$$") == 2:
            yield _Span(number, number + 1, "math")


def _bracket_math(lines: Sequence[str], code: Collection[int]) -> Iterator[_Span]:
    r"""``\[`` at the start or end of a line, ``\]`` at the start or end of one in the same paragraph."""
    opened = None
    for number, line in enumerate(lines):
        bare = line.strip().rstrip(".,;")
        if number in code or not bare:
            opened = None
        elif opened is None and (bare.startswith(r"\[") or bare.endswith(r"\[")):
            opened = number
        if opened is not None and (bare.endswith(r"\]") or (number > opened and bare.startswith(r"\]"))):
            yield _Span(opened, number + 1, "math")
            opened = None
        elif opened == number and r"\]" in bare:
            opened = None  # escaped brackets in a line of prose


def _environments(lines: Sequence[str], code: Collection[int]) -> Iterator[_Span]:
    r"""From ``\begin{...}`` to the next ``\end{...}`` of the same name; without one there is no block."""
    marks = [
        (number, found.start(), found[2], found[1] == "end")
        for number, line in enumerate(lines)
        if number not in code and "\\" in line
        for found in _ENVIRONMENT.finditer(line)
    ]
    ends: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, column, name, is_end in marks:
        if is_end:
            ends[name].append((number, column))
    for number, column, name, is_end in marks:
        position = bisect_left(ends[name], (number, column))
        if not is_end and position < len(ends[name]) and (kind := _environment_kind(name)):
            yield _Span(number, ends[name][position][0] + 1, kind)


def _environment_kind(name: str) -> BlockKind | None:
    return next((kind for kind, names in _ENVIRONMENTS.items() if names.fullmatch(name)), None)


# --- reStructuredText and lone images -----------------------------------------------------------------------------

_GRID_BORDER: Final = re.compile(r"\s*\+(?:[-=]+\+)+\s*")
_SIMPLE_BORDER: Final = re.compile(r"\s*={2,}(?: +={2,})+\s*")
_DIRECTIVE: Final = re.compile(r"\.\. (?:\|[^|]+\| )?([\w:-]+)::(?:\s|\Z)")
_TARGET: Final = re.compile(r"\.\. (?:_[^:]+:|\|[^|]+\| )")
_DIRECTIVE_KINDS: Final[dict[str, BlockKind]] = {
    "math": "math",
    "image": "image",
    "figure": "image",
    **dict.fromkeys(("table", "csv-table", "list-table"), "table"),
}
_ONE_IMAGE: Final = (
    r"!\[[^\]]*+\](?:\((?:[^()\s]|\([^()\s]*+\))*+(?:\s++(?:\"[^\"]*+\"|'[^']*+'))?+\s*+\)|\[[^\]]*+\])"
)
_IMAGE_LINE: Final = re.compile(
    rf"\s*+(?:(?:{_ONE_IMAGE}|\[{_ONE_IMAGE}\](?:\([^()\s]*+\)|\[[^\]]*+\]))\s*+)++"
)


def _rest_tables(lines: Sequence[str], code: Collection[int]) -> Iterator[_Span]:
    done = 0
    borders = [n for n, line in enumerate(lines) if n not in code and _SIMPLE_BORDER.fullmatch(line)]
    for position, start in enumerate(borders):
        if start >= done and (end := _simple_table_end(lines, borders[position + 1 : position + 3])):
            yield _Span(start, end, "table")
            done = end
    done = 0
    for start, line in enumerate(lines):
        if start < done or start in code or not _GRID_BORDER.fullmatch(line):
            continue
        done = next(
            n for n in count(start) if n == len(lines) or not lines[n].lstrip().startswith(("+", "|"))
        )
        if done - start > 2:
            yield _Span(start, done, "table")


def _simple_table_end(lines: Sequence[str], borders: Sequence[int]) -> int:
    """The line behind the second border below the top one, or the first that a blank line follows; 0 for none."""
    for position, border in enumerate(borders):
        if position or border + 1 == len(lines) or not lines[border + 1].strip():
            return border + 1
    return 0


def _rest_blocks(lines: Sequence[str], code: Collection[int]) -> Iterator[_Span]:
    """Directives with their bodies, link targets, and the literal block behind a paragraph that ends in ``::``."""
    done = 0
    for start, line in enumerate(lines):
        if start < done or start in code:
            continue
        bare = line.strip()
        if found := _DIRECTIVE.match(bare):
            kind = "definition" if bare.startswith(".. |") else _DIRECTIVE_KINDS.get(found[1], "code")
            done = _body_end(lines, start)
            yield _Span(start, done, kind)
        elif _TARGET.match(bare):
            yield _Span(start, start + 1, "definition")
        elif bare.endswith("::") and start + 1 < len(lines) and not lines[start + 1].strip():
            done = _body_end(lines, start)
            yield _Span(start + 1, done, "code")


def _body_end(lines: Sequence[str], start: int) -> int:
    """The line behind those that are blank or indented deeper than the one at ``start``."""
    indent = _indent(lines[start])
    deeper = (n for n in range(start + 1, len(lines)) if lines[n].strip() and _indent(lines[n]) <= indent)
    return next(deeper, len(lines))


def _indent(line: str) -> int:
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())


def _images(lines: Sequence[str], code: Collection[int]) -> Iterator[_Span]:
    for number, line in enumerate(lines):
        if "![" in line and number not in code and _IMAGE_LINE.fullmatch(line):
            yield _Span(number, number + 1, "image")


# --- inline -------------------------------------------------------------------------------------------------------

_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")
_BACKTICKS: Final = re.compile(r"`+")
_INLINE_MATH: Final = re.compile(
    r"""
    (?<![\\$])\$\$(?:[^$\\]|\\.)++\$\$
    | (?<![\\$\w])\$(?![\s$])(?:[^$\\]|\\.)++(?<!\s)\$(?![\w$])
    | (?<!\\)\\\((?:[^\\]|\\[^()])*+\\\)
    """,
    re.VERBOSE | re.DOTALL,
)


def inline_spans(text: str) -> list[str]:
    r"""Inline code and inline math of a text, verbatim with their delimiters, in order and with repetitions.

    Code is enclosed in backtick runs of one length; math is ``$x$``, ``\(x\)`` or a ``$$x$$`` amid prose. Neither
    crosses a blank line, and code comes first where they overlap. As in Pandoc, a dollar sign opens math only before
    and closes it only behind a character that is no blank, and none closes before a letter or digit, so that
    ``$5 and $6`` is no math.
    """
    return [span for paragraph in _BLANK_LINE.split(text) for span in _spans_of_paragraph(paragraph)]


def _spans_of_paragraph(text: str) -> Iterator[str]:
    done = 0
    for start, end in _code_spans(text):
        yield from _INLINE_MATH.findall(text[done:start])
        yield text[start:end]
        done = end
    yield from _INLINE_MATH.findall(text[done:])


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    runs = [found.span() for found in _BACKTICKS.finditer(text)]
    starts: defaultdict[int, list[int]] = defaultdict(list)
    for start, end in runs:
        starts[end - start].append(start)
    done = 0
    for start, end in runs:
        if start < done or text[max(start - 1, 0) : start] == "\\":
            continue
        closing = _first_from(starts[end - start], end, missing=-1)
        if closing >= 0:
            done = closing + end - start
            yield start, done
