"""Trimmed mean: the mean of what remains of an item's answers without the highest and lowest.

The standard error is the one of Tukey and McLaughlin: trimmed answers count like the last ones
that were kept.

    J. W. Tukey, D. H. McLaughlin. Less vulnerable confidence and significance procedures for
    location based on a single sample: trimming/Winsorization 1. Sankhyā A 25(3), 1963.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Interval

from ._base import Estimator, Fit, ratio
from .result import Estimation

__all__ = ["TrimmedMean"]


@dataclass(frozen=True, kw_only=True)
class TrimmedMean(Estimator):
    """The mean of an item's middle answers.

    Parameters
    ----------
    trim
        Share of the answers that is left out at either end, rounded down to whole answers.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaaaa", "vwxyz", [1, 2, 3, 4, 90])
    >>> TrimmedMean(trim=0.2).fit(annotations).value.tolist()
    [3.0]
    """

    trim: Annotated[float, Interval(ge=0, lt=0.5)] = 0.1

    def infer(self, fit: Fit) -> Estimation:
        annotations, item = fit.annotations, fit.item
        size = annotations.labels_per_item
        cut = np.floor(self.trim * size + 1e-9).astype(np.int64)  # (item): left out at either end
        first, last = annotations.index[:-1] + cut, annotations.index[1:] - 1 - cut
        position = np.arange(len(annotations))
        ranked = annotations.value[fit.ranked]  # the items stand in the same order
        inside = (position >= first[item]) & (position <= last[item])
        value = ratio(fit.by_item(ranked * inside), size - 2 * cut)
        pulled = ranked[np.clip(position, first[item], last[item])]
        centre = ratio(fit.by_item(pulled), size)
        squares = fit.by_item((pulled - centre[item]) ** 2)
        kept = ratio(size - 2.0 * cut, size)
        variance = ratio(squares, size * np.maximum(size - 1, 0))
        return self.conclude(fit, value, np.sqrt(variance) / kept)
