"""Where served sections came from, and what is told once corpus, stores or settings have moved on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.errors import UnknownDocument
from prime_pipeline.reporting.lineage import (
    DocumentLineage,
    Origin,
    SectionLineage,
    SourceLine,
    lineage_of,
)
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.chat_endpoint import Endpoint, answer
from prime_pipeline_tests.papers import (
    REWRITTEN,
    SHORT,
    WORDY,
    OpenPapers,
    opening,
    publish,
    reworded,
    write_papers,
)
from prime_pipeline_tests.shelf import GUIDE, Shelf

OVEN = "guide/bread.md#2"


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path)
    made.publish()
    yield made
    made.workspace.close()


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    return write_papers(tmp_path / "papers.json")


@pytest.fixture
def open_papers(tmp_path: Path, papers: Path) -> Iterator[OpenPapers]:
    """Opens workspaces on one home, each as a new process would."""
    with opening(tmp_path / "home", papers, queries="") as open_one:
        yield open_one


def of_section(workspace: Workspace, name: str = OVEN) -> SectionLineage:
    with workspace.retriever() as retriever:
        found = lineage_of(workspace, retriever, name)
    assert isinstance(found, SectionLineage)
    return found


def of_document(workspace: Workspace, name: str) -> DocumentLineage:
    with workspace.retriever() as retriever:
        found = lineage_of(workspace, retriever, name)
    assert isinstance(found, DocumentLineage)
    return found


def rescan(shelf: Shelf) -> None:
    location = shelf.workspace.settings.corpus_location
    scan(open_corpus(location), shelf.workspace.store, allow_removals=True)


def test_a_section_leads_to_its_lines_in_the_file(shelf: Shelf) -> None:
    found = of_section(shelf.workspace)
    whole = found.of_document
    assert (whole.build, whole.origin, whole.indexed_text) == (shelf.workspace.served, None, "raw")
    entry = shelf.workspace.store.catalogue_entry("guide/bread.md")
    assert entry is not None
    assert whole.version == entry.version
    assert whole.metadata is not None
    assert [text for _, text in whole.metadata.headings] == ["Dough", "Oven"]
    assert found.verdict.status == "raw"
    assert found.state.status == "unchanged"
    assert (found.section.start_line, found.section.end_line) == (11, 13)
    assert found.lines[0] == SourceLine(9, "Knead the dough.", False)
    assert [(line.number, line.text) for line in found.lines if line.is_of_section] == [
        (11, "## Oven"),
        (12, ""),
        (13, "Heat the oven."),
    ]


def test_a_long_section_is_cut(shelf: Shelf) -> None:
    shelf.publish({"long.md": "# Long\n\n## Part\n\n" + "A line.\n" * 50})
    found = of_section(shelf.workspace, "long.md#1")
    own = [line for line in found.lines if line.is_of_section]
    assert len(own) == 8
    assert len(own) + found.n_lines_left == 52
    assert found.lines[-1] == own[-1]


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("# Bread\n\n## Oven\n\nCool the oven.\n", "changed", "changed"),
        ("# Bread\n\nNew.\n\n" + GUIDE["guide/bread.md"].partition("# Bread\n\n")[2], "changed", "moved"),
        (None, "gone", "gone"),
        (" \n", "changed", "unreadable"),
    ],
)
def test_a_file_that_is_newer_than_the_build_is_told(
    shelf: Shelf, text: str | None, before: str, after: str
) -> None:
    path = shelf.docs / "guide" / "bread.md"
    path.unlink() if text is None else path.write_text(text)
    found = of_section(shelf.workspace)
    assert found.state.status == before
    assert [line.text for line in found.lines] == ["## Oven", "", "Heat the oven."]  # what is served
    rescan(shelf)
    assert of_section(shelf.workspace).state.status == after


def test_documents_list_their_sections(shelf: Shelf) -> None:
    whole = of_document(shelf.workspace, "guide/bread.md")
    assert [section.ordinal for section, _ in whole.sections] == [1, 2]
    assert whole.state.status == "unchanged"
    (shelf.docs / "guide" / "bread.md").write_text("# Bread\n\n## Oven\n\nCool the oven.\n")
    rescan(shelf)
    assert of_document(shelf.workspace, "guide/bread.md").state.status == "changed"


def test_a_home_without_a_corpus_knows_no_source(shelf: Shelf) -> None:
    shelf.workspace.close()
    shutil.rmtree(shelf.workspace.home.documents)
    assert of_section(shelf.workspace).state.status == "unknown"
    assert not shelf.workspace.home.documents.exists()


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("guide/bread.md#9", "guide/bread.md#"),
        ("bread.md", "guide/bread.md"),
        ("bread.md#2", "guide/bread.md#2"),
        ("guide/braed.md#1", "guide/bread.md#1"),
        ("#", "search results"),
        ("half \udc80#1", ""),
    ],
)
def test_an_unknown_id_names_similar_ones(shelf: Shelf, name: str, similar: str) -> None:
    with shelf.workspace.retriever() as retriever, pytest.raises(UnknownDocument) as raised:
        lineage_of(shelf.workspace, retriever, name)
    assert similar in str(raised.value)


def test_restructuring_is_told_with_model_prompt_and_time(
    open_papers: OpenPapers, endpoint: Endpoint
) -> None:
    endpoint.plays(answer(REWRITTEN))
    llm = {"base_url": endpoint.url, "model": "m", "api_key": "k", "concurrency": 1}
    workspace = open_papers(mode="full", llm=llm)
    publish(workspace)
    found = of_section(workspace, "alpha#1")
    (run,) = workspace.ledger.runs()
    prompt = workspace.strategy.details["prompt_version"]
    assert found.of_document.origin == Origin(f"llm:m/{prompt}", "m", prompt, run.started_at, 1, 0)
    assert found.verdict.status == "accepted"
    assert found.section.rewritten == REWRITTEN
    assert WORDY in found.section.text
    assert found.state.status == "unchanged"
    assert found.state.reason.endswith("as the last refresh read it")  # one file holds several papers
    assert {line.number for line in found.lines} == {None}


def test_an_extract_was_never_asked_for(open_papers: OpenPapers) -> None:
    workspace = open_papers(mode="full")
    publish(workspace)
    assert of_section(workspace, "alpha#1").of_document.origin == Origin(workspace.strategy.label)


def test_what_was_restructured_anew_has_an_unknown_verdict(open_papers: OpenPapers, papers: Path) -> None:
    publish(open_papers(mode="full"))
    with open_papers(mode="full").retriever() as retriever:
        write_papers(papers, reworded(SHORT, "The queue of Alpha holds 50 jobs."))
        workspace = open_papers(mode="full")
        publish(workspace)
        found = lineage_of(workspace, retriever, "alpha#2")
    assert isinstance(found, SectionLineage)
    assert (found.verdict.status, found.state.status) == ("unknown", "changed")
