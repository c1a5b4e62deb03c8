"""Median: half of an item's answers lie on either side, so a few wild ones change little."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._base import Estimator, Fit
from .result import Estimation

__all__ = ["Median"]


@dataclass(frozen=True, kw_only=True)
class Median(Estimator):
    """The median of an item's answers; of an even number, the middle between the two in the middle.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabb", "xyzxy", [1, 2, 60, 4, 5])
    >>> Median().fit(annotations).value.tolist()
    [2.0, 4.5]
    """

    def infer(self, fit: Fit) -> Estimation:
        value = fit.median(np.ones(len(fit.annotations)))
        return self.conclude(fit, value, np.full(len(value), np.nan))
