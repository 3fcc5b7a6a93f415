"""Filling the cache of token vectors ahead: what is made, what is left, and what an interruption costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from prime_pipeline.models.embedder import Vectors
from prime_pipeline.retrieval.options import RetrievalOptions, SectionText
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.retrieval.warming import Warmed
from prime_pipeline.storage.blob_cache import BlobCache, Cache
from prime_pipeline_tests.builds import Bench
from prime_pipeline_tests.documents import make_document
from prime_pipeline_tests.fakes import Clock, SlowEmbedder

LONG = " ".join(f"word{i}" for i in range(150))  # three windows of the embedder's 64 words, with the heading
DOCUMENTS = (
    make_document("a", "One: bread and salt", f"Two: {LONG}"),
    make_document("b", "One: bread and salt", "Three: pepper"),
)


@pytest.fixture
def embedder() -> SlowEmbedder:
    return SlowEmbedder(Clock())


@pytest.fixture
def bench(tmp_path: Path, embedder: SlowEmbedder) -> Bench:
    bench = Bench(tmp_path / "home", embedder)
    bench.publish(*DOCUMENTS)
    return bench


def over(bench: Bench, cache: Cache, options: RetrievalOptions | None = None) -> Retriever:
    return Retriever(bench.live(), bench.embedder, cache, options or RetrievalOptions())


def test_every_window_of_every_section_is_made_once(bench: Bench, embedder: SlowEmbedder) -> None:
    warmed = bench.retriever().warm()
    made = ["One\nbread and salt", *embedder.tokenizer.windows(f"Two\n{LONG}", 64), "Three\npepper"]
    assert embedder.token_texts == made
    n_words = sum(len(text.split()) for text in made)
    assert warmed == Warmed(
        "late_interaction", n_windows=5, n_present=0, n_made=5, bytes_made=n_words * embedder.dimensions
    )
    assert (warmed.n_left, warmed.bytes_of_all) == (0, warmed.bytes_made)


def test_a_search_finds_everything_ready(bench: Bench, embedder: SlowEmbedder) -> None:
    with bench.retriever(RetrievalOptions(windows_per_section=0)) as retriever:
        retriever.warm()
        n_made = len(embedder.token_texts)
        assert len(retriever.search("bread word149")) == 4
    assert len(embedder.token_texts) == n_made


def test_what_is_there_is_not_made_again(bench: Bench, embedder: SlowEmbedder) -> None:
    retriever = bench.retriever()
    first = retriever.warm()
    embedder.token_texts.clear()
    assert retriever.warm() == replace(
        first, n_present=5, n_made=0, bytes_present=first.bytes_made, bytes_made=0
    )
    bench.publish(make_document("c", "Four: water"))
    last = bench.retriever().warm()
    assert (last.n_present, last.n_made, embedder.token_texts) == (5, 1, ["Four\nwater"])


class Unread(BlobCache):
    """A cache whose values must not be read."""

    def lookup(self, keys: object) -> dict[str, bytes]:
        raise AssertionError("a value was read")


def test_values_are_not_read_to_see_that_they_are_there(bench: Bench, tmp_path: Path) -> None:
    cache = Unread(tmp_path / "c.sqlite")
    over(bench, cache).warm()
    assert over(bench, cache).warm().n_present == 5


class Interrupting(SlowEmbedder):
    """Is interrupted when it is asked for more than it may."""

    def __init__(self, n_calls: int) -> None:
        super().__init__(Clock())
        self.n_calls = n_calls

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        self.n_calls -= 1
        if self.n_calls < 0:
            raise KeyboardInterrupt
        return super().token_vectors(texts)


def test_finished_work_survives_an_interruption(tmp_path: Path) -> None:
    embedder = Interrupting(n_calls=2)
    bench = Bench(tmp_path / "home", embedder)
    bench.publish(make_document("a", *(f"Part {i}: bread {i}" for i in range(50))))
    with pytest.raises(KeyboardInterrupt):
        bench.retriever().warm()
    embedder.n_calls = 9
    warmed = bench.retriever().warm()
    assert (warmed.n_present, warmed.n_made) == (32, 18)


def many(tmp_path: Path) -> Bench:
    """A hundred sections of one window of four words: 256 bytes each."""
    bench = Bench(tmp_path / "home", SlowEmbedder(Clock()))
    bench.publish(make_document("a", *(f"Part{i}: some salted bread{i}" for i in range(100))))
    return bench


def test_it_stops_before_the_cache_would_forget_what_was_just_made(tmp_path: Path) -> None:
    bench = many(tmp_path)
    cache = BlobCache(tmp_path / "small.sqlite", size_limit_bytes=15_000)  # 13,500 survive: 52 windows
    warmed = over(bench, cache).warm()
    assert (warmed.n_windows, warmed.n_made, warmed.n_left) == (100, 52, 48)
    assert warmed.bytes_of_all == 25_600
    again = over(bench, cache).warm()
    assert (again.n_present, again.n_made, again.n_left) == (52, 0, 48)
    assert again.bytes_of_all == 25_600


def test_what_others_left_in_the_cache_makes_room(tmp_path: Path) -> None:
    bench = many(tmp_path)
    cache = BlobCache(tmp_path / "small.sqlite", size_limit_bytes=30_000)
    cache.store({f"other{i}": bytes(256) for i in range(110)})
    warmed = over(bench, cache).warm()
    assert (warmed.n_made, warmed.n_left) == (100, 0)
    assert over(bench, cache).warm().n_present == 100


def test_a_cache_that_holds_nothing_is_told_from_a_full_one_by_its_size(tmp_path: Path) -> None:
    bench = many(tmp_path)
    warmed = over(bench, BlobCache(tmp_path / "tiny.sqlite", size_limit_bytes=10)).warm()
    assert (warmed.n_made, warmed.n_left, warmed.bytes_of_all) == (0, 100, 0)


def test_progress_counts_sections_and_then_the_windows_that_are_missing(tmp_path: Path) -> None:
    bench, told = many(tmp_path), list[tuple[str, int, int | None]]()
    bench.retriever().search("bread7", options=RetrievalOptions(rerank_budget=10))
    bench.retriever().warm(lambda *report: told.append(report))
    assert told[:2] == [("sections looked through", 64, 100), ("sections looked through", 100, 100)]
    assert told[2] == ("token vectors", 0, 90)
    assert told[-1] == ("token vectors", 90, 90)
    assert [done for _, done, _ in told[2:]] == sorted(done for _, done, _ in told[2:])


@pytest.mark.parametrize("scorer", ["none", "cross_encoder"])
def test_without_late_interaction_there_is_nothing_to_do(bench: Bench, scorer: str) -> None:
    options = RetrievalOptions(scorer="none" if scorer == "none" else "cross_encoder")
    assert bench.retriever(options).warm() == Warmed(options.scorer)


@pytest.mark.parametrize(
    ("section_text", "read"),
    [
        ("raw", ["One\nraw body"]),
        ("restructured", ["One\nrewritten"]),
        ("both", ["One\nraw body", "One\nrewritten"]),
    ],
)
def test_the_text_is_made_ready_that_the_scorer_reads(
    tmp_path: Path, section_text: SectionText, read: list[str]
) -> None:
    embedder = SlowEmbedder(Clock())
    bench = Bench(tmp_path / "home", embedder)
    document = make_document("a", "One: raw body")
    bench.publish(replace(document, sections=(replace(document.sections[0], rewritten="rewritten"),)))
    with bench.retriever(RetrievalOptions(section_text=section_text)) as retriever:
        retriever.warm()
        assert embedder.token_texts == read
        retriever.search("body")
    assert embedder.token_texts == read


def test_a_closed_retriever_warms_nothing(bench: Bench) -> None:
    retriever = bench.retriever()
    retriever.close()
    with pytest.raises(RuntimeError, match="is closed"):
        retriever.warm()
