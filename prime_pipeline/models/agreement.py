"""How far two embedders agree, on texts that come with the program: whether one can stand in for the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from prime_pipeline.models.embedder import Embedder, Vectors

_FOLDER: Final = Path(__file__).parent / "agreement_texts"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How alike the scores of two embedders are.

    Attributes:
        rank_correlation: Spearman's, of all cosines of a query and a passage, from -1 to 1.
        max_difference: The most that two such cosines differ.
    """

    rank_correlation: float
    max_difference: float


def measure_agreement(one: Embedder, other: Embedder) -> Agreement:
    """The agreement of two embedders on :func:`sample_queries` and :func:`sample_passages`."""
    ours, theirs = (_scores(embedder, sample_queries(), sample_passages()) for embedder in (one, other))
    return agreement_of(ours, theirs)


def agreement_of(ours: Vectors, theirs: Vectors) -> Agreement:
    """The agreement of two tables of scores, (n_queries, n_passages) each."""
    from scipy.stats import spearmanr

    return Agreement(
        rank_correlation=float(spearmanr(ours, theirs, axis=None).statistic),
        max_difference=float(np.abs(ours - theirs).max()),
    )


def sample_queries() -> list[str]:
    """Short questions; for each there is a passage that answers it, and others that come near."""
    return (_FOLDER / "queries.txt").read_text("utf-8").splitlines()


def sample_passages() -> list[str]:
    """Passages of about a hundred words on a dozen subjects, several to a subject."""
    return (_FOLDER / "passages.txt").read_text("utf-8").strip().split("\n\n")


def _scores(embedder: Embedder, queries: Sequence[str], passages: Sequence[str]) -> Vectors:
    asked = np.stack([embedder.encode_query(query) for query in queries])
    scores: Vectors = asked @ embedder.encode(passages).T
    return scores
