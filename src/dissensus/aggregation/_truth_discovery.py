"""Truth discovery: how much annotators count, from what they get wrong.

Losses may be numbers of wrong labels or sums of distances from a value; the weights follow from
them in the same way, so that the methods for classes and for numbers share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Interval
from scipy.special import gammaincinv

from .._relation import Floats, Integers
from ..params import Settings

__all__ = ["ByConfidence", "ByShare"]

_LEAST = 1e-12  # least share of an annotator


@dataclass(frozen=True, kw_only=True)
class ByConfidence(Settings):
    """Weights that are one over the upper bound of a confidence interval for the rate of loss.

    Parameters
    ----------
    alpha
        Share of a confidence interval that lies outside, half of it on either side.
    """

    alpha: Annotated[float, Interval(gt=0, lt=1)] = 0.05

    def quantile(self, labels: Floats | Integers) -> Floats:
        """Return the lower quantile of chi-squared with as many degrees of freedom as labels.

        >>> ByConfidence().quantile(np.array([0, 1, 10])).round(3).tolist()
        [0.0, 0.001, 3.247]
        """
        found = 2 * gammaincinv(np.maximum(labels, 1) / 2, self.alpha / 2)
        return np.where(labels > 0, found, 0.0)


@dataclass(frozen=True, kw_only=True)
class ByShare(Settings):
    """Weights that are minus the logarithm of the share in all losses.

    Parameters
    ----------
    per_label
        Whether an annotator's loss is the mean over their labels instead of the sum, so that who
        labels much is not held to be worse. Truths and weights then have no common objective.
    """

    per_label: bool = False

    def comparable(self, loss: Floats, labels: Floats | Integers) -> Floats:
        """Return losses that may be compared: (annotator)."""
        return loss / np.maximum(labels, 1) if self.per_label else loss

    def against(self, loss: Floats) -> float:
        """Return what losses are compared with: here, their sum."""
        return float(loss.sum())

    def by_share(self, loss: Floats, least: float = 0.0) -> Floats:
        """Return the weights, no less than the least; all alike where there is no loss.

        >>> ByShare().by_share(np.array([1.0, 3.0])).round(2).tolist()
        [1.39, 0.29]
        """
        whole = self.against(loss)
        if whole <= 0:
            return np.ones(len(loss))
        return np.maximum(np.log(1 / np.clip(loss / whole, _LEAST, 1)), least)
