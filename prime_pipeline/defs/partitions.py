"""What a partition is: a document, or, in a large corpus, one of 256 buckets of documents.

An event costs Dagster some 20 ms in SQLite and its UI reads the status of every partition, so that a document of its own for each
stops paying at about ten thousand. Nothing that is stored or cached knows of partitions.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import dagster as dg

from prime_pipeline.settings import Partitioning
from prime_pipeline.storage.documents import CatalogueEntry
from prime_pipeline.storage.fingerprint import fingerprint

BUCKETS: Final = tuple(f"{number:02x}" for number in range(256))
DYNAMIC_NAME: Final = "documents"
_DEFINITIONS: Final[dict[Partitioning, dg.PartitionsDefinition[str]]] = {
    "document": dg.DynamicPartitionsDefinition(name=DYNAMIC_NAME),
    "bucket": dg.StaticPartitionsDefinition(BUCKETS),
}


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition and what the catalogue knows of its documents.

    Attributes:
        key: Its name in Dagster.
        entries: In order of id; one where a partition is a document, any number where it is a bucket.
        is_bucket: Which of the two it is.
    """

    key: str
    entries: tuple[CatalogueEntry, ...]
    is_bucket: bool

    @property
    def version(self) -> str | None:
        """Hash of the content of all its documents; None for a document that was never read."""
        if not self.is_bucket:
            return self.entries[0].version
        return fingerprint([(entry.doc_id, entry.version) for entry in self.entries if entry.version])


def partitions_definition(partitioning: Partitioning) -> dg.PartitionsDefinition[str]:
    """All partitions as Dagster is told of them."""
    return _DEFINITIONS[partitioning]


def partition_key_of(entry: CatalogueEntry, partitioning: Partitioning) -> str:
    """The partition that a document is in; a bucket depends on its id alone."""
    if partitioning == "document":
        return entry.partition_key
    return hashlib.sha256(entry.doc_id.encode()).hexdigest()[:2]


def partition_of_document(entry: CatalogueEntry) -> Partition:
    """The partition that a document is by itself."""
    return Partition(entry.partition_key, (entry,), is_bucket=False)


def partitions(entries: Iterable[CatalogueEntry], partitioning: Partitioning) -> dict[str, Partition]:
    """Documents by partition, in order of key; a bucket without documents is among them."""
    found: dict[str, list[CatalogueEntry]] = {key: [] for key in BUCKETS} if partitioning == "bucket" else {}
    for entry in entries:
        found.setdefault(partition_key_of(entry, partitioning), []).append(entry)
    return {
        key: Partition(
            key, tuple(sorted(found[key], key=lambda entry: entry.doc_id)), partitioning == "bucket"
        )
        for key in sorted(found)
    }
