"""Late interaction: a query against a text, token by token. Arithmetic only; no model is loaded here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MAX_QUANTISATION_ERROR = 0.5 / 127
"""The most that a component of a unit vector differs after :func:`quantise` and :func:`dequantise`."""

_SCALE = 127


def maxsim(
    query_vectors: NDArray[np.float32],
    query_weights: NDArray[np.floating],
    token_vectors: NDArray[np.float32],
) -> float:
    """How well a text's tokens answer a query's: the weighted mean of each query token's best cosine.

    This is ColBERT's MaxSim (Khattab and Zaharia 2020) as a mean instead of a sum and with weights, so that queries
    of different lengths share a scale and rare words count for more.

    Args:
        query_vectors: (n_query_tokens, dim), unit length.
        query_weights: (n_query_tokens,), 0 or more, such as each token's IDF.
        token_vectors: (n_tokens, dim), unit length.

    Returns:
        A number from -1 to 1, higher is better; 0 if the text has no tokens or the weights add up to 0, for then
        nothing speaks for or against the text.

    Raises:
        ValueError: A weight is negative or not finite, or the shapes do not match.
    """
    if query_weights.shape != query_vectors.shape[:1]:
        msg = f"{query_weights.shape} weights for query vectors of shape {query_vectors.shape}"
        raise ValueError(msg)
    if not np.all(np.isfinite(query_weights) & (query_weights >= 0)):
        msg = f"query weights must be finite and 0 or more, got {query_weights}"
        raise ValueError(msg)
    total = float(query_weights.sum())
    if len(token_vectors) == 0 or total == 0:
        return 0.0
    best = (query_vectors @ token_vectors.T).max(axis=1)
    # Rounding, here and in quantised vectors, can push a cosine a little over 1.
    return float(np.clip(best, -1, 1) @ query_weights) / total


def maxsim_quantised(
    query_vectors: NDArray[np.float32],
    query_weights: NDArray[np.floating],
    token_vectors: NDArray[np.int8],
) -> float:
    """:func:`maxsim` with token vectors as :func:`quantise` gives them, in about half the time.

    The scale goes into the query's few vectors, in the place of the text's many.
    """
    return maxsim(query_vectors / np.float32(_SCALE), query_weights, token_vectors.astype(np.float32))


def quantise(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Unit vectors in a quarter of the space, same shape, off by at most ``MAX_QUANTISATION_ERROR`` per component.

    Raises:
        ValueError: A component lies outside [-1, 1] or is not a number.
    """
    if not np.all(np.abs(vectors) <= 1 + 1e-5):  # false for NaN too
        msg = "only vectors of unit length can be quantised: a component is not within [-1, 1]"
        raise ValueError(msg)
    return np.clip(np.rint(vectors * _SCALE), -_SCALE, _SCALE).astype(np.int8)


def dequantise(vectors: NDArray[np.int8]) -> NDArray[np.float32]:
    """The inverse of :func:`quantise`, of nearly unit length."""
    return vectors.astype(np.float32) / np.float32(_SCALE)
