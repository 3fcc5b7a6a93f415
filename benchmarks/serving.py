"""Many clients at a real ``prime serve`` while builds are published under them; prints one Markdown table.

    python benchmarks/serving.py [--clients 50] [--seconds 30] [--documents 60] [--by steps]

Generation after generation one document in twenty is rewritten, and its text names the generation. So the sections of an answer
tell which generations it can be of; an answer is torn if there is none, or none that all answers of its build agree on. Builds
are published by nobody, by ``prime refresh`` again and again, and by the steps of a refresh without Dagster, which publish
more often. Clients ask again as soon as they have an answer. All of it runs on this machine, so that clients, server and
refreshes share its processors.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import httpx

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline.workspace import Workspace

TOPICS = (
    "bread dough oven flour yeast baking crust kitchen",
    "engine fuel piston wheel garage brake gear motor",
    "star galaxy planet telescope orbit comet night light",
    "queue worker job retry schedule partition cluster node",
    "river valley rain flood bridge delta stream water",
    "violin chord rhythm melody orchestra score tempo string",
)
SECTIONS_PER_DOCUMENT = 4
WORDS_PER_SECTION = 60
REWRITTEN_EVERY = 20
"""Generations, each document."""


@dataclass
class Outcome:
    """What the clients met in one round."""

    latencies_s: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    n_torn: int = 0
    generations_of: dict[str, tuple[float, float]] = field(default_factory=dict)

    def note(self, answer: dict[str, object], latency_s: float) -> None:
        self.latencies_s.append(latency_s)
        hits = answer["hits"]
        if not isinstance(hits, list) or not hits:
            self.errors["no hits"] += 1
            return
        build = str(answer["build"])
        first, last = self.generations_of.get(build, (0.0, math.inf))
        for generation in re.findall(r"generation(\d+)", " ".join(hit["text"] for hit in hits)):
            first = max(first, int(generation))
            last = min(last, int(generation) + REWRITTEN_EVERY - 1)
        self.n_torn += first > last
        if first <= last:
            self.generations_of[build] = first, last


def write_corpus(folder: Path, generation: int, n_documents: int) -> None:
    """What a generation rewrites: all documents whose turn it is; the first ones rewrite all."""
    folder.mkdir(exist_ok=True)
    for number in range(n_documents):
        if (generation - number) % REWRITTEN_EVERY:
            continue
        chance = random.Random(number)
        words = TOPICS[number % len(TOPICS)].split()
        parts = [f"# Document {number} about {words[number % len(words)]}\n"]
        for part in range(SECTIONS_PER_DOCUMENT):
            text = " ".join(chance.choices(words, k=WORDS_PER_SECTION))
            parts.append(
                f"## Part {part}: {chance.choice(words)}\n\nThis is of generation{generation}. {text}.\n"
            )
        (folder / f"document{number:03}.md").write_text("\n".join(parts), encoding="utf-8")


def generation_of(folder: Path) -> int:
    """The last one that was written."""
    texts = " ".join(path.read_text(encoding="utf-8") for path in folder.glob("*.md"))
    return max(map(int, re.findall(r"generation(\d+)", texts)))


def publish(home: Path, docs: Path) -> None:
    """The steps of a refresh without Dagster."""
    workspace = Workspace(load_settings({"home": home, "corpus": str(docs)}))
    scan(open_corpus(str(docs)), workspace.store, allow_removals=True)
    seal_corpus(workspace.store, workspace.home.seal("raw"), str(docs))
    workspace.steps("offline").publish(keep=1)
    workspace.close()


def refresh(home: Path, docs: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "prime_pipeline",
        "refresh",
        "--home",
        str(home),
        "--corpus",
        str(docs),
        "--json",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def publish_until(
    is_over: Callable[[], bool], how: Callable[[Path, Path], None], home: Path, docs: Path, first: int, n: int
) -> None:
    for generation in range(first, first + 10_000):
        if is_over():
            return
        write_corpus(docs, generation, n)
        how(home, docs)


@contextmanager
def nobody(home: Path, docs: Path, first: int, n: int) -> Iterator[None]:
    del home, docs, first, n
    yield


@contextmanager
def prime_refresh(home: Path, docs: Path, first: int, n: int) -> Iterator[None]:
    is_over = threading.Event()
    thread = threading.Thread(target=publish_until, args=(is_over.is_set, refresh, home, docs, first, n))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def publish_steps(is_over: object, home: Path, docs: Path, first: int, n: int) -> None:
    publish_until(is_over.is_set, publish, home, docs, first, n)  # type: ignore[attr-defined]


@contextmanager
def steps_alone(home: Path, docs: Path, first: int, n: int) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    is_over = context.Event()
    process = context.Process(target=publish_steps, args=(is_over, home, docs, first, n))
    process.start()
    try:
        yield
    finally:
        is_over.set()
        process.join()


PUBLISHERS = {"nobody": nobody, "prime-refresh": prime_refresh, "steps": steps_alone}


@contextmanager
def served(home: Path) -> Iterator[str]:
    """The address of a real server."""
    command = [sys.executable, "-m", "prime_pipeline", "serve", "--home", str(home), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines: list[str] = []
        while process.stdout is not None and (not lines or lines[-1] not in ("}\n", "")):
            lines.append(process.stdout.readline())
        yield json.loads("".join(lines))["url"]
    finally:
        process.terminate()
        process.wait()


async def ask(client: httpx.AsyncClient, seed: int, end_s: float, outcome: Outcome) -> None:
    chance = random.Random(seed)
    while time.monotonic() < end_s:
        query = " ".join(chance.sample(chance.choice(TOPICS).split(), 3))
        started = time.perf_counter()
        try:
            response = await client.get("/search", params={"query": query, "top_k": 5})
            response.raise_for_status()
            outcome.note(response.json(), time.perf_counter() - started)
        except httpx.HTTPStatusError as error:
            outcome.errors[str(error.response.status_code)] += 1
        except httpx.HTTPError as error:
            outcome.errors[type(error).__name__] += 1


async def ask_all(url: str, n_clients: int, seconds: float) -> Outcome:
    outcome = Outcome()
    end_s = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=n_clients, max_keepalive_connections=n_clients)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120) as client:
        await asyncio.gather(*(ask(client, seed, end_s, outcome) for seed in range(n_clients)))
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--by", action="append", choices=PUBLISHERS, help="publishers; all by default")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    print("| published by | answers | errors | torn | builds that answered | median | 95th | longest |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        home, docs = Path(folder) / "home", Path(folder) / "docs"
        for generation in range(REWRITTEN_EVERY):
            write_corpus(docs, generation, given.documents)
        publish(home, docs)
        next_generation = REWRITTEN_EVERY
        with served(home) as url:
            asyncio.run(ask_all(url, given.clients, 5.0))  # memories fill
            for name in given.by or PUBLISHERS:
                with PUBLISHERS[name](home, docs, next_generation, given.documents):
                    outcome = asyncio.run(ask_all(url, given.clients, given.seconds))
                next_generation = generation_of(docs) + 1
                took = sorted(outcome.latencies_s)
                print(
                    f"| {name} | {len(took):,} | {sum(outcome.errors.values())} | {outcome.n_torn} |"
                    f" {len(outcome.generations_of)} | {median(took):.2f} s | {quantiles(took, n=20)[-1]:.2f} s |"
                    f" {took[-1]:.2f} s |",
                    flush=True,
                )
                if outcome.errors:
                    print(f"errors: {dict(outcome.errors)}", file=sys.stderr)


if __name__ == "__main__":
    main()
