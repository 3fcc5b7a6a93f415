"""Partition keys and events of documents, and how both are kept in step with the catalogue.

The catalogue is right, Dagster's instance shows it. Everything here can be repeated at any time, so a crash, or the
loss of Dagster's own storage, is healed by the next scan.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import dagster as dg

from prime_pipeline.corpus.source import PARSER_VERSION
from prime_pipeline.defs.partitions import DYNAMIC_NAME, Partition, partition_key_of, partitions
from prime_pipeline.progress import Progress, silent
from prime_pipeline.settings import Partitioning
from prime_pipeline.storage.documents import CatalogueEntry

RAW_DOCUMENTS = dg.AssetKey("raw_documents")
RESTRUCTURED_DOCUMENTS = dg.AssetKey("restructured_documents")
_KEYS_PER_CALL = 10_000
_DATA_VERSION = "dagster/data_version"
_CODE_VERSION = "dagster/code_version"

LogEvent = Callable[[dg.AssetMaterialization], None]


def sync_documents(
    instance: dg.DagsterInstance,
    catalogue: Mapping[str, CatalogueEntry],
    log_event: LogEvent,
    progress: Progress = silent,
    partitioning: Partitioning = "document",
) -> dict[str, int]:
    """Bring partition keys and materialisation events in step with the catalogue; returns how many of each.

    Keys are added in bulk. An event is logged for each partition whose latest event does not carry its version.
    """
    wanted = partitions(catalogue.values(), partitioning)
    n_added, n_deleted = _sync_keys(instance, wanted) if partitioning == "document" else (0, 0)
    outdated = _without_event(instance, wanted.values(), RAW_DOCUMENTS)
    for position, partition in enumerate(outdated, start=1):
        log_event(raw_event(partition))  # some 20 ms each in SQLite, and no way to log many at once
        progress("events", position, len(outdated))
    return {"partitions_added": n_added, "partitions_deleted": n_deleted, "events": len(outdated)}


def raw_event(partition: Partition) -> dg.AssetMaterialization:
    """The event that says: the documents of this partition are stored, in this version."""
    return dg.AssetMaterialization(
        asset_key=RAW_DOCUMENTS,
        partition=partition.key,
        metadata={**_described(partition), "version": (partition.version or "")[:16]},
        tags={_DATA_VERSION: partition.version or "", _CODE_VERSION: PARSER_VERSION},
    )


class RestructuredEvents:
    """The events of restructured documents: one for each partition that is complete and whose latest event says otherwise.

    Each names the version of the raw partition it was made from and points to that one's own event. Without both,
    Dagster would call every partition stale, or none (observed with 1.13).

    Args:
        instance: Where events are looked up.
        log_event: Writes them.
        raw: Catalogue of the raw documents.
        code_version: Of the asset.
        partitioning: What a partition is.
    """

    def __init__(
        self,
        instance: dg.DagsterInstance,
        log_event: LogEvent,
        raw: Mapping[str, CatalogueEntry],
        code_version: str,
        partitioning: Partitioning = "document",
    ) -> None:
        self._instance = instance
        self._log_event = log_event
        self._raw = partitions(raw.values(), partitioning)
        self._partitioning: Partitioning = partitioning
        self._code_version = code_version
        # A storage-level call, as below.
        self._pointers = instance.event_log_storage.get_latest_storage_id_by_partition(
            RAW_DOCUMENTS, dg.DagsterEventType.ASSET_MATERIALIZATION
        )

    def log(self, partition: Partition, metadata: Mapping[str, Any]) -> None:
        """Say that a partition is restructured, in this version."""
        tags = {
            _DATA_VERSION: partition.version or "",
            _CODE_VERSION: self._code_version,
            f"dagster/input_data_version/{RAW_DOCUMENTS.to_user_string()}": self._raw[partition.key].version
            or "",
            f"dagster/input_event_pointer/{RAW_DOCUMENTS.to_user_string()}": str(
                self._pointers.get(partition.key, "NULL")
            ),
        }
        event = dg.AssetMaterialization(
            asset_key=RESTRUCTURED_DOCUMENTS,
            partition=partition.key,
            metadata={**_described(partition), **metadata},
            tags=tags,
        )
        self._log_event(event)

    def missing(self, entries: Iterable[CatalogueEntry]) -> list[Partition]:
        """Complete partitions without an event for their version.

        That of a bucket is logged when all its documents are complete; that of a document is missing where a run was killed
        before it, or Dagster's storage was lost.

        Args:
            entries: Catalogue of the restructured documents; those that are not in the raw one are left out.
        """
        known = {entry.doc_id for partition in self._raw.values() for entry in partition.entries}
        found = partitions((entry for entry in entries if entry.doc_id in known), self._partitioning)
        complete = [partition for partition in found.values() if self._is_complete(partition)]
        return _without_event(self._instance, complete, RESTRUCTURED_DOCUMENTS)

    def _is_complete(self, partition: Partition) -> bool:
        if not partition.is_bucket:
            return partition.entries[0].source_fingerprint is not None
        versions = {
            entry.doc_id: entry.version for entry in self._raw[partition.key].entries if entry.version
        }
        return versions == {entry.doc_id: entry.source_fingerprint for entry in partition.entries}


def in_partitions(
    entries: Iterable[CatalogueEntry], keys: Iterable[str], partitioning: Partitioning
) -> list[CatalogueEntry]:
    """The documents of chosen partitions, in their order."""
    chosen = set(keys)
    return [entry for entry in entries if partition_key_of(entry, partitioning) in chosen]


def _described(partition: Partition) -> dict[str, Any]:
    if partition.is_bucket:
        n_sections = sum(entry.n_sections for entry in partition.entries)
        return {"documents": len(partition.entries), "sections": n_sections}
    (entry,) = partition.entries
    return {
        "document": entry.doc_id,
        "title": entry.title,
        "source": entry.source_path,
        "sections": entry.n_sections,
    }


def _sync_keys(instance: dg.DagsterInstance, wanted: Mapping[str, Partition]) -> tuple[int, int]:
    """Returns how many keys were added, and how many deleted."""
    keys = set(instance.get_dynamic_partitions(DYNAMIC_NAME))
    new = [key for key in wanted if key not in keys]
    for start in range(0, len(new), _KEYS_PER_CALL):
        instance.add_dynamic_partitions(DYNAMIC_NAME, new[start : start + _KEYS_PER_CALL])
    gone = sorted(keys.difference(wanted))
    for key in gone:
        instance.delete_dynamic_partition(DYNAMIC_NAME, key)
    return len(new), len(gone)


def _without_event(
    instance: dg.DagsterInstance, wanted: Iterable[Partition], asset: dg.AssetKey
) -> list[Partition]:
    """Partitions whose latest event carries another version; an empty bucket needs one only where it had documents before."""
    # A storage-level call, since the instance offers none that asks for all partitions at once.
    tags = instance.event_log_storage.get_latest_tags_by_partition(
        asset, dg.DagsterEventType.ASSET_MATERIALIZATION, [_DATA_VERSION]
    )
    return [
        partition
        for partition in wanted
        if partition.version is not None
        and (partition.entries or partition.key in tags)
        and tags.get(partition.key, {}).get(_DATA_VERSION) != partition.version
    ]
