"""The ledger: what every run spent on language models, document by document, and what was expected before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from prime_pipeline.records import Spending
from prime_pipeline.storage.sqlite import Kinds, SharedDatabase, checked

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY, started_at TEXT NOT NULL, strategy TEXT NOT NULL, label TEXT NOT NULL,
    expected_calls INTEGER, expected_prompt_tokens INTEGER, expected_completion_tokens INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spending (
    run_id TEXT NOT NULL, doc_id TEXT NOT NULL, calls INTEGER NOT NULL, cache_hits INTEGER NOT NULL,
    truncated INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL, cost REAL, PRIMARY KEY (run_id, doc_id)
) WITHOUT ROWID;
"""
_NUMBER_OR_NONE = (int, float, type(None))
_RUN_KINDS: Kinds = (str, str, str, str, _NUMBER_OR_NONE, _NUMBER_OR_NONE, _NUMBER_OR_NONE)
_LINE_KINDS: Kinds = (str, str, int, int, int, int, int, int, _NUMBER_OR_NONE)
_ADD = "INSERT OR REPLACE INTO spending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class LedgerRun:
    """A run that asks a language model.

    Attributes:
        run_id: Unique.
        started_at: ISO 8601, UTC.
        strategy: Fingerprint of the strategy of restructuring; empty where something else was asked for.
        label: The strategy, or what else was asked for, for people.
        expected_calls: Before the run; None where nothing was estimated.
        expected_prompt_tokens: Likewise.
        expected_completion_tokens: Likewise.
    """

    run_id: str
    started_at: str
    strategy: str
    label: str
    expected_calls: int | None
    expected_prompt_tokens: int | None
    expected_completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """What one run spent on one document; ``cost`` is None without a price."""

    run_id: str
    doc_id: str
    spending: Spending
    cost: float | None


class Ledger:
    """Runs and their spending, for any number of processes.

    Args:
        path: The SQLite file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = SharedDatabase(path, _SCHEMA, 1)

    def open_run(self, run: LedgerRun) -> None:
        """Note that a run begins, and what is expected of it."""
        marks = ", ".join("?" * len(fields(LedgerRun)))
        with self._database.writing() as connection:
            connection.execute(f"INSERT OR REPLACE INTO runs VALUES ({marks})", astuple(run))  # noqa: S608

    def add(self, line: LedgerLine) -> None:
        """Note what a run spent on a document, once."""
        with self._database.writing() as connection:
            connection.execute(_ADD, _row(line))

    def forget(self, doc_ids: Iterable[str]) -> int:
        """Add what was spent on documents to the line of what belongs to no document (an empty id), and drop theirs.

        So the sums by run stay what they were. Returns how many lines went.
        """
        gone = set(doc_ids) - {""}
        lines = [line for line in self.lines() if line.doc_id in gone]
        rest = {line.run_id: line for line in self.lines() if not line.doc_id}
        for line in lines:
            before = rest.get(line.run_id, LedgerLine(line.run_id, "", Spending(), None))
            costs = [cost for cost in (before.cost, line.cost) if cost is not None]
            spending = before.spending + line.spending
            rest[line.run_id] = LedgerLine(line.run_id, "", spending, sum(costs) if costs else None)
        with self._database.writing() as connection:
            for run_id in {line.run_id for line in lines}:
                connection.execute(_ADD, _row(rest[run_id]))
            connection.executemany(
                "DELETE FROM spending WHERE run_id = ? AND doc_id = ?", [(x.run_id, x.doc_id) for x in lines]
            )
        return len(lines)

    def compact(self) -> None:
        """See :meth:`SharedDatabase.compact`."""
        self._database.compact()

    def runs(self) -> list[LedgerRun]:
        """All runs, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT * FROM runs ORDER BY started_at, run_id").fetchall()
        return [LedgerRun(*checked(self._path, row, _RUN_KINDS)) for row in rows]

    def lines(self) -> list[LedgerLine]:
        """All spending, in order of run and document."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT * FROM spending ORDER BY run_id, doc_id").fetchall()
        return [self._line(row) for row in rows]

    def _line(self, row: tuple[Any, ...]) -> LedgerLine:
        run_id, doc_id, calls, hits, truncated, read, generated, estimated, cost = checked(
            self._path, row, _LINE_KINDS
        )
        spending = Spending(calls, hits, truncated, read, generated, bool(estimated))
        return LedgerLine(run_id, doc_id, spending, cost)

    def latest(self, doc_id: str, strategy: str) -> tuple[LedgerRun, LedgerLine] | None:
        """The last run by a strategy that asked, or took from the cache, answers about a document."""
        query = (
            "SELECT * FROM runs JOIN spending USING (run_id) WHERE doc_id = ? AND strategy = ?"
            " ORDER BY started_at DESC, run_id DESC LIMIT 1"
        )
        with self._database.reading() as connection:
            row = connection.execute(query, (doc_id, strategy)).fetchone()
        if row is None:
            return None
        n = len(fields(LedgerRun))
        return LedgerRun(*checked(self._path, row[:n], _RUN_KINDS)), self._line((row[0], *row[n:]))

    def totals(self) -> Mapping[str, Spending]:
        """Spending by run."""
        totals: dict[str, Spending] = {}
        for line in self.lines():
            totals[line.run_id] = totals.get(line.run_id, Spending()) + line.spending
        return totals

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _row(line: LedgerLine) -> tuple[Any, ...]:
    s = line.spending
    return (
        line.run_id,
        line.doc_id,
        s.calls,
        s.cache_hits,
        s.truncated,
        s.prompt_tokens,
        s.completion_tokens,
        int(s.estimated),
        line.cost,
    )
