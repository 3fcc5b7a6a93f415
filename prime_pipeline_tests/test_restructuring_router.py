"""What is kept raw without asking a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.source import SourceEntry
from prime_pipeline.restructuring.router import RouterOptions, route
from prime_pipeline.text.protected import protect
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.rewriting_run import PROSE

PAPERS = ("test-004", "test-008", "test-011", "test-013", "test-016", "test-019")
CODE = "```\n" + "value = compute(value, other)\n" * 20 + "```"
TABLE = "| a | b |\n| --- | --- |\n" + "| some cell | another cell |\n" * 20


def code(body: str, heading: str = "Results", kind: str = "section") -> str | None:
    (section,) = make_document("d", f"{heading}: {body}").sections
    finding = route(replace(section, kind=kind), protect(section.body), RouterOptions())  # type: ignore[arg-type]
    return finding.code if finding else None


@pytest.mark.parametrize(
    ("expected", "body"),
    [
        (None, PROSE * 4),
        (None, f"{PROSE * 3}\n\n```\nx = 1\n```\n\n{PROSE}"),
        (None, f"{PROSE * 3}If it fails, nothing is lost. {PROSE * 3}"),
        (None, f"{PROSE * 2}We use $x$ for the input and $y$ for the output of it. {PROSE * 2}"),
        (None, "Our contributions are:\n\n" + f"1. We say this. {PROSE}\n" * 3 + PROSE),
        (None, f"{PROSE * 3}\n\n* one\n* two\n* three"),
        ("too_short", PROSE * 2),
        ("too_short", ""),
        ("code", f"{PROSE}\n\n{CODE}\n\n{PROSE * 2}"),
        ("table", f"{PROSE}\n\n{TABLE}\n\n{PROSE * 2}"),
        ("mathematics", f"**Theorem 2.** For all graphs this holds. {PROSE * 3}"),
        ("mathematics", f"{PROSE * 3}\n\nProof. Let it be so. {PROSE}"),
        (
            "mathematics",
            "Let $x \\in A$ and $y \\in B$ with $f(x) = y$, then $g(y) \\leq h(x)$ and so on. " * 4,
        ),
        ("mathematics", "The INLINEFORM0 of INLINEFORM1 gives the INLINEFORM2 that we need . " * 6),
        (
            "procedure",
            "\n".join(f"{n}. Open file {n}, read what it holds and then close it again" for n in range(1, 6)),
        ),
        (
            "procedure",
            "\n".join(f"* Install package {n} with all the options that it needs to work" for n in range(5)),
        ),
        (
            "procedure",
            "First, we read it all. Then we sort what we have read. Next, we cut it. Finally, we keep it. "
            * 3,
        ),
        (
            "conditional",
            "If the lock is free, it is taken. Unless it is held, others may go on reading from it. " * 4,
        ),
        ("list", "\n".join(f"* an entry {n} of the index" for n in range(12))),
        ("list", "\n".join(f"Read [the page number {n}](https://example.org/page/{n})." for n in range(20))),
        ("not_prose", "12.5 13.7 15.2 (4.2) 17.9 18.1 +3 99 % run 7\n" * 6),
    ],
)
def test_each_reason_by_an_example(expected: str | None, body: str) -> None:
    assert code(body) == expected


def test_captions_and_change_logs() -> None:
    assert code(PROSE * 4, kind="captions") == "captions"
    entries = "\n".join(
        f"* Fixed a fault number {n} that made the whole thing stop at once" for n in range(9)
    )
    assert code(entries, heading="Release notes") == "list"
    assert code(entries, heading="What was fixed") is None


def test_languages_without_blanks_are_counted_by_characters() -> None:
    assert code("我们提出了一种新的方法来处理长文档。" * 8) is None
    assert code("我们提出了一种新的方法。") == "too_short"


def test_wrapped_lines_make_no_formal_statement() -> None:
    assert code(f"{PROSE * 3}This is the\ndefinition: it was given before. {PROSE}") is None


def test_thresholds_decide() -> None:
    (section,) = make_document("d", PROSE * 4).sections
    finding = route(section, protect(section.body), RouterOptions(min_words=100))
    assert finding is not None
    assert finding.detail == "76 words, fewer than 100"


def test_most_sections_of_papers_may_be_rewritten(test_data: Path) -> None:
    entries = open_corpus(str(test_data / "qasper-mini" / "qasper-mini.json")).entries()
    papers = [e.parse() for e in entries if isinstance(e, SourceEntry) and e.doc_id.endswith(PAPERS)]
    assert len(papers) == len(PAPERS)
    sections = [section for paper in papers for section in paper.sections if len(section.body.split()) >= 40]
    kept_raw = [s.heading for s in sections if route(s, protect(s.body), RouterOptions())]
    assert len(kept_raw) <= 0.1 * len(sections)
