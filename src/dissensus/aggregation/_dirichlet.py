"""Dirichlet distributions by their counts, as variational Bayes needs them."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, psi

from .._relation import Floats

__all__ = ["expected_logs", "log_beta", "minus_divergence"]


def expected_logs(counts: Floats, axis: int = -1) -> Floats:
    """Return the logarithms that are expected under Dirichlets along an axis.

    >>> expected_logs(np.array([1.0, 1.0])).tolist()
    [-1.0, -1.0]
    """
    return psi(counts) - psi(counts.sum(axis=axis, keepdims=True))


def log_beta(counts: Floats, axis: int = -1) -> Floats:
    """Return the logarithms of the normalising constants."""
    return gammaln(counts).sum(axis=axis) - gammaln(counts.sum(axis=axis))


def minus_divergence(counts: Floats, base: Floats, axis: int = -1) -> float:
    """Return minus the divergence of Dirichlets from those with the counts of `base`, in all.

    >>> minus_divergence(np.array([2.0, 3.0]), np.array([2.0, 3.0]))
    0.0
    """
    base = np.broadcast_to(base, counts.shape)
    apart = np.vdot(counts - base, expected_logs(counts, axis))
    return float(log_beta(counts, axis).sum() - log_beta(base, axis).sum() - apart)
