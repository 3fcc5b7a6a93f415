"""What is lent is what is published: new builds without a restart, old ones until their last reader is done."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from prime_pipeline.errors import IndexCorrupt, IndexNotFound, StoreCorrupt
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.server.answers import QueryService, Question, SearchAnswer
from prime_pipeline.server.live import TRIED_AGAIN_AFTER_S, LiveRetriever
from prime_pipeline_tests.fakes import Clock, tiny_cross_encoder
from prime_pipeline_tests.shelf import GUIDE, Shelf, generation


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def is_closed(retriever: Retriever) -> bool:
    try:
        retriever.search("bread")
    except RuntimeError:
        return True
    return False


def text_of(retriever: Retriever) -> str:
    return retriever.search("bread", top_k=1)[0].text


def test_nothing_is_lent_before_something_is_published(shelf: Shelf) -> None:
    live = LiveRetriever(shelf.workspace)
    with pytest.raises(IndexNotFound, match="prime refresh"), live.borrowed():
        pass
    assert not shelf.home.exists()
    build_id = shelf.publish()
    with live.borrowed() as (build, retriever):
        assert (build.build_id, retriever.manifest.build_id) == (build_id, build_id)
        assert build.variant == "offline"
    assert live.problem is None


def test_one_retriever_is_lent_while_nothing_new_is_published(shelf: Shelf) -> None:
    shelf.publish()
    live = LiveRetriever(shelf.workspace)
    with live.borrowed() as (_, first), live.borrowed() as (_, second):
        assert first is second
    assert not is_closed(first)
    shelf.publish()  # the same again
    with live.borrowed() as (_, third):
        assert third is first


def test_a_reader_of_the_old_build_ends_on_it_while_others_have_the_new_one(shelf: Shelf) -> None:
    old_id = shelf.publish(generation(1))
    live = LiveRetriever(shelf.workspace)
    with live.borrowed() as (old_build, old):
        with live.borrowed():
            shelf.publish(generation(2), keep=1)
            new_id = shelf.publish(generation(3), keep=1)
            with live.borrowed() as (new_build, new):
                assert new_build.build_id == new_id != old_build.build_id == old_id
                assert "generation 3" in text_of(new)
        assert not shelf.workspace.builds("offline").path(old_id).exists()  # collected under its reader
        assert "generation 1" in text_of(old)
    assert is_closed(old)
    assert not is_closed(new)
    live.close()
    assert is_closed(new)


def test_what_was_closed_is_opened_again_when_it_is_needed(shelf: Shelf) -> None:
    shelf.publish()
    live = LiveRetriever(shelf.workspace)
    with live.borrowed() as (_, retriever):
        live.close()
        assert not is_closed(retriever)
    assert is_closed(retriever)
    with live.borrowed() as (_, again):
        assert not is_closed(again)
    live.close()


def test_going_back_to_an_earlier_build_is_followed_too(shelf: Shelf) -> None:
    first = shelf.publish(generation(1))
    shelf.publish(generation(2))
    live = LiveRetriever(shelf.workspace)
    with live.borrowed() as (build, _):
        assert build.build_id != first
    shelf.workspace.builds("offline").rollback()
    with live.borrowed() as (build, _):
        assert build.build_id == first


def test_a_build_that_cannot_be_opened_leaves_the_one_before_and_is_tried_again_later(shelf: Shelf) -> None:
    shelf.publish(generation(1))
    clock = Clock()
    live = LiveRetriever(shelf.workspace, clock)
    with live.borrowed() as (before, _):
        pass
    damaged = shelf.workspace.builds("offline").path(shelf.publish(generation(2))) / "lexical.sqlite"
    whole = damaged.read_bytes()
    damaged.write_bytes(b"damaged")
    with live.borrowed() as (build, _):
        assert build == before
    assert isinstance(live.problem, IndexCorrupt)
    damaged.write_bytes(whole)
    clock.now_s += TRIED_AGAIN_AFTER_S - 1
    with live.borrowed() as (build, _):
        assert build == before
    assert isinstance(live.problem, IndexCorrupt)
    clock.now_s += 1
    with live.borrowed() as (build, retriever):
        assert build != before
        assert "generation 2" in text_of(retriever)
    assert live.problem is None


def test_another_build_is_not_made_to_wait_for_one_that_failed(shelf: Shelf) -> None:
    shelf.publish(generation(1))
    live = LiveRetriever(shelf.workspace, Clock())
    with live.borrowed():
        pass
    (shelf.workspace.builds("offline").path(shelf.publish(generation(2))) / "vectors.npy").unlink()
    with live.borrowed():
        assert live.problem is not None
    shelf.publish(generation(3))
    with live.borrowed() as (_, retriever):
        assert "generation 3" in text_of(retriever)
    assert live.problem is None


def test_a_pointer_that_cannot_be_read_takes_nothing_down(shelf: Shelf) -> None:
    shelf.publish()
    live = LiveRetriever(shelf.workspace)
    with live.borrowed() as (before, _):
        pass
    (shelf.workspace.home.indexes("offline") / "CURRENT").write_text("{")
    with live.borrowed() as (build, _):
        assert build == before
    assert isinstance(live.problem, StoreCorrupt)


def test_models_stay_while_builds_come_and_go(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "cross_encoder": str(tiny_cross_encoder(tmp_path / "model")),
        "retrieval": {"scorer": "cross_encoder"},
    }
    shelf = Shelf(tmp_path, **options)
    shelf.publish(generation(1))
    with shelf.workspace.retriever() as first:
        shelf.publish(generation(2))
        with shelf.workspace.retriever() as second:
            assert first._cross_encoder is second._cross_encoder is shelf.workspace.cross_encoder
            assert first._embedder is second._embedder


N_BUILDS = 8
N_READERS = 6


def test_every_answer_comes_from_one_build_while_builds_are_published_under_readers(shelf: Shelf) -> None:
    generations = {shelf.publish(generation(0)): 0}
    service = QueryService(shelf.workspace)
    is_over = threading.Event()
    all_read = threading.Barrier(N_READERS + 1)

    def read() -> list[SearchAnswer]:
        answers = [service.search(Question(query="bread", top_k=3))]
        all_read.wait()
        while not is_over.is_set():
            answers.append(service.search(Question(query="bread", top_k=3)))
        return answers

    with ThreadPoolExecutor(N_READERS) as threads:
        reading = [threads.submit(read) for _ in range(N_READERS)]
        all_read.wait()
        try:
            for number in range(1, N_BUILDS + 1):
                generations[shelf.publish(generation(number), keep=1)] = number
        finally:
            is_over.set()
        by_reader = [read.result() for read in reading]

    for answers in by_reader:
        seen = [generations[answer.build] for answer in answers]
        assert seen == sorted(seen)  # nobody is sent back in time
        for answer, number in zip(answers, seen, strict=True):
            texts = " ".join(hit.text for hit in answer.hits)
            assert len(answer.hits) == 3
            assert set(re.findall(r"generation (\d+)", texts)) == {str(number)}
    last = service.search(Question(query="bread"))
    assert generations[last.build] == N_BUILDS
    assert len({answer.build for answers in by_reader for answer in answers}) > 1
    service.close()


def test_readers_that_come_first_wait_for_one_opening(shelf: Shelf) -> None:
    shelf.publish(GUIDE)
    live = LiveRetriever(shelf.workspace)
    together = threading.Barrier(N_READERS)

    def borrow() -> Retriever:
        together.wait()
        with live.borrowed() as (_, retriever):
            return retriever

    with ThreadPoolExecutor(N_READERS) as threads:
        lent = [threads.submit(borrow) for _ in range(N_READERS)]
    assert len({id(found.result()) for found in lent}) == 1
    live.close()
