"""Documents in, documents with their outcomes out: in order, many sections at once, and little in memory.

How one section is restructured is for others; where the outcomes are kept, too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Protocol

from prime_pipeline.llm.in_order import done_in_order
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document, DocumentOutcome, Finding, Section, SectionOutcome
from prime_pipeline.restructuring.judge import Judge
from prime_pipeline.restructuring.rewriting import Rewriter
from prime_pipeline.restructuring.strategy import Strategy
from prime_pipeline.text.protected import Protected, protect

Task = Callable[[], SectionOutcome]


class Restructurer(Protocol):
    """A way to restructure a document, section by section."""

    @property
    def strategy(self) -> Strategy:
        """What determines the outcomes."""

    def tasks(self, document: Document) -> list[Task]:
        """The work, one piece for each section in order; the pieces may run in any order and at the same time."""


class LlmRestructurer:
    """Sections rewritten by a language model.

    Args:
        rewriter: Does the work.
        strategy: Of the rewriter.
    """

    def __init__(self, rewriter: Rewriter, strategy: Strategy) -> None:
        self.strategy = strategy
        self._rewriter = rewriter

    def tasks(self, document: Document) -> list[Task]:
        """One rewriting for each section."""
        return [partial(self._rewriter.rewrite, document, section) for section in document.content_sections]


class ExtractiveRestructurer:
    """Sections extracted by rules, without a language model, and judged like any rewrite.

    Args:
        extract: Gives the extracted bodies of a document by ordinal; a section that it leaves out stays as it is.
        judge: What an extract must pass.
        strategy: Of the extract.
    """

    def __init__(
        self, extract: Callable[[Document], dict[int, str]], judge: Judge, strategy: Strategy
    ) -> None:
        self.strategy = strategy
        self._extract = extract
        self._judge = judge

    def tasks(self, document: Document) -> list[Task]:
        """One judgement for each section; the document is extracted here and now."""
        extracts = self._extract(document)
        return [partial(self._outcome, s, extracts.get(s.ordinal, s.body)) for s in document.content_sections]

    def _outcome(self, section: Section, extract: str) -> SectionOutcome:
        if section.kind == "captions":
            finding = Finding("captions", "captions of figures and tables stay as they are")
            return SectionOutcome(section.ordinal, "routed", findings=(finding,))
        if extract.split() == section.body.split():
            return SectionOutcome(section.ordinal, "unchanged")
        raw = protect(section.body)
        findings = self._judge.findings(raw, _with_placeholders(raw, extract))
        if findings:
            return SectionOutcome(section.ordinal, "raw", findings=findings, refused=extract)
        return SectionOutcome(section.ordinal, "accepted", extract)


def restructure_all(
    documents: Iterable[Document],
    restructurer: Restructurer,
    n_workers: int,
    progress: Progress = silent,
) -> Generator[tuple[Document, DocumentOutcome]]:
    """Restructure documents, in the order given, several sections at once.

    Documents are read as they are needed, and at most 32 sections for each worker are under way, so that
    memory does not grow with the corpus. If the caller stops early or something fails, what has not begun is
    cancelled, and what has is not waited for: close the chat, or it runs on to its end.

    Args:
        documents: May be lazy.
        restructurer: Does the work.
        n_workers: Threads; with 1 everything runs in the calling thread.
        progress: Hears of every section.

    Raises:
        Exception: Whatever a task raises, at the place of its document.
    """
    outcomes: list[SectionOutcome] = []
    n_sections = 0
    for step in done_in_order(_steps(documents, restructurer), n_workers):
        if isinstance(step, Document):
            yield step, DocumentOutcome(step.doc_id, tuple(outcomes))
            outcomes = []
        else:
            outcomes.append(step)
            n_sections += 1
            progress("restructuring", n_sections, None)


def _steps(
    documents: Iterable[Document], restructurer: Restructurer
) -> Iterator[Callable[[], SectionOutcome | Document]]:
    """The tasks of each document, and the document itself behind them."""
    for document in documents:
        yield from restructurer.tasks(document)
        yield partial(_itself, document)


def _itself(document: Document) -> Document:
    return document


def _with_placeholders(raw: Protected, extract: str) -> str:
    """An extract with the raw text's placeholders for the blocks that it holds, in their order; for the judge."""
    rest, parts = f"\n{extract}\n", []
    for block in raw.blocks:
        before, found, after = rest.partition(f"\n{block.text}\n")
        if found:
            parts.append(f"{before}\n{block.placeholder}")
            rest = f"\n{after}"
    return ("".join(parts) + rest)[1:-1]
