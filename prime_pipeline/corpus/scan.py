"""Comparing a corpus with the document store, and bringing the store up to date.

One function for all of it (:func:`scan`) and one for chosen documents (:func:`parse_documents`); both store a document
the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from prime_pipeline.corpus.partition_keys import partition_key
from prime_pipeline.corpus.source import PARSER_VERSION, CorpusSource, SourceEntry, SourceFailure
from prime_pipeline.errors import DocumentError, TooManyRemovals
from prime_pipeline.progress import Progress, silent
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
        removed: Ids whose source is gone.
        failed: Reason by source (file or record), for sources that cannot be parsed.
        served_from_before: Ids among the failed whose last good text is still served.
        ignored: Number of files passed over, by suffix.
        warnings: (source, sentence) for readings that an author may not have meant; of new and changed documents.
        seconds: Wall time.
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

    @property
    def n_changes(self) -> int:
        """Documents added, changed or removed."""
        return len(self.added) + len(self.changed) + len(self.removed)


@dataclass(slots=True)
class _Findings:
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    served_from_before: list[str] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


def scan(
    source: CorpusSource, store: DocumentStore, *, allow_removals: bool = False, progress: Progress = silent
) -> ScanReport:
    """Parse what is new or changed, retry what failed before, and remove what is gone.

    Args:
        source: The corpus.
        store: Brought up to date; a document is durable as soon as it is parsed.
        allow_removals: Permit the removal of more than a fifth of the known documents.
        progress: Told of every source that was looked at.

    Raises:
        TooManyRemovals: More than a fifth would go. Nothing has been removed then.
    """
    started = time.monotonic()
    known = store.catalogue()
    stored_files = store.stored_files()
    findings = _Findings()
    for position, item in enumerate(source.entries(), start=1):
        if isinstance(item, SourceFailure):
            _note_failure(
                store, known, findings, item.doc_id or item.source_path, item.source_path, item.reason
            )
        else:
            _take(store, known, stored_files, findings, item)
        progress("scan", position, None)
    removed = _remove_gone(source, store, known, findings.seen, allow_removals=allow_removals)
    return ScanReport(
        added=tuple(findings.added),
        changed=tuple(findings.changed),
        unchanged=findings.unchanged,
        removed=removed,
        failed=findings.failed,
        served_from_before=tuple(findings.served_from_before),
        ignored=dict(source.ignored),
        warnings=tuple(findings.warnings),
        seconds=time.monotonic() - started,
    )


def parse_documents(
    source: CorpusSource,
    store: DocumentStore,
    doc_ids: Iterable[str],
    on_stored: Callable[[CatalogueEntry], None],
) -> dict[str, str]:
    """Parse chosen documents again, whether or not they changed, and store them.

    Args:
        source: The corpus.
        store: Where they go.
        doc_ids: Which ones.
        on_stored: Called for each as soon as it is durable.

    Returns:
        Reason by document id for those that failed or are no longer in the corpus.
    """
    wanted = set(doc_ids)
    failed = dict.fromkeys(sorted(wanted), "not in the corpus any more: run a refresh, which removes it")
    for item in source.entries():
        doc_id = item.doc_id or item.source_path
        if doc_id not in wanted:
            continue
        if isinstance(item, SourceFailure):
            failed[doc_id] = item.reason
            store.put_failure(doc_id, partition_key(doc_id), item.source_path, item.reason)
            continue
        try:
            on_stored(_parse_and_store(store, item)[0])
            failed.pop(doc_id, None)
        except DocumentError as error:
            failed[doc_id] = error.reason
            store.put_failure(doc_id, partition_key(doc_id), item.source_path, error.reason)
    return failed


def _take(
    store: DocumentStore,
    known: Mapping[str, CatalogueEntry],
    stored_files: frozenset[str],
    findings: _Findings,
    item: SourceEntry,
) -> None:
    before = known.get(item.doc_id)
    if before and _is_current(before, item) and store.path(item.doc_id).name in stored_files:
        findings.seen.add(item.doc_id)
        findings.unchanged += 1
        return
    try:
        entry, warnings = _parse_and_store(store, item)
    except DocumentError as error:
        _note_failure(store, known, findings, item.doc_id, item.source_path, error.reason)
        return
    findings.seen.add(item.doc_id)
    findings.warnings += [(item.source_path, warning) for warning in warnings]
    if before is None or before.version is None:
        findings.added.append(item.doc_id)
    elif before.version != entry.version:
        findings.changed.append(item.doc_id)
    else:
        findings.unchanged += 1


def _is_current(before: CatalogueEntry, item: SourceEntry) -> bool:
    return before.failure is None and before.source_fingerprint == _source_fingerprint(item)


def _source_fingerprint(item: SourceEntry) -> str:
    """What a stored document depends on: the bytes, where they lie, and how they are read."""
    return text_fingerprint(item.fingerprint, item.source_path, item.media_type, PARSER_VERSION)


def _parse_and_store(store: DocumentStore, item: SourceEntry) -> tuple[CatalogueEntry, tuple[str, ...]]:
    document = item.parse()
    if not document.content_sections:
        raise DocumentError(item.source_path, "holds no text")
    entry = store.put(document, partition_key(document.doc_id), _source_fingerprint(item))
    return entry, document.warnings


def _note_failure(
    store: DocumentStore,
    known: Mapping[str, CatalogueEntry],
    findings: _Findings,
    doc_id: str,
    source_path: str,
    reason: str,
) -> None:
    findings.failed[source_path] = reason
    if doc_id in findings.seen:  # a second source of an id that is taken: the first one stays
        return
    findings.seen.add(doc_id)
    entry = store.put_failure(doc_id, partition_key(doc_id), source_path, reason)
    if entry.version is not None and doc_id in known:
        findings.served_from_before.append(doc_id)


def _remove_gone(
    source: CorpusSource,
    store: DocumentStore,
    known: Mapping[str, CatalogueEntry],
    seen: set[str],
    *,
    allow_removals: bool,
) -> tuple[str, ...]:
    gone = tuple(doc_id for doc_id in known if doc_id not in seen)
    served = [doc_id for doc_id, entry in known.items() if entry.version is not None]
    n_gone = sum(1 for doc_id in gone if known[doc_id].version is not None)
    if n_gone > REMOVABLE_SHARE * len(served) and not allow_removals:
        raise TooManyRemovals(source.location, n_gone, len(served))
    store.remove(gone)
    return gone
