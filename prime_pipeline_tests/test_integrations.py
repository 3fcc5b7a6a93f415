"""The retrievers for other frameworks, called as those frameworks call them, with their own packages."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.errors import ExtraMissing, IndexNotFound
from prime_pipeline.retrieval.filters import DocumentFilter
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.fakes import tiny_bert
from prime_pipeline_tests.papers import publish, write_papers
from prime_pipeline_tests.shelf import Shelf

Found = tuple[str, str, dict[str, Any], float]
"""Id, text, metadata, score."""


def by_langchain(home: Path, query: str, **options: Any) -> Generator[list[Found]]:
    from prime_pipeline.integrations.langchain import PrimeRetriever

    with closing(PrimeRetriever(home=home, **options)) as retriever:
        while True:
            documents = retriever.invoke(query)
            assert [d.id for d in asyncio.run(retriever.ainvoke(query))] == [d.id for d in documents]
            yield [(str(d.id), d.page_content, d.metadata, d.metadata["score"]) for d in documents]


def by_llama_index(home: Path, query: str, **options: Any) -> Generator[list[Found]]:
    from prime_pipeline.integrations.llama_index import PrimeRetriever

    with closing(PrimeRetriever(home, **options)) as retriever:
        while True:
            nodes = retriever.retrieve(query)
            again = asyncio.run(retriever.aretrieve(query))
            assert [n.node_id for n in again] == [n.node_id for n in nodes]
            yield [(n.node_id, n.text, n.metadata, n.get_score()) for n in nodes]


Framework = Callable[..., Generator[list[Found]]]
each_framework = pytest.mark.parametrize("framework", [by_langchain, by_llama_index])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An embedder that the retrievers load by themselves."""
    return str(tiny_bert(tmp_path_factory.mktemp("model")))


@pytest.fixture
def shelf(tmp_path: Path, model: str) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path, uses_fakes=False, embedder=model)
    yield shelf
    shelf.workspace.close()


@pytest.fixture
def restructured(tmp_path: Path, model: str) -> dict[str, Any]:
    """The settings of a home that publishes two restructured papers."""
    rules = {"restructuring": {"entities": "rule"}}
    settings = {"home": tmp_path / "home", "mode": "full", "embedder": model, **rules}
    papers = write_papers(tmp_path / "papers.json")
    workspace = Workspace(load_settings({**settings, "corpus": str(papers)}))
    publish(workspace)
    workspace.close()
    return settings


@each_framework
def test_sections_come_with_their_source_and_follow_what_is_published(
    framework: Framework, shelf: Shelf, model: str
) -> None:
    build_id = shelf.publish()
    searches = framework(shelf.home, "engine burns fuel", top_k=2, settings={"embedder": model})
    (first_id, text, metadata, score), (_, _, _, second_score) = next(searches)
    assert (first_id, text) == ("guide/car.md#1", "## Engine\n\nAn engine burns fuel.\n")
    assert (metadata["doc_id"], metadata["source"]) == ("guide/car.md", "guide/car.md")
    assert (metadata["start_line"], metadata["end_line"]) == (7, 9)
    assert (metadata["title"], metadata["heading_path"]) == ("Car", "Engine")
    assert metadata["build"] == build_id
    assert score > second_score

    shelf.publish({"new.md": "# New\n\n## Engine\n\nAnother engine.\n"})
    assert [found[0] for found in next(searches)] == ["new.md#1"]
    searches.close()


@each_framework
def test_filters_are_those_of_the_retriever(framework: Framework, shelf: Shelf, model: str) -> None:
    shelf.publish()
    kitchen = DocumentFilter(tags=("kitchen",))
    searches = framework(shelf.home, "engine", top_k=9, documents=kitchen, settings={"embedder": model})
    assert {found[2]["doc_id"] for found in next(searches)} == {"guide/bread.md"}
    searches.close()


@each_framework
def test_restructured_text_is_served_with_the_raw_beside_it(
    framework: Framework, restructured: dict[str, Any]
) -> None:
    searches = framework(restructured["home"], "workers of Alpha", top_k=1, settings=restructured)
    ((_, text, metadata, _),) = next(searches)
    assert text.startswith("## Scheduling\n\nThe scheduler of the Alpha project")
    assert "Moreover, the scheduler" in metadata["raw_text"]
    searches.close()


def test_a_language_model_does_not_read_the_raw_text_too(restructured: dict[str, Any]) -> None:
    from llama_index.core.schema import MetadataMode

    from prime_pipeline.integrations.llama_index import PrimeRetriever

    with closing(PrimeRetriever(top_k=1, settings=restructured)) as retriever:
        (node,) = retriever.retrieve("workers of Alpha")
    assert "Moreover" not in node.node.get_content(MetadataMode.LLM)
    assert "title: Schedulers" in node.node.get_content(MetadataMode.LLM)


@each_framework
def test_before_anything_is_published_the_error_says_what_to_do(framework: Framework, tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match="prime refresh"):
        next(framework(tmp_path / "home", "engine"))


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("langchain", "langchain_core", "langchain"), ("llama_index", "llama_index", "llama-index")],
)
def test_without_the_package_the_error_names_the_extra(
    module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"prime_pipeline.integrations.{module}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    for loaded in [loaded for loaded in sys.modules if loaded.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExtraMissing, match=rf"prime-pipeline\[{extra}\]"):
        importlib.import_module(name)
