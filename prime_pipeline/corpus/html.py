"""HTML to a document: block-aware text with Markdown-like headings, cut into sections. Nothing is fetched or run.

Headings become lines like ``## Words``, list items ``- ``, ``<pre>`` fenced code, a table row one line
``| a | b |`` (unless the table lays out headings, lists, code or other tables). Scripts, styles, drawings and
navigation are dropped. A section's lines are those of the HTML file, from heading to heading, and unknown if the
file's headings cannot be matched with the parsed ones.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prime_pipeline.corpus.decoding import decoded, decoded_as, with_line_feeds
from prime_pipeline.corpus.sectioning import Outline, PlacedHeading, n_lines, sectioned
from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_MAX_DEPTH = 512
_MAX_REOPENED = 5_000_000
_MAX_COMPARED = 100_000_000  # about a second
_MAX_NAMES = 20_000
_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_FLAGS = re.IGNORECASE | re.ASCII
_MARKUP = re.compile(r"<(?:(/?)([a-z][^\s/>]*+)|!--|[!?/])", _FLAGS)
# Possessive, so that nothing is read twice: a tag or value without an end fails after one look at the rest.
_ATTRIBUTES = re.compile(r"""(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|(?!["'])))*+>""", _FLAGS)
_VALUE = re.compile(r"""=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"']*+)""", _FLAGS)
_COMMENT = re.compile(r"-?>|.*?--!?>", _FLAGS | re.DOTALL)
_BOGUS_COMMENT = re.compile(r"[^>]*+>", _FLAGS)
_BROWSER_NAMES = {"iso8859-1": "cp1252", "ascii": "cp1252"}  # what the HTML standard reads for these two

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_DROPPED = frozenset({"head", "script", "style", "noscript", "template", "svg", "nav"})
_OTHER_BLOCKS = (
    "address article aside blockquote body caption dd details dialog div dl dt fieldset figcaption figure footer "
    "form header hgroup hr html legend li main menu ol p pre section summary table tbody td tfoot th thead tr ul"
)
_BLOCKS = _HEADINGS | frozenset(_OTHER_BLOCKS.split())
_NO_CELL_CONTENT = "h1,h2,h3,h4,h5,h6,pre,table,ul,ol"  # a row that holds these only lays out the page
_CLOSED_BY_OTHERS = "p li dt dd tr td th tbody thead tfoot colgroup option optgroup html head body"
_VOID = "area base br col embed hr img input link meta param source track wbr"
_NOT_NESTING = frozenset(f"{_CLOSED_BY_OTHERS} {_VOID}".split())
_FOREIGN = frozenset({"svg", "math"})
_RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
_FORMATTING = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
)


def decoded_html(data: bytes, source: str) -> str:
    """The text of an HTML file: as in any other file, else in the character set that a ``<meta>`` element names.

    Raises:
        DocumentError: It is in no encoding that is known.
    """
    try:
        return decoded(data, source)
    except DocumentError:
        named = _CHARSET.search(data[:4096])
        encoding = _known_encoding(named[1].decode("ascii", "replace")) if named else None
        if encoding is None:
            raise
        return decoded_as(encoding, data, source)


def _known_encoding(name: str) -> str | None:
    try:
        found = codecs.lookup(name).name
        "".encode(found)  # refuses codecs that are no character sets
    except LookupError:
        return None
    return _BROWSER_NAMES.get(found, found)


def parse_html(text: str, doc_id: str, source_path: str) -> Document:
    """The document of an HTML text; its own text is what a reader sees, not the markup.

    Raises:
        DocumentError: It holds no words, or parsing it would take minutes, since it is nested too deeply, say.
    """
    from selectolax.lexbor import LexborHTMLParser

    tagged = _headings(text, source_path)
    tree = LexborHTMLParser(text)
    if tree.root is None:
        raise DocumentError(source_path, "holds no text")
    parsed = tree.css(",".join(sorted(_HEADINGS)))
    known = [node.tag for node in parsed] == [name for name, _ in tagged]
    lines = {node.mem_id: line for node, (_, line) in zip(parsed, tagged, strict=True)} if known else {}
    writer = _Writer()
    for node, entering in _walk(tree.root):
        writer.visit(node, entering, lines.get(node.mem_id))
    if not (result := writer.text()).strip():
        raise DocumentError(source_path, "holds no text outside scripts, styles and navigation")
    title = tree.css_first("head > title")
    outline = Outline(
        text=result,
        headings=writer.headings,
        declared_title=" ".join(title.text().split()) if title else "",
        n_source_lines=n_lines(text) if known else None,
    )
    return sectioned(outline, doc_id, source_path, "text/html")


def _walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Every node that is not dropped, on entering and on leaving it; a loop, since recursion has a limit."""
    node: LexborNode | None = root
    while node is not None:
        yield node, True
        child = None if node.tag in _DROPPED else node.child
        while child is None:
            yield node, False
            if node.mem_id == root.mem_id:  # == would compare the two as HTML texts
                return
            child, parent = node.next, node.parent
            if child is None and parent is not None:
                node = parent
        node = child


class _Writer:
    """Collects blocks of text, and the headings with their lines."""

    def __init__(self) -> None:
        self.headings: list[PlacedHeading] = []
        self._blocks: list[str] = []
        self._last_kind = ""
        self._n_lines = 0
        self._words: list[str] = []
        self._cells: list[str] | None = None
        self._list_depth = 0
        self._marker = ""
        self._pre_depth = 0

    def text(self) -> str:
        self._flush()
        return "".join(self._blocks)

    def visit(self, node: LexborNode, entering: bool, source_line: int | None) -> None:
        tag = node.tag or ""
        if tag == "-text":
            self._words.append((node.text_content or "") if entering else "")
        elif tag == "br":
            self._words.append("\n" if entering else "")
        elif tag in _BLOCKS and self._cells is None and not self._pre_depth:
            self._enter(node, tag) if entering else self._leave(tag, source_line)
        elif tag == "pre" and self._cells is None:
            self._pre_depth += 1 if entering else -1
            if not self._pre_depth:
                self._code()
        elif tag in _BLOCKS and not entering:
            self._leave_inside(tag)

    def _enter(self, node: LexborNode, tag: str) -> None:
        self._flush()
        if tag == "tr" and node.css_first(_NO_CELL_CONTENT) is None:
            self._cells = []
        elif tag in {"ul", "ol", "menu"}:
            self._list_depth += 1
        elif tag == "li":
            self._marker = "  " * max(0, self._list_depth - 1) + "- "
        elif tag == "pre":
            self._pre_depth = 1

    def _leave(self, tag: str, source_line: int | None) -> None:
        if tag in _HEADINGS:
            self._heading(int(tag[1]), source_line)
        else:
            self._flush()
        if tag in {"ul", "ol", "menu"}:
            self._list_depth -= 1
        if tag == "li":
            self._marker = ""

    def _leave_inside(self, tag: str) -> None:
        """The end of a block that stands in a table row or in code, where it is no block of its own."""
        if self._cells is None or tag not in {"td", "th", "tr"}:
            self._words.append(" " if self._cells is not None else "")
        elif tag == "tr":
            cells, self._cells = self._cells, None
            self._add(f"| {' | '.join(cells)} |\n" if any(cells) else "", "row")
        else:
            self._cells.append(self._taken())

    def _heading(self, level: int, source_line: int | None) -> None:
        if words := self._taken().rstrip("¶ "):
            self._add(f"{'#' * level} {words}\n", "heading")
            self.headings.append(PlacedHeading(level, words, self._n_lines - 1, self._n_lines, source_line))
        self._marker = ""

    def _code(self) -> None:
        code = with_line_feeds("".join(self._words)).strip("\n")
        self._words.clear()
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`{3,}", code))])
        self._add(f"{fence}\n{code}\n{fence}\n" if code.strip() else "", "code")

    def _flush(self) -> None:
        if words := self._taken():
            self._add(f"{self._marker}{words}\n", "item" if self._marker else "paragraph")
            self._marker = ""

    def _taken(self) -> str:
        words = " ".join("".join(self._words).split())
        self._words.clear()
        return words

    def _add(self, block: str, kind: str) -> None:
        """A block behind a blank line; items of a list and rows of a table follow one another without."""
        if not block:
            return
        apart = self._blocks and not (kind == self._last_kind and kind in {"item", "row"})
        self._blocks.append(f"\n{block}" if apart else block)
        self._n_lines += self._blocks[-1].count("\n")
        self._last_kind = kind


@dataclass(frozen=True, slots=True)
class _Tag:
    """A tag of the file: name in lower case, text behind the name, and 1-based line on which it starts."""

    name: str
    attributes: str
    line: int
    is_end: bool


def _tags(text: str) -> Iterator[_Tag]:
    """The tags outside comments, scripts and the like, in linear time; what is never closed hides all behind it."""
    position, line, counted, foreign = 0, 1, 0, ""
    while found := _MARKUP.search(text, position):
        slash, name = found[1], (found[2] or "").lower()
        rest = (_ATTRIBUTES if name else _COMMENT if found[0] == "<!--" else _BOGUS_COMMENT).match(
            text, found.end()
        )
        if rest is None:
            return
        position = rest.end()
        if not name:
            continue
        line, counted = line + text.count("\n", counted, found.start()), found.start()
        yield _Tag(name, rest[0][:-1], line, bool(slash))
        if foreign and not slash and rest[0].endswith("/>"):  # elsewhere HTML ignores that slash
            yield _Tag(name, "", line, is_end=True)
        elif name in _FOREIGN:
            foreign = "" if slash else name
        elif name in _RAW and not slash and not foreign:
            end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, position)
            if end is None:
                return
            position = end.start()


class _Guard:
    """Adds up, roughly, what the tags would cost a parser, and refuses what would take minutes or gigabytes."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: list[str] = []
        self._n_formatting: Counter[str] = Counter()
        self._n_reopened = 0
        self._n_options = 0
        self._n_root_attributes = 0
        self._n_compared = 0
        self._names: set[str] = set()

    def check(self, tag: _Tag) -> None:
        """Take the next tag into account.

        Raises:
            DocumentError: The limit is reached.
        """
        if tag.is_end:
            self._end(tag.name)
        else:
            self._start(tag.name)
            self._compare(tag)
        if len(self._open) > _MAX_DEPTH or self._n_reopened > _MAX_REOPENED:
            raise DocumentError(self._source, f"line {tag.line} is nested too deeply: close its elements")
        if self._n_compared > _MAX_COMPARED or len(self._names) > _MAX_NAMES:
            reason = f"line {tag.line} brings too many attributes, options or kinds of elements: remove some"
            raise DocumentError(self._source, reason)

    def _start(self, name: str) -> None:
        if name in _FORMATTING:
            self._n_formatting[name] += 1
        elif name not in _NOT_NESTING:
            self._open.append(name)
        self._n_reopened += self._n_formatting.total()

    def _end(self, name: str) -> None:
        if name in _FORMATTING:
            self._n_formatting[name] = max(0, self._n_formatting[name] - 1)
        elif name in self._open:
            while self._open.pop() != name:
                pass
        if name == "select":
            self._n_options = 0

    def _compare(self, tag: _Tag) -> None:
        """The parser compares each attribute, option of a list, and new name with all before it."""
        self._names.add(tag.name)
        if tag.name in {"option", "optgroup"}:
            self._n_options += 1
            self._n_compared += self._n_options
        if not tag.attributes or tag.attributes.isspace():
            return
        names = _VALUE.sub(" ", tag.attributes).replace("/", " ").split()
        self._names.update(names)
        n_before = self._n_root_attributes if tag.name in {"html", "body"} else 0
        self._n_compared += len(names) * (n_before + len(names)) // 2
        if tag.name in {"html", "body"}:  # all tags of these names make one element
            self._n_root_attributes += len(names)


def _headings(text: str, source: str) -> list[tuple[str, int]]:
    """Name and 1-based line of every heading's start tag, in order.

    Raises:
        DocumentError: A parser would take quadratic time or space.
    """
    guard = _Guard(source)
    found = []
    for tag in _tags(text):
        guard.check(tag)
        if tag.name in _HEADINGS and not tag.is_end:
            found.append((tag.name, tag.line))
    return found
