"""CATD for numbers: annotators are weighted by a confidence bound of their variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Floats
from .truth_discovery import CatdWeights
from .numbers import NumericContext
from .numeric_weighted import DiscoveryMean


@dataclass(frozen=True, kw_only=True)
class Catd(CatdWeights, DiscoveryMean):
    """Means weighted by a lower bound of annotators' precision.

    CATD for numbers: annotators are weighted by a confidence bound of their variance.

    An annotator's weight is one over the upper bound of a confidence interval for their variance:
    the lower quantile of chi-squared with as many degrees of freedom as answers, divided by the sum
    of squared errors. So annotators with few answers count less than their small errors suggest.
    Values are means under these weights. Iterations minimize the sum over annotators of quantile
    times log loss.

        weight[a] = chi-squared quantile(significance / 2, answers[a]) / Σ (answer - value)²

    When it fails: An annotator who happens to lie on all means gets nearly all the weight. Biases
    are counted as noise.

        Q. Li, Y. Li, J. Gao, L. Su, B. Zhao, M. Demirbas, W. Fan, J. Han. A confidence-aware
        approach for truth discovery on long-tail data. Proceedings of the VLDB Endowment 8(4),
        2014.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> Catd().fit(annotations).value.round(1).tolist()
    [1.0, 2.0, 5.1]
    """

    def start(self, fit: NumericContext) -> Floats:
        return fit.median(np.ones(len(fit.annotations)))
