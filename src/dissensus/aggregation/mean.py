"""Mean: every answer has the same weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..result import Estimation
from .numbers import Estimator, NumericContext, ratio


@dataclass(frozen=True, kw_only=True)
class Mean(Estimator):
    """The mean of an item's answers.

    Mean: every answer has the same weight.

    The standard error is that of the item's own answers, so it needs at least two.

        value[i] = mean of the answers to i

    When it fails: One outlier moves it as far as it likes, and an annotator who is always too high
    moves all of their items.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaab", "xyzx", [1, 2, 6, 4])
    >>> Mean().fit(annotations).value.tolist()
    [3.0, 4.0]
    """

    def infer(self, fit: NumericContext) -> Estimation:
        size = fit.annotations.labels_per_item
        value = fit.mean(np.ones(len(fit.annotations)))
        squares = fit.by_item(fit.errors(value) ** 2)
        deviation = np.sqrt(ratio(squares, size * np.maximum(size - 1, 0)))
        return self.result(fit, value, deviation)
