"""Reciprocal rank fusion."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence


def reciprocal_rank_fusion(rankings: Iterable[Sequence[str]], k: int = 60) -> list[tuple[str, float]]:
    """Fuse rankings of ids, each best first: score(d) = sum over rankings of 1 / (k + rank(d)), rank from 1.

    Source: Cormack, Clarke and Buettcher, SIGIR 2009; the PRIME paper (section 3.4) takes k = 60.

    Returns:
        (id, score), higher is better, ties by id. The order of the rankings does not matter.
    """
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            shares[item].append(1.0 / (k + rank))
    # fsum rounds once, so that the order of the rankings cannot change the last bit of a sum.
    fused = {item: math.fsum(parts) for item, parts in shares.items()}
    return sorted(fused.items(), key=lambda pair: (-pair[1], pair[0]))
