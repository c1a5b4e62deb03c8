"""Several models as one: the mean of their chances, weighted by how they foresee new items.

Weights are those of the highest likelihood of annotations out of fold, under a prior that is worth
one annotation for each model; EM finds them. Members that hardly count are left out.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from .._relation import Floats, Integers

__all__ = ["pool", "pool_weights"]

_ROUNDS = 500


def pool(log_probability: Floats, weight: Floats) -> Floats:
    """Return the log of the weighted mean: (annotation, class) from (model, annotation, class)."""
    with np.errstate(divide="ignore"):
        return logsumexp(log_probability + np.log(weight)[:, None, None], axis=0)


def pool_weights(log_probability: Floats, label: Integers, least: float = 0.0) -> Floats:
    """Return how much models count, from what they foresaw: (model, annotation, class).

    >>> good, bad = np.log([[0.9, 0.1]] * 50), np.log([[0.1, 0.9]] * 50)
    >>> pool_weights(np.stack([good, bad]), np.zeros(50, dtype=int)).round(1).tolist()
    [1.0, 0.0]

    Those below `least` get nothing; the one that counts most stays.
    """
    given = log_probability[:, np.arange(len(label)), label]  # (model, annotation)
    chance = np.exp(given - given.max(axis=0))
    kept = np.ones(len(chance), dtype=bool)
    while True:
        weight = _climb(chance[kept])
        out = np.zeros(len(chance))
        out[kept] = weight
        low = kept & (out < least) & (out < out.max())
        if not low.any():
            return out
        kept[np.flatnonzero(low)[out[low].argmin()]] = False


def _climb(chance: Floats) -> Floats:
    weight = np.full(len(chance), 1 / len(chance))
    for _ in range(_ROUNDS):
        share = weight[:, None] * chance
        share /= share.sum(axis=0)
        weight, before = share.sum(axis=1) + 1.0, weight
        weight /= weight.sum()
        if np.abs(weight - before).max() < 1e-6:
            break
    return weight
