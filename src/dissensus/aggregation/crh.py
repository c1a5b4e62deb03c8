"""CRH: annotators count by the share they have in all errors.

Every annotator's labels are compared with the present vote. Their weight is minus the logarithm of
their share in the wrong labels of all. Rounds go on until the vote stays the same; vote and
weights each minimise the weighted number of wrong labels, the weights under the constraint that
exp(-weight) sums to one, so it never rises.

    Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
    truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
    doi:10.1145/2588555.2610509
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._relation import Floats
from ._base import Fit
from ._truth_discovery import ByShare
from ._votes import Found, IteratedVote, Record

__all__ = ["Crh"]


@dataclass(frozen=True, kw_only=True)
class Crh(ByShare, IteratedVote):
    """Votes weighted by the logarithm of annotators' share in all errors.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001110010")
    >>> Crh().fit(annotations).params.weight.round(2).tolist()
    [27.63, 1.1, 0.41]
    """

    def weigh(self, fit: Fit) -> Found:
        found = super().weigh(fit)
        return found._replace(trace=()) if self.per_label else found

    def weight(self, record: Record) -> Floats:
        return self.by_share(self.losses(record))

    def worth(self, record: Record) -> Floats:
        return -self.weight(record) * self.losses(record)

    def losses(self, record: Record) -> Floats:
        """Return how bad every annotator is."""
        return self.comparable(np.maximum(record.labels - record.right, 0), record.labels)
