"""Wawa, worker agreement with aggregate: votes weigh as much as annotators agree with the majority.

The weight of an annotator is the share of their labels that equal the majority vote, and the
label is the class with most weight. Where the majority is split, so is the agreement.

    Appen. Calculating worker agreement with aggregate (Wawa), 2021.
    https://success.appen.com/hc/en-us/articles/202703205
"""

from __future__ import annotations

from dataclasses import dataclass

from ._base import Fit
from ._votes import Found, WeightedVote, Weights

__all__ = ["Wawa"]


@dataclass(frozen=True, kw_only=True)
class Wawa(WeightedVote):
    """Votes weighted by agreement with the majority.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Wawa().fit(annotations).quality.round(2).tolist()
    [1.0, 1.0, 0.0]
    """

    def weigh(self, fit: Fit) -> Found:
        record = self.record(fit)
        accuracy = record.average_others(record.accuracy)
        return Found(Weights(accuracy, accuracy))
