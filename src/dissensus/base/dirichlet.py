"""Dirichlet distributions by their counts, for variational Bayes."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, psi

from .arrays import Floats


def expected_log(counts: Floats, axis: int = -1) -> Floats:
    """Return the expected logarithms under Dirichlets along an axis.

    >>> expected_log(np.array([1.0, 1.0])).tolist()
    [-1.0, -1.0]
    """
    return psi(counts) - psi(counts.sum(axis=axis, keepdims=True))


def log_beta(counts: Floats, axis: int = -1) -> Floats:
    """Return the logarithms of the normalizing constants."""
    return gammaln(counts).sum(axis=axis) - gammaln(counts.sum(axis=axis))


def negative_kl(counts: Floats, base: Floats, axis: int = -1) -> float:
    """Return minus the sum of KL divergences of Dirichlets from those with counts `base`.

    >>> negative_kl(np.array([2.0, 3.0]), np.array([2.0, 3.0]))
    0.0
    """
    base = np.broadcast_to(base, counts.shape)
    difference = np.vdot(counts - base, expected_log(counts, axis))
    return float(log_beta(counts, axis).sum() - log_beta(base, axis).sum() - difference)
