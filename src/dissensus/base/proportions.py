"""Proportions: confidence intervals, and a test for the difference of two.

E. B. Wilson. Probable inference, the law of succession, and statistical inference. Journal of
the American Statistical Association 22(158), 1927. doi:10.1080/01621459.1927.10502953
A. Agresti, B. Caffo. Simple and effective confidence intervals for proportions. The American
Statistician 54(4), 2000. doi:10.1080/00031305.2000.10474560
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from .arrays import Floats


class Proportion(NamedTuple):
    """Proportions with Wilson's interval; NaN where nothing was counted."""

    among: Floats  # how many were counted
    value: Floats
    low: Floats
    high: Floats


def proportion(right: Floats, count: Floats, confidence: float = 0.95) -> Proportion:
    """Return proportions with a confidence interval.

    >>> [round(float(value[0]), 3) for value in proportion(np.array([9.0]), np.array([10.0]))]
    [10.0, 0.9, 0.596, 0.982]
    """
    z = float(ndtri((1 + confidence) / 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = right / count
        center = (value + z**2 / (2 * count)) / (1 + z**2 / count)
        reach = z * np.sqrt(value * (1 - value) / count + z**2 / (4 * count**2))
        reach /= 1 + z**2 / count
    # The bounds of 0 and 1 are exact but for rounding.
    low = np.where(value == 0, 0.0, np.maximum(center - reach, 0.0))
    high = np.where(value == 1, 1.0, np.minimum(center + reach, 1.0))
    return Proportion(count, value, low, high)


def difference_p_value(right: Floats, count: Floats) -> Floats:
    """Return p-values for the difference of two proportions: (…), from (2, …).

    One success and one failure are added to each (Agresti & Caffo). NaN where a count is zero.

    >>> right, count = np.array([[45.0, 9.0], [20.0, 8.0]]), np.array([[50.0, 10.0]] * 2)
    >>> difference_p_value(right, count).round(3)
    array([0.   , 0.613])
    """
    share = (right + 1) / (count + 2)
    error = np.sqrt((share * (1 - share) / (count + 2)).sum(axis=0))
    p_value = 2 * ndtr(-np.abs(share[0] - share[1]) / error)
    return np.where((count > 0).all(axis=0), p_value, np.nan)
