"""Restructuring by a language model with everything it needs, in a test or as a process of its own that can be killed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prime_pipeline.llm.budget import Budget
from prime_pipeline.llm.cached import CachedChat
from prime_pipeline.llm.client import ChatClient
from prime_pipeline.llm.limiter import ConcurrencyLimiter
from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.records import Document, DocumentOutcome, Finding
from prime_pipeline.restructuring.judge import Judge, Patch
from prime_pipeline.restructuring.prompts import Prompt
from prime_pipeline.restructuring.restructurer import LlmRestructurer, restructure_all
from prime_pipeline.restructuring.rewriting import Rewriter, RewritingOptions
from prime_pipeline.restructuring.router import RouterOptions
from prime_pipeline.restructuring.strategy import Strategy
from prime_pipeline.text.protected import Protected
from prime_pipeline.text.sentences import sentences
from prime_pipeline_tests.documents import make_document

PROSE = "The model reads every sentence of the section twice and keeps what it finds worth keeping for later use. "
"""A sentence of 19 words that no rule keeps raw."""


class CapitalsJudge:
    """Wants every word in capitals back and every placeholder once; refuses FALSE words, which no patch heals."""

    def __init__(self, version: int = 1) -> None:
        self.fingerprint = f"capitals-{version}"
        self.n_judged = 0

    def findings(self, raw: Protected, rewrite: str, context: str = "") -> tuple[Finding, ...]:
        self.n_judged += 1
        found = []
        if "FALSE" in rewrite:
            found.append(Finding("invented", "FALSE"))
        if raw.placeholders_in(rewrite) != [block.placeholder for block in raw.blocks]:
            found.append(Finding("placeholder", "not each once in order"))
        for word in re.findall(r"\b[A-Z]{3,}\b", raw.text):
            if word not in rewrite:
                sources = tuple(s for s in sentences(raw.text) if word in s)
                found.append(Finding("word_missing", word, sources))
        return tuple(found)

    def patch(
        self, raw: Protected, rewrite: str, findings: tuple[Finding, ...], context: str = ""
    ) -> Patch | None:
        if not all(finding.sources for finding in findings):
            return None
        appended = tuple(dict.fromkeys(source for finding in findings for source in finding.sources))
        return Patch("\n\n".join((rewrite, *appended)), appended)


class Run:
    """One process's worth of objects around a cache in a folder."""

    def __init__(
        self,
        url: str,
        folder: Path,
        judge: Judge | None = None,
        budget: Budget | None = None,
        prompt: Prompt | None = None,
        n_workers: int = 4,
        deadline_s: float = 60.0,
        **options: Any,
    ) -> None:
        def n_words(text: str) -> int:
            return len(text.split())

        self.n_workers = n_workers
        self.judge = judge or CapitalsJudge()
        self.cache = ReplyCache(folder / "llm.sqlite")
        client = ChatClient(url, "", ConcurrencyLimiter(n_workers), n_words, deadline_s=deadline_s)
        self.chat = CachedChat(client, self.cache, budget or Budget())
        chosen = prompt or Prompt()
        settings = RewritingOptions("http://endpoint/v1", "m", router=RouterOptions(min_words=3), **options)
        self.rewriter = Rewriter(self.chat, self.judge, self.cache, chosen, settings, n_words)
        self.restructurer = LlmRestructurer(self.rewriter, Strategy.llm(chosen, settings, self.judge))

    def outcomes(self, documents: Iterable[Document]) -> list[DocumentOutcome]:
        done = restructure_all(documents, self.restructurer, self.n_workers)
        return [outcome for _, outcome in done]


def numbered_documents(n_documents: int, n_sections: int) -> list[Document]:
    """Documents whose sections are all different."""
    return [
        make_document(f"d{d}", *(f"{PROSE}It is section {s} of {d}." for s in range(n_sections)))
        for d in range(n_documents)
    ]


def sent_text(body: dict[str, Any]) -> str:
    """The section's text in a request."""
    found = re.search(r"<text-(\d+)>\n(.*)\n</text-\1>", body["messages"][1]["content"], re.DOTALL)
    assert found, "no text in the request"
    return found[2]


if __name__ == "__main__":
    run = Run(sys.argv[1], Path(sys.argv[2]))
    try:
        for outcome in run.outcomes(numbered_documents(6, 10)):
            print(outcome.doc_id, *(section.kind for section in outcome.sections))  # noqa: T201
    finally:
        run.chat.close()
