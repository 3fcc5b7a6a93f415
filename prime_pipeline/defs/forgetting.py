"""Forgetting documents: the steps of :mod:`prime_pipeline.reporting.forgetting` around a refresh, and Dagster's own history."""

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from prime_pipeline.defs.describing import DOCUMENT_TAG, TITLE_TAG, tag_value
from prime_pipeline.defs.instance import has_own_storage, open_instance
from prime_pipeline.defs.liveness import refresh_is_live
from prime_pipeline.defs.runs import RefreshSummary, run_refresh
from prime_pipeline.errors import DagsterStorageUnusable, HistoryElsewhere, RefreshRunning
from prime_pipeline.reporting.forgetting import (
    Kept,
    exclude,
    finish,
    remove_after_refresh,
    remove_before_refresh,
    remove_builds,
    remove_reports,
)
from prime_pipeline.storage.releases import ReleaseStore
from prime_pipeline.workspace import Workspace

_PLACEHOLDER = "(forgotten)"
_FREE_TEXT = frozenset({"text", "md_str", "path", "url", "message", "user_message", "description"})
"""Fields of a stored event whose values are for people; all others are Dagster's own words, and are left alone."""
_BUSY_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class ForgettingReport:
    """What forgetting came to.

    Attributes:
        kept: What there was.
        removed: Numbers by what was removed.
        refresh: The refresh that published without the documents.
        not_published: Variants that could not be published anew: their builds are gone, and the next refresh makes one.
        replies_without_origin: Cached replies from before it was noted what they are about; they stay.
    """

    kept: Kept
    removed: Mapping[str, int]
    refresh: RefreshSummary
    not_published: tuple[str, ...]
    replies_without_origin: int

    @property
    def is_partial(self) -> bool:
        """Whether something is left to do, or to look at."""
        return bool(self.not_published or self.replies_without_origin or self.refresh.is_partial)


def forget(definitions: dg.Definitions, workspace: Workspace, kept: Kept) -> ForgettingReport:
    """Remove documents from every store, cache, build and report, and publish without them.

    Args:
        definitions: Holds the refresh job.
        workspace: Of the home.
        kept: What is kept of them, by :func:`~prime_pipeline.reporting.forgetting.kept_of`.

    Raises:
        HistoryElsewhere: The home's own ``dagster.yaml`` names a database; nothing was changed.
        RefreshRunning: A refresh is at work; nothing was changed.
        PrimeError: A step failed. The documents are excluded; forgetting them again finishes it.
    """
    if has_own_storage(workspace.home):
        raise HistoryElsewhere(workspace.home.dagster_settings)
    workspace.home.prepare()
    with open_instance(workspace.home) as instance:
        if refresh_is_live(instance):
            raise RefreshRunning(workspace.home.root)
    exclude(workspace, kept.doc_ids)
    # As long as it is known what they are called: the catalogue and builds tell, and are emptied by what follows.
    n_scrubbed = scrub_history(workspace.home.dagster, kept.names)
    removed = remove_before_refresh(workspace, kept.doc_ids)
    refresh = run_refresh(definitions, workspace, republish=True, accept_drop=True)
    served = workspace.published_variants()
    removed["builds"] += remove_builds(workspace, even_live=True)
    # A variant that could not be published anew is not served any more, and what was measured of it goes, too.
    not_published = tuple(v for v in served if v not in workspace.published_variants())
    if not_published:
        remove_reports(workspace)
    removed |= remove_after_refresh(workspace, kept.doc_ids)
    if url := workspace.settings.publish_to:
        with workspace.home.lock("release"):
            removed["releases"] = ReleaseStore(url).drop_earlier()
    removed["events"] = n_scrubbed + scrub_history(workspace.home.dagster, kept.names)
    finish(workspace, kept.doc_ids)
    return ForgettingReport(kept, removed, refresh, not_published, workspace.replies.n_without_origin)


def scrub_history(folder: Path, names: Iterable[str]) -> int:
    """Take documents out of Dagster's history; returns how many rows and files that concerned.

    Events of their partitions are deleted, and in all others, in tags and in messages every text that names one gives way
    to a placeholder, as do tables' rows. Captured output that names one is deleted. Runs and numbers stay.

    Args:
        folder: DAGSTER_HOME.
        names: Ids, paths, partition keys and titles.

    Raises:
        DagsterStorageUnusable: A database cannot be read or written.
    """
    known = set(names)
    known |= set(map(tag_value, known))  # tags of runs hold them tamed and cut
    known |= {title for path in folder.rglob("*.db") for title in _tagged_titles(folder, path, known)}
    wanted = sorted(filter(None, known), key=len, reverse=True)
    alternatives = "|".join(map(re.escape, wanted))
    pattern = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)")
    n_changed = 0
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name.endswith(("-wal", "-shm")):
            continue
        if path.suffix == ".db":
            n_changed += _scrub_database(folder, path, pattern, wanted)
        elif path.suffix in {".out", ".err"} and pattern.search(path.read_text("utf-8", "replace")):
            path.unlink()
            n_changed += 1
    return n_changed


