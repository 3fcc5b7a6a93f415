"""The real servers as processes, asked by clients of their own: prime serve over HTTP, prime mcp over its pipes."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters
from selectolax.lexbor import LexborHTMLParser

from prime_pipeline_tests.commands import as_json, prime
from prime_pipeline_tests.conftest import missing
from prime_pipeline_tests.fakes import tiny_bert
from prime_pipeline_tests.shelf import GUIDE, Shelf

ROOT = Path(__file__).parent.parent
TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An embedder that the processes load."""
    return tiny_bert(tmp_path_factory.mktemp("model"))


@pytest.fixture
def shelf(tmp_path: Path, model: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path, uses_fakes=False, embedder=str(model))
    yield shelf
    shelf.workspace.close()


def surroundings(shelf: Shelf, **more: str) -> dict[str, str]:
    """Variables of a process that works on the shelf's home."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    embedder = shelf.workspace.settings.embedder or ""
    return {"PYTHONPATH": path, "PRIME_HOME": str(shelf.home), "PRIME_EMBEDDER": embedder, **more}


@contextmanager
def served(shelf: Shelf, *arguments: str, **variables: str) -> Iterator[httpx.Client]:
    """A process of ``prime`` on a free port, ended by Ctrl-C, and a client of it."""
    command = [sys.executable, "-m", "prime_pipeline", *arguments, "--port", "0", "--json"]
    process = subprocess.Popen(
        command,
        env={**os.environ, **surroundings(shelf, **variables)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        lines: list[str] = []
        while not lines or lines[-1] not in ("}\n", ""):
            lines.append(process.stdout.readline())
        told = "".join(lines)
        assert told, process.stderr.read()
        with httpx.Client(base_url=json.loads(told)["url"], timeout=60) as client:
            yield client
    finally:
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0
    assert "Traceback" not in errors


def get_raw(url: httpx.URL, target: str) -> tuple[int, dict[str, Any]]:
    """What a server answers to an address that no HTTP library would send."""
    connection = http.client.HTTPConnection(url.host, url.port, timeout=60)
    connection.putrequest("GET", target, skip_accept_encoding=True)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, json.loads(body) if body.startswith(b"{") else {}


def test_prime_serve_follows_what_is_published_and_ends_well(shelf: Shelf, tmp_path: Path) -> None:
    with served(shelf, "serve") as client:
        assert client.get("/health").status_code == 503
        first = shelf.publish({**GUIDE, "odd/%2e%2e a.md": "# Odd\n\n## Name\n\nA curious name.\n"})
        health = client.get("/health").json()
        assert (health["build"], health["documents"]) == (first, 4)
        (hit,) = client.get("/search", params={"query": "engine", "top_k": 1}).json()["hits"]
        assert hit["section_id"] == "guide/car.md#1"

        (odd,) = client.get("/search", params={"query": "curious", "top_k": 1}).json()["hits"]
        page = LexborHTMLParser(client.get("/", params={"query": "curious", "top_k": 1}).text)
        (link,) = page.css("article a")
        assert client.get(str(link.attributes["href"])).json()["doc_id"] == odd["doc_id"]

        url = client.base_url
        assert get_raw(url, f"/search?query={'x' * 60_000}")[0] == 400
        assert get_raw(url, f"/search?query={'x' * 200_000}")[0] in (400, 414, 431)
        assert get_raw(url, "/documents/../../../etc/passwd")[0] == 404
        assert get_raw(url, "/documents/%2e%2e%2fprime.toml")[0] == 404
        assert get_raw(url, "/documents/sky.md%00")[0] == 404
        assert client.get("/health", headers={"Host": "evil.example"}).status_code == 421

        second = shelf.publish({"new.md": "# New\n\n## Engine\n\nAnother engine.\n"})
        answer = client.get("/search", params={"query": "engine"}).json()
        assert answer["build"] == second
        assert [found["doc_id"] for found in answer["hits"]] == ["new.md"]
        look_at_the_page(f"{url}?query=engine", tmp_path)


def look_at_the_page(url: str, folder: Path) -> None:
    """A browser shows the answer, and has nothing to complain of."""
    browser = shutil.which("chromium")
    if browser is None:
        missing("chromium is not installed")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
    options += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    options += [f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", "--v=0", "--dump-dom"]
    result = subprocess.run(
        [str(browser), *options, url], capture_output=True, text=True, check=True, timeout=120
    )
    assert not [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    page = LexborHTMLParser(result.stdout)
    assert [node.text() for node in page.css("article h3")] == ["1. New › Engine"]


def test_a_server_with_a_token_answers_nobody_else(shelf: Shelf) -> None:
    with served(shelf, "serve", PRIME_SERVE__TOKEN=TOKEN) as client:
        assert client.get("/health").status_code == 401
        authorised = {"Authorization": f"Bearer {TOKEN}"}
        assert client.get("/health", headers=authorised).status_code == 503  # nothing is published
        assert client.get("/health", auth=("me", TOKEN)).status_code == 503


@pytest.mark.parametrize("command", [["serve"], ["mcp", "--http"]])
def test_other_machines_are_served_with_a_token_only(command: list[str]) -> None:
    answer = as_json(*command, "--host", "0.0.0.0", "--port", "0", exit_code=1)
    assert answer["error"] == "TokenNeeded"
    assert "PRIME_SERVE__TOKEN" in answer["message"]


def test_a_port_in_use_is_told(shelf: Shelf) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = as_json("serve", "--port", str(taken.getsockname()[1]), exit_code=1)
    assert answer["error"] == "PortTaken"


@pytest.mark.parametrize("token", ["short", "with a blank in the middle", "ünïcode-ünïcode-ünïcode"])
def test_a_weak_token_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("PRIME_SERVE__TOKEN", token)
    result = prime("serve", "--port", "0", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == "SettingsError"
    assert token not in result.stdout


def test_prime_mcp_serves_agents_on_its_pipes_and_follows_what_is_published(shelf: Shelf) -> None:
    shelf.publish()
    # By words alone, so that the process need not load the model.
    by_words = {"PRIME_RETRIEVAL__ARMS": '["section_bm25"]', "PRIME_RETRIEVAL__SCORER": "none"}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "prime_pipeline", "mcp"],
        env=surroundings(shelf, HF_HUB_OFFLINE="1", **by_words),
    )

    async def talking() -> None:
        async with Client(server, read_timeout_seconds=120) as client:
            assert len((await client.list_tools()).tools) == 2

            async def search(query: str) -> list[dict[str, Any]]:
                result = await client.call_tool("search_sections", {"query": query, "top_k": 1})
                assert not result.is_error, result.content
                return list((result.structured_content or {})["sections"])

            (found,) = await search("engine")
            assert found["source"] == "guide/car.md:7-9"
            read = await client.call_tool("read_section", {"section_id": found["section_id"]})
            assert (read.structured_content or {})["text"] == found["text"]
            assert (await client.call_tool("read_section", {"section_id": "../x#1"})).is_error
            shelf.publish({"new.md": "# New\n\n## Engine\n\nAnother engine.\n"})
            assert [section["section_id"] for section in await search("engine")] == ["new.md#1"]

    anyio.run(talking)


def test_prime_mcp_over_http_asks_for_the_token(shelf: Shelf) -> None:
    with served(shelf, "mcp", "--http", PRIME_SERVE__TOKEN=TOKEN) as client:
        url = str(client.base_url)
        assert client.post("/mcp", json={}).status_code == 401

        async def talking() -> None:
            from mcp.client.streamable_http import streamable_http_client
            from mcp.shared._httpx_utils import create_mcp_http_client

            authorised = create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"})
            async with authorised, Client(streamable_http_client(url, http_client=authorised)) as agent:
                result = await agent.call_tool("search_sections", {"query": "engine"})
                assert result.is_error  # nothing is published, and the answer says what to do
                assert "prime refresh" in str(result.content)

        anyio.run(talking)
