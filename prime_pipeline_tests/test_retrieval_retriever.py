"""The retriever over published builds: what hits carry, odd queries, wrong builds, threads, and long lives."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from prime_pipeline.corpus.plain_text import parse_plain_text
from prime_pipeline.errors import IndexCorrupt, IndexModelMismatch, IndexNotFound, IndexOutdated
from prime_pipeline.indexes.builds import LEXICAL_FILE, MANIFEST_FILE
from prime_pipeline.indexes.vectors import ExactVectors
from prime_pipeline.models.cross_encoder import CrossEncoderScorer
from prime_pipeline.models.embedder import Vectors
from prime_pipeline.records import CutShort
from prime_pipeline.retrieval.options import RetrievalOptions
from prime_pipeline.retrieval.retriever import Rankings, Retriever, by_rank
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import Clock, HashingEmbedder, SlowEmbedder, tiny_cross_encoder

BREAD = make_document("bread", "Dough: Knead  flour & water.\n\n    code = 1", title="Bread")
CAR = make_document("car", "Engine: An engine burns fuel and turns wheels.", title="Car")
SKY = make_document("sky", "Stars: A star shines at night.", title="Sky")
STAGE1 = RetrievalOptions(scorer="none")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "home")
    bench.publish(BREAD, CAR, SKY)
    return bench


@pytest.fixture
def retriever(bench: Bench) -> Retriever:
    return bench.retriever()


@pytest.mark.parametrize(
    "options", [RetrievalOptions(), replace(RetrievalOptions(), rerank_budget=0), STAGE1]
)
def test_three_documents_with_default_sizes_give_three_hits(bench: Bench, options: RetrievalOptions) -> None:
    with bench.retriever(options) as retriever:
        hits = retriever.search("how does an engine burn fuel")
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert hits[0].doc_id == "car"
    assert {hit.doc_id for hit in hits} == {"bread", "car", "sky"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_hit_carries_its_way_back_to_the_raw_text(retriever: Retriever) -> None:
    hit = retriever.search("knead flour")[0]
    section = BREAD.sections[0]
    assert (hit.doc_id, hit.section_id, hit.title) == ("bread", "bread#1", "Bread")
    assert (hit.heading_path, hit.source_path) == (("Dough",), "bread.md")
    assert (hit.start_line, hit.end_line) == (2, 3)
    assert hit.text == section.text == "## Dough\nKnead  flour & water.\n\n    code = 1"
    assert hit.stage1_rank == 1
    assert hit.arm_ranks == {"document_bm25": 1, "section_bm25": 1, "metadata_vector": 1}
    assert set(hit.signals) == {"section_bm25", "late_interaction", "stage1"}


def test_a_hit_of_one_arm_says_so(retriever: Retriever) -> None:
    hits = {hit.doc_id: hit for hit in retriever.search("knead flour")}
    assert set(hits["sky"].arm_ranks) == {"metadata_vector"}
    assert hits["sky"].stage1_rank in (2, 3)


@pytest.mark.parametrize("query", ["", "   \n", "?!", "...", "---", "🎉", '"', "\x00", "\udcff"])
def test_a_query_without_a_word_finds_nothing(retriever: Retriever, query: str) -> None:
    assert retriever.search(query) == []
    assert retriever.rank(query) == Rankings((), ())


@pytest.mark.parametrize(
    "query",
    [
        "what's the engine's (NEAR/3)?",
        "title:engine -fuel",
        'engine" OR "',
        "engine\x00fuel",
        "engine \udcff*",
    ],
)
def test_nothing_in_a_query_is_syntax(retriever: Retriever, query: str) -> None:
    assert retriever.search(query)[0].doc_id == "car"


def test_a_very_long_query_is_answered(retriever: Retriever) -> None:
    query = "engine " + " ".join(f"word{i}" for i in range(50_000))
    assert retriever.search(query)[0].doc_id == "car"


def test_top_k_of_the_call_wins_over_that_of_the_options(bench: Bench) -> None:
    retriever = bench.retriever(RetrievalOptions(top_k=2))
    assert len(retriever.search("engine")) == 2
    assert len(retriever.search("engine", top_k=1)) == 1
    assert len(retriever.search("engine", top_k=99)) == 3
    assert retriever.search("engine", top_k=0) == []
    assert len(retriever.search("engine", options=RetrievalOptions(top_k=3))) == 3


def test_a_small_budget_does_not_shorten_the_answer(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "many")
    bench.publish(make_document("long", *(f"Part {i}: bread {i}" for i in range(20)), title="Long"))
    options = RetrievalOptions(rerank_budget=2)
    assert len(bench.retriever(options).search("bread", top_k=7)) == 7


def test_another_embedder_is_refused(bench: Bench) -> None:
    other = HashingEmbedder(name="other")
    with pytest.raises(IndexModelMismatch, match=r"built with embedder hashing \(.*other \(.*prime refresh"):
        Retriever(bench.live(), other, bench.token_vectors, RetrievalOptions())


def test_a_folder_without_a_build_is_refused(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match="prime refresh"):
        Retriever(tmp_path / "nowhere", bench.embedder, bench.token_vectors, RetrievalOptions())


def test_damage_is_refused_with_the_file_s_name(bench: Bench) -> None:
    path = bench.live() / LEXICAL_FILE
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(IndexCorrupt, match=r"lexical\.sqlite is not the file that was published"):
        bench.retriever()


def test_a_build_of_another_version_is_refused(bench: Bench) -> None:
    path = bench.live() / MANIFEST_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 99}))
    with pytest.raises(IndexOutdated, match=r"schema version 99.*run `prime refresh`"):
        bench.retriever()


def test_eight_threads_get_equal_answers(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "threads")
    bench.publish(*(make_document(f"d{i}", f"Part {i}: bread engine star{i}") for i in range(20)))
    queries = ["bread", "engine star3", "star7 star8", "part 5"] * 8
    retriever = bench.retriever()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(retriever.search, queries))
    assert answers == [bench.retriever().search(query) for query in queries]


def test_a_retriever_goes_on_after_its_build_was_replaced_and_removed(bench: Bench) -> None:
    retriever, old = bench.retriever(), bench.live()
    before = retriever.search("engine")
    new = make_document("ship", "Engine: The engine of a ship.", title="Ship")
    bench.publish(new, keep=0)
    assert not old.exists()
    assert retriever.search("engine") == before
    assert retriever.search("stars at night")[0].doc_id == "sky"
    assert "ship" in {hit.doc_id for hit in bench.retriever().search("engine")}


def test_documents_are_ranked_by_stage_1_without_a_scorer(retriever: Retriever) -> None:
    ranked = retriever.rank("engine fuel", STAGE1)
    hits = retriever.search("engine fuel", options=STAGE1)
    assert list(ranked.documents) == [h.doc_id for h in sorted(hits, key=lambda hit: hit.stage1_rank)]
    assert list(ranked.sections) == [hit.section_id for hit in hits]


def test_a_ranking_scores_by_rank() -> None:
    assert by_rank(["a", "c", "b"]) == [("a", 1.0), ("c", 1 / 2), ("b", 1 / 3)]


def test_documents_with_a_scored_section_come_first(bench: Bench) -> None:
    options = RetrievalOptions(n_candidates=2)
    retriever = bench.retriever(options)
    ranked = retriever.rank("stars shine")
    hits = retriever.search("stars shine", top_k=9)
    assert list(ranked.documents[:2]) == [hit.doc_id for hit in hits]
    assert ranked.documents[2:] == retriever.rank("stars shine", STAGE1).documents[2:]
    assert len(ranked.documents) == 3
    assert list(ranked.sections) == [hit.section_id for hit in hits]


def test_idf_is_smoothed_over_the_documents(retriever: Retriever) -> None:
    found = retriever.idf(["a", "engine", "unknown"])
    assert found["engine"] == pytest.approx(1.6931471805599454)  # ln(4 / 2) + 1
    assert found["unknown"] == pytest.approx(2.386294361119891)  # ln(4 / 1) + 1


def test_a_cross_encoder_scores_where_it_is_chosen(bench: Bench, tmp_path: Path) -> None:
    cross_encoder = CrossEncoderScorer(str(tiny_cross_encoder(tmp_path / "cross")))
    options = RetrievalOptions(scorer="cross_encoder")
    retriever = Retriever(bench.live(), bench.embedder, bench.token_vectors, options, cross_encoder)
    hits = retriever.search("engine")
    assert [hit.score for hit in hits] == [hit.signals["cross_encoder"] for hit in hits]
    assert len(hits) == 3
    assert retriever.search("engine", options=RetrievalOptions())[0].doc_id == "car"


def test_a_scorer_that_is_not_there_is_named(bench: Bench) -> None:
    with pytest.raises(ValueError, match="'cross_encoder' is not loaded"):
        bench.retriever().search("engine", options=RetrievalOptions(scorer="cross_encoder"))


def test_the_fingerprint_tells_what_answers_depend_on(bench: Bench, tmp_path: Path) -> None:
    def fingerprint(options: RetrievalOptions, cross_encoder: CrossEncoderScorer | None = None) -> str:
        folder = bench.live()
        return Retriever(folder, bench.embedder, bench.token_vectors, options, cross_encoder).fingerprint

    models = [
        CrossEncoderScorer(str(tiny_cross_encoder(tmp_path / str(seed), seed=seed))) for seed in range(2)
    ]
    default, crossed = RetrievalOptions(), RetrievalOptions(scorer="cross_encoder")
    assert fingerprint(default) == fingerprint(default, models[0])
    found = {fingerprint(default), fingerprint(STAGE1), *(fingerprint(crossed, model) for model in models)}
    bench.publish(make_document("new", "new text"))
    assert len(found | {fingerprint(default)}) == 5


def test_closing_twice_is_harmless(retriever: Retriever) -> None:
    retriever.close()
    retriever.close()


def test_a_document_without_headings_is_one_hit(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "whole")
    bench.publish(parse_plain_text("a note on bread\n", "note", "note.txt"))
    (hit,) = bench.retriever().search("bread")
    assert (hit.section_id, hit.heading_path, hit.text) == ("note#0", (), "a note on bread\n")


def test_a_closed_retriever_says_so(retriever: Retriever) -> None:
    retriever.close()
    for ask in (retriever.search, retriever.rank, retriever.idf):
        with pytest.raises(RuntimeError, match="is closed: open a new one"):
            ask("engine")


# --- when time is short -------------------------------------------------------------------------------------------


class Hurry:
    """Forty sections, an embedder that takes 0.1 s for each by a clock of its own, and that clock."""

    def __init__(self, root: Path) -> None:
        self.clock = Clock()
        self.bench = Bench(root, SlowEmbedder(self.clock))
        self.bench.publish(make_document("long", *(f"Part {i}: bread {i}" for i in range(40)), title="Long"))

    def retriever(self, time_limit_ms: int) -> Retriever:
        options = RetrievalOptions(time_limit_ms=time_limit_ms)
        return Retriever(
            self.bench.live(), self.bench.embedder, self.bench.token_vectors, options, clock=self.clock
        )


@pytest.fixture
def hurry(tmp_path: Path) -> Hurry:
    return Hurry(tmp_path / "hurry")


def test_a_search_tells_how_far_its_time_went(hurry: Hurry) -> None:
    with hurry.retriever(time_limit_ms=950) as retriever:
        hits = retriever.search("bread")
    assert len(hits) == 5
    assert [hit.cut_short for hit in hits] == [CutShort(10, 40, 950)] * 5
    assert hurry.clock.now_s == pytest.approx(1.0)


def test_the_next_search_comes_further_until_nothing_is_cut_short(hurry: Hurry) -> None:
    with hurry.retriever(time_limit_ms=950) as retriever:
        found = [retriever.search("bread")[0].cut_short for _ in range(5)]
    n_scored = [cut.n_scored if cut else 40 for cut in found]
    # What an earlier search encoded is kept, and takes no time.
    assert n_scored == [10, 20, 30, 40, 40]
    assert found[3:] == [None, None]


def test_a_warm_cache_leaves_nothing_to_cut_short(hurry: Hurry) -> None:
    with hurry.retriever(time_limit_ms=1) as retriever:
        retriever.warm()
        hits = retriever.search("bread")
    with hurry.retriever(time_limit_ms=0) as retriever:
        assert retriever.search("bread") == hits


def test_as_many_sections_as_are_asked_for_are_always_scored(hurry: Hurry) -> None:
    with hurry.retriever(time_limit_ms=1) as retriever:
        assert [hit.cut_short for hit in retriever.search("bread", top_k=7)] == [CutShort(7, 40, 1)] * 7


def test_without_a_limit_nothing_is_cut_short(hurry: Hurry) -> None:
    with hurry.retriever(time_limit_ms=0) as retriever:
        assert {hit.cut_short for hit in retriever.search("bread")} == {None}
    assert hurry.clock.now_s == pytest.approx(4.0)


def test_the_limit_of_the_call_wins_and_stage_1_has_none(hurry: Hurry) -> None:
    with hurry.retriever(time_limit_ms=1) as retriever:
        assert {hit.cut_short for hit in retriever.search("bread", options=RetrievalOptions())} == {None}
        alone = replace(STAGE1, time_limit_ms=1)
        assert {hit.cut_short for hit in retriever.search("bread", options=alone)} == {None}


def test_an_explanation_is_of_the_search_within_the_limit(hurry: Hurry) -> None:
    with hurry.retriever(time_limit_ms=950) as retriever:
        explained = retriever.explain("bread")
    assert {hit.hit.cut_short for hit in explained.hits} == {CutShort(10, 40, 950)}


def test_rankings_for_evaluation_know_no_limit(hurry: Hurry) -> None:
    with hurry.retriever(time_limit_ms=1) as limited, hurry.retriever(time_limit_ms=0) as unlimited:
        assert len(limited.rank("bread").sections) == 40
        assert len(limited.rank_within("bread", "long")) == 40
        assert limited.rank("bread") == unlimited.rank("bread")
        assert limited.fingerprint == unlimited.fingerprint


# --- for evaluation -----------------------------------------------------------------------------------------------

HOUSE = make_document(
    "house", "Roof: Tiles keep rain off.", "Engine room: An engine pumps water.", title="House"
)


@pytest.mark.parametrize("options", [RetrievalOptions(), STAGE1])
def test_excluded_documents_are_ranked_nowhere(bench: Bench, options: RetrievalOptions) -> None:
    with bench.retriever(options) as retriever:
        everything = retriever.rank("an engine burns fuel")
        without = retriever.rank("an engine burns fuel", excluded=frozenset({"car", "gone"}))
    assert everything.documents[0] == "car"
    assert set(without.documents) == set(everything.documents) - {"car"}
    assert not any(found.startswith("car#") for found in without.sections)


def test_excluded_documents_make_room_for_others(bench: Bench) -> None:
    shallow = replace(STAGE1, arms=("metadata_vector",), arm_depth=1)
    with bench.retriever(shallow) as retriever:
        (first,) = retriever.rank("an engine burns fuel").documents
        (second,) = retriever.rank("an engine burns fuel", excluded=frozenset({first})).documents
    assert second != first


@pytest.mark.parametrize(
    "options", [RetrievalOptions(), replace(RetrievalOptions(), rerank_budget=1), STAGE1]
)
def test_all_sections_of_one_document_are_ranked(bench: Bench, options: RetrievalOptions) -> None:
    bench.publish(BREAD, CAR, SKY, HOUSE)
    with bench.retriever(options) as retriever:
        assert retriever.rank_within("an engine burns fuel", "house") == ("house#2", "house#1")
        assert retriever.rank_within("tiles", "house") == ("house#1", "house#2")
        assert retriever.rank_within("tiles", "gone") == ()
        assert retriever.rank_within("?!", "house") == ()


class Another(HashingEmbedder):
    """An embedder for which every text means the same."""

    def encode_query(self, text: str) -> Vectors:
        return super().encode_query("engine")


def test_other_vectors_are_searched_by_the_embedder_that_made_them(bench: Bench) -> None:
    own = HashingEmbedder()
    vectors = ExactVectors(["bread", "car"], own.encode(["engine", "dough"]))
    dense = replace(STAGE1, arms=("metadata_vector",))
    with bench.retriever(dense) as retriever:
        assert retriever.rank("dough", dense, vectors).documents == ("car", "bread")
        assert retriever.rank("dough", dense, vectors, Another()).documents == ("bread", "car")
