"""Replies, refusals and verdicts, kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from prime_pipeline.llm.chat import ChatRequest, Reply, Usage
from prime_pipeline.llm.reply_cache import ReplyCache

REPLY = Reply("rewritten", "stop", Usage(10, 5, estimated=False), 0.5)
REQUEST = ChatRequest("http://a/v1", "m", "system", "user", "v1", 100)


@pytest.fixture
def cache(tmp_path: Path) -> ReplyCache:
    return ReplyCache(tmp_path / "llm.sqlite")


def test_a_reply_comes_back_as_it_was_kept(cache: ReplyCache, tmp_path: Path) -> None:
    assert cache.reply("k") is None
    cache.keep_reply("k", "m", REPLY)
    cache.keep_reply("k", "m", replace(REPLY, text="another"))
    cache.close()
    assert ReplyCache(tmp_path / "llm.sqlite").reply("k") == REPLY


@pytest.mark.parametrize("finish", ["length", "content_filter", "other"])
def test_an_incomplete_reply_is_never_kept(cache: ReplyCache, finish: str) -> None:
    with pytest.raises(ValueError, match="must not be cached"):
        cache.keep_reply("k", "m", replace(REPLY, finish=finish))  # type: ignore[arg-type]
    assert cache.reply("k") is None


def test_verdicts_lie_apart_by_gate(cache: ReplyCache) -> None:
    cache.keep_verdict("k", "gate 1", "accepted")
    cache.keep_verdict("k", "gate 2", "raw: numbers")
    cache.keep_verdict("k", "gate 2", "raw: length")
    assert cache.verdict("k", "gate 1") == "accepted"
    assert cache.verdict("k", "gate 2") == "raw: length"
    assert cache.verdict("k", "gate 3") is None


def test_refusals_are_remembered(cache: ReplyCache) -> None:
    cache.keep_refusal("k", "content_filter", "blocked")
    assert cache.refusal("k") == ("content_filter", "blocked")
    assert cache.refusal("other") is None


def test_refusals_can_be_forgotten_and_replies_stay(cache: ReplyCache) -> None:
    cache.keep_reply("a", "m", REPLY)
    cache.keep_refusal("b", "content_filter", "blocked")
    cache.keep_refusal("c", "truncated", "too long")
    assert cache.forget_refusals() == 2
    assert cache.refusal("b") is None
    assert cache.reply("a") == REPLY
    assert cache.forget_refusals() == 0


def test_what_needs_no_call_any_more(cache: ReplyCache) -> None:
    cache.keep_reply("a", "m", REPLY)
    cache.keep_refusal("b", "content_filter", "blocked")
    assert cache.cached_keys(["a", "b", "c"]) == {"a", "b"}
    assert cache.cached_keys([]) == set()


def test_the_mean_time_of_a_model(cache: ReplyCache) -> None:
    assert cache.mean_seconds("m") is None
    cache.keep_reply("a", "m", replace(REPLY, seconds=1.0))
    cache.keep_reply("b", "m", replace(REPLY, seconds=2.0))
    cache.keep_reply("c", "other", replace(REPLY, seconds=9.0))
    assert cache.mean_seconds("m") == 1.5


def test_every_field_of_a_request_changes_its_key() -> None:
    changes = {
        "base_url": "x",
        "model": "x",
        "system": "x",
        "user": "x",
        "prompt_version": "x",
        "max_tokens": 1,
        "temperature": 0.5,
    }
    keys = {replace(REQUEST, **{name: value}).key for name, value in changes.items()}  # type: ignore[arg-type]
    assert len(keys | {REQUEST.key}) == len(changes) + 1
    assert replace(REQUEST).key == REQUEST.key


def test_fields_cannot_flow_into_one_another() -> None:
    one, other = replace(REQUEST, system="ab", user="c"), replace(REQUEST, system="a", user="bc")
    assert one.key != other.key


def test_many_threads_keep_replies_at_once(cache: ReplyCache) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: cache.keep_reply(f"{i % 50}", "m", REPLY), range(200)))
    assert cache.cached_keys([str(i) for i in range(60)]) == {str(i) for i in range(50)}


def test_a_document_is_forgotten_with_all_that_was_asked_about_it(cache: ReplyCache, tmp_path: Path) -> None:
    cache.note_origin("about a", ["a"])
    cache.note_origin("about both", ["b", "a"])
    cache.note_origin("about b", ["b"])
    for key in ("about a", "about both", "about b", "unknown"):
        cache.keep_reply(key, "m", replace(REPLY, text=f"a rewrite {key}"))
    cache.note_origin("refused", ["a"])
    cache.keep_refusal("refused", "content_filter", "blocked because of a rewrite")
    cache.keep_verdict("text", "gate", "quotes a rewrite about a")
    assert cache.n_without_origin == 1
    assert cache.forget(["a", "never asked about"]) == 3
    assert cache.cached_keys(["about a", "about both", "refused"]) == set()
    assert cache.cached_keys(["about b", "unknown"]) == {"about b", "unknown"}
    assert cache.verdict("text", "gate") is None
    cache.compact()
    cache.close()
    assert b"a rewrite about a" not in (tmp_path / "llm.sqlite").read_bytes()


def test_replies_from_before_their_origins_were_noted_stay(tmp_path: Path) -> None:
    older = ReplyCache(tmp_path / "llm.sqlite")
    older.keep_reply("k", "m", REPLY)
    with older._database.writing() as connection:
        connection.execute("DROP TABLE origins")
    older.close()
    cache = ReplyCache(tmp_path / "llm.sqlite")
    assert cache.reply("k") == REPLY
    assert cache.n_without_origin == 1
    cache.note_origin("k", ["a"])
    assert cache.n_without_origin == 0


def test_a_reply_that_changed_on_the_disk_is_asked_for_again(cache: ReplyCache, tmp_path: Path) -> None:
    cache.keep_reply("k", "m", replace(REPLY, text="the dose is 5 mg"))
    cache.close()
    path = tmp_path / "llm.sqlite"
    path.write_bytes(path.read_bytes().replace(b"dose is 5 mg", b"dose is 6 mg"))
    again = ReplyCache(path)
    assert again.reply("k") is None
    again.keep_reply("k", "m", REPLY)
    assert again.reply("k") == REPLY
