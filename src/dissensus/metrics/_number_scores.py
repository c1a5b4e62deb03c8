"""Scores of numbers, of all items and of bootstrap samples.

Errors and correlations come from sums over items under weights, how often each item was drawn.
So do the ranks that Spearman's correlation needs: the rank of a value is the weight of all that
lies below it, and half of what equals it. Items are sorted once, whatever is drawn.
"""

from __future__ import annotations

import numpy as np

from .._relation import Floats, Integers

__all__ = ["NUMBER_SCORES", "number_scores"]

NUMBER_SCORES = ("mae", "rmse", "pearson", "spearman")

_CELLS = 2**19  # how many weights to hold at a time
_FLAT = 1e-12  # a variance below this share of the square is that of a constant


def number_scores(
    value: Floats, true: Floats, resamples: int, random: np.random.Generator
) -> dict[str, Floats]:
    """Return every score of the items as they are, and behind it those of bootstrap samples.

    A correlation is NaN where values or truths are all the same.
    """
    size = len(value)
    off = value - true
    errors = np.stack([np.abs(off), off**2])  # (score, item)
    ranks = _Ranks(value), _Ranks(true)
    found = []
    step = max(_CELLS // size, 1)
    for start in range(0, 1 + resamples, step):
        weight = _drawn(size, min(step, 1 + resamples - start), random)
        if start == 0:
            weight[0] = 1.0  # the items as they are come first
        mae, square = errors @ weight.T / size
        pearson = _correlation(value - value.mean(), true - true.mean(), weight)
        spearman = _correlation(ranks[0].under(weight), ranks[1].under(weight), weight)
        found.append(np.stack([mae, np.sqrt(square), pearson, spearman]))
    return dict(zip(NUMBER_SCORES, np.concatenate(found, axis=1), strict=True))


def _drawn(size: int, samples: int, random: np.random.Generator) -> Floats:
    """Return how often every item is drawn: (sample, item)."""
    cell = random.integers(size, size=(samples, size))
    cell += np.arange(samples)[:, None] * size
    return np.bincount(cell.ravel(), minlength=samples * size).reshape(samples, size).astype(float)


class _Ranks:
    """The order of values, from which ranks follow under any weights."""

    def __init__(self, value: Floats) -> None:
        self.order = np.argsort(value, kind="stable")
        sorted_ = value[self.order]
        self.first = np.flatnonzero(np.r_[True, sorted_[1:] != sorted_[:-1]])  # (different value)
        self.group: Integers = np.empty(len(value), np.int64)  # (item): its place among these
        self.group[self.order] = np.repeat(
            np.arange(len(self.first)), np.diff(np.r_[self.first, len(value)])
        )

    def under(self, weight: Floats) -> Floats:
        """Return the middle rank of every item, less their mean: (sample, item)."""
        held = np.add.reduceat(weight[:, self.order], self.first, axis=1)  # (sample, value)
        middle = np.cumsum(held, axis=1) - held / 2
        return (middle - weight.shape[1] / 2)[:, self.group]


def _correlation(x: Floats, y: Floats, weight: Floats) -> Floats:
    """Return Pearson's correlation under weights: (sample); x and y are about centred."""
    size = weight.sum(axis=1)
    mean_x, mean_y, xx, yy, xy = (
        np.vecdot(weight, numbers) / size for numbers in (x, y, x * x, y * y, x * y)
    )
    variance_x, variance_y = xx - mean_x**2, yy - mean_y**2
    varies = (variance_x > _FLAT * xx) & (variance_y > _FLAT * yy)
    out = np.full(len(size), np.nan)
    root = np.sqrt(variance_x[varies] * variance_y[varies])
    out[varies] = (xy - mean_x * mean_y)[varies] / root
    return np.clip(out, -1, 1)
