"""The body of a chat completion, read: whatever an endpoint wrote, what comes out has the right types and sane sizes.

Knows nothing of HTTP, and not whether it is worth asking again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from prime_pipeline.llm.chat import Finish, Usage

_FINISHES: dict[str | None, Finish] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    None: "stop",
    "eos": "stop",
    "end_turn": "stop",
    "max_tokens": "length",
}
_MOST_CHARACTERS_PER_TOKEN = 20  # four are usual; only an endpoint that ignores max_tokens goes beyond
_SPARE_CHARACTERS = 10_000
_BYTES_PER_CHARACTER = 24  # twelve for an escaped emoji, and as many for reasoning beside the answer
_SPARE_BYTES = 1_000_000
_MOST_TIMES, _SPARE_TOKENS = 10, 10_000  # tokenizers differ by far less
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Answer:
    """A chat completion.

    Attributes:
        content: What the model wrote, as it came, but for lone surrogates, which are U+FFFD.
        finish: Why it ended; ``other`` for a reason that is not known here.
        usage: As the endpoint reports it; None if it reports none that can be true.
    """

    content: str
    finish: Finish
    usage: Usage | None


class Unreadable(Exception):
    """A body is no chat completion that can be used.

    Attributes:
        usage: What it cost, if that is known.
    """

    def __init__(self, reason: str, usage: Usage | None = None) -> None:
        super().__init__(reason)
        self.usage = usage


def most_bytes(most: Usage) -> int:
    """Size beyond which a body need not be read on."""
    return _BYTES_PER_CHARACTER * _most_characters(most) + _SPARE_BYTES


def read_answer(body: bytes, most: Usage) -> Answer:
    """The completion in a body.

    Args:
        body: At least its first ``most_bytes(most) + 1`` bytes.
        most: The tokens sent, as counted here, and ``max_tokens``.

    Raises:
        Unreadable: It is none, or larger than ``max_tokens`` allow; a larger one is taken to cost ``most``.
    """
    if len(body) > most_bytes(most):
        raise Unreadable("it is far longer than max_tokens allow", most)
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        raise Unreadable(f"it is no JSON: {_beginning(body)}") from None
    usage = _reported(told, most)
    choice = _first_choice(told)
    if choice is None:
        raise Unreadable(f"it is no chat completion: {_beginning(body)}", usage)
    content, finish = choice
    if len(content) > _most_characters(most):
        raise Unreadable("it is far longer than max_tokens allow", usage or most)
    if usage and content and not usage.completion_tokens:
        usage = None
    return Answer(without_surrogates(content), finish, usage)


def without_surrogates(text: str) -> str:
    """Text that UTF-8 can encode: JSON may hold halves of characters."""
    return _SURROGATE.sub("\ufffd", text)


def _most_characters(most: Usage) -> int:
    return _MOST_CHARACTERS_PER_TOKEN * most.completion_tokens + _SPARE_CHARACTERS


def _beginning(body: bytes) -> str:
    return " ".join(body[:_SPARE_CHARACTERS].decode("utf-8", "replace").split())


def _first_choice(told: Any) -> tuple[str, Finish] | None:
    match told:
        case {"choices": [{"message": {**message}, **choice}, *_]}:
            content, reason = _text(message.get("content")), choice.get("finish_reason")
        case _:
            return None
    if content is None or not isinstance(reason, str | None):
        return None
    return content, _FINISHES.get(reason, "other")


def _text(content: Any) -> str | None:
    """The text of a message: none, one, or in parts, of which some servers make several."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else "" if content is None else None
    if not all(isinstance(part, dict) for part in content):
        return None
    texts = [part.get("text") for part in content if part.get("type") == "text"]
    return "".join(texts) if all(isinstance(text, str) for text in texts) else None


def _reported(told: Any, most: Usage) -> Usage | None:
    usage = told.get("usage") if isinstance(told, dict) else None
    if not isinstance(usage, dict):
        return None
    prompt = _plausible(usage.get("prompt_tokens"), most.prompt_tokens)
    generated = _plausible(usage.get("completion_tokens"), most.completion_tokens)
    return None if not prompt or generated is None else Usage(prompt, generated, estimated=False)


def _plausible(n_tokens: Any, most: int) -> int | None:
    n_tokens = 0 if n_tokens is None else n_tokens
    is_whole = isinstance(n_tokens, int) and not isinstance(n_tokens, bool)
    return n_tokens if is_whole and 0 <= n_tokens <= _MOST_TIMES * most + _SPARE_TOKENS else None
