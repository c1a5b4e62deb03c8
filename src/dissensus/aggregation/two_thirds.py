"""Two-thirds agreement: a label needs enough votes, and enough of them for one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..base.probability import TIE, most_probable
from ..base.arrays import Floats, Integers
from ..params import Count, Probability
from ..method import FitContext
from .votes import VoteAggregator


@dataclass(frozen=True, kw_only=True)
class TwoThirds(VoteAggregator):
    """The class with most votes, if it has two thirds of them.

    Two-thirds agreement: a label needs enough votes, and enough of them for one class.

    The posterior of a class is its share of votes. The label is the class with most, where there
    are at least `least_labels` labels and it has at least `least_share` of them; elsewhere the item
    stays undecided. Known from citizen science and from peerannot.

        label[i] = argmax_t votes[i, t]   if Σ_t votes[i, t] ≥ least_labels
                                          and max_t votes[i, t] ≥ least_share · Σ_t votes[i, t]

    When it fails: On hard items and on small crowds: many items stay undecided, and those are not a
    random part of the data. A biased majority passes the rule as easily as a right one.

        T. Lefort, B. Charlier, A. Joly, J. Salmon. Peerannot: classification for crowdsourced image
        datasets with Python. Computo, 2024. doi:10.57750/qmaz-gr91

    Parameters
    ----------
    least_share
        Share of votes that a class needs for a label.
    least_labels
        Number of labels that an item needs for a label.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbc", "xyzxyx", ["dog", "dog", "cat"] * 2)
    >>> TwoThirds().fit(annotations).labels.tolist()
    ['dog', 'dog', None]
    """

    abstains: ClassVar[bool] = True

    least_share: Probability = 2 / 3
    least_labels: Count = 2

    def decide(self, fit: FitContext, posterior: Floats, params: Any) -> Integers:
        enough = fit.annotations.labels_per_item >= self.least_labels
        enough &= posterior.max(axis=1) >= self.least_share - TIE
        return np.where(enough, most_probable(posterior), -1)
