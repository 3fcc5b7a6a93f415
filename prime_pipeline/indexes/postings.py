"""Posting lists: BM25 as FTS5 computes it, from arrays instead of row by row.

FTS5 steps through the rows that match and looks up the length of each on the disk's pages, which takes about two microseconds a
row, and the frequent words of a question match half of a corpus. BM25 is a sum over the words of a query, though, and one of
its terms needs nothing but which rows hold the word, how often, and how long they are. Beside each FTS5 table lie these as
arrays, made from the vocabulary of the table itself, so that both agree on what a word is. FTS5 remains what
cuts and stems words, and what finds words that it cuts into a phrase of several tokens.

For a table ``sections_fts`` there are ``sections_fts_postings``, one row for each token (bytes, since FTS5 cuts
tokens at 32,768 bytes, also inside of a character) and block of 65,536 row numbers: offsets in
the block, ascending, then how often the row at each holds the token, all unsigned 16 bit
(little-endian, as all of this); and ``sections_fts_lengths``, a single
row: all row numbers, ascending, then the number of tokens of each, unsigned 32 bit.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prime_pipeline.progress import Progress, silent

TOKENIZER = "porter unicode61 remove_diacritics 2"

K1 = 1.2
B = 0.75
"""FTS5's constants, which cannot be chosen there."""
MIN_IDF = 1e-6
"""What FTS5 gives a word that more than half of the rows hold."""

_BLOCK_BITS = 16
_MAX_COUNT = (1 << 16) - 1
_STORED = np.dtype("<u2")
_STORED_LENGTHS = np.dtype("<u4")
_WORDS_KEPT = 4_096

_Rows = NDArray[np.int64]
_Counts = NDArray[np.int64]
Query = Callable[..., list[tuple[Any, ...]]]
"""Runs an SQL statement with parameters and gives all rows."""


