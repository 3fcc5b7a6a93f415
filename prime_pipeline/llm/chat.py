"""What is asked of a chat model, and what it answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from prime_pipeline.storage.fingerprint import fingerprint

Finish = Literal["stop", "length", "content_filter", "other"]

KEY_VERSION = 1
"""Part of every cache key: raise it when a request with the same fields is sent differently."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a chat model, with everything that determines the answer.

    Attributes:
        base_url: The endpoint, without credentials.
        model: As the endpoint names it.
        system: Instructions.
        user: What they are about.
        prompt_version: Of the prompt that the texts were made with.
        max_tokens: The most tokens that may be generated.
        temperature: 0 for the most likely answer.
    """

    base_url: str
    model: str
    system: str
    user: str
    prompt_version: str
    max_tokens: int
    temperature: float = 0.0

    @property
    def key(self) -> str:
        """SHA-256 (hex) of the canonical JSON of all fields: equal exactly for requests that may share a reply."""
        return fingerprint({"version": KEY_VERSION, **asdict(self)})


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call.

    Attributes:
        prompt_tokens: Read.
        completion_tokens: Generated, reasoning included.
        estimated: Counted here, because the endpoint did not say.
    """

    prompt_tokens: int
    completion_tokens: int
    estimated: bool

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer.

    Attributes:
        text: Without a leading think block and without a fence around all of it.
        finish: ``length``: the answer was cut at ``max_tokens``; such a reply is paid for and never cached.
        usage: Of the call that succeeded.
        seconds: Wall time of the call that succeeded.
    """

    text: str
    finish: Finish
    usage: Usage
    seconds: float

    @property
    def is_complete(self) -> bool:
        """Whether the model ended by itself."""
        return self.finish == "stop"
