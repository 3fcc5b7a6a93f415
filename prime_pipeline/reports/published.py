"""The numbers that the PRIME paper publishes, each with its place; they are shown beside ours, never mixed with them.

The text of the paper gives fewer numbers than its tables held. What had to be computed from two others says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Published:
    """A published number.

    Attributes:
        text: As a table shows it.
        place: Section of the paper, or caption; "from" a number where it does not stand there itself.
        value: For figures; None for a range.
    """

    text: str
    place: str
    value: float | None = None


def _score(value: float, place: str, decimals: int = 3) -> Published:
    return Published(f"{value:.{decimals}f}", place, value)


def _change(percent: float, place: str) -> Published:
    return Published(f"{percent:+.1f}%".replace("-", "−"), place, percent / 100)


def _share(percent: float, place: str) -> Published:
    return Published(f"{percent:.1f}%", place, percent / 100)


_SHARED: Final = Published("0.389 to 0.398", "§ 4.1, all six methods")
_GAINS: Final = Published("+4.6% to +22.3%", "§ 4.1, range ended here")
_LOSSES: Final = Published("−23.1% to −3.1%", "§ 4.1, range ended here")
_CAPTION_3: Final = "Table 3, caption"
_SECTION_5: Final = "§ 4.1"
_SECTION_6: Final = "§ 4.1"
_COST: Final = "§ 4.1"

TABLE_1: Final[Mapping[str, Published]] = dict.fromkeys(
    (
        "bge-m3-chunk-256",
        "chunk-256",
        "summary-augmented",
        "raptor-lite",
        "structure-chunks",
        "prime-offline",
    ),
    _SHARED,
)
"""Representation to NDCG@5 with the cross-encoder, QASPER test."""

TABLE_2: Final[Mapping[tuple[str, str], Published]] = {
    ("chunk-256", "dense"): _score(0.175, "§ 4.2, from +22.2%"),
    ("structure-chunks", "dense"): _score(0.201, "§ 4.2"),
    ("prime-offline", "dense"): _score(0.201, "§ 4.2"),
    ("prime-full", "dense"): _score(0.214, "§ 4.1"),
    ("chunk-256", "hybrid"): _score(0.311, "§ 4.1"),
    ("sr-full-text", "hybrid"): _score(0.241, "§ 4.1"),
    ("prime-full", "hybrid"): _score(0.245, "§ 4.1"),
    ("chunk-256", "hybrid+rerank"): _score(0.391, "§ 4.1"),
    ("sr-full-text", "hybrid+rerank"): _score(0.325, "§ 4.1"),
    ("prime-full", "hybrid+rerank"): _score(0.328, "§ 4.1"),
}
"""Representation and pipeline to NDCG@5, QASPER test."""

TABLE_3_MEAN: Final = _change(6.9, _CAPTION_3)
TABLE_3: Final[Mapping[str, Published]] = {
    "pony": _change(175.6, "§ 4.1"),
    "biology": _GAINS,
    "economics": _GAINS,
    "sustainable_living": _LOSSES,
    "earth_science": _LOSSES,
    "theoremqa_theorems": _change(-59.8, f"{_CAPTION_3}; not in the mean"),
    "mean of 8 structured tasks": TABLE_3_MEAN,
}
"""BRIGHT task to the relative change of NDCG@5."""

TABLE_4: Final[Mapping[str, Published]] = {
    "full-text": _score(0.374, "§ 4.1, BGE-small"),
    "prime-offline": _score(0.301, "§ 4.1, from −19.5%"),
    "prime-full-text": _score(0.366, "§ 4.1"),
}
"""Representation to NDCG@5 on NFCorpus, grades binarised at 1."""

DENSITY: Final[Mapping[str, Published]] = {
    "stop-word ratio": _change(-36.3, _SECTION_5),
    "mean IDF": _change(19.7, _SECTION_5),
    "semantic density": _change(127.3, _SECTION_5),
}
"""Table 5 A: the relative change from raw to restructured."""

EVIDENCE: Final[Mapping[str, Published]] = {
    "ndcg@5": _change(45.7, _SECTION_5),
    "r@5": _change(59.9, _SECTION_5),
    "p@5": _change(7.9, _SECTION_5),
    "map": _change(69.4, _SECTION_5),
    "mrr": _change(15.4, _SECTION_5),
    "token-recall@5": _change(14.1, _SECTION_5),
    "evidence tokens per query": _change(-29.0, _SECTION_5),
}
"""Table 5 B: the relative change from raw to restructured, 708 queries."""

ANSWERS: Final[Mapping[str, Published]] = {
    "raw-to-raw": _score(0.0842, "§ 4.1", 4),
    "raw-to-restructured": _score(0.0866, "§ 4.1", 4),
    "full-to-full": _score(0.0957, "§ 4.1", 4),
}
"""Condition to Answer-F1, QASPER test."""

AUDIT: Final[Mapping[str, Published]] = {
    "evidence retained, verbatim": _share(63.2, _SECTION_6),
    "spans only in the restructured text": _share(1.3, _SECTION_6),
    "documents under 50% retention": _share(25.7, _SECTION_6),
    "numbers": _share(91.0, _SECTION_6),
    "acronyms": _share(92.5, _SECTION_6),
    "named entities": _share(72.7, _SECTION_6),
    "contradiction": _share(4.3, _SECTION_6),
    "documents with a contradiction": _share(100 * 181 / 416, f"{_SECTION_6}, 181 of 416"),
}
"""Table 6: dimension to share."""

COSTS: Final[Mapping[str, Published]] = {
    "embedded_tokens_text": Published("45.8× less", "§ 4.1", 45.8),
    "vectors": Published("22.4× less", "§ 4.1", 22.4),
}
"""What PRIME offline costs less than structure-chunks; which count of embedded tokens is meant, the paper does not say."""

BREAK_EVEN: Final = Published("12,096 queries", f"{_COST}, 416 × 56,000 / 1,926", 12_096)
