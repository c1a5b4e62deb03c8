"""Median: robust against a few outliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..result import Estimation
from .numbers import Estimator, NumericContext


@dataclass(frozen=True, kw_only=True)
class Median(Estimator):
    """The median of an item's answers; of an even number, the mean of the middle two.

    Median: robust against a few outliers.

        value[i] = median of the answers to i

    When it fails: With two answers it is the mean. It ignores annotators' biases and their
    precision, so with exact and sloppy annotators it wastes the exact ones.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabb", "xyzxy", [1, 2, 60, 4, 5])
    >>> Median().fit(annotations).value.tolist()
    [2.0, 4.5]
    """

    def infer(self, fit: NumericContext) -> Estimation:
        value = fit.median(np.ones(len(fit.annotations)))
        return self.result(fit, value, np.full(len(value), np.nan))
