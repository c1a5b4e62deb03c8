"""Sums, means and intervals over clusters: items that belong together count as one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import ndtri, stdtrit

from ..base.arrays import Floats, Integers


def by_cluster(cluster: Integers, *values: Floats) -> list[Any]:
    """Return the sums of values over clusters."""
    return [np.bincount(cluster, value, minlength=n_clusters(cluster)) for value in values]


def means_by(code: Integers, value: Floats, size: int) -> Floats:
    """Return the mean value of every code, NaN where there is none."""
    with np.errstate(invalid="ignore"):
        total = np.bincount(code, value, minlength=size)
        return np.asarray(total / np.bincount(code, minlength=size))


def n_clusters(cluster: Integers) -> int:
    """Return the number of clusters, whose codes begin at 0."""
    return int(cluster.max(initial=-1)) + 1


def resampled(cluster: Integers, resamples: int, seed: int) -> Any:
    """Return how often a resample has every cluster: (resample, cluster)."""
    size = n_clusters(cluster)
    rng = np.random.default_rng(seed)
    out = np.empty((resamples, size), dtype=np.float32)
    for row in out:
        row[:] = np.bincount(rng.integers(size, size=size), minlength=size)
    return out


def cells(row: Integers, column: Integers, value: Floats, shape: tuple[int, int]) -> Any:
    """Return sums of values as a sparse matrix."""
    return sparse.csr_array((value, (row, column)), shape=shape)


def quantiles(drawn: Floats, confidence: float) -> tuple[float, float]:
    """Return between which values of a sample so much of it lies; NaN without a sample."""
    if not len(drawn):
        return math.nan, math.nan
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def known_mean(values: Floats) -> float:
    """Return the mean of the values that are not NaN, NaN without any."""
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else math.nan


def known_means(values: Floats) -> Floats:
    """Return the mean of every row, likewise."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0).sum(axis=1) / known.sum(axis=1))


def correlation(first: Floats, second: Floats, unknown: float = math.nan) -> float:
    """Return Pearson's r, or what stands for it with fewer than three values or equal ones."""
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return unknown
    return float(np.corrcoef(first, second)[0, 1])


class ClusterMean(NamedTuple):
    """A mean, its standard error over clusters, and the degrees of freedom."""

    value: float
    error: float
    freedom: int

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return its t interval."""
        reach = float(stdtrit(max(self.freedom, 1), (1 + confidence) / 2)) * self.error
        return self.value - reach, self.value + reach


def cluster_mean(value: Floats, cluster: Integers) -> ClusterMean:
    """Return the mean of values with its error over clusters."""
    mean = float(value.mean())
    variance, count = cluster_variance(value - mean, cluster)
    return ClusterMean(mean, math.sqrt(variance) / len(value), count - 1)


def cluster_variance(added: Floats, cluster: Integers) -> tuple[float, int]:
    """Return the variance of a sum of what items add, and the number of clusters they are in."""
    sums = np.bincount(np.unique(cluster, return_inverse=True)[1], added)
    return float((sums**2).sum()) * len(sums) / max(len(sums) - 1, 1), len(sums)


def design_effect(residual: Floats, cluster: Integers, confidence: float | None = None) -> float:
    """Return by how much the variance of a mean grows because items of a cluster are alike.

    At least 1. With a confidence level, Student's t for so few clusters is part of it. Items that
    are clusters of their own have no effect.
    """
    n, total = len(residual), float((residual**2).sum())
    variance, count = cluster_variance(residual, cluster)
    if count == n or count < 2 or total == 0:
        return 1.0
    effect = max(1.0, variance / (total * n / (n - 1)))
    if confidence is not None:
        level = (1 + confidence) / 2
        effect *= float(stdtrit(count - 1, level) / ndtri(level)) ** 2
    return effect
