"""PDF to a document: its pages as one text, since PDF keeps no headings. Needs the extra ``pdf``."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from prime_pipeline.corpus.sectioning import Outline, sectioned
from prime_pipeline.errors import DocumentError
from prime_pipeline.records import Document


def parse_pdf(data: bytes, doc_id: str, source_path: str) -> Document:
    """The text of all pages, with a blank line between two of them, as one ``whole`` section without lines.

    Raises:
        DocumentError: The extra is not installed, or the file is encrypted, broken, or holds scanned images only.
    """
    try:
        from pypdf import PdfReader
    except ImportError as error:
        reason = "reading PDF files needs the extra pdf: pip install 'prime-pipeline[pdf]'"
        raise DocumentError(source_path, reason) from error
    try:
        with _silent_pypdf():
            reader = PdfReader(io.BytesIO(data))
            pages = [] if reader.is_encrypted else [page.extract_text().strip() for page in reader.pages]
    except Exception as error:
        raise DocumentError(source_path, f"is no readable PDF ({error}): export it again") from error
    if reader.is_encrypted:
        raise DocumentError(source_path, "is encrypted: save it without a password")
    text = "\n\n".join(filter(None, pages)).encode("utf-8", "replace").decode("utf-8").replace("\x00", "")
    if not text.strip():
        raise DocumentError(
            source_path, "holds no text, only images perhaps: run text recognition (OCR) first"
        )
    return sectioned(Outline(text), doc_id, source_path, "application/pdf")


@contextmanager
def _silent_pypdf() -> Iterator[None]:
    """Without pypdf's warnings, which do not say which file they are about."""
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
