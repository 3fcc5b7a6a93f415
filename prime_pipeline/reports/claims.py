"""What may be claimed of a difference: one rule for sentences, figures and tables."""

from __future__ import annotations

from prime_pipeline.evaluation.statistics import ALPHA, smallest_p_value
from prime_pipeline.reports.content import Comparison, Contrast


def is_told_apart(comparison: Comparison) -> bool:
    """Whether the interval excludes zero, and the adjusted p-value, if there is one, is below :data:`ALPHA`."""
    p_adjusted = comparison.p_adjusted
    return comparison.difference.excludes_zero and (p_adjusted is None or p_adjusted < ALPHA)


def could_be_told_apart(comparison: Comparison) -> bool:
    """Whether some difference could have been, as far as is known.

    So few clusters may be resampled that even the smallest p-value is too large once it is adjusted for the family.
    """
    return least_p_adjusted(comparison) < ALPHA


def least_p_adjusted(comparison: Comparison) -> float:
    """The least that the adjusted p-value could have been; 0 where that is not known, or nothing was adjusted."""
    if comparison.n_clusters is None or comparison.p_adjusted is None:
        return 0.0
    return min(1.0, smallest_p_value(comparison.n_clusters) * (comparison.n_family or 1))


def is_change_told(contrast: Contrast) -> bool:
    """Whether the interval of the relative change excludes zero, and rests on clusters enough for that to say something.

    There is no test. Where a test of the one change could not tell anything either, the interval is not taken at its word.
    """
    return (
        contrast.relative is not None and contrast.relative.excludes_zero and could_change_be_told(contrast)
    )


def could_change_be_told(contrast: Contrast) -> bool:
    """Whether there are clusters enough, as far as is known."""
    return contrast.n_clusters is None or smallest_p_value(contrast.n_clusters) < ALPHA
