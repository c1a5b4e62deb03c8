"""PM: as CRH, but errors are compared with the largest number of them instead of the sum.

So the worst annotator counts for nothing, except where nobody else answered. Vote and weights
have no common objective; rounds go on until the vote stays the same.

    B. I. Aydin, Y. S. Yilmaz, Y. Li, Q. Li, J. Gao, M. Demirbas. Crowdsourcing for multiple-choice
    question answering. Proceedings of AAAI, 2014.

    Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
    truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
    doi:10.1145/2588555.2610509
"""

from __future__ import annotations

from dataclasses import dataclass

from .._relation import Floats
from ._base import Fit
from ._votes import Found
from .crh import Crh

__all__ = ["Pm"]


@dataclass(frozen=True, kw_only=True)
class Pm(Crh):
    """Votes weighted by the logarithm of annotators' errors against the largest number of them.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001110010")
    >>> Pm().fit(annotations).params.weight.round(2).tolist()
    [27.63, 0.69, 0.0]
    """

    def weigh(self, fit: Fit) -> Found:
        return super().weigh(fit)._replace(trace=())

    def against(self, loss: Floats) -> float:
        return float(loss.max())
