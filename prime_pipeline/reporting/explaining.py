"""What restructuring decided about the sections that a search returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from prime_pipeline.records import Finding, OutcomeKind, SectionHit, SectionOutcome, document_of, section_id
from prime_pipeline.restructuring.diff import VERDICTS
from prime_pipeline.retrieval.retriever import Retriever
from prime_pipeline.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Verdict:
    """What restructuring decided about a section that is served.

    Attributes:
        status: The outcome; ``raw`` for all of the offline index, ``unknown`` where the one that belongs to the served text
            is not kept.
        reason: What that means, as the end of a sentence.
        findings: Why it was repaired, patched, routed, refused or put off.
    """

    status: OutcomeKind | Literal["unknown"]
    reason: str
    findings: tuple[Finding, ...] = ()


_OFFLINE: Final = Verdict("raw", "the offline index serves every section as it was read")
_UNKNOWN: Final = Verdict(
    "unknown",
    "since this index was published the document changed, or was restructured anew or in another way: prime refresh "
    "brings the index up to date",
)


def verdicts(workspace: Workspace, retriever: Retriever, hits: Sequence[SectionHit]) -> list[Verdict]:
    """The verdict on each hit.

    Args:
        workspace: Whose restructured documents are looked into; nothing is made for that.
        retriever: The one that found the hits; open.
        hits: In any order.
    """
    return section_verdicts(workspace, retriever, [hit.section_id for hit in hits])


def section_verdicts(workspace: Workspace, retriever: Retriever, sections: Sequence[str]) -> list[Verdict]:
    """The verdict on each section that is served, by ids in any order; see :func:`verdicts`."""
    if retriever.manifest.variant == "offline":
        return [_OFFLINE] * len(sections)
    served = retriever.lexical.stored_versions()
    found = {
        section_id(doc_id, outcome.ordinal): Verdict(outcome.kind, VERDICTS[outcome.kind], outcome.findings)
        for doc_id in dict.fromkeys(map(document_of, sections))
        for outcome in _outcomes(workspace, doc_id, served[doc_id])
    }
    return [found.get(section, _UNKNOWN) for section in sections]


def _outcomes(workspace: Workspace, doc_id: str, version: str) -> tuple[SectionOutcome, ...]:
    """The outcomes of a document's sections; none of another version than the one that is served."""
    if not workspace.home.restructured(workspace.strategy.fingerprint).is_dir():
        return ()
    entry = workspace.restructured.documents.catalogue_entry(doc_id)
    outcome = workspace.restructured.outcome(doc_id)
    return outcome.sections if entry and outcome and entry.version == version else ()
