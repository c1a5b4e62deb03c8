"""Scores of numbers, of all items and of bootstrap samples.

Errors and correlations are weighted sums over items; the weights are how often each item was
drawn. So are the ranks of Spearman's correlation: the rank of a value is the weight of all smaller
values plus half of that of equal ones. Items are sorted once.
"""

from __future__ import annotations

import numpy as np

from ..base.arrays import Floats, Integers

NUMBER_SCORES = ("mae", "rmse", "pearson", "spearman")

_CELLS = 2**19  # weights in memory at a time
_CONSTANT = 1e-12  # relative variance below which values are constant


def number_scores(
    value: Floats, true: Floats, resamples: int, random: np.random.Generator
) -> dict[str, Floats]:
    """Return every score of all items, followed by those of bootstrap samples.

    A correlation with a constant is NaN.
    """
    size = len(value)
    error = value - true
    errors = np.stack([np.abs(error), error**2])  # (score, item)
    ranks = _Ranks(value), _Ranks(true)
    scores = []
    step = max(_CELLS // size, 1)
    for start in range(0, 1 + resamples, step):
        weight = _drawn(size, min(step, 1 + resamples - start), random)
        if start == 0:
            weight[0] = 1.0  # all items come first
        mae, square = errors @ weight.T / size
        pearson = _correlation(value - value.mean(), true - true.mean(), weight)
        spearman = _correlation(ranks[0].under(weight), ranks[1].under(weight), weight)
        scores.append(np.stack([mae, np.sqrt(square), pearson, spearman]))
    return dict(zip(NUMBER_SCORES, np.concatenate(scores, axis=1), strict=True))


def _drawn(size: int, samples: int, random: np.random.Generator) -> Floats:
    """Return how often every item is drawn: (sample, item)."""
    cell = random.integers(size, size=(samples, size))
    cell += np.arange(samples)[:, None] * size
    return np.bincount(cell.ravel(), minlength=samples * size).reshape(samples, size).astype(float)


class _Ranks:
    """The order of values, for ranks under any weights."""

    def __init__(self, value: Floats) -> None:
        self.order = np.argsort(value, kind="stable")
        sorted_ = value[self.order]
        self.first = np.flatnonzero(np.r_[True, sorted_[1:] != sorted_[:-1]])  # (different value)
        self.group: Integers = np.empty(len(value), np.int64)  # (item): index of its value
        self.group[self.order] = np.repeat(
            np.arange(len(self.first)), np.diff(np.r_[self.first, len(value)])
        )

    def under(self, weight: Floats) -> Floats:
        """Return the centred rank of every item: (sample, item)."""
        weights = np.add.reduceat(weight[:, self.order], self.first, axis=1)  # (sample, value)
        middle = np.cumsum(weights, axis=1) - weights / 2
        return (middle - weight.shape[1] / 2)[:, self.group]


def _correlation(x: Floats, y: Floats, weight: Floats) -> Floats:
    """Return Pearson's correlation under weights: (sample); x and y are roughly centred."""
    size = weight.sum(axis=1)
    mean_x, mean_y, xx, yy, xy = (
        np.vecdot(weight, numbers) / size for numbers in (x, y, x * x, y * y, x * y)
    )
    variance_x, variance_y = xx - mean_x**2, yy - mean_y**2
    varies = (variance_x > _CONSTANT * xx) & (variance_y > _CONSTANT * yy)
    out = np.full(len(size), np.nan)
    root = np.sqrt(variance_x[varies] * variance_y[varies])
    out[varies] = (xy - mean_x * mean_y)[varies] / root
    return np.clip(out, -1, 1)