def _tagged_titles(folder: Path, path: Path, names: Iterable[str]) -> list[str]:
    """Titles by which runs about these documents were tagged, also those that the documents no longer have."""
    try:
        with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'run_tags'").fetchone():
                return []
            about = connection.execute(
                "SELECT run_id, value FROM run_tags WHERE key = ?", (DOCUMENT_TAG,)
            ).fetchall()
            titles = connection.execute(
                "SELECT run_id, value FROM run_tags WHERE key = ?", (TITLE_TAG,)
            ).fetchall()
    except sqlite3.DatabaseError as error:
        raise DagsterStorageUnusable(folder, error) from error
    wanted = set(names)
    runs = {run_id for run_id, document in about if document in wanted}
    return [title for run_id, title in titles if run_id in runs]


def _scrub_database(folder: Path, path: Path, pattern: re.Pattern[str], names: Sequence[str]) -> int:
    try:
        with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            n_changed = sum(_scrub_table(connection, table, pattern, names) for (table,) in tables)
            connection.execute("COMMIT")
            connection.execute("VACUUM")  # also for what earlier runs deleted
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return n_changed
    except sqlite3.DatabaseError as error:
        raise DagsterStorageUnusable(folder, error) from error


def _scrub_table(
    connection: sqlite3.Connection, table: str, pattern: re.Pattern[str], names: Sequence[str]
) -> int:
    # Names of tables and columns are Dagster's own; what comes out of documents is bound.
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    n_changed = 0
    if "partition" in columns:
        marks = ", ".join("?" * len(names))
        delete = f'DELETE FROM "{table}" WHERE partition IN ({marks})'  # noqa: S608
        n_changed += connection.execute(delete, list(names)).rowcount
    for column in columns:
        select = f'SELECT rowid, "{column}" FROM "{table}" WHERE typeof("{column}") = \'text\''  # noqa: S608
        update = f'UPDATE OR REPLACE "{table}" SET "{column}" = ? WHERE rowid = ?'  # noqa: S608
        is_tag = column == "value" and table.endswith("_tags")
        scrubbed = _scrubbed_tag if is_tag else _scrubbed_cell
        cells = connection.execute(select)
        changed = [(new, row) for row, cell in cells if (new := scrubbed(cell, pattern)) != cell]
        connection.executemany(update, changed)
        n_changed += len(changed)
    return n_changed


def _scrubbed_tag(cell: str, pattern: re.Pattern[str]) -> str:
    return _PLACEHOLDER if pattern.search(cell) else cell


def _scrubbed_cell(cell: str, pattern: re.Pattern[str]) -> str:
    try:
        stored = json.loads(cell) if cell[:1] in {"{", "["} else None
    except ValueError:
        return cell
    if stored is None:
        return cell
    scrubbed = _scrubbed(stored, pattern)
    return cell if scrubbed == stored else json.dumps(scrubbed)


def _scrubbed(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, list):
        return [_scrubbed(item, pattern) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("__class__")
    if kind == "TableRecord" and _names_one(value.get("data"), pattern):
        return {**value, "data": dict.fromkeys(value["data"], _PLACEHOLDER)}
    return {key: _scrubbed_field(key, item, kind, pattern) for key, item in value.items()}


def _scrubbed_field(key: str, item: Any, kind: Any, pattern: re.Pattern[str]) -> Any:
    if kind == "JsonMetadataEntryData" and key == "data":
        return _without_names(item, pattern)
    if key == "tags" and isinstance(item, dict):
        return _without_names(item, pattern)
    if key in _FREE_TEXT and isinstance(item, str) and pattern.search(item):
        return _PLACEHOLDER
    return _scrubbed(item, pattern)


def _without_names(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        return {_without_names(key, pattern): _without_names(item, pattern) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_names(item, pattern) for item in value]
    return _PLACEHOLDER if _names_one(value, pattern) else value


def _names_one(value: Any, pattern: re.Pattern[str]) -> bool:
    if isinstance(value, dict):
        return any(_names_one(item, pattern) for item in value.values())
    return isinstance(value, str) and pattern.search(value) is not None