class IndexedTexts:
    """An FTS5 table and its posting lists while they are written; a copy of a finished one may be brought up to date.

    The lists are complete after :meth:`finish`, inside the caller's transaction.

    Args:
        connection: To the file.
        table: Name of the FTS5 table.
        is_new: Whether the tables are to be made.
    """

    def __init__(self, connection: sqlite3.Connection, table: str, *, is_new: bool) -> None:
        self._connection = connection
        self._table = table
        self._is_new = is_new
        self._added: list[int] = []
        self._removed: list[int] = []
        if is_new:
            connection.execute(f"CREATE VIRTUAL TABLE {_fts5(table)}")
            connection.execute(
                f"CREATE TABLE {table}_postings (token BLOB NOT NULL, block INTEGER NOT NULL, entries BLOB NOT NULL,"
                " PRIMARY KEY (token, block)) WITHOUT ROWID"
            )
            connection.execute(f"CREATE TABLE {table}_lengths (entries BLOB NOT NULL)")
            connection.execute(f"INSERT INTO {table}_lengths VALUES (x'')")
        else:
            for change in ("removed", "added"):
                connection.execute(f"CREATE VIRTUAL TABLE temp.{_fts5(f'{table}_{change}')}")

    def add(self, row: int, text: str) -> None:
        """Index a text under a row number that is free."""
        self._added.append(row)
        self._insert(self._table, row, text)
        if not self._is_new:
            self._insert(f"{self._table}_added", row, text)

    def remove(self, row: int, text: str) -> None:
        """Take out a text, which has to be the one that was added; before any is added."""
        self._removed.append(row)
        self._connection.execute(
            f"INSERT INTO {self._table} ({self._table}, rowid, text) VALUES ('delete', ?, ?)",
            (row, text),
        )
        self._insert(f"{self._table}_removed", row, text)

    def finish(self, progress: Progress = silent) -> None:
        """Write the posting lists of what was added and removed.

        Args:
            progress: Told of the tokens, in the order of the alphabet.

        Raises:
            ValueError: The arrays of a table that is brought up to date cannot be what was written.
        """
        lengths = dict(zip(*_decoded_lengths(self._connection.execute, self._table), strict=True))
        if self._is_new:
            lengths |= self._add_postings("main", self._table, progress)
        else:
            self._remove_postings()
            if not lengths.keys() >= set(self._removed):
                raise ValueError(f"no lengths of rows of {self._table} that are to be taken out")
            for row in self._removed:
                del lengths[row]
            lengths |= self._add_postings("temp", f"{self._table}_added", progress)
            for change in ("removed", "added"):
                self._connection.execute(f"DROP TABLE temp.{self._table}_{change}")
        rows = sorted(lengths)
        entries = np.array([rows, [lengths[row] for row in rows]], dtype=_STORED_LENGTHS)
        self._connection.execute(f"UPDATE {self._table}_lengths SET entries = ?", (entries.tobytes(),))

    def _insert(self, table: str, row: int, text: str) -> None:
        self._connection.execute(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", (row, text))

    def _add_postings(self, schema: str, fts_table: str, progress: Progress) -> dict[int, int]:
        """Add all rows of an FTS5 table to the lists; returns their lengths in tokens."""
        lengths = np.zeros(max(self._added, default=0) + 1, dtype=np.int64)
        for token, rows, counts in _tokens(self._connection, schema, fts_table, progress):
            lengths[rows] += counts
            for block, offsets, within in _by_block(rows, counts):
                before = None if self._is_new else self._entries(token, block)
                if before is not None:
                    offsets, within = (
                        np.concatenate([before[0], offsets]),
                        np.concatenate([before[1], within]),
                    )
                    order = np.argsort(offsets)
                    offsets, within = offsets[order], within[order]
                self._put(token, block, offsets, within)
        return {row: int(lengths[row]) for row in self._added}

    def _remove_postings(self) -> None:
        for token, rows, counts in _tokens(self._connection, "temp", f"{self._table}_removed", silent):
            for block, gone, _ in _by_block(rows, counts):
                offsets, within = self._entries(token, block) or (_NONE, _NONE)
                stays = ~np.isin(offsets, gone)
                self._put(token, block, offsets[stays], within[stays])

    def _entries(self, token: bytes, block: int) -> tuple[NDArray[np.uint16], NDArray[np.uint16]] | None:
        statement = f"SELECT entries FROM {self._table}_postings WHERE token = ? AND block = ?"
        found = self._connection.execute(statement, (token, block)).fetchone()
        return _halves(found[0]) if found else None

    def _put(self, token: bytes, block: int, offsets: NDArray[np.uint16], counts: NDArray[np.uint16]) -> None:
        if len(offsets):
            entries = offsets.tobytes() + counts.tobytes()
            statement = f"INSERT OR REPLACE INTO {self._table}_postings VALUES (?, ?, ?)"
            self._connection.execute(statement, (token, block, entries))
        else:
            statement = f"DELETE FROM {self._table}_postings WHERE token = ? AND block = ?"
            self._connection.execute(statement, (token, block))


class PostingLists:
    """The posting lists of an FTS5 table, for reading. As safe for several threads as ``query`` is.

    Args:
        query: Reads from the file.
        table: Name of the FTS5 table.
        n_rows: How many rows it has.

    Raises:
        ValueError, TypeError, LookupError: The arrays cannot be what was written; any method may raise them.
    """

    def __init__(self, query: Query, table: str, n_rows: int) -> None:
        self._query = query
        self._table = table
        rows, lengths = _decoded_lengths(query, table)
        self._n_rows = len(rows)
        if self._n_rows != n_rows:
            raise ValueError(f"lengths of {self._n_rows} rows, where {table} has {n_rows}")
        average = lengths.sum() / max(self._n_rows, 1) or 1.0
        self._weight_of_length: NDArray[np.float64] = np.zeros(int(rows.max()) + 1 if rows.size else 1)
        self._weight_of_length[rows] = K1 * (1.0 - B + B * lengths / average)

    def bm25(self, token: bytes) -> tuple[_Rows, NDArray[np.float64]]:
        """Row numbers that hold a token, ascending, and the token's share of their BM25, above 0.

        It is the formula of FTS5 (``bm25()`` there, with its sign changed), in the same order of operations: equal to the last bit,
        but where a row holds a token more than 65,535 times, which is taken for as many.
        """
        statement = f"SELECT block, entries FROM {self._table}_postings WHERE token = ? ORDER BY block"
        blocks = [(block, *_halves(entries)) for block, entries in self._query(statement, token)]
        if not blocks:
            return np.empty(0, dtype=np.int64), np.empty(0)
        rows = np.concatenate(
            [offsets.astype(np.int64) + (block << _BLOCK_BITS) for block, offsets, _ in blocks]
        )
        counts = np.concatenate([counts for *_, counts in blocks]).astype(np.float64)
        idf = math.log((self._n_rows - len(rows) + 0.5) / (len(rows) + 0.5))
        scores = (counts * (K1 + 1.0)) / (counts + self._weight_of_length[rows])
        return rows, (idf if idf > 0 else MIN_IDF) * scores


class Tokenizer:
    """FTS5's tokenizer, asked through a table in memory. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute(f"CREATE VIRTUAL TABLE {_fts5('words')}")
        self._connection.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (words, instance)")
        self.tokens = lru_cache(_WORDS_KEPT)(self._tokens)

    def _tokens(self, word: str) -> tuple[bytes, ...]:
        """The tokens of a text, in order."""
        with self._lock:
            self._connection.execute("INSERT INTO words (rowid, text) VALUES (1, ?)", (word,))
            found = self._connection.execute(
                "SELECT CAST(term AS BLOB) FROM tokens ORDER BY offset"
            ).fetchall()
            self._connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
        return tuple(token for (token,) in found)

    def close(self) -> None:
        """Let go of the table."""
        with self._lock:
            self._connection.close()


_NONE: NDArray[np.uint16] = np.empty(0, dtype=_STORED)


def _fts5(table: str) -> str:
    return f"{table} USING fts5 (text, content = '', tokenize = '{TOKENIZER}')"


def _tokens(
    connection: sqlite3.Connection, schema: str, table: str, progress: Progress
) -> Iterator[tuple[bytes, _Rows, _Counts]]:
    """Every token of an FTS5 table with the rows that hold it, ascending, and how often each does."""
    connection.execute(f"CREATE VIRTUAL TABLE temp.{table}_sizes USING fts5vocab ({schema}, {table}, row)")
    n_occurrences = connection.execute(f"SELECT sum(cnt) FROM temp.{table}_sizes").fetchone()[0]
    connection.execute(f"DROP TABLE temp.{table}_sizes")
    connection.execute(
        f"CREATE VIRTUAL TABLE temp.{table}_tokens USING fts5vocab ({schema}, {table}, instance)"
    )
    # Both come in this order from the vocabulary itself: nothing is sorted, and one token's rows are in memory at a time.
    by_token = f"SELECT CAST(term AS BLOB), group_concat(doc) FROM temp.{table}_tokens GROUP BY term"
    n_seen, n_told = 0, 0
    for token, joined in connection.execute(by_token):
        occurrences: _Rows = np.fromstring(joined, dtype=np.int64, sep=",")
        starts = np.flatnonzero(np.diff(occurrences, prepend=-1))
        yield token, occurrences[starts], np.diff(starts, append=len(occurrences))
        n_seen += len(occurrences)
        if n_seen - n_told >= n_occurrences / 100:
            progress("posting lists", n_seen, n_occurrences)
            n_told = n_seen
    connection.execute(f"DROP TABLE temp.{table}_tokens")


def _by_block(rows: _Rows, counts: _Counts) -> Iterator[tuple[int, NDArray[np.uint16], NDArray[np.uint16]]]:
    """Rows and counts as they are stored, by block."""
    blocks = rows >> _BLOCK_BITS
    stored = np.minimum(counts, _MAX_COUNT).astype(_STORED)
    offsets = (rows & ((1 << _BLOCK_BITS) - 1)).astype(_STORED)
    for block in range(int(blocks[0]), int(blocks[-1]) + 1):
        first, last = np.searchsorted(blocks, [block, block + 1])
        if first < last:
            yield block, offsets[first:last], stored[first:last]


def _halves(entries: bytes) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    offsets, counts = np.frombuffer(entries, dtype=_STORED).reshape(2, -1)
    return offsets, counts


def _decoded_lengths(query: Callable[..., Any], table: str) -> tuple[_Rows, _Counts]:
    """Row numbers, ascending, and the number of tokens of each."""
    ((entries,),) = query(f"SELECT entries FROM {table}_lengths")
    rows, lengths = np.frombuffer(entries, dtype=_STORED_LENGTHS).reshape(2, -1).astype(np.int64)
    return rows, lengths
