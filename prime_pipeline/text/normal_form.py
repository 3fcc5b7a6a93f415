"""The one normal form of text for lexical matching; tokens, diacritics and stemming are left to the index."""

from __future__ import annotations

import unicodedata


def lexical_form(text: str) -> str:
    """Text as both sides of the lexical index see it: compatibility-composed (NFKC) and case-folded.

    Straße becomes ``strasse``, the ligature in ``ﬁ`` becomes ``fi``, H₂O becomes ``h2o``. Diacritics stay.
    The form is idempotent: folding can undo composition and composition can undo folding, so both are repeated
    until nothing changes (at most twice for any single character).
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text)
    while (form := unicodedata.normalize("NFKC", text.casefold())) != text:
        text = form
    return form
