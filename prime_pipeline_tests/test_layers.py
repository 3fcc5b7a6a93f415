"""The import rule: a module imports only from layers below its own, and stages never from one another."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "prime_pipeline"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"records", "errors", "progress", "pages"}),
    frozenset({"text", "storage"}),
    frozenset({"models", "llm"}),
    frozenset({"corpus", "restructuring", "metadata", "indexes", "evaluation"}),
    frozenset({"retrieval", "datasets", "baselines", "reports"}),
    frozenset({"refresh", "settings"}),
    frozenset({"studies"}),
    frozenset({"workspace"}),
    frozenset({"reporting"}),
    frozenset({"defs", "server"}),
    frozenset({"definitions", "console", "integrations"}),
    frozenset({"cli", "__init__"}),
    frozenset({"__main__"}),
)
ONLY_IN: dict[str, set[str]] = {
    "dagster": {"defs", "definitions"},
    "torch": {"models"},
    "sentence_transformers": {"models"},
    "transformers": {"models"},
    "tokenizers": {"models"},
    "openai": {"llm"},
    "tenacity": {"llm"},
    "hnswlib": {"indexes"},
    "duckdb": {"storage"},
    "fsspec": {"storage"},
    "pytrec_eval": {"evaluation"},
    "typer": {"cli"},
    "spacy": {"text"},
    "jinja2": {"pages"},
    "matplotlib": {"reports"},
    "rich": {"cli", "console"},
    "starlette": {"server"},
    "uvicorn": {"server"},
    "mcp": {"server"},
    "mcp_types": {"server"},
    "langchain_core": {"integrations"},
    "llama_index": {"integrations"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    """The package or top-level module that a file belongs to."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def layer(name: str) -> int:
    (number,) = [number for number, names in enumerate(LAYERS) if name in names]
    return number


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    own = part(path)
    for name in imports(path):
        top, *rest = name.split(".")
        if top == "prime_pipeline" and rest and rest[0] != own:
            assert layer(rest[0]) < layer(own), f"{path} imports {name}"
        if top in ONLY_IN:
            assert own in ONLY_IN[top], f"{path} imports {name}"


def test_every_part_has_a_layer() -> None:
    assert {part(path) for path in MODULES} <= set().union(*LAYERS)


@pytest.mark.parametrize("statement", ["import prime_pipeline", "from prime_pipeline.cli import app"])
def test_importing_is_cheap(statement: str) -> None:
    heavy = [
        "torch",
        "sentence_transformers",
        "dagster",
        "openai",
        "duckdb",
        "numpy",
        "pydantic",
        "sklearn",
        "docutils",
        "spacy",
        "jinja2",
        "matplotlib",
        "starlette",
        "mcp",
    ]
    program = f"{statement}; import sys; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    assert result.stdout.strip() == "[]"


def test_opening_the_definitions_loads_no_model() -> None:
    program = "import prime_pipeline.definitions, sys; print([m for m in ('torch', 'sentence_transformers') if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    assert result.stdout.strip().splitlines()[-1] == "[]"
