"""The lead: the prose a document opens with, markup left out as far as simple patterns go.

What is cut here is only read by an encoder; the texts of sections are never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from prime_pipeline.records import Section

_CUTS: Final = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        # Fenced code, up to the end where it is never closed; backticks behind an opening make it inline code.
        (r"^[ \t]*(`{3,}(?=[^`\n]*$)|~{3,}).*(?:\n(?![ \t]*\1).*)*(?:\n[ \t]*\1.*)?", ""),
        (r"<!--[\s\S]*?(?:-->|\Z)", " "),
        (r"^[ \t]*\|.*$", ""),  # tables
        (r"^[ \t]*#{1,6}[ \t].*$", ""),  # headings have a place of their own in the metadata
        (r"^[ \t]*\[[^\]\n]+\]:.*$", ""),  # targets of reference links
        # Lengths are bounded, or a row of opening brackets would take quadratic time.
        (r"!\[[^\[\]\n]{0,300}\](?:\([^)\n]{0,500}\)|\[[^\[\]\n]{0,300}\])", " "),  # images
        (r"\[([^\[\]\n]{1,300})\](?:\([^)\n]{0,500}\)|\[[^\[\]\n]{0,300}\])", r"\1"),  # links keep their text
        (r"</?[A-Za-z][^<>\n]*>", " "),  # HTML tags
        (r"^[ \t]*[-=~^*_]{3,}[ \t]*$", ""),  # rules and underlines
        (r"[ \t]+", " "),
        (r" ?\n\s*", "\n"),
    )
)


def prose(text: str) -> str:
    """Text without code fences, tables, headings, images, HTML tags and link targets; one line per source line."""
    for pattern, replacement in _CUTS:
        text = pattern.sub(replacement, text)
    return text.strip()


def lead(sections: Iterable[Section], min_words: int, max_characters: int) -> str:
    """The prose of the first sections: as many as it takes to reach ``min_words``, cut at ``max_characters``.

    Captions are no prose. A section that opens with more than ten times ``max_characters`` of code or tables counts
    as one without prose, so that nothing huge is searched for patterns.
    """
    parts: list[str] = []
    n_words = 0
    for section in sections:
        if n_words >= min_words:
            break
        if section.kind != "captions" and (part := prose(section.body[: 10 * max_characters])):
            parts.append(part)
            n_words += len(part.split())
    return "\n".join(parts)[:max_characters]
