"""Choosing among candidates without tuning on the queries that are reported.

Queries are split into folds; of the candidates, the one that is best on the other folds answers for a fold. Put together,
that is one value for every query, none of which had a say in the choice that it is reported under.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from prime_pipeline.errors import EvaluationError
from prime_pipeline.evaluation.statistics import PerQuery
from prime_pipeline.storage.fingerprint import text_fingerprint


@dataclass(frozen=True, slots=True)
class CrossFit:
    """What choosing by folds came to.

    Attributes:
        per_query: For every query the value of the candidate that was chosen without its fold.
        chosen: The candidate of each fold.
    """

    per_query: PerQuery
    chosen: tuple[str, ...]


def folds(clusters: Mapping[str, str], n_folds: int = 2) -> list[list[str]]:
    """Split queries into folds, whole clusters each, as even in number of clusters as they go.

    Clusters are dealt out in the order of a hash of their names, so that neither their order nor other clusters of a
    similar name decide, and the same clusters give the same folds.

    Args:
        clusters: The cluster of every query, such as the document that it was asked of.
        n_folds: 2 or more.

    Returns:
        Ids of the queries of each fold, sorted.

    Raises:
        EvaluationError: There are fewer clusters than folds.
    """
    names = sorted(set(clusters.values()), key=lambda name: (text_fingerprint("fold", name), name))
    if len(names) < n_folds:
        raise EvaluationError(f"{len(names)} clusters of queries cannot be split into {n_folds} folds")
    fold_of = {name: position % n_folds for position, name in enumerate(names)}
    return [sorted(q for q, name in clusters.items() if fold_of[name] == fold) for fold in range(n_folds)]


def cross_fit(candidates: Mapping[str, PerQuery], clusters: Mapping[str, str], n_folds: int = 2) -> CrossFit:
    """Choose a candidate for each fold by the mean over all other folds.

    Args:
        candidates: Values of every query by candidate, the simplest first: of equal ones the first is chosen.
        clusters: See :func:`folds`.
        n_folds: 2 or more.

    Raises:
        EvaluationError: There is no candidate, one does not have all queries, or there are too few clusters.
    """
    if not candidates:
        raise EvaluationError("there is no candidate to choose from")
    for name, values in candidates.items():
        if values.keys() != clusters.keys():
            raise EvaluationError(
                f"candidate {name} does not have a value for just the queries of the clusters"
            )
    split = folds(clusters, n_folds)
    chosen = []
    per_query: dict[str, float] = {}
    for fold in split:
        others = [query for other in split if other is not fold for query in other]
        best = max(candidates, key=lambda name: _mean(candidates[name], others))
        chosen.append(best)
        per_query |= {query: candidates[best][query] for query in fold}
    return CrossFit(per_query, tuple(chosen))


def _mean(values: PerQuery, queries: Sequence[str]) -> float:
    return fsum(values[query] for query in queries) / len(queries)
