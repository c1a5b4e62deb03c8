"""Linear opinion pool: the weighted mean of several models' probabilities.

Weights maximize the likelihood of held-out annotations, with a pseudo-count of one annotation per
model. This is a convex problem; EM would take hundreds of iterations, an interior-point method
takes about twelve. Models with little weight are dropped.

    Y. Kim, P. Carbonetto, M. Stephens, M. Anitescu. A fast algorithm for maximum likelihood
    estimation of mixture proportions using sequential quadratic programming. Journal of
    Computational and Graphical Statistics 29(2), 2020. doi:10.1080/10618600.2019.1689985
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from .probability import normalize
from .arrays import Floats, Integers

_MAX_ITER = 100
_TOL = 1e-9  # of slopes, per annotation
_CENTRE = 0.1  # of the mean of weight * price, which is zero at the optimum, aimed at by a step
_INSIDE = 0.95  # of the way to a limit, at most


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


def mixture_weights(likelihood: Floats, pseudo_count: float = 1.0) -> Floats:
    """Return weights of models from the likelihoods of held-out labels: (model, annotation).

    They maximize Σ log(weight @ likelihood) + pseudo_count Σ log weight. With Σ weight subtracted
    for every annotation, they need not be held to add up to one: the optimum does (Kim et al.
    2020). It is found by an interior-point method; `price` is the gain that is lost because a
    weight cannot fall below zero.

    >>> mixture_weights(np.array([[0.9, 0.8], [0.1, 0.1]]), pseudo_count=0).round(3).tolist()
    [1.0, 0.0]
    """
    n_models, n_annotations = likelihood.shape
    weight, price = np.full(n_models, 1 / n_models), np.ones(n_models)
    if n_annotations == 0:
        return weight
    unit = 1 / (n_annotations + n_models * pseudo_count)
    for _ in range(_MAX_ITER):
        ratio = likelihood / (weight @ likelihood)  # (model, annotation)
        slope = 1 - unit * (ratio.sum(axis=1) + pseudo_count / weight)
        gap = float(weight @ price) / n_models
        if gap < _TOL and np.abs(slope - price).max() < _TOL:
            break
        target = _CENTRE * gap / weight
        curvature = unit * (ratio @ ratio.T + np.diag(pseudo_count / weight**2))
        step = np.linalg.solve(curvature + np.diag(price / weight), target - slope)
        change = target - price * (1 + step / weight)
        furthest = max((-step / weight).max(), (-change / price).max(), _INSIDE)
        weight, price = (weight + _INSIDE / furthest * step, price + _INSIDE / furthest * change)
    return normalize(weight)


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
