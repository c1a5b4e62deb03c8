"""Linear opinion pool: the weighted mean of several models' probabilities.

Weights maximize the likelihood of held-out annotations, with a pseudo-count of one annotation per
model; they are found by EM. Models with little weight are dropped.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from ._relation import Floats, Integers

_MAX_ITER = 500


def pool(log_probability: Floats, weight: Floats) -> Floats:
    """Return the log of the weighted mean: (annotation, class) from (model, annotation, class)."""
    with np.errstate(divide="ignore"):
        return logsumexp(log_probability + np.log(weight)[:, None, None], axis=0)


def pool_weights(log_probability: Floats, label: Integers, least: float = 0.0) -> Floats:
    """Return weights of models from their held-out predictions: (model, annotation, class).

    >>> good, bad = np.log([[0.9, 0.1]] * 50), np.log([[0.1, 0.9]] * 50)
    >>> pool_weights(np.stack([good, bad]), np.zeros(50, dtype=int)).round(1).tolist()
    [1.0, 0.0]

    Weights below `least` become zero, except the largest.
    """
    given = log_probability[:, np.arange(len(label)), label]  # (model, annotation)
    likelihood = np.exp(given - given.max(axis=0))
    members = np.ones(len(likelihood), dtype=bool)
    while True:
        weight = np.zeros(len(likelihood))
        weight[members] = mixture_weights(likelihood[members])
        low = members & (weight < least) & (weight < weight.max())
        if not low.any():
            return weight
        members[np.flatnonzero(low)[weight[low].argmin()]] = False


def mixture_weights(likelihood: Floats) -> Floats:
    """Return weights of models from the likelihoods of held-out labels: (model, annotation)."""
    weight = np.full(len(likelihood), 1 / len(likelihood))
    for _ in range(_MAX_ITER):
        responsibility = weight[:, None] * likelihood
        responsibility /= responsibility.sum(axis=0)
        previous, weight = weight, responsibility.sum(axis=1) + 1.0
        weight /= weight.sum()
        if np.abs(weight - previous).max() < 1e-6:
            break
    return weight


def added_weight(likelihood: Floats) -> float:
    """Return the weight of one more model beside a pool: (2, annotation), the pool first.

    It is zero unless the likelihood of the labels rises.

    >>> pool, model = np.full(50, 0.6), np.where(np.arange(50) % 5, 0.9, 0.2)
    >>> round(added_weight(np.stack([pool, model])), 2), added_weight(np.stack([pool, pool - 0.1]))
    (0.71, 0.0)
    """
    weight = mixture_weights(likelihood)
    gain = np.log(weight @ likelihood) - np.log(likelihood[0])  # (annotation)
    return float(weight[1]) if gain.sum() > 0 else 0.0
