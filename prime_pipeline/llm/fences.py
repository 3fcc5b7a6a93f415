"""Elements around texts that nothing in them can close; what is fenced, and why, is for prompts to say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count
from typing import Final

_NUMBER: Final = re.compile(r"-(\d+)>")


def fence_number(texts: Iterable[str]) -> int:
    """The least number from 1 on that no text holds where an element's tag has it."""
    taken = {number for text in texts for number in _NUMBER.findall(text)}
    return next(number for number in count(1) if str(number) not in taken)


def fenced(name: str, number: int, text: str) -> str:
    """A text in an element of a name and a number."""
    return f"<{name}-{number}>\n{text}\n</{name}-{number}>"
