"""Filling the cache of token vectors ahead, so that no query has to wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice

from prime_pipeline.indexes.lexical import LexicalIndex
from prime_pipeline.progress import Progress
from prime_pipeline.retrieval.options import Scorer, SectionText
from prime_pipeline.retrieval.stage2 import texts_of
from prime_pipeline.retrieval.token_vectors import TokenVectors, scoring_text

_SECTIONS_AT_ONCE = 64
_WINDOWS_AT_ONCE = 16
"""Encoded, and then kept, together: an interruption costs no more than these."""


@dataclass(frozen=True, slots=True)
class Warmed:
    """What filling the cache of token vectors came to.

    Attributes:
        scorer: What scores sections; only late interaction has token vectors, and with another one all numbers are 0.
        n_windows: Windows of all sections, equal ones counted once.
        n_present: Those whose vectors were there already.
        n_made: Those whose vectors were made and kept.
        bytes_present: Size of the former.
        bytes_made: Size of the latter.
    """

    scorer: Scorer
    n_windows: int = 0
    n_present: int = 0
    n_made: int = 0
    bytes_present: int = 0
    bytes_made: int = 0

    @property
    def n_left(self) -> int:
        """Windows left out, since keeping them would have made the cache forget what was just made."""
        return self.n_windows - self.n_present - self.n_made

    @property
    def bytes_of_all(self) -> int:
        """What the vectors of all windows take; an estimate from those that are kept, if some were left out."""
        n_kept, bytes_kept = self.n_present + self.n_made, self.bytes_present + self.bytes_made
        return round(bytes_kept * self.n_windows / n_kept) if n_kept else 0


def warm_token_vectors(
    lexical: LexicalIndex, section_text: SectionText, vectors: TokenVectors, progress: Progress
) -> Warmed:
    """Make the vectors of all windows of all sections that are not kept yet, in the order of the sections.

    What is made is kept at once, so that an interruption costs next to nothing. Ends before the limit of the cache is
    passed by what belongs to these sections alone.

    Args:
        lexical: Holds the sections.
        section_text: What the scorer reads of a rewritten section.
        vectors: What makes them, and keeps them.
        progress: Told of the sections that are looked at, and of the windows that are encoded.

    Raises:
        StoreUnavailable: The cache cannot be read or written.
    """
    found = _survey(lexical, section_text, vectors, progress)
    room_bytes = vectors.capacity_bytes - found.bytes_present
    n_made = bytes_made = 0
    windows = _missing_windows(found.missing, lexical, section_text, vectors)
    if found.missing:
        progress("token vectors", 0, len(found.missing))
    while some := list(islice(windows, _WINDOWS_AT_ONCE)):
        encoded = _as_many_as_fit(vectors.encoded(some), room_bytes - bytes_made)
        vectors.keep(encoded)
        n_made += len(encoded)
        bytes_made += sum(map(len, encoded.values()))
        progress("token vectors", n_made, len(found.missing))
        if len(encoded) < len(some):
            break
    return Warmed(
        "late_interaction",
        n_windows=found.n_present + len(found.missing),
        n_present=found.n_present,
        n_made=n_made,
        bytes_present=found.bytes_present,
        bytes_made=bytes_made,
    )


def _as_many_as_fit(encoded: Mapping[str, bytes], room_bytes: float) -> dict[str, bytes]:
    sizes = accumulate(map(len, encoded.values()))
    return {
        key: value for (key, value), size in zip(encoded.items(), sizes, strict=True) if size <= room_bytes
    }


@dataclass(frozen=True, slots=True)
class _Survey:
    """What is there, and by key the position of the first section that has a window that is not."""

    n_present: int
    bytes_present: int
    missing: Mapping[str, int]


def _survey(
    lexical: LexicalIndex, section_text: SectionText, vectors: TokenVectors, progress: Progress
) -> _Survey:
    n_sections = len(lexical.sections.rows)
    present: dict[str, int] = {}
    missing: dict[str, int] = {}
    for start in range(0, n_sections, _SECTIONS_AT_ONCE):
        positions = range(start, min(start + _SECTIONS_AT_ONCE, n_sections))
        keys = {
            vectors.key(window): position
            for position in reversed(positions)  # the first one that has a window stands in the end
            for window in _windows(lexical, section_text, vectors, position)
        }
        new = {key: keys[key] for key in keys.keys() - present.keys() - missing.keys()}
        present |= vectors.present(new)
        missing |= {key: position for key, position in new.items() if key not in present}
        progress("sections looked through", positions.stop, n_sections)
    return _Survey(len(present), sum(present.values()), missing)


def _missing_windows(
    missing: Mapping[str, int], lexical: LexicalIndex, section_text: SectionText, vectors: TokenVectors
) -> Iterator[str]:
    """Each once, in the order of the sections; their texts are not kept in memory meanwhile."""
    left = set(missing)
    for position in sorted(set(missing.values())):
        for window in _windows(lexical, section_text, vectors, position):
            if (key := vectors.key(window)) in left:
                left.remove(key)
                yield window


def _windows(
    lexical: LexicalIndex, section_text: SectionText, vectors: TokenVectors, position: int
) -> Iterator[str]:
    """The windows of all that the scorer reads of a section."""
    for text in texts_of(lexical.stored_section(position), section_text):
        yield from vectors.cut(scoring_text(text))
