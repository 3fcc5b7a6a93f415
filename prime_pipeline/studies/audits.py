"""Auditing document by document through a cache, so that a document is audited again only where something of it changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from prime_pipeline.evaluation.fidelity_audit import FidelityAudit, SectionAudit, Share, audit, joined
from prime_pipeline.models.nli import ContradictionModel
from prime_pipeline.progress import Progress, silent
from prime_pipeline.records import Document
from prime_pipeline.storage.blob_cache import BlobCache
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.text.entities import EntityFinder

AUDIT_VERSION: Final = 1
"""Raise it when the same document would be audited otherwise."""

Versioned = tuple[str, Document]
"""A hash of the document with its rewritten bodies, and the document."""


def cached_audit(
    documents: Iterable[Versioned],
    n_documents: int,
    finder: EntityFinder,
    evidence: Mapping[str, Sequence[str]],
    nli: ContradictionModel | None,
    cache: BlobCache,
    progress: Progress = silent,
) -> FidelityAudit:
    """The audit of documents; see :func:`~prime_pipeline.evaluation.fidelity_audit.audit`.

    Args:
        documents: Read one at a time.
        n_documents: How many they are, for progress.
        finder: Of named entities.
        evidence: Gold spans by document id.
        nli: Finds contradictions.
        cache: Keeps the audit of each document.
        progress: Told of every document.
    """
    audits = []
    for position, (version, document) in enumerate(documents, start=1):
        spans = list(evidence.get(document.doc_id, ()))
        determinants = [AUDIT_VERSION, version, document.doc_id, finder.name, nli and nli.fingerprint, spans]
        key = fingerprint(determinants)
        kept = cache.lookup([key]).get(key)
        found = _decoded(kept) if kept is not None else None
        if found is None:
            found = audit([document], finder, {document.doc_id: spans} if spans else {}, nli)
            cache.store({key: json.dumps(asdict(found)).encode()})
        audits.append(found)
        progress("fidelity audit", position, n_documents)
    return joined(audits, finder.name, nli.name if nli else None)


def _decoded(kept: bytes) -> FidelityAudit | None:
    try:
        fields = json.loads(kept)
        sections = tuple(
            SectionAudit(
                **{**section, "shares": {m: Share(**share) for m, share in section["shares"].items()}}
            )
            for section in fields["sections"]
        )
        return FidelityAudit(**{**fields, "sections": sections, "unmatched": tuple(fields["unmatched"])})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
