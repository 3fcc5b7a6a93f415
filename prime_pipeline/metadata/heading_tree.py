"""The headings of a document as a tree, and which of them tell it from others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from prime_pipeline.records import Document

HeadingTree = tuple[tuple[int, str], ...]
"""Headings in document order as (level, text), level 1 for H1 to 6 for H6."""

_NUMBER: Final = re.compile(r"^\s*(?:(?:\d+|[A-Z])(?:\.\d+)+\.?|\d+[.)]?|[IVXLC]+[.)])(?:\s+|$)")


def heading_tree(document: Document) -> HeadingTree:
    """All headings below the title, in order.

    Left out are the title itself, where it stands as an H1, headings without words, and the heading over the
    collected captions, which is not the author's.
    """
    headings = [h for s in document.sections if s.kind != "captions" for h in s.headings if h.text.strip()]
    title = document.own_title.casefold()
    for heading in headings:
        if heading.level == 1 and heading.text.casefold() == title:
            headings.remove(heading)
            break
    return tuple((heading.level, heading.text) for heading in headings)


def indented(tree: HeadingTree) -> str:
    """The tree as lines, each level below the shallowest one indented by two more blanks."""
    shallowest = min((level for level, _ in tree), default=0)
    return "\n".join("  " * (level - shallowest) + text for level, text in tree)


def distinctive_headings(trees: Sequence[HeadingTree], share: float = 0.05) -> list[tuple[str, ...]]:
    """For each document of a corpus the headings that few documents have; "Introduction" tells nothing.

    A heading is distinctive if it stands in at most ``share`` of the documents, or in one only. Case, spacing and a
    leading number (``3.1``, ``IV.``, ``B.2``) make no difference. The texts come back without that number, in document
    order, each once.
    """
    bare = {text: _without_number(text) for tree in trees for _, text in tree}  # most headings repeat
    named = [{bare[text].casefold(): bare[text] for _, text in tree} for tree in trees]
    frequencies = Counter(key for headings in named for key in headings)
    limit = max(1, share * len(trees))
    return [
        tuple(text for key, text in headings.items() if key and frequencies[key] <= limit)
        for headings in named
    ]


def _without_number(text: str) -> str:
    return " ".join(_NUMBER.sub("", text).split())
