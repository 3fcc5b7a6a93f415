"""What people see of lineage, printed to a console of eighty columns."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from rich.console import Console

from prime_pipeline.console.lineage import lineage_view
from prime_pipeline.indexes.builds import ServedBuild
from prime_pipeline.indexes.lexical import StoredDocument, StoredSection
from prime_pipeline.records import DocumentMetadata, Finding
from prime_pipeline.reporting.explaining import Verdict
from prime_pipeline.reporting.lineage import (
    DocumentLineage,
    Origin,
    SectionLineage,
    SourceLine,
    SourceState,
)

SECTION = StoredSection(
    "food/bread.md",
    2,
    "Bread",
    ("Dough", "Rising"),
    "## Rising\n\nLet it rest.\n",
    11,
    "food/bread.md",
    3,
    5,
    "Rest.",
)
VERDICT = Verdict("patched", "raw sentences were appended", (Finding("number_missing", "7"),))
WHOLE = DocumentLineage(
    build=ServedBuild("full", "0123456789abcdef", "2026-11-30T03:00:00+00:00"),
    document=StoredDocument("food/bread.md", "Bread", "food/bread.md", {}),
    version="f" * 64,
    indexed_text="both",
    origin=Origin("llm:m/full-1", "m", "full-1", "2026-11-29T03:00:00+00:00", 1, 4),
    metadata=DocumentMetadata(
        "food/bread.md", (("dough", 2.0), ("yeast", 1.0)), ((2, "Dough"), (3, "Rising")), "x"
    ),
    state=SourceState("unchanged", "it is what is served"),
    sections=((SECTION, VERDICT),),
)
FOUND = SectionLineage(
    WHOLE,
    SECTION,
    VERDICT,
    SourceState("moved", "the same text now stands on lines 4-6"),
    (SourceLine(2, "before", False), SourceLine(3, "## Rising", True)),
    2,
)


def shown(found: DocumentLineage | SectionLineage) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=80).print(lineage_view(found))
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    return lines


def facts(lines: list[str]) -> dict[str, str]:
    cells = (re.split(r" {3,}", line, maxsplit=1) for line in lines)
    return {cell[0]: cell[1] for cell in cells if len(cell) == 2 and cell[0]}


def test_a_section_is_followed_from_build_to_lines() -> None:
    lines = shown(FOUND)
    assert lines[:2] == ["Bread › Dough › Rising", "food/bread.md#2"]
    told = facts(lines)
    assert told["served by"].startswith("full build 0123456789abcdef, published")
    assert told["text"] == "restructured, 23 characters became 16"
    assert told["BM25 sees"] == "raw and restructured text"
    assert told["verdict"] == "patched: raw sentences were appended"
    assert "• number missing: 7" in " ".join(lines)
    assert told["restructured by"].startswith("llm:m/full-1; model m; prompt full-1; last asked")
    assert "1 call paid, 4 from the cache" in " ".join(" ".join(lines).split())
    assert told["terms"] == "dough, yeast"
    assert (told["source"], told["since then"]) == (
        "food/bread.md:3-5",
        "moved: the same text now stands on lines 4-6",
    )
    assert lines[-3:] == ["  2 before", "> 3 ## Rising", "and 2 more lines"]


def test_headings_are_a_tree() -> None:
    lines = shown(FOUND)
    at = next(number for number, line in enumerate(lines) if line.startswith("headings"))
    assert lines[at].endswith("   Dough")
    assert lines[at + 1].endswith("     Rising")


def test_a_document_lists_its_sections() -> None:
    lines = shown(WHOLE)
    assert lines[0] == "Bread"
    assert re.split(r"  +", lines[-1]) == [
        "food/bread.md#2",
        "Dough › Rising",
        "3-5",
        "patched: number missing",
    ]


def test_text_of_documents_cannot_steer_the_terminal() -> None:
    hostile = "a\x1b[31m\u202eb"
    section = replace(SECTION, title=hostile, heading_path=(hostile,), source_path=hostile)
    metadata = DocumentMetadata("x", ((hostile, 1.0),), ((1, hostile),), "")
    whole = replace(WHOLE, metadata=metadata, sections=((section, VERDICT),))
    line = SourceLine(1, hostile, True)
    found = replace(FOUND, section=section, of_document=whole, lines=(line,))
    for view in (found, whole):
        assert not re.search("[\x1b\u202e]", "\n".join(shown(view)))
