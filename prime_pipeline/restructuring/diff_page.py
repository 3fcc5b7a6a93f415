"""The page that shows raw beside restructured text. One file of HTML without scripts; it reads and fetches nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

from prime_pipeline.pages import environment
from prime_pipeline.records import Document, DocumentOutcome
from prime_pipeline.restructuring.diff import VERDICTS, outcome_counts, section_diffs, words_summary
from prime_pipeline.storage.atomic import write_text


def diff_page(document: Document, outcome: DocumentOutcome) -> str:
    """A self-contained HTML page: every section with its verdict, its reasons and its changes.

    Args:
        document: With the raw sections.
        outcome: What restructuring made of them.

    Raises:
        DocumentError: See :func:`~prime_pipeline.restructuring.diff.section_diffs`.
    """
    diffs = section_diffs(document, outcome)
    return (
        environment("prime_pipeline.restructuring")
        .get_template("document.html")
        .render(
            document=document,
            diffs=diffs,
            counts=outcome_counts(diffs),
            words=words_summary(diffs),
            verdicts=VERDICTS,
        )
    )


def page_path(folder: Path, doc_id: str) -> Path:
    """Where a document's page lies: named by a hash, so that no id can reach outside the folder."""
    return folder / f"{hashlib.sha256(doc_id.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}.html"


def write_diff_page(folder: Path, document: Document, outcome: DocumentOutcome) -> Path:
    """Write the page of a document, replacing an older one in one step; returns where it lies.

    Half of a surrogate pair, as a refused rewrite may hold, becomes a question mark.

    Raises:
        DocumentError: See :func:`~prime_pipeline.restructuring.diff.section_diffs`.
        StoreUnavailable: The folder cannot be written.
    """
    path = page_path(folder, document.doc_id)
    write_text(path, diff_page(document, outcome).encode("utf-8", "replace").decode())
    return path
