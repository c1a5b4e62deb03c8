"""LFC-N: means weighted by one over the variance of annotators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Floats
from ..params import Positive
from .numbers import NumericContext
from .numeric_weighted import WeightedMean


@dataclass(frozen=True, kw_only=True)
class LfcN(WeightedMean):
    """Means weighted by one over the variance of annotators.

    LFC-N: means weighted by one over the variance of annotators.

    In turns: an annotator's variance is their mean squared error; an item's value is the mean of
    its answers, weighted by one over the variance. Every iteration raises the likelihood under
    normal errors. A variance has a floor, because the likelihood is unbounded: without it, values
    may copy one annotator whose variance goes to zero.

        variance[a] = mean over the items of a of (answer - value)²
        value[i] = (Σ_a answer / variance[a]) / (Σ_a 1 / variance[a])

    When it fails: It has no biases: an annotator who is exactly 2 too high counts as noisy. With
    few answers per annotator the most accurate one so far may take over.

        V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni, L. Moy. Learning from
        crowds. Journal of Machine Learning Research 11, 2010.

    Parameters
    ----------
    floor
        Least variance of an annotator, as a fraction of the variance of all answers.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> LfcN().fit(annotations).value.round(1).tolist()
    [1.0, 2.0, 5.1]
    """

    floor: Positive = 1e-9

    def weight(self, fit: NumericContext, loss: Floats) -> Floats:
        return 1 / self._variance(fit, loss)

    def objective(self, fit: NumericContext, loss: Floats) -> float:
        size, variance = fit.annotations.labels_per_annotator, self._variance(fit, loss)
        return -0.5 * float((size * np.log(2 * np.pi * variance) + loss / variance).sum())

    def _variance(self, fit: NumericContext, loss: Floats) -> Floats:
        size = np.maximum(fit.annotations.labels_per_annotator, 1)
        return np.maximum(loss / size, self.floor * fit.variance)
