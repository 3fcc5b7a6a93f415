"""Document ids to Dagster partition keys. Knows nothing of Dagster or documents."""

from __future__ import annotations

import hashlib
import re
from typing import Final

MAX_KEY_CHARACTERS: Final = 80
_N_HASH_CHARACTERS = 10
_CLEAN = re.compile(rf"(?!.*\.\.\.)[A-Za-z0-9_][A-Za-z0-9._-]{{0,{MAX_KEY_CHARACTERS - 1}}}")
_LIKE_HASHED = re.compile(rf".*-[0-9a-f]{{{_N_HASH_CHARACTERS}}}")
_UNUSABLE = re.compile(r"[^A-Za-z0-9._-]+")


def partition_key(doc_id: str) -> str:
    """The key of a document: at most 80 of ``[A-Za-z0-9._-]``, no ``...``, no dot or dash in front, never empty.

    A clean id is its own key. Any other is made readable and gets ten hexadecimal digits of its SHA-256, and so does
    a clean one that ends like that, lest it take another id's key. The key depends on nothing but the id.
    """
    if _CLEAN.fullmatch(doc_id) and not _LIKE_HASHED.fullmatch(doc_id):
        return doc_id
    digest = hashlib.sha256(doc_id.encode("utf-8", "surrogatepass")).hexdigest()[:_N_HASH_CHARACTERS]
    slug = re.sub(r"\.{3,}", ".", _UNUSABLE.sub("-", doc_id)).lstrip(".-")
    slug = slug[: MAX_KEY_CHARACTERS - _N_HASH_CHARACTERS - 1]
    return f"{slug}-{digest}" if slug else digest
