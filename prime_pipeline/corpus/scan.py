"""Comparing a corpus with the document store, and bringing the store up to date.

One function for all of it (:func:`scan`) and one for chosen documents (:func:`parse_documents`); both store a document
the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from prime_pipeline.corpus.partition_keys import partition_key
from prime_pipeline.corpus.source import (
    PARSER_VERSION,
    CorpusSource,
    SourceEntry,
    SourceFailure,
    SourceItem,
    bytes_fingerprint,
)
from prime_pipeline.errors import DocumentError, TooManyRemovals
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document
from prime_pipeline.storage.documents import CatalogueEntry, DocumentStore
from prime_pipeline.storage.fingerprint import text_fingerprint

REMOVABLE_SHARE = 0.2
"""A scan that would remove a larger share of the known documents stops and asks."""


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What a scan found and did.

    Attributes:
        added: Ids of new documents, in the order in which they were read.
        changed: Ids of documents whose stored content changed.
        unchanged: Number of documents that needed nothing.
        removed: Ids of documents whose source is gone.
        failed: Reason by source (file or record), sorted, for sources that cannot be parsed.
        served_from_before: Ids of documents that cannot be read now and whose last good text is still served, sorted.
        ignored: Number of files passed over, by suffix.
        warnings: (source, sentence) for readings that an author may not have meant; of new and changed documents.
        seconds: Wall time.
        n_forgotten: Documents and failures passed over because they are forgotten.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: int
    removed: tuple[str, ...]
    failed: Mapping[str, str]
    served_from_before: tuple[str, ...]
    ignored: Mapping[str, int]
    warnings: tuple[tuple[str, str], ...]
    seconds: float
    n_forgotten: int = 0

    @property
    def n_changes(self) -> int:
        """Documents added, changed or removed."""
        return len(self.added) + len(self.changed) + len(self.removed)


@dataclass(slots=True)
class _Findings:
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: int = 0
    failures: list[SourceFailure] = field(default_factory=list)
    served_from_before: set[str] = field(default_factory=set)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


def scan(
    source: CorpusSource,
    store: DocumentStore,
    *,
    allow_removals: bool = False,
    forgotten: AbstractSet[str] = frozenset(),
    progress: Progress = silent,
) -> ScanReport:
    """Parse what is new or changed, retry what failed before, and remove what is gone.

    A source that cannot be read removes nothing: its document, or all documents of a file or folder that fails as a
    whole, are served on as they were.

    Args:
        source: The corpus.
        store: Brought up to date; a document is durable as soon as it is parsed.
        allow_removals: Permit the removal of more than a fifth of the known documents.
        forgotten: Ids that are treated as if they were not in the corpus; what is stored of them is removed, whatever
            share that is.
        progress: Told of every source that was looked at.

    Raises:
        TooManyRemovals: More than a fifth would go. Nothing has been removed then.
    """
    started = time.monotonic()
    unwanted = [entry for doc_id, entry in store.catalogue().items() if doc_id in forgotten]
    store.remove(entry.doc_id for entry in unwanted)
    known = store.catalogue()
    stored_files = store.stored_files()
    findings = _Findings()
    position = n_forgotten = 0
    for position, item in enumerate(source.entries(), start=1):
        if _id_of(item) in forgotten:
            n_forgotten += 1
        elif isinstance(item, SourceFailure):
            findings.failures.append(item)
        else:
            _take(store, known, stored_files, findings, item)
        progress("scan", position, None)
    progress("scan", position, position)
    # Failures come last: where one shares its id with a document, it must not mark that as failed.
    for failure in findings.failures:
        _note_failure(store, findings, failure)
    removed = _remove_gone(source, store, known, findings, allow_removals=allow_removals)
    return ScanReport(
        added=tuple(findings.added),
        changed=tuple(findings.changed),
        unchanged=findings.unchanged,
        removed=(*(entry.doc_id for entry in unwanted if entry.version), *removed),
        failed=dict(sorted((failure.source_path, failure.reason) for failure in findings.failures)),
        served_from_before=tuple(sorted(findings.served_from_before)),
        ignored=dict(source.ignored),
        warnings=tuple(findings.warnings),
        seconds=time.monotonic() - started,
        n_forgotten=n_forgotten,
    )


def parse_documents(
    source: CorpusSource,
    store: DocumentStore,
    doc_ids: Iterable[str],
    on_stored: Callable[[CatalogueEntry], None],
    forgotten: AbstractSet[str] = frozenset(),
) -> dict[str, str]:
    """Parse chosen documents again, whether or not they changed, and store them.

    Args:
        source: The corpus.
        store: Where they go.
        doc_ids: Which ones.
        on_stored: Called for each as soon as it is durable.
        forgotten: Ids that are not parsed whatever was chosen.

    Returns:
        Reason by document id for those that failed or are no longer in the corpus.
    """
    chosen = set(doc_ids)
    wanted = chosen - forgotten
    failures: dict[str, SourceFailure] = {}
    for item in source.entries():
        doc_id = _id_of(item)
        if doc_id not in wanted:
            continue
        outcome = item if isinstance(item, SourceFailure) else _stored(store, item)
        if isinstance(outcome, SourceFailure):
            failures[doc_id] = outcome
        else:
            on_stored(outcome[1])
            wanted.remove(doc_id)  # a failure that shares the id is not the document's
    reasons = dict.fromkeys(sorted(wanted), "not in the corpus any more: run a refresh, which removes it")
    for doc_id in sorted(wanted & failures.keys()):
        failure = failures[doc_id]
        store.put_failure(doc_id, partition_key(doc_id), failure.source_path, failure.reason)
        reasons[doc_id] = failure.reason
    return reasons | dict.fromkeys(
        sorted(chosen & forgotten), "forgotten: prime forget --undo has it read again"
    )


def _take(
    store: DocumentStore,
    known: Mapping[str, CatalogueEntry],
    stored_files: frozenset[str],
    findings: _Findings,
    item: SourceEntry,
) -> None:
    before = known.get(item.doc_id)
    if before and _is_current(before, item) and store.file_name(item.doc_id) in stored_files:
        findings.seen.add(item.doc_id)
        findings.unchanged += 1
        return
    stored = _stored(store, item)
    if isinstance(stored, SourceFailure):
        findings.failures.append(stored)
        return
    document, entry = stored
    findings.seen.add(item.doc_id)
    if before is None or before.version is None:
        findings.added.append(item.doc_id)
    elif before.version != entry.version:
        findings.changed.append(item.doc_id)
    else:
        findings.unchanged += 1
        return
    findings.warnings += [(_place(item), warning) for warning in document.warnings]


def _is_current(before: CatalogueEntry, item: SourceEntry) -> bool:
    return before.failure is None and before.source_fingerprint == _source_fingerprint(item)


def _source_fingerprint(item: SourceEntry) -> str:
    """What a stored document depends on: the bytes, where they lie, and how they are read."""
    return _fingerprint(item.fingerprint, item.source_path, item.media_type)


def _fingerprint(of_bytes: str, source_path: str, media_type: str) -> str:
    return text_fingerprint(of_bytes, source_path, media_type, PARSER_VERSION)


def was_read_from(entry: CatalogueEntry, media_type: str, data: bytes) -> bool:
    """Whether a document that is a file by itself was made of just these bytes, by the readers of now."""
    found = _fingerprint(bytes_fingerprint(data), entry.source_path, media_type)
    return entry.source_fingerprint == found


def _parsed(item: SourceEntry) -> Document | SourceFailure:
    try:
        document = item.parse()
    except DocumentError as error:
        return SourceFailure(_place(item), error.reason, item.doc_id)
    except Exception as error:  # noqa: BLE001  a fault of a reader must not keep the other documents from being read
        reason = f"the reader failed on it ({type(error).__name__}: {error}): please report this"
        return SourceFailure(_place(item), reason, item.doc_id)
    if not document.content_sections:
        return SourceFailure(_place(item), "holds no text: fill it or remove it", item.doc_id)
    return document


def _stored(store: DocumentStore, item: SourceEntry) -> tuple[Document, CatalogueEntry] | SourceFailure:
    document = _parsed(item)
    if isinstance(document, SourceFailure):
        return document
    try:
        return document, store.put(document, partition_key(document.doc_id), _source_fingerprint(item))
    except DocumentError as error:  # it parses, but cannot be stored
        return SourceFailure(_place(item), error.reason, item.doc_id)


def _place(item: SourceEntry) -> str:
    return item.source_path + item.position


def _id_of(item: SourceItem) -> str:
    """The id under which the catalogue knows a source; one that has none goes by its place."""
    return item.doc_id or item.source_path


def _note_failure(store: DocumentStore, findings: _Findings, failure: SourceFailure) -> None:
    doc_id = _id_of(failure)
    if doc_id in findings.seen:  # another source has the id: that one stands
        return
    findings.seen.add(doc_id)
    entry = store.put_failure(doc_id, partition_key(doc_id), failure.source_path, failure.reason)
    if entry.version is not None:
        findings.served_from_before.add(doc_id)


def _remove_gone(
    source: CorpusSource,
    store: DocumentStore,
    known: Mapping[str, CatalogueEntry],
    findings: _Findings,
    *,
    allow_removals: bool,
) -> tuple[str, ...]:
    """Remove what was not seen; returns the documents among it (a source that never parsed was none)."""
    unreadable = {failure.source_path for failure in findings.failures}
    unseen = [entry for doc_id, entry in known.items() if doc_id not in findings.seen]
    hidden = {entry.doc_id for entry in unseen if entry.version and _lies_in(entry.source_path, unreadable)}
    findings.served_from_before |= hidden
    gone = [entry for entry in unseen if entry.doc_id not in hidden]
    documents = tuple(entry.doc_id for entry in gone if entry.version)
    n_known = sum(1 for entry in known.values() if entry.version)
    if len(documents) > REMOVABLE_SHARE * n_known and not allow_removals:
        raise TooManyRemovals(source.location, len(documents), n_known)
    store.remove(entry.doc_id for entry in gone)
    return documents


def _lies_in(source_path: str, places: set[str]) -> bool:
    """Whether a path, or a folder above it, is among the places."""
    parts = source_path.split("/")
    return any("/".join(parts[:n]) in places for n in range(1, len(parts) + 1))
