"""CATD for numbers: annotators count by how well they are known to be good.

An annotator's weight is one over the upper bound of a confidence interval for their variance: the
lower quantile of chi-squared with as many degrees of freedom as answers, divided by the sum of
squares they miss by. So who gave few answers counts less than their small errors would say.
Values are means under these weights. The rounds make the sum over annotators of quantile times
log loss as small as they can.

    Q. Li, Y. Li, J. Gao, L. Su, B. Zhao, M. Demirbas, W. Fan, J. Han. A confidence-aware approach
    for truth discovery on long-tail data. Proceedings of the VLDB Endowment 8(4), 2014.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._relation import Floats
from .._truth_discovery import ByConfidence
from ._base import Fit
from ._weighted import WeightedMean

__all__ = ["Catd"]


@dataclass(frozen=True, kw_only=True)
class Catd(ByConfidence, WeightedMean):
    """Means weighed by what annotators' precision is at least.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> Catd().fit(annotations).value.round(1).tolist()
    [1.0, 2.0, 5.1]
    """

    def start(self, fit: Fit) -> Floats:
        return fit.median(np.ones(len(fit.annotations)))

    def weigh(self, fit: Fit, loss: Floats) -> Floats:
        return self.quantile(fit.annotations.labels_per_annotator) / (loss + _LEAST * fit.variance)

    def objective(self, fit: Fit, loss: Floats) -> float:
        quantile = self.quantile(fit.annotations.labels_per_annotator)
        return -float(quantile @ np.log(loss + _LEAST * fit.variance))


_LEAST = 1e-9  # added to the loss of an annotator, in variances of all answers
