"""Posting lists: that they score as FTS5 does, to the last bit, however the table came to be."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator

import numpy as np
import pytest

from prime_pipeline.indexes import postings
from prime_pipeline.indexes.postings import IndexedTexts, PostingLists, Tokenizer

WORDS = ["the", "the", "the", "run", "running", "café", "x1", "漢字", "naïve", "alpha", "Straße", "zebra"]


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


def index(connection: sqlite3.Connection, texts: dict[int, str]) -> PostingLists:
    written = IndexedTexts(connection, "t", is_new=True)
    for row, text in texts.items():
        written.add(row, text)
    written.finish()
    return reader(connection)


def change(connection: sqlite3.Connection, removed: dict[int, str], added: dict[int, str]) -> PostingLists:
    texts = IndexedTexts(connection, "t", is_new=False)
    for row, text in removed.items():
        texts.remove(row, text)
    for row, text in added.items():
        texts.add(row, text)
    texts.finish()
    return reader(connection)


def reader(connection: sqlite3.Connection) -> PostingLists:
    ((n_rows,),) = connection.execute("SELECT count(*) FROM t_docsize").fetchall()
    return PostingLists(lambda query, *values: connection.execute(query, values).fetchall(), "t", n_rows)


def scores_of_fts5(connection: sqlite3.Connection, word: str) -> dict[int, float]:
    return dict(connection.execute("SELECT rowid, -bm25(t) FROM t WHERE t MATCH ?", (f'"{word}"',)))


def assert_scores_as_fts5_does(connection: sqlite3.Connection, lists: PostingLists) -> None:
    for word in {*WORDS, "absent"}:
        (token,) = Tokenizer().tokens(word)
        rows, scores = lists.bm25(token)
        assert dict(zip(rows.tolist(), scores.tolist(), strict=True)) == scores_of_fts5(connection, word)
        assert rows.tolist() == sorted(rows.tolist())


def random_text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.choice([0, 1, 5, 40])))


def test_a_score_worked_by_hand(connection: sqlite3.Connection) -> None:
    lists = index(connection, {1: "cat cat dog", 2: "dog", 3: "bird", 5: "fish fish fish"})
    rows, scores = lists.bm25(b"cat")
    # In 1 of 4 rows: idf ln(3.5 / 1.5). Twice in a row of 3 tokens, where 2 are the average.
    assert rows.tolist() == [1]
    assert scores[0] == pytest.approx(np.log(3.5 / 1.5) * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)))


def test_a_word_in_half_of_the_rows_is_worth_next_to_nothing_but_not_nothing(
    connection: sqlite3.Connection,
) -> None:
    _, scores = index(connection, {1: "the cat", 2: "the dog"}).bm25(b"the")
    assert scores.tolist() == [pytest.approx(1e-6), pytest.approx(1e-6)]


def test_any_words_score_as_in_fts5(connection: sqlite3.Connection) -> None:
    chance = random.Random(1)
    texts = {row: random_text(chance) for row in range(1, 200)}
    assert_scores_as_fts5_does(connection, index(connection, texts))


@pytest.mark.parametrize("seed", range(8))
def test_changed_tables_score_as_in_fts5(
    connection: sqlite3.Connection, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "_BLOCK_BITS", 3)  # many blocks, some of which run empty
    chance = random.Random(seed)
    texts = {row: random_text(chance) for row in range(1, 60)}
    index(connection, texts)
    for _ in range(4):
        gone = {row: texts.pop(row) for row in chance.sample(sorted(texts), 12)}
        free = max(texts, default=0) + 1  # SQLite gives the numbers of rows at the end to others again
        new = {row: random_text(chance) for row in range(free, free + chance.randrange(1, 20))}
        texts |= new
        assert_scores_as_fts5_does(connection, change(connection, gone, new))


def test_no_list_is_left_of_a_token_that_nothing_holds(connection: sqlite3.Connection) -> None:
    index(connection, {1: "confidential", 2: "public"})
    change(connection, {1: "confidential"}, {})
    assert connection.execute("SELECT token FROM t_postings").fetchall() == [(b"public",)]


def test_an_empty_table_has_no_scores(connection: sqlite3.Connection) -> None:
    rows, scores = index(connection, {}).bm25(b"cat")
    assert (rows.size, scores.size) == (0, 0)
    lists = change(connection, {}, {1: "cat"})
    assert lists.bm25(b"cat")[0].tolist() == [1]
    assert change(connection, {1: "cat"}, {}).bm25(b"cat")[0].size == 0


def test_more_occurrences_than_are_counted_are_taken_for_as_many(connection: sqlite3.Connection) -> None:
    _, scores = index(connection, {1: "cat " * 70_000, 2: "dog", 3: "bird"}).bm25(b"cat")
    assert scores[0] == pytest.approx(scores_of_fts5(connection, "cat")[1], rel=1e-4)


def test_a_token_that_is_cut_inside_a_character_is_a_token(connection: sqlite3.Connection) -> None:
    endless = "中" * 11_000  # FTS5 cuts tokens at 32,768 bytes
    tokenizer = Tokenizer()
    (token,) = tokenizer.tokens(endless)
    assert len(token) == 32_768
    assert tokenizer.tokens("cat") == (b"cat",)
    lists = index(connection, {1: f"{endless} cat", 2: "cat", 3: "dog"})
    rows, scores = lists.bm25(token)
    assert dict(zip(rows.tolist(), scores.tolist(), strict=True)) == scores_of_fts5(connection, endless)


def test_progress_ends_with_the_last_token(connection: sqlite3.Connection) -> None:
    told = []
    texts = IndexedTexts(connection, "t", is_new=True)
    texts.add(1, "cat dog cat")
    texts.finish(lambda name, done, total: told.append((name, done, total)))
    assert told == [("posting lists", 2, 3), ("posting lists", 3, 3)]


def test_words_are_cut_and_stemmed_as_in_the_tables() -> None:
    tokenizer = Tokenizer()
    assert tokenizer.tokens("Running") == (b"run",)
    assert tokenizer.tokens("two words") == (b"two", b"word")
    assert tokenizer.tokens("") == ()
    assert tokenizer.tokens("श्री") == ("श".encode(), "र".encode())  # FTS5 ends a token at these marks
    tokenizer.close()
