"""Trimmed mean: the mean of an item's answers without the highest and lowest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Interval

from ..result import Estimation
from .numbers import Estimator, NumericContext, ratio


@dataclass(frozen=True, kw_only=True)
class TrimmedMean(Estimator):
    """The mean of an item's middle answers.

    Trimmed mean: the mean of an item's answers without the highest and lowest.

    The standard error is that of Tukey and McLaughlin, from winsorized answers.

        value[i] = mean of the answers to i without the highest and lowest share `trim`

    When it fails: With fewer than 1 / trim answers to an item nothing is cut, and it is the mean.
    Biases of annotators remain.

        J. W. Tukey, D. H. McLaughlin. Less vulnerable confidence and significance procedures for
        location based on a single sample: trimming/Winsorization 1. Sankhyā A 25(3), 1963.

    Parameters
    ----------
    trim
        Fraction of the answers that is left out at either end, rounded down to whole answers.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaaaa", "vwxyz", [1, 2, 3, 4, 90])
    >>> TrimmedMean(trim=0.2).fit(annotations).value.tolist()
    [3.0]
    """

    trim: Annotated[float, Interval(ge=0, lt=0.5)] = 0.1

    def infer(self, fit: NumericContext) -> Estimation:
        annotations, item = fit.annotations, fit.item
        size = annotations.labels_per_item
        cut = np.floor(self.trim * size + 1e-9).astype(np.int64)  # (item): left out at either end
        first, last = annotations.index[:-1] + cut, annotations.index[1:] - 1 - cut
        position = np.arange(len(annotations))
        ranked = annotations.value[fit.ranked]  # the items stand in the same order
        inside = (position >= first[item]) & (position <= last[item])
        value = ratio(fit.by_item(ranked * inside), size - 2 * cut)
        winsorized = ranked[np.clip(position, first[item], last[item])]
        centre = ratio(fit.by_item(winsorized), size)
        squares = fit.by_item((winsorized - centre[item]) ** 2)
        kept = ratio(size - 2.0 * cut, size)
        variance = ratio(squares, size * np.maximum(size - 1, 0))
        return self.result(fit, value, np.sqrt(variance) / kept)
