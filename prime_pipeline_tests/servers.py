"""Real servers for one test: thrown away afterwards, on loopback, as a user who is not root where a server demands it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from prime_pipeline_tests.conftest import missing

_START_S = 60
_END_S = 30
_ROOT = Path(__file__).parent.parent
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Database:
    """An empty database of a running server."""

    port: int
    user: str
    password: str
    name: str


@contextmanager
def postgres() -> Iterator[Database]:
    """A Postgres server with an empty database, stopped at the end of the block. The test is skipped where there is none."""
    initdb, pg_ctl, createdb = (_postgres_program(name) for name in ("initdb", "pg_ctl", "createdb"))
    database = Database(free_port(), "prime", "a secret", "documents")
    # Not in pytest's folder, which is closed to other users.
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        folder, data = Path(name), Path(name, "data")
        (folder / "password").write_text(database.password)
        for path in (folder, folder / "password"):
            _give_away(path)
        login = ["--username", database.user, "--auth", "scram-sha-256", "--pwfile", str(folder / "password")]
        _run([initdb, "--no-sync", "--pgdata", str(data), *login])
        options = f"-F -p {database.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        control = [pg_ctl, "--pgdata", str(data), "--wait", "--timeout", str(_START_S)]
        _run([*control, "--log", str(folder / "log"), "--options", options, "start"])
        try:
            where = ["--host", "127.0.0.1", "--port", str(database.port), "--username", database.user]
            _run([createdb, *where, database.name], PGPASSWORD=database.password)
            yield database
        finally:
            _run([*control, "--mode", "immediate", "stop"])


@contextmanager
def redis() -> Iterator[str]:
    """The address of a Redis server, stopped at the end of the block. The test is skipped where there is none."""
    program = shutil.which("redis-server")
    if program is None:
        missing("no redis-server is installed")
    with tempfile.TemporaryDirectory(prefix="redis-") as name:
        path = Path(name, "socket")
        options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", name]
        # It says that it is ready in its log, and nowhere else.
        with subprocess.Popen([str(program), *options], stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout
                assert any("ready to accept connections" in line for line in server.stdout)
                yield f"redis+socket://{path}"
            finally:
                server.kill()


def own_environment(**variables: str) -> dict[str, str]:
    """Variables for a process of this clone that sees no settings of the machine."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PRIME_", "DAGSTER_"))}
    return {**kept, "PYTHONPATH": str(_ROOT), "HF_HUB_OFFLINE": "1", **variables}


@contextmanager
def running(command: Sequence[str], folder: Path, log: Path) -> Iterator[None]:
    """A process in a folder that writes to a log. All that it started ends with the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=own_environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
        with suppress(ProcessLookupError):  # nobody is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_until(condition: Callable[[], _T], what: str, timeout_s: float) -> _T:
    """What a condition says as soon as it says something; the test fails if it does not in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(1.0)
    return pytest.fail(f"{what} did not happen within {timeout_s:.0f} s")


def free_port() -> int:
    """A port of loopback on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _postgres_program(name: str) -> str:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))  # where Debian puts them, off the PATH
    program = found[-1] if found else shutil.which(name)
    if program is None:
        missing(f"no Postgres server is installed ({name})")
    return str(program)


def _give_away(path: Path) -> None:
    if os.geteuid() == 0:
        shutil.chown(path, "postgres")


def _run(command: Sequence[str], **environment: str) -> None:
    """Run a program of Postgres, which refuses to be root."""
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    # Into a file that nobody reads and not into a pipe, which the server would inherit and keep open.
    subprocess.run(
        [*user, *command],
        check=True,
        timeout=2 * _START_S,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
