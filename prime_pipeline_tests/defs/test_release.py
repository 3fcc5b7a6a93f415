"""What a refresh sends to object storage, and `prime pull` on another machine."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.runs import run_refresh
from prime_pipeline.errors import RemoteUnusable
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.releases import ReleaseStore
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.commands import as_json, prime
from prime_pipeline_tests.defs.conftest import PAGES, OpenWorkspace
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import HashingEmbedder


def pulled(url: str, home: Path, exit_code: int = 0) -> Any:
    return as_json("pull", url, "--home", str(home), exit_code=exit_code)


def test_what_a_refresh_publishes_answers_on_another_machine(
    open_workspace: OpenWorkspace, corpus: Path, tmp_path: Path
) -> None:
    url, reader = f"memory://{tmp_path}", tmp_path / "reader"
    workspace = open_workspace(publish_to=url)
    sent = run_refresh(definitions(), workspace).steps["release"]
    assert (sent["changed"], sent["url"], sent["variant"]) == (1, url, "offline")
    assert run_refresh(definitions(), open_workspace(publish_to=url)).steps["release"]["changed"] == 0

    first = pulled(url, reader)
    assert (first["changed"], first["files"], first["release"]) == (True, sent["files_sent"], sent["release"])
    there = Workspace(load_settings({"home": reader}), embedder=HashingEmbedder())
    with there.retriever() as retriever:
        assert retriever.search("exponential backoff")[0].source_path == "more.md"
    with duckdb.connect(str(there.home.warehouse), read_only=True) as warehouse:
        assert warehouse.execute("SELECT count(*) FROM documents").fetchone() == (len(PAGES),)
    assert (there.home.reports / "report.html").is_file()
    there.close()
    assert as_json("status", "--home", str(reader))["build"] == sent["build"]
    again = prime("pull", url, "--home", str(reader))
    assert again.exit_code == 0
    assert again.output == f"Nothing new: build {sent['build']} is served.\n"


def test_full_mode_is_pulled_as_full_mode(tmp_path: Path) -> None:
    url, reader = f"memory://{tmp_path}", tmp_path / "reader"
    bench = Bench(tmp_path / "publisher")
    build = bench.publish(make_document("a", "Text."))
    files = {f"indexes/full/builds/{build}/{path.name}": path for path in bench.live().iterdir()}
    ReleaseStore(url).publish(files, {"variant": "full", "build": build, "profile": "embedded"}, keep=1)
    assert pulled(url, reader)["variant"] == "full"
    assert tomllib.loads((reader / "prime.toml").read_text()) == {"mode": "full"}
    assert Workspace(load_settings({"home": reader})).served_variant == "full"


def test_a_place_that_cannot_be_written_fails_the_run_and_not_what_is_served_here(
    open_workspace: OpenWorkspace, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    workspace = open_workspace(publish_to=(tmp_path / "file").as_uri())
    with pytest.raises(RemoteUnusable, match="what is published here is served on"):
        run_refresh(definitions(), workspace)
    with workspace.retriever() as retriever:
        assert retriever.search("exponential backoff")


def test_a_pull_that_cannot_be_done_says_why_and_makes_no_home(tmp_path: Path) -> None:
    url, reader = f"memory://{tmp_path}", tmp_path / "reader"
    assert pulled(url, reader, exit_code=1)["error"] == "NothingReleased"
    assert pulled("nosuch://bucket", reader, exit_code=1)["error"] == "RemoteUnusable"
    refused = pulled("s3://key:secret@bucket", reader, exit_code=1)
    assert refused["error"] == "PasswordInAddress"
    assert "secret" not in refused["message"]
    assert not reader.exists()
    (reader / "corpora").mkdir(parents=True)
    (reader / "corpora" / "raw.json").touch()
    assert pulled(url, reader, exit_code=1)["error"] == "HomeInUse"
