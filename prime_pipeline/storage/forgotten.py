"""The list of forgotten documents: ids that no refresh reads again until they are taken off it.

The list is what makes forgetting last: the file may well lie in the corpus for a while longer. It holds ids and times and
nothing of what the documents said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from prime_pipeline.errors import SchemaMismatch, StoreUnavailable, UnreadableExclusions
from prime_pipeline.storage.atomic import write_text
from prime_pipeline.storage.fingerprint import fingerprint

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A document that is left out.

    Attributes:
        doc_id: The document.
        since: ISO 8601, UTC.
        is_complete: Whether everything that was kept of it is gone; if not, a run was ended before that.
    """

    doc_id: str
    since: str
    is_complete: bool


class ForgottenDocuments:
    """The list in a home; its writers hold the home's lock ``documents``.

    Args:
        path: The file. One that is missing is an empty list.

    Raises:
        UnreadableExclusions: The file is damaged: read as empty, it would bring everything back that was forgotten. All
            methods may raise it.
        SchemaMismatch, StoreUnavailable: Likewise.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def entries(self) -> list[Forgotten]:
        """All entries in order of id."""
        try:
            stored = json.loads(self._path.read_bytes())
            if stored["schema_version"] != SCHEMA_VERSION:
                raise SchemaMismatch(self._path, stored["schema_version"], SCHEMA_VERSION)
            return [Forgotten(**entry) for entry in stored["documents"]]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StoreUnavailable(self._path, error.strerror or str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableExclusions(self._path, str(error)) from error

    def ids(self) -> frozenset[str]:
        """The ids."""
        return frozenset(entry.doc_id for entry in self.entries())

    @property
    def fingerprint(self) -> str:
        """Hash of the ids; empty where there are none."""
        ids = sorted(self.ids())
        return fingerprint(ids) if ids else ""

    def add(self, doc_ids: Iterable[str]) -> None:
        """Put documents on the list, as not completely forgotten yet."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        known = {entry.doc_id: entry for entry in self.entries()}
        for doc_id in doc_ids:
            before = known.get(doc_id, Forgotten(doc_id, now, is_complete=False))
            known[doc_id] = replace(before, is_complete=False)
        self._write(known.values())

    def complete(self, doc_ids: Iterable[str]) -> None:
        """Note that nothing is kept of documents any more."""
        done = set(doc_ids)
        self._write(replace(e, is_complete=e.is_complete or e.doc_id in done) for e in self.entries())

    def remove(self, doc_ids: Iterable[str]) -> None:
        """Take documents off the list: the next refresh reads them again."""
        gone = set(doc_ids)
        self._write(entry for entry in self.entries() if entry.doc_id not in gone)

    def _write(self, entries: Iterable[Forgotten]) -> None:
        documents = [asdict(entry) for entry in sorted(entries, key=lambda entry: entry.doc_id)]
        payload = {"schema_version": SCHEMA_VERSION, "documents": documents}
        write_text(self._path, json.dumps(payload, indent=2) + "\n")
