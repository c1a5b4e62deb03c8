"""Correlations of numbers within groups, without a loop over the groups."""

from __future__ import annotations

import numpy as np

from ..base.arrays import Floats, Integers
from .label_sums import sum_by


def rating_correlations(group: Integers, x: Floats, y: Floats, n_groups: int) -> Floats:
    """Return the mean of Pearson's and Spearman's correlation within every group."""
    of_ranks = correlations(group, within_ranks(group, x), within_ranks(group, y), n_groups)
    return (correlations(group, x, y, n_groups) + of_ranks) / 2


def correlations(group: Integers, x: Floats, y: Floats, n_groups: int) -> Floats:
    """Return the correlation within every group; NaN where a variable is constant.

    >>> x, y = np.array([1.0, 2, 3, 5]), np.array([2.0, 4, 6, 1])
    >>> correlations(np.array([0, 0, 0, 1]), x, y, 2).round(3).tolist()
    [1.0, nan]
    """
    count = np.maximum(np.bincount(group, minlength=n_groups), 1)
    x, y = (values - (sum_by(group, values, n_groups) / count)[group] for values in (x, y))
    xx, xy, yy = (sum_by(group, values, n_groups) for values in (x * x, x * y, y * y))
    norm = np.sqrt(xx * yy)
    flat = norm <= 1e-12 * count
    return np.where(flat, np.nan, np.clip(xy / np.where(flat, 1, norm), -1, 1))


def within_ranks(group: Integers, values: Floats) -> Floats:
    """Return the rank of every value within its group, the mean rank of equal values.

    >>> within_ranks(np.array([0, 0, 0, 1]), np.array([5.0, 2, 5, 7])).tolist()
    [1.5, 0.0, 1.5, 0.0]
    """
    order = np.lexsort((values, group))
    sorted_group, sorted_values = group[order], values[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = sorted_group[1:] != sorted_group[:-1]
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    tied = first.copy()
    tied[1:] |= sorted_values[1:] != sorted_values[:-1]
    run = np.cumsum(tied) - 1
    begins = np.flatnonzero(tied)
    middle = begins + (np.diff(begins, append=len(order)) - 1) / 2
    ranks = np.empty(len(order))
    ranks[order] = middle[run] - start if len(order) else ranks
    return ranks
