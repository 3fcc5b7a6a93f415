"""How much of an endpoint's time restructuring wastes, and whether memory grows with the corpus.

Everything runs against an endpoint simulated in a process of its own: it answers each call after a fixed latency, and
refuses calls (429, Retry-After 0.1 s) above its limit of calls at once. ``ideal`` is calls * latency / limit. Memory is
the growth of the process's peak, from before the first section on; each row runs in a process of its own.

    python benchmarks/llm_throughput.py
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

from prime_pipeline.llm.budget import Budget
from prime_pipeline.llm.cached import CachedChat
from prime_pipeline.llm.client import ChatClient
from prime_pipeline.llm.limiter import ConcurrencyLimiter
from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.records import Document, Finding, Section
from prime_pipeline.restructuring.judge import Patch
from prime_pipeline.restructuring.prompts import Prompt
from prime_pipeline.restructuring.restructurer import LlmRestructurer, restructure_all
from prime_pipeline.restructuring.rewriting import Rewriter, RewritingOptions, rough_tokens
from prime_pipeline.restructuring.strategy import Strategy
from prime_pipeline.text.protected import Protected

SECTIONS_PER_DOCUMENT = 10
PROSE = "The model reads every sentence of the section twice and keeps what it finds worth keeping for later use. "


@dataclass(frozen=True)
class Scenario:
    n_sections: int
    latency_s: float
    endpoint_limit: int
    our_maximum: int

    @property
    def ideal_s(self) -> float:
        return math.ceil(self.n_sections / self.endpoint_limit) * self.latency_s


@dataclass(frozen=True)
class Measured:
    wall_s: float
    peak_growth_mb: float
    n_accepted: int
    n_throttled: int


class Lenient:
    """A judge that finds nothing, so that only calls and bookkeeping are measured."""

    fingerprint = "lenient"

    def findings(self, raw: Protected, rewrite: str, context: str = "") -> tuple[Finding, ...]:
        del raw, rewrite, context
        return ()

    def patch(
        self, raw: Protected, rewrite: str, findings: tuple[Finding, ...], context: str = ""
    ) -> Patch | None:
        del raw, rewrite, findings, context
        return None


def documents(n_sections: int) -> Iterator[Document]:
    """Documents of about 1.5 kB a section, made as they are asked for."""
    for first in range(0, n_sections, SECTIONS_PER_DOCUMENT):
        numbers = range(first, min(n_sections, first + SECTIONS_PER_DOCUMENT))
        sections = tuple(_section(ordinal, number) for ordinal, number in enumerate(numbers, 1))
        doc_id = f"d{first:06}"
        yield Document(doc_id, "Title", "heading", sections, f"{doc_id}.md", "text/markdown")


def _section(ordinal: int, number: int) -> Section:
    heading = f"## Section {ordinal}\n"
    text = f"{heading}Part {number} of it. {PROSE * 14}\n"
    return Section(ordinal, "section", f"Section {ordinal}", (f"Section {ordinal}",), text, len(heading))


def endpoint(latency_s: float, limit: int, pipe: Connection) -> None:
    """Serve until the process ends; sends its port first, and the number of refusals when asked."""
    slots = threading.Semaphore(limit)
    n_refused = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            nonlocal n_refused
            self.rfile.read(int(self.headers["Content-Length"]))
            if not slots.acquire(blocking=False):
                n_refused += 1
                self._send(429, {"error": {"message": "too many calls at once"}})
                return
            try:
                time.sleep(latency_s)
            finally:
                slots.release()
            message = {"role": "assistant", "content": "The model keeps what is worth keeping. " * 10}
            self._send(
                200,
                {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "m",
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                    "usage": {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 990},
                },
            )

        def _send(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if status == 429:
                self.send_header("Retry-After", "0.1")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pipe.send(server.server_address[1])
    pipe.recv()
    pipe.send(n_refused)


def restructure(scenario: Scenario, port: int, pipe: Connection) -> None:
    """Restructure the scenario's sections and send (wall seconds, peak growth in MB, accepted sections)."""
    url = f"http://127.0.0.1:{port}/v1"
    judge, prompt, options = Lenient(), Prompt(), RewritingOptions(url, "m")
    with tempfile.TemporaryDirectory() as folder:
        cache = ReplyCache(Path(folder) / "llm.sqlite")
        client = ChatClient(url, "", ConcurrencyLimiter(scenario.our_maximum), rough_tokens)
        rewriter = Rewriter(CachedChat(client, cache, Budget()), judge, cache, prompt, options, rough_tokens)
        restructurer = LlmRestructurer(rewriter, Strategy.llm(prompt, options, judge))
        # Imports, templates and connections are made before the clock starts.
        warm_up = _section(999, -1)
        rewriter.rewrite(next(documents(1)), warm_up)
        before_kb, started, n_accepted = _peak_kb(), time.monotonic(), 0
        for _, outcome in restructure_all(documents(scenario.n_sections), restructurer, scenario.our_maximum):
            n_accepted += sum(section.kind == "accepted" for section in outcome.sections)
        pipe.send((time.monotonic() - started, (_peak_kb() - before_kb) / 1024, n_accepted))
        client.close()


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measured(scenario: Scenario) -> Measured:
    context = multiprocessing.get_context("spawn")
    to_endpoint, endpoint_end = context.Pipe()
    to_client, client_end = context.Pipe()
    server = context.Process(
        target=endpoint, args=(scenario.latency_s, scenario.endpoint_limit, endpoint_end), daemon=True
    )
    server.start()
    client = context.Process(target=restructure, args=(scenario, to_endpoint.recv(), client_end), daemon=True)
    client.start()
    wall_s, growth_mb, n_accepted = to_client.recv()
    client.join()
    to_endpoint.send("done")
    n_throttled = to_endpoint.recv()
    server.join()
    return Measured(wall_s, growth_mb, n_accepted, n_throttled)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sections", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per call")
    parser.add_argument("--limit", type=int, default=16, help="calls that the endpoint takes at once")
    arguments = parser.parse_args()
    rows = [Scenario(n, arguments.latency, arguments.limit, arguments.limit) for n in arguments.sections]
    middle = sorted(arguments.sections)[len(arguments.sections) // 2]
    rows.append(Scenario(middle, arguments.latency, arguments.limit, 2 * arguments.limit))
    print(
        f"{os.cpu_count()} cores, {arguments.latency} s a call, the endpoint takes {arguments.limit} at once\n"
    )
    print(
        f"{'sections':>9} {'our max':>8} {'wall s':>8} {'ideal s':>8} {'ratio':>6} {'peak MB':>8} {'429s':>5} {'accepted':>9}"
    )
    for row in rows:
        result = measured(row)
        print(
            f"{row.n_sections:>9,} {row.our_maximum:>8} {result.wall_s:>8.1f} {row.ideal_s:>8.1f}"
            f" {result.wall_s / row.ideal_s:>6.2f} {result.peak_growth_mb:>8.1f} {result.n_throttled:>5}"
            f" {result.n_accepted:>9,}",
            flush=True,
        )


if __name__ == "__main__":
    main()
