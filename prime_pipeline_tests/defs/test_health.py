"""The doctor: a sound home is called sound, every fault is found and named, and nothing is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
from pytest_httpserver import HTTPServer

from prime_pipeline.definitions import definitions
from prime_pipeline.defs.health import examine_all
from prime_pipeline.defs.instance import open_instance
from prime_pipeline.defs.liveness import process_tags
from prime_pipeline.defs.runs import run_refresh
from prime_pipeline.indexes.builds import LEXICAL_FILE
from prime_pipeline.reporting.health import Check
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.defs.conftest import PAGES
from prime_pipeline_tests.fakes import HashingEmbedder

defs = definitions()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a refreshed home, to be copied."""
    folder = tmp_path_factory.mktemp("sound")
    for name, text in PAGES.items():
        path = folder / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with closing(workspace_in(folder)) as workspace:
        run_refresh(defs, workspace)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "copy"))


def workspace_in(folder: Path, embedder: HashingEmbedder | None = None, **options: object) -> Workspace:
    settings = load_settings({"home": folder / "home", "corpus": str(folder / "corpus"), **options})
    return Workspace(settings, embedder=embedder or HashingEmbedder())


def checks(folder: Path, embedder: HashingEmbedder | None = None, **options: object) -> list[Check]:
    return list(examine_all(workspace_in(folder, embedder, **options)))


def faults(found: list[Check]) -> list[tuple[str, str, str]]:
    return [(check.area, check.name, check.state) for check in found if check.state != "ok"]


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_sound_home_has_no_fault_and_is_left_as_it_is(folder: Path) -> None:
    before = contents(folder)
    found = checks(folder)
    assert faults(found) == []
    areas = ["home", "settings", "models", "endpoint", "index", "stores", "warehouse", "packages", "dagster"]
    assert list(dict.fromkeys(check.area for check in found)) == areas
    assert contents(folder) == before


def _damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 2] = b"\x5a" * (len(data) // 2 - len(data) // 3)
    path.write_bytes(data)


def _index(home: Path) -> None:
    _damage(next(home.glob(f"indexes/offline/builds/*/{LEXICAL_FILE}")))


def _pointer(home: Path) -> None:
    (home / "indexes" / "offline" / "CURRENT").write_text("no JSON")


def _catalogue(home: Path) -> None:
    (home / "documents" / "catalogue.sqlite").write_bytes(b"no database" * 1_000)


def _document(home: Path) -> None:
    next(home.glob("documents/*/*.json")).unlink()


def _cache(home: Path) -> None:
    (home / "cache" / "embeddings.sqlite").write_bytes(b"no database" * 1_000)


def _warehouse(home: Path) -> None:
    (home / "warehouse.duckdb").write_bytes(b"no database" * 1_000)


def _exclusions(home: Path) -> None:
    (home / "forgotten.json").write_text(
        '{"schema_version": 1, "documents": [{"doc_id": "a", "since": "2026", "is_complete": false}]}'
    )


def _corpus(home: Path) -> None:
    (home.parent / "corpus").rename(home.parent / "unmounted")


@pytest.mark.parametrize(
    ("break_it", "area", "name"),
    [
        (_index, "index", "can be examined"),
        (_pointer, "models", "can be examined"),
        (_catalogue, "stores", "documents/catalogue.sqlite"),
        (_document, "stores", "documents"),
        (_cache, "stores", "cache/embeddings.sqlite"),
        (_warehouse, "warehouse", "can be examined"),
        (_exclusions, "home", "forgotten documents"),
        (_corpus, "settings", "corpus"),
    ],
)
def test_every_fault_is_a_problem_with_a_remedy(
    folder: Path, break_it: Callable[[Path], None], area: str, name: str
) -> None:
    break_it(folder / "home")
    before = contents(folder)
    found = checks(folder)
    assert (area, name, "problem") in faults(found)
    assert all(check.remedy for check in found if check.state != "ok")
    assert contents(folder) == before


def test_another_embedder_than_the_index_has_is_a_problem(folder: Path) -> None:
    found = checks(folder, HashingEmbedder("another"))
    assert faults(found) == [("models", "embedder of the offline index", "problem")]


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    found = checks(tmp_path)
    assert ("home", "folder", "problem") in faults(found)
    assert ("index", "published", "problem") in faults(found)
    assert not (tmp_path / "home").exists()


def test_a_run_whose_process_is_gone_is_told_and_left(folder: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    home = workspace_in(folder).home
    with open_instance(home) as instance:
        tags = process_tags() | {"prime/process": str(child.pid)}
        job = defs.resolve_job_def("refresh")
        run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)
    assert faults(checks(folder)) == [("dagster", "runs", "warning")]
    with open_instance(home) as instance:
        left = instance.get_run_by_id(run.run_id)
    assert left is not None
    assert left.status == dg.DagsterRunStatus.STARTED


def test_leftovers_and_held_locks_are_worth_a_warning(folder: Path) -> None:
    home = workspace_in(folder).home
    leftover = home.root / f".warehouse.duckdb.{'0' * 32}.tmp"
    leftover.write_bytes(b"part")
    os.utime(leftover, (0, 0))
    with home.lock("documents"):
        assert faults(checks(folder)) == [("home", "leftovers", "warning"), ("home", "locks", "warning")]
    assert ("home", "locks", "warning") not in faults(checks(folder))


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer() as started:
        yield started


def test_the_endpoint_is_asked_for_its_models_only(folder: Path, server: HTTPServer) -> None:
    server.expect_oneshot_request("/v1/models", headers={"Authorization": "Bearer secret"}).respond_with_json(
        {"object": "list", "data": [{"id": "m", "object": "model"}]}
    )
    llm = {"base_url": server.url_for("/v1"), "api_key": "secret", "model": "m"}
    assert faults(checks(folder, llm=llm)) == []
    found = checks(folder, llm=llm)  # nothing answers any more
    assert faults(found) == [("endpoint", "language model", "problem")]
    assert "secret" not in str(found)
    server.expect_request("/v1/models").respond_with_json({"data": [{"id": "other"}]})
    assert faults(checks(folder, llm=llm)) == [("endpoint", "m", "warning")]
    server.clear()
    server.expect_request("/v1/models").respond_with_data("<html>")
    assert faults(checks(folder, llm=llm)) == [("endpoint", "language model", "problem")]
