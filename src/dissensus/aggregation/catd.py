"""CATD: annotators count by how well they are known to be good.

Every annotator's labels are compared with the present vote. Their weight is one over the upper
bound of a confidence interval for their rate of errors: the lower quantile of chi-squared with as
many degrees of freedom as labels, divided by the number of wrong ones. So who gave few labels
counts less than their few errors would say. Rounds go on until the vote stays the same; no round
raises the sum over annotators of quantile times the logarithm of wrong labels.

    Q. Li, Y. Li, J. Gao, L. Su, B. Zhao, M. Demirbas, W. Fan, J. Han. A confidence-aware approach
    for truth discovery on long-tail data. Proceedings of the VLDB Endowment 8(4), 2014.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._relation import Floats
from ._base import Fit
from ._truth_discovery import ByConfidence
from ._votes import IteratedVote, Record

__all__ = ["Catd"]

_LEAST = 1e-9  # wrong labels of who made no error


@dataclass(frozen=True, kw_only=True)
class Catd(ByConfidence, IteratedVote):
    """Votes weighted by what annotators' precision is at least.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001110110")
    >>> Catd().fit(annotations).params.weight.round(2)[2]
    np.float64(0.07)
    """

    def weight(self, record: Record) -> Floats:
        return self.quantile(record.labels) / _wrong(record)

    def worth(self, record: Record) -> Floats:
        return -self.quantile(record.labels) * np.log(_wrong(record))

    def _first(self, fit: Fit) -> Record:
        return self.record(fit)  # from plain votes always: there are several ends to reach


def _wrong(record: Record) -> Floats:
    return np.maximum(record.labels - record.right, 0) + _LEAST
