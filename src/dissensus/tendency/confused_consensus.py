"""What is true of an item, seen through every annotator's confusion matrix.

    P(k says l of x) = Σ_t P(x is t) π[k, t, l]

The truth is estimated by an aggregator (Dawid and Skene's, if not told otherwise), a classifier
learns the belief in it, and π is counted under that belief; rows of annotators with few labels
lean on what all do. Annotators differ in how they err, never in which items they err on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..params import NonNegative
from ..registry import aggregators
from ._base import How, State, Tendency, Views
from .consensus import Consensus, Opinion

__all__ = ["ConfusedConsensus", "ConfusedTendency"]


class ConfusedTendency(Tendency):
    """An opinion, and confusion matrices."""

    def __init__(self, opinion: Opinion, confusion: Floats) -> None:
        self.opinion, self.confusion = opinion, confusion  # (annotator, true, given)
        self.n_annotators, self.n_classes = confusion.shape[:2]

    def log_probability(self, views: Views, item: Integers, annotator: Integers) -> Floats:
        asked, row = np.unique(np.asarray(item), return_inverse=True)
        posterior = np.exp(self.opinion.log_belief(views.take(asked)))
        return np.log(
            np.einsum("nt,ntl->nl", posterior[row], self.confusion[np.asarray(annotator)])
        )

    def state(self) -> State:
        own = State({}, {"confusion": self.confusion})
        return State.of(opinion=self.opinion.state(), own=own)


def count_confusion(annotations: Annotations, posterior: Floats, pooled: float) -> Floats:
    """Return confusion matrices by counting under a belief: (annotator, true, given)."""
    given_true: Floats = (
        annotations.part(0, annotations.n_items).labels.T @ posterior
    )  # annotator and given; true
    counts = given_true.reshape(annotations.n_annotators, annotations.n_classes, -1).swapaxes(1, 2)
    everyone = counts.sum(axis=0) + np.eye(annotations.n_classes) + 0.01
    found = counts + (pooled + 0.01) * everyone / everyone.sum(axis=1, keepdims=True)
    return found / found.sum(axis=2, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class ConfusedConsensus(Consensus):
    """The consensus, seen through every annotator's confusion matrix.

    Parameters
    ----------
    labels
        The aggregator that estimates what is true, as the registry writes it.
    pooled
        How many labels what all annotators do is worth, in every row of a confusion matrix.
    """

    labels: str = "dawid-skene"
    pooled: NonNegative = 5.0

    def learn(self, views: Views, annotations: Annotations, how: How) -> Tendency:
        posterior = np.array(aggregators.create(self.labels).fit(annotations).posterior)
        posterior[annotations.labels_per_item == 0] = 0
        confusion = count_confusion(annotations, posterior, self.pooled)
        return ConfusedTendency(self.opinion(views, posterior, how), confusion)

    def restore(self, state: State) -> Tendency:
        opinion = Opinion.from_state(state.inner("opinion"))
        return ConfusedTendency(opinion, state.inner("own").arrays["confusion"])
