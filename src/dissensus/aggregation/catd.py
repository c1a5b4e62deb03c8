"""CATD: annotators are weighted by a confidence bound of their error rate."""

from __future__ import annotations

from dataclasses import dataclass

from ..method import FitContext
from .truth_discovery import CatdWeights, DiscoveryVote
from .votes import Record


@dataclass(frozen=True, kw_only=True)
class Catd(CatdWeights, DiscoveryVote):
    """Votes weighted by a lower bound of annotators' precision.

    CATD: annotators are weighted by a confidence bound of their error rate.

    Every annotator's labels are compared with the present vote. Their weight is one over the upper
    bound of a confidence interval for their error rate: the lower quantile of chi-squared with as
    many degrees of freedom as labels, divided by the number of wrong ones. So annotators with few
    labels count less than their few errors suggest. It iterates until the vote does not change; no
    iteration raises the sum over annotators of quantile times the logarithm of wrong labels.

        wrong[a] = number of a's labels that differ from the present vote
        weight[a] = chi-squared quantile(significance / 2, labels[a]) / wrong[a]

    When it fails: An annotator who agrees with every vote gets a very large weight and may decide
    alone. As in all methods that judge annotators by the vote, a common bias is taken for quality.

        Q. Li, Y. Li, J. Gao, L. Su, B. Zhao, M. Demirbas, W. Fan, J. Han. A confidence-aware
        approach for truth discovery on long-tail data. Proceedings of the VLDB Endowment 8(4),
        2014.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001110110")
    >>> Catd().fit(annotations).params.weight.round(2)[2]
    np.float64(0.07)
    """

    def first_record(self, fit: FitContext) -> Record:
        return self.record(fit)  # always from plain votes: there are several fixed points
