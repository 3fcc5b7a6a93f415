"""Families of comparisons: declared before their results are seen, and adjusted together by Holm's method.

Which comparisons belong to a family is for the caller to say; where the p-values come from is not asked.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from prime_pipeline.errors import EvaluationError

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Family(Generic[Key]):
    """Comparisons that answer one question together, declared before their results were seen.

    Attributes:
        name: The question, for the report.
        comparisons: Their keys (pairs of systems, say) in the order of the report.
    """

    name: str
    comparisons: tuple[Key, ...]

    def holm(self, p_values: Mapping[Key, float]) -> dict[Key, float]:
        """Adjusted p-values in the declared order; see :func:`holm`.

        Raises:
            EvaluationError: A declared comparison has no p-value, or one was not declared.
        """
        if differing := set(self.comparisons) ^ p_values.keys():
            raise EvaluationError(
                f"family {self.name!r}: {', '.join(sorted(map(repr, differing)))} must be both declared and tested: declare the "
                "family before testing, and test all of it"
            )
        return holm({key: p_values[key] for key in self.comparisons})


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Holm's adjusted p-values of a family of comparisons, in the order of the input; 1 at most.

    The family must have been declared before its results were seen. For comparisons that were picked because they
    look good the adjustment promises nothing; :class:`Family` keeps the declaration.

    Source: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.

    Raises:
        EvaluationError: A p-value is NaN or not between 0 and 1.
    """
    for key, p in p_values.items():
        if not 0 <= p <= 1:
            raise EvaluationError(f"comparison {key!r} has p-value {p}: p-values go from 0 to 1")
    adjusted, highest = {}, 0.0
    for at, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        highest = max(highest, min(1.0, (len(p_values) - at) * p_values[key]))
        adjusted[key] = highest
    return {key: adjusted[key] for key in p_values}
