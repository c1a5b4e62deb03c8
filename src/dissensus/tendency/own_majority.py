"""Every annotator says what they have always said, whatever the item.

The chance of a class is its share among the annotator's labels, drawn towards its share among all
labels as if `pooled` more had been seen of those. With two classes and a crowd that mostly says
one of them, much that looks like foresight is this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..params import Positive
from ._base import How, State, Tendency, TendencyMethod, Views

__all__ = ["OwnMajority", "OwnMajorityTendency", "habits"]


def habits(annotations: Annotations, pooled: float) -> Floats:
    """Return how often annotators say every class: (annotator, class).

    >>> annotations = Annotations.from_matrix([[0, 1], [0, 1], [0, -1]])
    >>> habits(annotations, 1.0)[0].round(2).tolist()
    [0.9, 0.1]
    """
    n_classes = annotations.n_classes
    cells = annotations.annotator.astype(np.int64) * n_classes + annotations.label
    counts = np.bincount(cells, minlength=annotations.n_annotators * n_classes).reshape(
        -1, n_classes
    )
    everyone = counts.sum(axis=0) + 1 / n_classes
    found = counts + pooled * everyone / everyone.sum()
    return found / found.sum(axis=1, keepdims=True)


class OwnMajorityTendency(Tendency):
    """How often every annotator says every class."""

    def __init__(self, log_habit: Floats, pooled: float) -> None:
        self.log_habit, self.pooled = log_habit, pooled  # (annotator, class)
        self.n_annotators, self.n_classes = log_habit.shape

    def log_probability(self, views: Views, item: Integers, annotator: Integers) -> Floats:
        return self.log_habit[annotator]

    def state(self) -> State:
        return State({"pooled": self.pooled}, {"log_habit": self.log_habit})


@dataclass(frozen=True, kw_only=True)
class OwnMajority(TendencyMethod):
    """Every annotator says what they have always said, whatever the item.

    Parameters
    ----------
    pooled
        How many labels the habits of all are worth, beside an annotator's own.
    """

    pooled: Positive = 2.0

    def learn(self, views: Views, annotations: Annotations, how: How) -> OwnMajorityTendency:
        return OwnMajorityTendency(np.log(habits(annotations, self.pooled)), self.pooled)

    def restore(self, state: State) -> OwnMajorityTendency:
        return OwnMajorityTendency(state.arrays["log_habit"], state.notes["pooled"])
