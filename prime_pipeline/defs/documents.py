"""Documents as partitions: their keys, their events, and how both are kept in step with the catalogue.

The catalogue is right, Dagster's instance shows it. Everything here can be repeated at any time, so a crash, or the
loss of Dagster's own storage, is healed by the next scan.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import dagster as dg

from prime_pipeline.corpus.source import PARSER_VERSION
from prime_pipeline.progress import Progress, silent
from prime_pipeline.storage.documents import CatalogueEntry

DOCUMENTS = dg.DynamicPartitionsDefinition(name="documents")
RAW_DOCUMENTS = dg.AssetKey("raw_documents")
RESTRUCTURED_DOCUMENTS = dg.AssetKey("restructured_documents")
_NAME = "documents"
_KEYS_PER_CALL = 10_000
_DATA_VERSION = "dagster/data_version"
_CODE_VERSION = "dagster/code_version"

LogEvent = Callable[[dg.AssetMaterialization], None]


def sync_documents(
    instance: dg.DagsterInstance,
    catalogue: Mapping[str, CatalogueEntry],
    log_event: LogEvent,
    progress: Progress = silent,
) -> dict[str, int]:
    """Bring partition keys and materialisation events in step with the catalogue; returns how many of each.

    Keys are added in bulk. An event is logged for each document whose latest event does not carry its version.
    """
    keys = set(instance.get_dynamic_partitions(_NAME))
    wanted = [entry.partition_key for entry in catalogue.values()]
    new = [key for key in wanted if key not in keys]
    for start in range(0, len(new), _KEYS_PER_CALL):
        instance.add_dynamic_partitions(_NAME, new[start : start + _KEYS_PER_CALL])
    gone = sorted(keys.difference(wanted))
    for key in gone:
        instance.delete_dynamic_partition(_NAME, key)
    outdated = _without_event(instance, catalogue.values())
    for position, entry in enumerate(outdated, start=1):
        log_event(document_event(entry))  # some 20 ms each in SQLite, and no way to log many at once
        progress("events", position, len(outdated))
    return {"partitions_added": len(new), "partitions_deleted": len(gone), "events": len(outdated)}


def document_event(entry: CatalogueEntry) -> dg.AssetMaterialization:
    """The event that says: this document is stored, in this version."""
    return dg.AssetMaterialization(
        asset_key=RAW_DOCUMENTS,
        partition=entry.partition_key,
        metadata={
            "document": entry.doc_id,
            "source": entry.source_path,
            "sections": entry.n_sections,
            "version": (entry.version or "")[:16],
        },
        tags={_DATA_VERSION: entry.version or "", _CODE_VERSION: PARSER_VERSION},
    )


class RestructuredEvents:
    """The events of restructured documents: one for each that is complete and whose latest event says otherwise.

    Each names the version of the raw document it was made from and points to that document's own event. Without both,
    Dagster would call every partition stale, or none (observed with 1.13).

    Args:
        instance: Where events are looked up.
        log_event: Writes them.
        raw: Catalogue of the raw documents.
        code_version: Of the asset.
    """

    def __init__(
        self,
        instance: dg.DagsterInstance,
        log_event: LogEvent,
        raw: Mapping[str, CatalogueEntry],
        code_version: str,
    ) -> None:
        self._instance = instance
        self._log_event = log_event
        self._raw = raw
        self._code_version = code_version
        # A storage-level call, as below.
        self._pointers = instance.event_log_storage.get_latest_storage_id_by_partition(
            RAW_DOCUMENTS, dg.DagsterEventType.ASSET_MATERIALIZATION
        )

    def log(self, entry: CatalogueEntry, metadata: Mapping[str, Any]) -> None:
        """Say that a document is restructured, in this version."""
        raw = self._raw[entry.doc_id]
        tags = {
            _DATA_VERSION: entry.version or "",
            _CODE_VERSION: self._code_version,
            f"dagster/input_data_version/{RAW_DOCUMENTS.to_user_string()}": raw.version or "",
            f"dagster/input_event_pointer/{RAW_DOCUMENTS.to_user_string()}": str(
                self._pointers.get(entry.partition_key, "NULL")
            ),
        }
        event = dg.AssetMaterialization(
            asset_key=RESTRUCTURED_DOCUMENTS,
            partition=entry.partition_key,
            metadata={"document": entry.doc_id, "sections": entry.n_sections, **metadata},
            tags=tags,
        )
        self._log_event(event)

    def missing(self, entries: Iterable[CatalogueEntry]) -> list[CatalogueEntry]:
        """Entries without an event for their version: a run was killed before it, or Dagster's storage was lost."""
        complete = [entry for entry in entries if entry.source_fingerprint is not None]
        return _without_event(self._instance, complete, RESTRUCTURED_DOCUMENTS)


def _without_event(
    instance: dg.DagsterInstance, entries: Iterable[CatalogueEntry], asset: dg.AssetKey = RAW_DOCUMENTS
) -> list[CatalogueEntry]:
    # A storage-level call, since the instance offers none that asks for all partitions at once.
    tags = instance.event_log_storage.get_latest_tags_by_partition(
        asset, dg.DagsterEventType.ASSET_MATERIALIZATION, [_DATA_VERSION]
    )
    return [
        entry
        for entry in entries
        if entry.version is not None and tags.get(entry.partition_key, {}).get(_DATA_VERSION) != entry.version
    ]
