"""The sealed corpus: which documents, in which versions, everything downstream is made of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from prime_pipeline.errors import EmptyCorpus, SchemaMismatch, StoreCorrupt
from prime_pipeline.storage.atomic import write_text
from prime_pipeline.storage.documents import DocumentStore
from prime_pipeline.storage.fingerprint import fingerprint

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class SealedCorpus:
    """A set of document versions.

    Attributes:
        version: Hash of all (document id, content version).
        documents: (document id, content version), in order of id.
    """

    version: str
    documents: tuple[tuple[str, str], ...]


def seal_corpus(store: DocumentStore, path: Path, location: str) -> SealedCorpus:
    """Write down the set of documents that can be served now.

    Raises:
        EmptyCorpus: There is none.
    """
    catalogue = store.catalogue().values()
    documents = tuple((entry.doc_id, entry.version) for entry in catalogue if entry.version is not None)
    if not documents:
        failures = [(entry.source_path, entry.failure) for entry in catalogue if entry.failure]
        raise EmptyCorpus(location, len(failures), next(iter(failures), None))
    sealed = SealedCorpus(fingerprint(documents), documents)
    payload = {"schema_version": SCHEMA_VERSION, "version": sealed.version, "documents": documents}
    write_text(path, json.dumps(payload, ensure_ascii=True))
    return sealed


def read_seal(path: Path) -> SealedCorpus:
    """Read what :func:`seal_corpus` wrote.

    Raises:
        EmptyCorpus: Nothing has been sealed yet.
        SchemaMismatch, StoreCorrupt: The file was not written by this version, or is damaged.
    """
    try:
        payload = json.loads(path.read_text(encoding="ascii"))
        if payload["schema_version"] != SCHEMA_VERSION:
            raise SchemaMismatch(path, payload["schema_version"], SCHEMA_VERSION)
        documents = tuple((doc_id, version) for doc_id, version in payload["documents"])
        if payload["version"] != fingerprint(documents):
            raise StoreCorrupt(path, "its documents do not have the hash that was written with them")
        return SealedCorpus(payload["version"], documents)
    except (FileNotFoundError, NotADirectoryError):
        raise EmptyCorpus(path) from None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreCorrupt(path, str(error)) from error
