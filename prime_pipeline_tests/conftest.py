"""Fixtures for every test, and the rule that nothing is skipped quietly under CI."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from prime_pipeline_tests.chat_endpoint import Endpoint

# Before a model is loaded, here or in a process that a test starts: tests run side by side, and threads of several models on
# the same cores wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def missing(reason: str) -> None:
    """Skip on a user's machine; fail under CI, where everything that a test needs is installed."""
    if os.environ.get("CI"):
        pytest.fail(f"missing under CI: {reason}")
    pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn every skip into a failure under CI, however it was raised."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped under CI: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real corpora, named by PRIME_TEST_DATA."""
    folder = os.environ.get("PRIME_TEST_DATA")
    if not folder or not Path(folder).is_dir():
        missing("PRIME_TEST_DATA does not name the folder of real corpora")
    return Path(str(folder))


@pytest.fixture(scope="module")
def chat_server() -> Iterator[HTTPServer]:
    """A threaded server on loopback."""
    with HTTPServer(threaded=True) as started:  # once for a module: to end it takes half a second
        yield started


@pytest.fixture
def endpoint(chat_server: HTTPServer) -> Endpoint:
    """A chat endpoint that plays what the test tells it."""
    chat_server.clear()
    return Endpoint(chat_server)


@pytest.fixture(autouse=True)
def _own_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings of the machine it runs on, or writes outside its own folder."""
    for name in [n for n in os.environ if n.startswith("PRIME_") and n != "PRIME_TEST_DATA"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PRIME_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
