"""The tutorial's commands, run in order in a folder, so that the page cannot rot."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from prime_pipeline.cli import app
from prime_pipeline_tests.chat_endpoint import Endpoint, answer
from prime_pipeline_tests.commands import prime
from prime_pipeline_tests.fakes import tiny_bert

TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorial.md"
REWRITTEN = (
    "A failed call is tried again after 250 ms; every further attempt waits twice as long as the one before, until the wait "
    "reaches 8 s. A random share of at most 20 % is added, so that clients do not all come back at the same time."
)
WITHOUT_END = ("ui", "serve", "mcp")
"""Commands that end with Ctrl-C: test_browser.py and test_cli_serving.py run them."""

DAGSTERS_OWN = {
    "dagster schedule start nightly_refresh -w .prime/dagster/workspace.yaml",
    "dagster sensor start corpus_changes -w .prime/dagster/workspace.yaml",
    "dagster asset materialize --select raw_documents --partition backups.pdf -m prime_pipeline.definitions",
}
"""Tried by hand: each takes as long as ten of ours."""


def steps(markdown: str) -> list[str]:
    """The lines of all shell blocks; a here-document or a string over several lines is one with its command."""
    found: list[str] = []
    for block in re.findall(r"^```sh\n(.*?)^```$", markdown, re.DOTALL | re.MULTILINE):
        found += re.findall(r"^cat >.*?^END$|^python -c \".*?\"$|^[^\n]+$", block, re.DOTALL | re.MULTILINE)
    return found


def run(step: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a step prints."""
    words = shlex.split(step.split("||")[0]) if not step.startswith("cat") else ["cat"]
    if words[0] == "export":
        for name, value in (word.split("=", 1) for word in words[1:]):
            monkeypatch.setenv(name, endpoint.url if name.endswith("BASE_URL") else os.path.expandvars(value))
        return ""
    if words[0] == "prime":
        command = get_command(app).commands[words[1]]  # type: ignore[attr-defined]
        if words[1] in WITHOUT_END:
            command.make_context(words[1], words[2:])
            return ""
        result = prime(*words[1:])
        assert result.exit_code == 0 or "||" in step, f"{step}: {result.output}"
        return f"{result.output}exit code {result.exit_code}"
    if words[0] == "dagster":
        assert step in DAGSTERS_OWN
        return ""
    return subprocess.run(step, shell=True, check=True, capture_output=True, text=True).stdout


def test_every_command_of_the_tutorial_does_what_it_says(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIME_HOME")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("PWD", str(tmp_path))
    # The embedder of the page takes seconds to load for every command. Words find what these queries ask for.
    monkeypatch.setenv("PRIME_EMBEDDER", str(tiny_bert(tmp_path)))
    monkeypatch.setenv("PRIME_RETRIEVAL__ARMS", '["document_bm25", "section_bm25"]')
    monkeypatch.setenv("PRIME_RETRIEVAL__SCORER", "none")
    endpoint.responds(lambda _: answer(REWRITTEN))
    models = {
        "object": "list",
        "data": [{"id": "deepseek-chat", "object": "model", "created": 1, "owned_by": "us"}],
    }
    endpoint.server.expect_request("/v1/models").respond_with_json(models)
    printed = [(step, run(step, endpoint, monkeypatch)) for step in steps(TUTORIAL.read_text("utf-8"))]

    def of(beginning: str) -> list[str]:
        return [output for step, output in printed if step.startswith(beginning)]

    refreshes = of("prime refresh")
    assert re.search(r"added +4", refreshes[0])
    assert re.search(r"updated +1", refreshes[1])
    assert "--allow-removals" in refreshes[2]
    assert "is not published: its NDCG@5" in refreshes[3]
    assert [text.rsplit(" ", 1)[1] for text in refreshes] == ["0", "0", "1", "4", "0", "0", "0", "0"]
    assert "Limits" in of("prime search")[0]
    assert "scan.pdf  is no readable PDF" in of("prime status")[1]
    assert re.search(r"calls to pay +2", of("prime estimate")[0])
    assert "1 accepted, 5 routed, 1 raw" in refreshes[-1]
    assert "1. Backoff  accepted" in of("prime diff")[0]
    assert "nothing was removed" in of("prime forget")[0]
    assert "backups.pdf" in of("prime status")[-1]
