"""A distribution from its mean and its spread alone: of those that have both, the flattest.

Where only a mean and a standard deviation of ratings are published, the distribution of greatest
entropy on the scale is

    p_k ∝ exp(a v_k + b v_k²),

with a and b such that both come out. It looks at no input: what it cannot know is anything but two
peaks where the spread is large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._relation import Floats
from ..errors import DataError

__all__ = ["maximum_entropy"]

_ROUNDS = 200


def maximum_entropy(mean: ArrayLike, spread: ArrayLike, values: ArrayLike) -> Floats:
    """Return the flattest distributions of these means and standard deviations: (item, class).

    Parameters
    ----------
    mean, spread
        Of every item; the spread is that of the distribution, not of a sample.
    values
        What the classes stand for, in order: (class).

    Examples
    --------
    >>> maximum_entropy([2.0, 2.0], [0.0, 1.0], [1, 2, 3]).round(3).tolist()
    [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
    """
    scale = np.asarray(values, dtype=np.float64)
    middle = np.atleast_1d(np.asarray(mean, dtype=np.float64))
    wide = np.atleast_1d(np.asarray(spread, dtype=np.float64))
    if scale.ndim != 1 or len(scale) < 2 or not (np.diff(scale) > 0).all():
        raise DataError("values of the classes have to rise, and be two at least")
    if (middle < scale[0]).any() or (middle > scale[-1]).any() or (wide < 0).any():
        raise DataError(
            f"means lie from {scale[0]:g} to {scale[-1]:g}, and spreads are not below 0"
        )
    x = 2 * (scale - scale[0]) / (scale[-1] - scale[0]) - 1  # from -1 to 1
    first = 2 * (middle - scale[0]) / (scale[-1] - scale[0]) - 1
    second = first**2 + (2 * wide / (scale[-1] - scale[0])) ** 2
    return np.stack([_solved(x, m, s) for m, s in zip(first, second, strict=True)])


def _solved(x: Floats, first: float, second: float) -> Floats:
    """Return the distribution with these two moments, or the nearest one that there is.

    Newton's method on the dual, which is convex, with a little ridge where a moment lies at the
    edge of what can be.
    """
    features = np.stack([x, x**2])  # (moment, class)
    wanted = np.array([first, second])
    weight = np.zeros(2)

    def dual(at: Floats) -> float:
        log = at @ features
        return float(np.log(np.exp(log - log.max()).sum()) + log.max() - at @ wanted)

    for _ in range(_ROUNDS):
        p = _softmax(weight @ features)
        gradient = features @ p - wanted
        if np.abs(gradient).max() < 1e-10:
            break
        centred = features - (features @ p)[:, None]
        curve = (centred * p) @ centred.T + 1e-10 * np.eye(2)
        step = np.linalg.solve(curve, gradient)
        step *= min(1.0, 50 / max(float(np.abs(step).max()), 1e-12))
        now, size = dual(weight), 1.0
        while dual(weight - size * step) > now + 1e-12 and size > 1e-8:
            size /= 2
        weight = weight - size * step
        if np.abs(weight).max() > 1e5:
            break
    return _softmax(weight @ features)


def _softmax(log: Floats) -> Floats:
    p = np.exp(log - log.max())
    return p / p.sum()
