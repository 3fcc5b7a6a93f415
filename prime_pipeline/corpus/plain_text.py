"""Plain text: one section, whatever the lines look like."""

from __future__ import annotations

from prime_pipeline.corpus.sectioning import Outline, n_lines, sectioned
from prime_pipeline.records import Document


def parse_plain_text(text: str, doc_id: str, source_path: str) -> Document:
    """The text as one ``whole`` section, titled by the file's name."""
    return sectioned(Outline(text, n_source_lines=n_lines(text)), doc_id, source_path, "text/plain")
