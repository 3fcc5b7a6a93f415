"""The reference of settings and commands is what the program has."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "reference.py"))


@pytest.mark.parametrize("name", ["settings", "commands"])
def test_the_reference_is_up_to_date(reference: dict[str, Any], name: str) -> None:
    found = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert found == reference[f"{name}_reference"](), "run python docs/reference.py"


def test_settings_are_told_with_variable_default_and_choices(reference: dict[str, Any]) -> None:
    lines = reference["settings_reference"]().splitlines()
    assert "| `rrf_k` | `PRIME_RETRIEVAL__RRF_K` | `60` | Constant of reciprocal rank fusion. |" in lines
    (mode,) = [line for line in lines if line.startswith("| `mode` |")]
    assert mode.endswith("One of `offline`, `full`, `auto`. |")
    (key,) = [line for line in lines if line.startswith("| `api_key` |")]
    assert "`PRIME_LLM__API_KEY` |  |" in key


def test_commands_are_told_with_arguments_and_options(reference: dict[str, Any]) -> None:
    text = reference["commands_reference"]()
    assert "## `prime search QUERY`" in text
    (option,) = {line for line in text.splitlines() if line.startswith("| `--sample`")}
    assert "rewrit" in option.lower()


@pytest.mark.parametrize(
    "page", [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda p: p.stem
)
def test_pages_refer_to_what_is_there(page: Path) -> None:
    found = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8"))
    for target, anchor in found:
        path = (page.parent / target) if target else page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings], anchor
