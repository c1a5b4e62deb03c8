"""CRH: annotators are weighted by their share in all errors."""

from __future__ import annotations

from dataclasses import dataclass

from .truth_discovery import CrhWeights, DiscoveryVote


@dataclass(frozen=True, kw_only=True)
class Crh(CrhWeights, DiscoveryVote):
    """Votes weighted by the logarithm of annotators' share in all errors.

    CRH: annotators are weighted by their share in all errors.

    Every annotator's labels are compared with the present vote. Their weight is minus the logarithm
    of their share in the wrong labels of all. It iterates until the vote does not change; vote and
    weights each minimize the weighted number of wrong labels, the weights under the constraint that
    exp(-weight) sums to one, so it never rises.

        weight[a] = -log(wrong[a] / Σ_b wrong[b])

    When it fails: Annotators with many labels have many wrong ones, so those who work most count
    least, however good they are. A common bias is taken for quality.

        Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
        truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
        doi:10.1145/2588555.2610509

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001110010")
    >>> Crh().fit(annotations).params.weight.round(2).tolist()
    [27.63, 1.1, 0.41]
    """
