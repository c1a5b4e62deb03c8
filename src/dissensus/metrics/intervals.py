"""Bootstrap intervals for measures: items are resampled, each with all its labels.

Single labels are never resampled: that would break the pairs within items. A bootstrap sample is a
weight for every row, and measures take many samples at once. Where many items have equal counts,
their weights are drawn together, which is equivalent and cheaper.

    B. Efron. Better bootstrap confidence intervals. J. Am. Stat. Association 82, 1987.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ..base.arrays import Floats, Integers
from ..errors import OptionError

IntervalKind = Literal["percentile", "bca"]

_CELLS = 2**22
_ALIKE = 20  # drawing the weight of a row costs as much as drawing this many items
_BLOCKS = 200


class Interval(NamedTuple):
    """Bounds, and the number of samples without a value."""

    low: float
    high: float
    dropped: int


def check_interval(resamples: int, confidence: float, kind: str) -> None:
    """Refuse impossible settings."""
    if resamples < 0 or resamples == 1:
        raise OptionError(f"resamples = {resamples}, but it must be 0 or at least 2")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence = {confidence}, but it must be above 0 and below 1")
    if kind not in ("percentile", "bca"):
        raise OptionError(f"no interval {kind!r}; there are percentile and bca")


def draws(times: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield bootstrap weights of rows, several samples at a time: (sample, row)."""
    rng = np.random.default_rng(seed)
    rows, n = len(times), int(times.sum())
    step = max(min(_CELLS // max(rows, 1), 64), 1)
    row_of = np.repeat(np.arange(rows, dtype=np.int32), times)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        if rows * _ALIKE < n:
            yield rng.multinomial(n, times / n, size=count).astype(np.float64)
            continue
        drawn = np.empty((count, rows))
        for one in drawn:
            which = rng.integers(n, size=n, dtype=np.int32 if n < 2**31 else np.int64)
            one[:] = np.bincount(which if rows == n else row_of[which], minlength=rows)
        yield drawn


def blocks(times: Integers, seed: int) -> Floats:
    """Return weights that leave out one block of items each: (block, row).

    With no more items than blocks, this is the jackknife.
    """
    n = int(times.sum())
    count = min(n, _BLOCKS, max(_CELLS * 8 // max(len(times), 1), 20))  # memory is bounded
    block = np.random.default_rng(seed).permutation(n) % max(count, 1)
    cell = block * len(times) + np.repeat(np.arange(len(times)), times)
    lost = np.bincount(cell, minlength=len(times) * count).reshape(count, len(times))
    return (times - lost).astype(np.float64)


def interval_of(
    value: float, drawn: Floats, confidence: float, left_out: Floats | None = None
) -> Interval:
    """Return the interval of a value from its bootstrap distribution.

    With jackknife values it is BCa, corrected for bias and acceleration; otherwise between the
    percentiles.
    """
    kept = drawn[~np.isnan(drawn)]
    dropped = len(drawn) - len(kept)
    if len(kept) < 2 or math.isnan(value):
        return Interval(math.nan, math.nan, dropped)
    bounds = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if left_out is not None:
        bounds = _corrected(bounds, value, kept, left_out)
    low, high = np.quantile(kept, bounds)
    return Interval(float(low), float(high), dropped)


def _corrected(bounds: Floats, value: float, kept: Floats, left_out: Floats) -> Floats:
    below = ((kept < value).mean() + (kept <= value).mean()) / 2
    limit = 0.5 / len(kept)
    bias = ndtri(np.clip(below, limit, 1 - limit))
    away = np.nanmean(left_out) - left_out[~np.isnan(left_out)]
    scale = 6 * (away**2).sum() ** 1.5
    skew = (away**3).sum() / scale if scale > 0 else 0.0
    z = bias + ndtri(bounds)
    return ndtr(bias + z / (1 - skew * z))
