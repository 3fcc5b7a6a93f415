"""Hand-made documents for tests that need no parser."""

from __future__ import annotations

from collections.abc import Iterable

from prime_pipeline.records import Document, Heading, Section
from prime_pipeline.storage.documents import document_version
from prime_pipeline.storage.fingerprint import fingerprint
from prime_pipeline.storage.seal import SealedCorpus


def make_document(doc_id: str, *sections: str, title: str = "Title") -> Document:
    """A document of headed sections; each is given as its body, optionally after ``heading: ``."""
    made = []
    for ordinal, given in enumerate(sections, start=1):
        heading, colon, body = given.partition(": ")
        heading, body = (heading, body) if colon else (f"Section {ordinal}", given)
        made.append(_section(ordinal, heading, body))
    return Document(doc_id, title, "heading", tuple(made), f"{doc_id}.md", "text/markdown")


def sealed(documents: Iterable[Document]) -> SealedCorpus:
    """The corpus that holds these documents."""
    versions = tuple(sorted((document.doc_id, document_version(document)) for document in documents))
    return SealedCorpus(fingerprint(versions), versions)


def _section(ordinal: int, heading: str, body: str) -> Section:
    line = f"## {heading}\n"
    return Section(
        ordinal=ordinal,
        kind="section",
        heading=heading,
        heading_path=(heading,),
        text=line + body,
        body_start=len(line),
        headings=(Heading(2, heading, 2 * ordinal),),
        start_line=2 * ordinal,
        end_line=2 * ordinal + 1,
    )
