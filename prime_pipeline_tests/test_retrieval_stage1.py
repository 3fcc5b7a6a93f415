"""Stage 1 over a small index and over random ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from prime_pipeline.indexes.builds import LEXICAL_FILE
from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.indexes.vectors import VectorIndex
from prime_pipeline.records import Document
from prime_pipeline.retrieval.options import Arm, RetrievalOptions
from prime_pipeline.retrieval.stage1 import Candidates, best_sections_by_document, find_candidates
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document

ALL_ARMS = RetrievalOptions().arms


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.publish(
        make_document("a", "Bread: How to bake bread with yeast.", "Ovens: Heat the oven.", title="Baking"),
        make_document("b", "Engines: An engine burns fuel.", "Bread: No bread in engines.", title="Cars"),
        make_document("c", "Stars: A star shines at night.", title="Sky"),
    )
    return bench


def candidates(bench: Bench, query: str, options: RetrievalOptions | None = None) -> Candidates:
    lexical, vectors = LexicalIndex(bench.live() / LEXICAL_FILE), VectorIndex(bench.live())
    return find_candidates(query, lexical, vectors, bench.embedder, options or RetrievalOptions())


def test_every_arm_ranks_documents(bench: Bench) -> None:
    found = candidates(bench, "bread yeast")
    assert tuple(found.arms) == ALL_ARMS
    assert [doc_id for doc_id, _ in found.arms["document_bm25"]] == ["a", "b"]
    assert [doc_id for doc_id, _ in found.arms["section_bm25"]] == ["a", "b"]
    assert {doc_id for doc_id, _ in found.arms["metadata_vector"]} == {"a", "b", "c"}
    assert found.ranking[0][0] == "a"


@pytest.mark.parametrize("arm", ALL_ARMS)
def test_one_arm_alone_is_its_own_ranking(bench: Bench, arm: Arm) -> None:
    found = candidates(bench, "bread", RetrievalOptions(arms=(arm,), rrf_k=1))
    assert [doc_id for doc_id, _ in found.ranking] == [doc_id for doc_id, _ in found.arms[arm]]
    assert found.ranking[0][1] == 1 / 2


def test_arm_ranks_name_only_the_arms_that_found_the_document(bench: Bench) -> None:
    found = candidates(bench, "bread yeast")
    assert found.arm_ranks("a")["document_bm25"] == 1
    assert found.arm_ranks("b")["section_bm25"] == 2
    assert set(found.arm_ranks("c")) == {"metadata_vector"}
    assert found.arm_ranks("unknown") == {}


def test_an_arm_contributes_no_more_than_its_depth(bench: Bench) -> None:
    found = candidates(bench, "bread", RetrievalOptions(arm_depth=1))
    assert [len(ranking) for ranking in found.arms.values()] == [1, 1, 1]


def random_document(number: int, source: random.Random) -> Document:
    words = ["ant", "bee", "cat", "dog", "elk", "fox"]
    sections = [
        f"{' '.join(source.choices(words, k=2))}: {' '.join(source.choices(words, k=source.randint(1, 30)))}"
        for _ in range(source.randint(1, 5))
    ]
    return make_document(f"d{number:02}", *sections)


@pytest.mark.parametrize("seed", range(3))
def test_best_sections_agree_with_a_slow_second_implementation(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    bench = Bench(tmp_path)
    bench.publish(*(random_document(number, source) for number in range(25)))
    lexical = LexicalIndex(bench.live() / LEXICAL_FILE)
    for query in ("ant", "bee cat", "fox zebra", "zebra"):
        scores = lexical.score_sections(query)
        best: dict[str, float] = {}
        for position, score in zip(scores.positions, scores.scores, strict=True):
            doc_id = lexical.stored_section(int(position)).doc_id
            best[doc_id] = max(best.get(doc_id, 0.0), float(score))
        expected = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
        assert best_sections_by_document(lexical, scores, 100) == expected
        assert best_sections_by_document(lexical, scores, 4) == expected[:4]


def test_equal_sections_are_in_order_of_id(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.publish(*(make_document(doc_id, "Same: same words", title="Same") for doc_id in "cab"))
    lexical = LexicalIndex(bench.live() / LEXICAL_FILE)
    found = best_sections_by_document(lexical, lexical.score_sections("words"), 10)
    assert [doc_id for doc_id, _ in found] == ["a", "b", "c"]
    assert len({score for _, score in found}) == 1
