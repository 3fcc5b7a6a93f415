"""Replies that were paid for, kept for ever; refusals, kept until the request changes or they are forgotten; and verdicts on replies.

A reply is committed before anybody judges it, so nothing paid is lost, and a changed gate judges again for nothing.
Verdicts lie apart, by reply, gate and thresholds. Neither holds the key of an endpoint. Beside each reply and refusal stands
which documents it was asked for, so that it can be forgotten with them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from pathlib import Path

from prime_pipeline.llm.chat import Reply, Usage
from prime_pipeline.storage.sqlite import SharedDatabase

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, text TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, estimated INTEGER NOT NULL, seconds REAL NOT NULL, checksum INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS refusals (key TEXT PRIMARY KEY, code TEXT NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS verdicts (
    reply_key TEXT NOT NULL, gate TEXT NOT NULL, verdict TEXT NOT NULL, PRIMARY KEY (reply_key, gate)
) WITHOUT ROWID;
"""

# Added later, in files that are there already, too: paid replies are worth more than a neat schema version.
_ORIGINS = """
CREATE TABLE IF NOT EXISTS origins (doc_id TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (doc_id, key)) WITHOUT ROWID;
"""
_KEEP = (
    "INSERT OR IGNORE INTO replies (key, model, text, prompt_tokens, completion_tokens, estimated, seconds, checksum)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


class ReplyCache:
    """Complete replies, refusals and verdicts, for any number of threads and processes.

    Args:
        path: The SQLite file.
    """

    def __init__(self, path: Path) -> None:
        self._database = SharedDatabase(path, _SCHEMA + _ORIGINS, 1)
        self._database.add_column("replies", "checksum", "INTEGER")
        with self._database.reading() as connection:
            there = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'origins'").fetchone()
        if there is None:
            with self._database.writing() as connection:
                connection.execute(_ORIGINS)

    def reply(self, key: str) -> Reply | None:
        """The reply to a request, by :attr:`ChatRequest.key`."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT text, prompt_tokens, completion_tokens, estimated, seconds, checksum FROM replies WHERE key = ?",
                (key,),
            ).fetchone()
        if row is None:
            return None
        text, prompt_tokens, completion_tokens, estimated, seconds, known = row
        if known is not None and known != _checksum(
            text
        ):  # the disk has changed it, so nobody knows what it said
            with self._database.writing() as connection:
                connection.execute("DELETE FROM replies WHERE key = ?", (key,))
            return None
        return Reply(text, "stop", Usage(prompt_tokens, completion_tokens, bool(estimated)), seconds)

    def keep_reply(self, key: str, model: str, reply: Reply) -> None:
        """Commit a complete reply; the first one stays if two processes asked at once.

        Raises:
            ValueError: The reply is not complete.
        """
        if not reply.is_complete:
            raise ValueError(f"a reply that ended by {reply.finish!r} must not be cached")
        usage = reply.usage
        row = (
            key,
            model,
            reply.text,
            usage.prompt_tokens,
            usage.completion_tokens,
            int(usage.estimated),
            reply.seconds,
            _checksum(reply.text),
        )
        with self._database.writing() as connection:
            connection.execute(_KEEP, row)

    def refusal(self, key: str) -> tuple[str, str] | None:
        """(code, reason) if the endpoint refused this very request before."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT code, reason FROM refusals WHERE key = ?", (key,)).fetchone()
        return (row[0], row[1]) if row else None

    def keep_refusal(self, key: str, code: str, reason: str) -> None:
        """Remember that a request is refused, so that nobody pays for it again until it changes."""
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO refusals VALUES (?, ?, ?)", (key, code, reason))

    def forget_refusals(self) -> int:
        """Drop all refusals, so that the requests are sent again; returns how many there were."""
        with self._database.writing() as connection:
            return connection.execute("DELETE FROM refusals").rowcount

    def note_origin(self, key: str, doc_ids: Iterable[str]) -> None:
        """Note which documents a request is about, before it is asked: no reply is there without."""
        rows = [(doc_id, key) for doc_id in doc_ids]
        with self._database.reading() as connection:
            known = "SELECT 1 FROM origins WHERE doc_id = ? AND key = ?"
            new = [row for row in rows if connection.execute(known, row).fetchone() is None]
        if new:
            with self._database.writing() as connection:
                connection.executemany("INSERT OR IGNORE INTO origins VALUES (?, ?)", new)

    def forget(self, doc_ids: Iterable[str]) -> int:
        """Drop the replies to and refusals of whatever was asked about documents; returns how many.

        All verdicts go, too: they quote texts, and are made again for nothing where they are needed.
        """
        gone = json.dumps(sorted(set(doc_ids)))
        keys = "SELECT key FROM origins WHERE doc_id IN (SELECT value FROM json_each(?))"
        with self._database.writing() as connection:
            n_replies = sum(
                connection.execute(f"DELETE FROM {table} WHERE key IN ({keys})", (gone,)).rowcount  # noqa: S608
                for table in ("replies", "refusals")
            )
            connection.execute(
                "DELETE FROM origins WHERE doc_id IN (SELECT value FROM json_each(?))", (gone,)
            )
            connection.execute("DELETE FROM verdicts")
        return n_replies

    @property
    def n_without_origin(self) -> int:
        """Replies and refusals of which it is not known what they are about: they are from before that was noted."""
        unknown = "WHERE key NOT IN (SELECT key FROM origins)"
        with self._database.reading() as connection:
            counts = [
                connection.execute(f"SELECT count(*) FROM {table} {unknown}").fetchone()[0]  # noqa: S608
                for table in ("replies", "refusals")
            ]
        return sum(counts)

    def compact(self) -> None:
        """See :meth:`SharedDatabase.compact`."""
        self._database.compact()

    def verdict(self, reply_key: str, gate: str) -> str | None:
        """What a gate (its version and thresholds) made of a reply."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT verdict FROM verdicts WHERE reply_key = ? AND gate = ?", (reply_key, gate)
            ).fetchone()
        return str(row[0]) if row else None

    def keep_verdict(self, reply_key: str, gate: str, verdict: str) -> None:
        """Keep a verdict, beside those of other gates."""
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", (reply_key, gate, verdict))

    def cached_keys(self, keys: list[str]) -> set[str]:
        """Those of the keys that need no call any more."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT key FROM replies WHERE key IN (SELECT value FROM json_each(?))"
                " UNION SELECT key FROM refusals WHERE key IN (SELECT value FROM json_each(?))",
                (json.dumps(keys), json.dumps(keys)),
            ).fetchall()
        return {key for (key,) in found}

    def mean_seconds(self, model: str) -> float | None:
        """Mean wall time of the calls that a model answered; None if there were none."""
        with self._database.reading() as connection:
            (mean,) = connection.execute(
                "SELECT avg(seconds) FROM replies WHERE model = ?", (model,)
            ).fetchone()
        return None if mean is None else float(mean)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
