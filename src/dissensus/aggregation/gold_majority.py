"""Gold majority: votes weigh as much as annotators were right where the truth is known.

The weight of an annotator is their accuracy on items with gold, with Laplace's correction,
(right + smoothing) / (labels + 2 * smoothing). Those who labelled no such item get a default
weight. Without any gold all weigh alike, and the vote is the plain one.

    R. Snow, B. O'Connor, D. Jurafsky, A. Ng. Cheap and fast - but is it good? Evaluating
    non-expert annotations for natural language tasks. EMNLP 2008
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._relation import Floats
from ..annotations import Part
from ..params import NonNegative, Positive
from ._base import Fit
from ._votes import Found, Record, WeightedVote, Weights

__all__ = ["GoldMajority"]


@dataclass(frozen=True, kw_only=True)
class GoldMajority(WeightedVote):
    """Votes weighted by accuracy on items with gold.

    Parameters
    ----------
    smoothing
        Right and wrong labels added to everybody's, as many of each.
    default
        Weight of annotators without a label on gold; by default the mean of the others.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> GoldMajority().fit(annotations, gold={"b": "1"}).quality.round(2).tolist()
    [0.67, 0.67, 0.33]
    """

    smoothing: Positive = 1.0
    default: NonNegative | None = None

    def weigh(self, fit: Fit) -> Found:
        n_annotators, n_classes = fit.annotations.n_annotators, fit.annotations.n_classes
        if fit.gold is None:
            record = self.record(fit)
            weight = np.full(n_annotators, 1.0 if self.default is None else self.default)
            return Found(Weights(weight, record.average_others(record.accuracy)))
        right, labels = fit.add_up(_on_gold)
        record = Record(right, labels, n_classes)
        accuracy = (right + self.smoothing) / (labels + 2 * self.smoothing)
        weight = record.average_others(accuracy)
        if self.default is not None:
            weight[labels == 0] = self.default
        return Found(Weights(weight, accuracy))


def _on_gold(part: Part) -> tuple[Floats, Floats]:
    """Return how many labels on gold every annotator gave, those that are right and all."""
    gold = np.asarray(part.gold)[part.item]
    known, right = gold >= 0, gold == part.label
    return part.by_annotator(right.astype(float)), part.by_annotator(known.astype(float))
