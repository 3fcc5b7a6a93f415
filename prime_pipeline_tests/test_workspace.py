"""The workspace opens each part once, and nothing before it is needed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import prime_pipeline
from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.datasets.known_items import known_item_queries
from prime_pipeline.datasets.locations import KNOWN_ITEMS
from prime_pipeline.errors import (
    EmptyCorpus,
    EvaluationError,
    IndexCorrupt,
    IndexModelMismatch,
    IndexNotFound,
)
from prime_pipeline.settings import load_settings
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline.workspace import Workspace, open_retriever
from prime_pipeline_tests.fakes import HashingEmbedder, tiny_bert


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "bread.md").write_text("# Bread\n\n## Dough\n\nKnead the dough.\n")
    (folder / "car.md").write_text("# Car\n\n## Engine\n\nThe engine burns fuel.\n")
    return folder


def refresh(workspace: Workspace) -> None:
    """All that a refresh does before it evaluates."""
    location = workspace.settings.corpus_location
    scan(open_corpus(location), workspace.store)
    seal_corpus(workspace.store, workspace.home.seal("raw"), location)
    workspace.steps("offline").publish(keep=workspace.settings.index.keep_builds)


def test_from_settings_to_hits(corpus: Path) -> None:
    settings = load_settings({"corpus": str(corpus), "retrieval": {"top_k": 1}})
    workspace = Workspace(settings, embedder=HashingEmbedder())
    refresh(workspace)
    with workspace.retriever() as retriever:
        (hit,) = retriever.search("which engine burns fuel")
    assert (hit.source_path, hit.start_line) == ("car.md", 3)
    assert retriever.manifest.profile == "embedded"
    workspace.close()


def test_nothing_is_made_or_loaded_before_it_is_needed(tmp_path: Path) -> None:
    workspace = Workspace(load_settings({"embedder": str(tmp_path / "no model")}))
    with pytest.raises(IndexNotFound, match=r"prime refresh --corpus DIR"):
        workspace.retriever()
    assert not workspace.home.root.exists()


def test_a_plan_needs_a_sealed_corpus() -> None:
    with pytest.raises(EmptyCorpus):
        Workspace(load_settings(), embedder=HashingEmbedder()).plan("offline")


def test_a_plan_follows_the_settings(corpus: Path) -> None:
    def build_id(**options: object) -> str:
        settings = load_settings({"corpus": str(corpus), **options})
        return Workspace(settings, embedder=HashingEmbedder()).plan("offline").build_id

    refresh(Workspace(load_settings({"corpus": str(corpus)}), embedder=HashingEmbedder()))
    ids = [build_id(), build_id(metadata={"n_terms": 3}), build_id(index={"vector_search": "hnsw"})]
    assert len(set(ids)) == 3
    assert build_id(retrieval={"top_k": 9}, index={"keep_builds": 1}) == ids[0]


def test_parts_are_opened_once_and_again_after_closing() -> None:
    workspace = Workspace(load_settings(), embedder=HashingEmbedder())
    store = workspace.store
    assert workspace.store is store
    workspace.close()
    workspace.close()
    assert workspace.store is not store
    assert workspace.store.catalogue() == {}
    workspace.close()


def test_homes_may_share_their_caches(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path / "one", "cache_home": tmp_path / "two"})
    home = Workspace(settings).home
    assert home.documents == tmp_path / "one" / "documents"
    assert home.embeddings.parent == tmp_path / "two" / "cache"


def test_the_package_opens_a_retriever_with_local_models(corpus: Path, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model")
    options = {"corpus": str(corpus), "embedder": str(folder)}
    workspace = Workspace(load_settings({"home": tmp_path / "mine", **options}))
    refresh(workspace)
    workspace.close()
    with prime_pipeline.open_retriever(tmp_path / "mine", embedder=str(folder)) as retriever:
        assert {hit.doc_id for hit in retriever.search("engine")} == {"bread.md", "car.md"}
    other = tiny_bert(tmp_path / "other", seed=1)
    with pytest.raises(IndexModelMismatch, match="prime refresh"):
        open_retriever(tmp_path / "mine", embedder=str(other))


def test_damaged_caches_take_nothing_down(corpus: Path) -> None:
    workspace = Workspace(load_settings({"corpus": str(corpus)}), embedder=HashingEmbedder())
    workspace.home.embeddings.parent.mkdir(parents=True)
    for path in (workspace.home.embeddings, workspace.home.token_vectors):
        path.write_bytes(b"damaged" * 1_000)
    refresh(workspace)
    with workspace.retriever() as retriever:
        assert retriever.search("engine")[0].doc_id == "car.md"
    workspace.close()


def test_search_needs_no_token_vector_cache(corpus: Path) -> None:
    workspace = Workspace(load_settings({"corpus": str(corpus)}), embedder=HashingEmbedder())
    refresh(workspace)
    workspace.home.token_vectors.mkdir()  # cannot be opened as a file
    with workspace.retriever() as retriever:
        assert retriever.search("engine")[0].doc_id == "car.md"
    workspace.close()


def test_a_live_build_that_is_not_whole_is_called_damaged(corpus: Path) -> None:
    workspace = Workspace(load_settings({"corpus": str(corpus)}), embedder=HashingEmbedder())
    refresh(workspace)
    live = workspace.builds("offline").live_path
    assert live is not None
    (live / "manifest.json").unlink()
    with pytest.raises(IndexCorrupt, match=r"manifest\.json is missing"):
        workspace.retriever()
    shutil.rmtree(live)
    with pytest.raises(IndexCorrupt, match="the folder is missing"):
        workspace.retriever()
    refresh(workspace)
    workspace.retriever().close()
    workspace.close()


# --- queries made from the corpus ---------------------------------------------------------------------------------

STARS = "# Stars\n\n## Spectral classes\n\nAstronomers sort distant stars by colour, luminosity, spectrum and age.\n"
ROCKS = "# Rocks\n\n## Volcanic glass\n\nObsidian forms where silica lava cools quickly without growing crystals.\n"


@pytest.fixture
def known_items(corpus: Path) -> Iterator[Callable[[], Workspace]]:
    """Opens workspaces whose queries are made from the corpus, each as a new process would."""
    opened: list[Workspace] = []

    def open_one() -> Workspace:
        settings = load_settings({"corpus": str(corpus), "queries": KNOWN_ITEMS})
        opened.append(Workspace(settings, embedder=HashingEmbedder()))
        return opened[-1]

    yield open_one
    for workspace in opened:
        workspace.close()


def asked_about(workspace: Workspace) -> set[str]:
    queries = workspace.query_set
    assert queries is not None
    assert queries.known_item
    return set(queries.relevant_documents)


def test_known_items_are_made_from_the_sealed_corpus(
    corpus: Path, known_items: Callable[[], Workspace]
) -> None:
    (corpus / "stars.md").write_text(STARS)
    workspace = known_items()
    refresh(workspace)
    documents = list(workspace.store.load_all(workspace.plan("offline").corpus.documents))
    assert [document.doc_id for document in documents] == ["bread.md", "car.md", "stars.md"]
    assert workspace.query_set == known_item_queries(documents).query_set
    assert {query.query_id for query in workspace.query_set.queries} == {  # the others are too short
        "heading:stars.md",
        "sentence:stars.md",
    }


def test_known_items_know_nothing_of_a_document_that_is_not_sealed(
    corpus: Path, known_items: Callable[[], Workspace]
) -> None:
    (corpus / "stars.md").write_text(STARS)
    refresh(known_items())
    (corpus / "rocks.md").write_text(ROCKS)
    workspace = known_items()
    scan(open_corpus(str(corpus)), workspace.store)
    assert asked_about(workspace) == {"stars.md"}
    refresh(workspace)
    assert asked_about(known_items()) == {"rocks.md", "stars.md"}


def test_known_items_need_a_sealed_corpus_that_yields_some(known_items: Callable[[], Workspace]) -> None:
    with pytest.raises(EmptyCorpus):
        _ = known_items().query_set
    refresh(known_items())
    with pytest.raises(EvaluationError, match="give a query set instead"):
        _ = known_items().query_set


def test_no_scan_before_the_first() -> None:
    assert Workspace(load_settings()).last_scan is None
