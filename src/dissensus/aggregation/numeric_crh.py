"""CRH for numbers: annotators are weighted by their share in all losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..base.arrays import Floats
from .truth_discovery import CrhWeights
from .numbers import NumericContext, ratio
from .numeric_weighted import DiscoveryMean


@dataclass(frozen=True, kw_only=True)
class CrhLosses(DiscoveryMean):
    """Losses in units of the standard deviation of an item's answers.

    Parameters
    ----------
    loss
        The `squared` distance, which gives means, or the `absolute` one, which gives medians.
    """

    loss: Literal["squared", "absolute"] = "squared"

    def losses(self, fit: NumericContext, value: Floats) -> Floats:
        error = fit.errors(fit.mean(np.ones(len(fit.annotations))))
        spread = np.sqrt(ratio(fit.by_item(error**2), fit.annotations.labels_per_item))
        spread[spread == 0] = np.sqrt(fit.variance)
        distance = abs(fit.errors(value))
        return (distance**2 if self.loss == "squared" else distance) / spread[fit.item]

    def locate(self, fit: NumericContext, weight: Floats) -> Floats:
        return fit.median(weight) if self.loss == "absolute" else fit.mean(weight)

    def deviation(self, fit: NumericContext, value: Floats, weight: Floats) -> Floats:
        if self.loss == "absolute":
            return np.full(len(value), np.nan)
        return super().deviation(fit, value, weight)


@dataclass(frozen=True, kw_only=True)
class Crh(CrhWeights, CrhLosses):
    """Means weighted by the logarithm of annotators' share in all losses.

    CRH for numbers: annotators are weighted by their share in all losses.

    An answer's loss is its squared distance from the item's value, divided by the standard
    deviation of the item's answers, so that hard items do not decide alone. An annotator's weight
    is minus the logarithm of their share in the losses of all; the value of an item is the mean
    under these weights, or the median where the loss is the absolute distance. Weights and values
    each minimize the weighted loss, the weights under the constraint that exp(-weight) sums to one,
    so it never rises.

        weight[a] = -log(loss[a] / Σ_b loss[b])

    When it fails: Losses are sums, so those who answer most count least. Biases are counted as
    noise.

        Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
        truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
        doi:10.1145/2588555.2610509

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> Crh(loss="absolute").fit(annotations).value.tolist()
    [1.0, 2.0, 5.1]
    """
