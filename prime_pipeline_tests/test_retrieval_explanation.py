"""Why a search found what it did: told of the very hits, in the words of the index itself."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from pathlib import Path

import pytest

from prime_pipeline.models.cross_encoder import CrossEncoderScorer
from prime_pipeline.retrieval.explanation import ArmPlace, Explanation, HitExplanation
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import tiny_cross_encoder

BREAD = make_document(
    "bread", "Dough: Knead the doughs.", "Baking: It is baking in a naïve oven.", title="Bread"
)
CAR = make_document("car", "Engine: Engines burn fuel.", title="Car")
SKY = make_document("sky", "Stars: A star burns at night.", title="Sky")
STAGE1 = RetrievalOptions(scorer="none")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "home")
    bench.publish(BREAD, CAR, SKY)
    return bench


@pytest.fixture
def retriever(bench: Bench) -> Iterator[Retriever]:
    with bench.retriever() as retriever:
        yield retriever


def of(explanation: Explanation, section_id: str) -> HitExplanation:
    (found,) = [explained for explained in explanation.hits if explained.hit.section_id == section_id]
    return found


@pytest.mark.parametrize("options", [RetrievalOptions(), RetrievalOptions(rerank_budget=0), STAGE1])
@pytest.mark.parametrize("query", ["which engine burns fuel", "?!", "quark", "baking \udcff*", "NEAR(dough)"])
def test_the_hits_are_those_of_the_search(bench: Bench, options: RetrievalOptions, query: str) -> None:
    with bench.retriever(options) as retriever:
        explanation = retriever.explain(query)
        assert [explained.hit for explained in explanation.hits] == retriever.search(query)
        assert [e.hit for e in retriever.explain(query, top_k=2).hits] == retriever.search(query, top_k=2)
        assert [e.hit for e in retriever.explain(query, options=STAGE1).hits] == retriever.search(
            query, options=STAGE1
        )


def test_words_match_by_stem_and_without_diacritics(retriever: Retriever) -> None:
    explanation = retriever.explain("Naive bakes, running, doughs?")
    assert [word.word for word in explanation.words] == ["naive", "bakes", "running", "doughs"]
    assert {word.word for word in of(explanation, "bread#2").words} == {"naive", "bakes"}
    assert {word.word for word in of(explanation, "bread#1").words} == {"doughs"}
    assert of(explanation, "car#1").words == ()


def test_title_and_headings_count_as_a_sections_words(retriever: Retriever) -> None:
    explanation = retriever.explain("bread dough oven")
    assert {word.word for word in of(explanation, "bread#1").words} == {"bread", "dough"}


def test_words_are_told_with_how_rare_they_are(retriever: Retriever) -> None:
    explanation = retriever.explain("burning star")
    assert explanation.n_documents == 3
    assert {word.word: word.n_documents for word in explanation.words} == {"burning": 2, "star": 1}
    assert [word.idf for word in explanation.words] == pytest.approx([log(4 / 3) + 1, log(4 / 2) + 1])
    assert [word.word for word in of(explanation, "sky#1").words] == ["star", "burning"]  # the rarest first


def test_words_in_no_document_are_told(retriever: Retriever) -> None:
    explanation = retriever.explain("which quark burns")
    assert explanation.unknown_words == ("which", "quark")
    assert [word.n_documents for word in explanation.words] == [0, 0, 2]


def test_places_in_the_arms_are_those_that_were_fused(retriever: Retriever) -> None:
    explanation = retriever.explain("star")
    sky, bread = of(explanation, "sky#1"), of(explanation, "bread#1")
    assert set(sky.arms) == {"document_bm25", "section_bm25", "metadata_vector"}
    for explained in explanation.hits:
        found = {arm: place.rank for arm, place in explained.arms.items() if place}
        assert found == explained.hit.arm_ranks
        assert explained.fused_score == pytest.approx(sum(1 / (60 + rank) for rank in found.values()))
    assert sky.arms["section_bm25"] == ArmPlace(1, sky.hit.signals["section_bm25"])
    assert bread.arms["document_bm25"] is None
    assert bread.arms["section_bm25"] is None


def test_only_the_arms_that_were_asked_are_told(retriever: Retriever) -> None:
    options = RetrievalOptions(arms=("document_bm25",))
    (explained,) = retriever.explain("star", options=options).hits
    assert set(explained.arms) == {"document_bm25"}


def test_the_normalised_signals_add_up_to_the_score(retriever: Retriever) -> None:
    for explained in retriever.explain("which engine burns fuel").hits:
        assert set(explained.added) == {"section_bm25", "late_interaction", "stage1"}
        assert sum(explained.added.values()) == pytest.approx(explained.hit.score)


def test_one_signal_alone_is_not_normalised(bench: Bench, tmp_path: Path) -> None:
    cross_encoder = CrossEncoderScorer(str(tiny_cross_encoder(tmp_path / "cross")))
    options = RetrievalOptions(scorer="cross_encoder")
    with Retriever(bench.live(), bench.embedder, bench.token_vectors, options, cross_encoder) as retriever:
        crossed = retriever.explain("engine").hits
        cheap = retriever.explain("engine", options=STAGE1).hits
    assert [set(explained.hit.signals) for explained in crossed] == [{"section_bm25", "cross_encoder"}] * 4
    assert [explained.added for explained in (*crossed, *cheap)] == [{}] * 8


def test_a_query_without_a_word_explains_nothing(retriever: Retriever) -> None:
    assert retriever.explain("?!") == Explanation("?!", 3)


def test_a_very_long_query_is_explained_by_its_first_thousand_words(retriever: Retriever) -> None:
    explanation = retriever.explain("engine " + " ".join(f"word{i}" for i in range(2_000)))
    assert len(explanation.words) == 1_000
    assert [word.word for word in of(explanation, "car#1").words] == ["engine"]


def test_a_closed_retriever_explains_nothing(retriever: Retriever) -> None:
    retriever.close()
    with pytest.raises(RuntimeError, match="is closed"):
        retriever.explain("engine")
