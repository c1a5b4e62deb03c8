"""Log-odds vote: the optimal weights for annotators of known accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from ..base.arrays import Floats
from ..params import Positive
from .votes import IteratedVote, Record


@dataclass(frozen=True, kw_only=True)
class LogOdds(IteratedVote):
    """Votes weighted by the log-odds of being right.

    Log-odds vote: the optimal weights for annotators of known accuracy.

    If annotator a is right with probability p and otherwise names any other class with equal
    probability, the optimal vote gives them the weight log(p (n_classes - 1) / (1 - p)) (Nitzan &
    Paroush 1982), and its scores are log posteriors. Here p is measured against the present vote,
    (right + smoothing) / (labels + n_classes * smoothing), and iterated until the vote does not
    change: the one-coin model fitted with hard labels.

        p[a] = (right[a] + smoothing) / (labels[a] + n_classes · smoothing)
        weight[a] = log(p[a] (n_classes - 1) / (1 - p[a]))

    When it fails: As `iwmv`, and more strongly: one annotator who seems perfect outweighs many
    others. It cannot express that a class is often missed, so rare classes suffer.

        S. Nitzan, J. Paroush. Optimal decision rules in uncertain dichotomous choice situations.
        International Economic Review 23(2), 1982. doi:10.2307/2526438

    Parameters
    ----------
    smoothing
        Pseudo-count of right labels, and of labels for each wrong class.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> LogOdds().fit(annotations).params.weight.round(2).tolist()
    [1.1, 1.1, -1.1]
    """

    log_odds: ClassVar[bool] = True

    smoothing: Positive = 1.0

    def weight(self, record: Record) -> Floats:
        right, wrong, others = self._counts(record)
        return np.log(right * others / wrong)

    def objective(self, record: Record) -> Floats:
        right, wrong, others = self._counts(record)
        return xlogy(right, right) + xlogy(wrong, wrong) + record.right * np.log(others)

    def _counts(self, record: Record) -> tuple[Floats, Floats, int]:
        """Return smoothed counts of right and wrong labels, and the number of wrong classes."""
        others = max(record.n_classes - 1, 1)
        wrong = record.labels - record.right
        return record.right + self.smoothing, wrong + others * self.smoothing, others
