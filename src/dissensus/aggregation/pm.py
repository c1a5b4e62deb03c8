"""PM: as CRH, but errors are divided by the largest number of them instead of the sum."""

from __future__ import annotations

from dataclasses import dataclass

from .truth_discovery import DiscoveryVote, PmWeights


@dataclass(frozen=True, kw_only=True)
class Pm(PmWeights, DiscoveryVote):
    """Votes weighted by the logarithm of annotators' errors relative to the largest number.

    PM: as CRH, but errors are divided by the largest number of them instead of the sum.

    So the worst annotator has no weight, except where nobody else answered. Vote and weights have
    no common objective; it iterates until the vote does not change.

        weight[a] = -log(wrong[a] / max_b wrong[b])

    When it fails: As `crh`: counts of errors, not rates, decide, so the most prolific annotator may
    lose all weight. It has no objective that shows whether it has improved.

        B. I. Aydin, Y. S. Yilmaz, Y. Li, Q. Li, J. Gao, M. Demirbas. Crowdsourcing for
        multiple-choice question answering. Proceedings of AAAI, 2014.

        Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
        truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
        doi:10.1145/2588555.2610509

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001110010")
    >>> Pm().fit(annotations).params.weight.round(2).tolist()
    [27.63, 0.69, 0.0]
    """
