"""Runs commands in this process, as a user types them."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from prime_pipeline.cli import app


def prime(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def as_json(*arguments: str, exit_code: int = 0) -> Any:
    """What a command prints for programs; it has to end with this code."""
    result = prime(*arguments, "--json")
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def words(text: str) -> str:
    """The text in one line: a console wraps it, and puts it into boxes."""
    return " ".join(text.replace("│", " ").split())
