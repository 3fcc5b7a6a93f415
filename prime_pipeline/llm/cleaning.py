"""What models put around an answer, taken off again."""

from __future__ import annotations

import re

_THINK = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
_OPEN_THINK = re.compile(r"\A\s*<think>(?!.*</think>)", re.DOTALL)
_FENCE = re.compile(
    r"\A\s*(?P<fence>`{3,}|~{3,})[\w-]*[ \t]*\n(?P<inside>.*)\n[ \t]*(?P=fence)[ \t]*\s*\Z", re.DOTALL
)


def cleaned(text: str) -> str:
    """An answer without a leading think block, and without one code fence around all of it.

    A think tag anywhere but at the start is text like any other. A think block that never closes is all there is of
    such an answer: nothing is left. A fence goes only if it encloses everything and nothing inside closes it.
    """
    if _OPEN_THINK.match(text):
        return ""
    text = _THINK.sub("", text, count=1).strip()
    match = _FENCE.match(text)
    if match and not re.search(rf"^[ \t]*{match['fence']}", match["inside"], re.MULTILINE):
        return match["inside"].strip()
    return text
