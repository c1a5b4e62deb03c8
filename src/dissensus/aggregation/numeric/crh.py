"""CRH for numbers: annotators count by the share they have in all that is missed.

An answer's loss is its squared distance from the item's value, divided by the standard deviation
of the item's answers, so that hard items do not decide alone. An annotator's weight is minus the
logarithm of their share in the losses of all; the value of an item is the mean under these
weights, or the median where the loss is the absolute distance. Weights and values each minimise
the weighted loss, the weights under the constraint that exp(-weight) sums to one, so it never
rises.

    Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
    truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
    doi:10.1145/2588555.2610509
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..._relation import Floats
from .._truth_discovery import ByShare
from ._base import Fit, ratio
from ._weighted import WeightedMean

__all__ = ["Crh"]


@dataclass(frozen=True, kw_only=True)
class Crh(ByShare, WeightedMean):
    """Means weighed by the logarithm of annotators' share in all losses.

    Parameters
    ----------
    loss
        Whether distances count `squared`, which gives means, or `absolute`, which gives medians.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> Crh(loss="absolute").fit(annotations).value.tolist()
    [1.0, 2.0, 5.1]
    """

    loss: Literal["squared", "absolute"] = "squared"

    def losses(self, fit: Fit, value: Floats) -> Floats:
        size = fit.annotations.labels_per_item
        off = fit.off(fit.mean(np.ones(len(fit.annotations))))
        spread = np.sqrt(ratio(fit.by_item(off**2), size))
        spread[spread == 0] = np.sqrt(fit.variance)
        distance = abs(fit.off(value))
        return (distance**2 if self.loss == "squared" else distance) / spread[fit.item]

    def weigh(self, fit: Fit, loss: Floats) -> Floats:
        loss = self.comparable(loss, fit.annotations.labels_per_annotator)
        return self.by_share(loss, _LEAST)

    def locate(self, fit: Fit, weight: Floats) -> Floats:
        if self.loss == "absolute":
            return fit.median(weight)
        return fit.mean(weight)

    def errors(self, fit: Fit, value: Floats, weight: Floats) -> Floats:
        if self.loss == "absolute":
            return np.full(len(value), np.nan)
        return super().errors(fit, value, weight)

    def objective(self, fit: Fit, loss: Floats) -> float:
        if self.per_label:
            return math.nan  # the values still minimise the sum, so there is no common aim
        return -float(self.weigh(fit, loss) @ loss)


_LEAST = 1e-12  # least weight: where nobody else answered, the worst decides
