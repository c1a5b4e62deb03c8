"""PM for numbers: as CRH, but losses are divided by the largest instead of the sum."""

from __future__ import annotations

from dataclasses import dataclass

from .truth_discovery import PmWeights
from .numeric_crh import CrhLosses


@dataclass(frozen=True, kw_only=True)
class Pm(PmWeights, CrhLosses):
    """Means weighted by the logarithm of annotators' losses relative to the largest.

    PM for numbers: as CRH, but losses are divided by the largest instead of the sum.

    So the worst annotator has no weight, except where nobody else answered. Values and weights have
    no common objective.

        weight[a] = -log(loss[a] / max_b loss[b])

    When it fails: As `crh`; the annotator with the largest loss, often the most prolific one, has
    no weight at all.

        B. I. Aydin, Y. S. Yilmaz, Y. Li, Q. Li, J. Gao, M. Demirbas. Crowdsourcing for
        multiple-choice question answering. Proceedings of AAAI, 2014.

        Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
        truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
        doi:10.1145/2588555.2610509

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> Pm().fit(annotations).value.round(1).tolist()
    [1.0, 2.0, 5.1]
    """
