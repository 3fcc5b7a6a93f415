"""The prompts of semantic restructuring: versioned texts of this package, and how a section is put into them.

What comes from a document is fenced, so that nothing in it can pass for the end of the fence. What is sent is decided
elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from prime_pipeline.llm.fences import fence_number, fenced
from prime_pipeline.records import Finding
from prime_pipeline.storage.fingerprint import text_fingerprint

PromptMode = Literal["full", "explication", "compression"]
"""The semantic axes of a rewriting (PRIME, section 3.2): both, or one of them for ablations."""

_VERSION = 1
_AXES: Mapping[PromptMode, tuple[str, ...]] = {
    "full": ("explication", "compression"),
    "explication": ("explication",),
    "compression": ("compression",),
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is told about a rewriting.

    Attributes:
        mode: The axes asked for.
    """

    mode: PromptMode = "full"

    @property
    def version(self) -> str:
        """Mode and version, for people: ``full-1``."""
        return f"{self.mode}-{_VERSION}"

    @property
    def fingerprint(self) -> str:
        """Hash of all texts of this prompt (16 hex digits)."""
        return text_fingerprint(self.system, _text("repair"))[:16]

    @property
    def system(self) -> str:
        """The instructions."""
        return "\n\n".join(_text(name) for name in ("frame", *_AXES[self.mode]))

    def user(self, title: str, heading_path: Sequence[str], text: str) -> str:
        """The message for a section.

        Args:
            title: Of the document; empty if it names none of its own.
            heading_path: From the outermost heading to the section's own; may be empty.
            text: The body, with placeholders for protected blocks.
        """
        return _fenced({**_place(title, heading_path), "text": text})

    def repair(
        self,
        title: str,
        heading_path: Sequence[str],
        text: str,
        rewrite: str,
        findings: Sequence[Finding],
    ) -> str:
        """The message that asks for a second rewrite and names what was wrong with the first."""
        lines = "\n".join(f"- {finding.code}: {_one_line(finding.detail)}" for finding in findings)
        fields = {**_place(title, heading_path), "text": text, "rewrite": rewrite, "findings": lines}
        return f"{_fenced(fields)}\n\n{_text('repair')}"


def _place(title: str, heading_path: Sequence[str]) -> dict[str, str]:
    path = " > ".join(_one_line(heading) for heading in heading_path)
    return {"document": _one_line(title), "path": path}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _fenced(fields: Mapping[str, str]) -> str:
    """Each field that is not empty in an element of its own, numbered so that no element's end occurs in any field."""
    number = fence_number(fields.values())
    return "\n".join(fenced(name, number, value) for name, value in fields.items() if value)


@cache
def _text(name: str) -> str:
    path = files("prime_pipeline.restructuring") / "prompts" / f"{name}-{_VERSION}.md"
    return path.read_text(encoding="utf-8").strip()
