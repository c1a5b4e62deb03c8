"""PM for numbers: as CRH, but losses are compared with the largest instead of the sum.

So the worst annotator counts for nothing, except where nobody else answered. There is no common
aim of values and weights, hence no objective.

    B. I. Aydin, Y. S. Yilmaz, Y. Li, Q. Li, J. Gao, M. Demirbas. Crowdsourcing for multiple-choice
    question answering. Proceedings of AAAI, 2014.

    Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
    truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
    doi:10.1145/2588555.2610509
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..._relation import Floats
from ._base import Fit
from .crh import Crh

__all__ = ["Pm"]


@dataclass(frozen=True, kw_only=True)
class Pm(Crh):
    """Means weighed by the logarithm of annotators' losses against the largest.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> Pm().fit(annotations).value.round(1).tolist()
    [1.0, 2.0, 5.1]
    """

    def against(self, loss: Floats) -> float:
        return float(loss.max())

    def objective(self, fit: Fit, loss: Floats) -> float:
        return math.nan
