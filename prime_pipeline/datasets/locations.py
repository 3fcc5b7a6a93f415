"""Names of locations that are no paths."""

from __future__ import annotations

from typing import Final

KNOWN_ITEMS: Final = "known-items:"
"""Queries that are made from the corpus itself, in the place of a query set's location."""
