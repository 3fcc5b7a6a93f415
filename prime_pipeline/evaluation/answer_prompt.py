"""The prompt for answers: a versioned text of this package, and how a question and its passages are put into it.

What comes from a document is fenced, so that nothing in it can pass for the end of the fence. What is sent is decided
elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Final

from prime_pipeline.evaluation.passages import Passage
from prime_pipeline.llm.fences import fence_number, fenced

VERSION: Final = "answer-1"
"""For people: the text itself is part of every cache key."""

_PARAGRAPH_END: Final = re.compile(r"\n[ \t]*\n")


@dataclass(frozen=True, slots=True)
class Context:
    """The passages that fit.

    Attributes:
        passages: In their order; the text of some may be shortened.
        n_cut: Passages that are shortened or left out.
    """

    passages: tuple[Passage, ...]
    n_cut: int


def fitted(passages: Sequence[Passage], max_tokens: int, count_tokens: Callable[[str], int]) -> Context:
    """As much of the passages as a number of tokens allows, the best first.

    Each passage in turn takes its place whole, if that still fits; else as many of its first paragraphs as do, and
    where not even one does, the passage is left out. Later ones may still fit into what is left.

    Args:
        passages: Best first.
        max_tokens: For all of them as they stand in the message, titles and headings included.
        count_tokens: Counts the tokens of a text.
    """
    kept, n_whole, n_left = [], 0, max_tokens
    for passage in passages:
        fitting = _beginning(passage, n_left, count_tokens)
        if fitting is not None:
            kept.append(fitting)
            n_whole += fitting == passage
            n_left -= count_tokens(_section(fitting, 1))
    return Context(tuple(kept), len(passages) - n_whole)


@cache
def instructions() -> str:
    """What the model is told, whatever the question."""
    path = files("prime_pipeline.evaluation") / "prompts" / "answer.md"
    return path.read_text(encoding="utf-8").strip()


def message(question: str, passages: Sequence[Passage]) -> str:
    """The sections and, behind them, the question: each in elements whose number occurs in no other text's tags."""
    texts = chain([question], *((p.title, *p.heading_path, p.text) for p in passages))
    number = fence_number(texts)
    sections = (_section(passage, number) for passage in passages)
    return "\n".join((*sections, fenced("question", number, question)))


def _beginning(passage: Passage, max_tokens: int, count_tokens: Callable[[str], int]) -> Passage | None:
    """The passage, or its longest beginning of whole paragraphs that fits; None if there is none."""

    def n_tokens(end: int) -> int:
        return count_tokens(_section(replace(passage, text=passage.text[:end]), 1))

    ends = [*(found.start() for found in _PARAGRAPH_END.finditer(passage.text)), len(passage.text)]
    n_fitting = bisect_right(ends, max_tokens, key=n_tokens)
    return replace(passage, text=passage.text[: ends[n_fitting - 1]]) if n_fitting else None


def _section(passage: Passage, number: int) -> str:
    path = " > ".join(_one_line(heading) for heading in passage.heading_path)
    fields = {"document": _one_line(passage.title), "path": path, "text": passage.text}
    inside = "\n".join(fenced(name, number, text) for name, text in fields.items() if text)
    return fenced("section", number, inside)


def _one_line(text: str) -> str:
    return " ".join(text.split())
