"""Documents as JSON and back, exactly."""

from __future__ import annotations

import json
from typing import Any

from prime_pipeline.records import Document, Heading, Section

SCHEMA_VERSION = 1


def encode_document(document: Document) -> dict[str, Any]:
    """The document as a dict of plain JSON values."""
    return {
        "doc_id": document.doc_id,
        "title": document.title,
        "title_origin": document.title_origin,
        "source_path": document.source_path,
        "media_type": document.media_type,
        "properties": dict(document.properties),
        "warnings": list(document.warnings),
        "sections": [_encode_section(section) for section in document.sections],
    }


def decode_document(data: dict[str, Any]) -> Document:
    """The document that :func:`encode_document` was given. Raises KeyError, TypeError or ValueError on anything else."""
    return Document(
        doc_id=data["doc_id"],
        title=data["title"],
        title_origin=data["title_origin"],
        sections=tuple(_decode_section(section) for section in data["sections"]),
        source_path=data["source_path"],
        media_type=data["media_type"],
        properties=data["properties"],
        warnings=tuple(data["warnings"]),
    )


def document_bytes(document: Document, version: str) -> bytes:
    """The file content for a document: its JSON (UTF-8) with schema and content version.

    Raises:
        UnicodeEncodeError: The document holds half of a surrogate pair, which no text can hold.
    """
    payload = {"schema_version": SCHEMA_VERSION, "version": version, "document": encode_document(document)}
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _encode_section(section: Section) -> dict[str, Any]:
    rewritten = {} if section.rewritten is None else {"rewritten": section.rewritten}
    return {
        "ordinal": section.ordinal,
        "kind": section.kind,
        "heading": section.heading,
        "heading_path": list(section.heading_path),
        "text": section.text,
        "body_start": section.body_start,
        "headings": [[h.level, h.text, h.line] for h in section.headings],
        "lines": [section.start_line, section.end_line],
        **rewritten,  # absent from a raw document, whose version is a hash of this
    }


def _decode_section(data: dict[str, Any]) -> Section:
    start_line, end_line = data["lines"]
    return Section(
        ordinal=data["ordinal"],
        kind=data["kind"],
        heading=data["heading"],
        heading_path=tuple(data["heading_path"]),
        text=data["text"],
        body_start=data["body_start"],
        headings=tuple(Heading(*heading) for heading in data["headings"]),
        start_line=start_line,
        end_line=end_line,
        rewritten=data.get("rewritten"),
    )
