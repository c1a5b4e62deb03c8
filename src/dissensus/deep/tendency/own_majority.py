"""Every annotator gives labels at their own rates, whatever the item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...answers.annotations import Annotations, Floats, Integers
from ..nn.features import Features
from ...params import Positive
from .base import FitOptions, State, Tendency, TendencyMethod


def label_counts(annotations: Annotations) -> Integers:
    """Return how often annotators gave every class: (annotator, class)."""
    n_classes = annotations.n_classes
    cells = annotations.annotator.astype(np.int64) * n_classes + annotations.label
    counts = np.bincount(cells, minlength=annotations.n_annotators * n_classes)
    return counts.reshape(-1, n_classes)


def label_marginals(annotations: Annotations, pooled: float = 2.0) -> Floats:
    """Return smoothed shares of classes among every annotator's labels: (annotator, class).

    >>> annotations = Annotations.from_matrix([[0, 1], [0, 1], [0, -1]])
    >>> label_marginals(annotations, 1.0)[0].round(2).tolist()
    [0.9, 0.1]
    """
    counts = label_counts(annotations)
    overall = counts.sum(axis=0) + 1 / annotations.n_classes
    smoothed = counts + pooled * overall / overall.sum()
    return smoothed / smoothed.sum(axis=1, keepdims=True)


class OwnMajorityTendency(Tendency):
    """Label marginals of every annotator."""

    def __init__(self, log_marginals: Floats) -> None:
        self.log_marginals = log_marginals  # (annotator, class)
        self.n_annotators, self.n_classes = log_marginals.shape

    def log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        return self.log_marginals[annotator]

    def state(self) -> State:
        return State({}, {"log_marginals": self.log_marginals})


@dataclass(frozen=True, kw_only=True)
class OwnMajority(TendencyMethod):
    """Label marginals of every annotator, whatever the item.

    Every annotator gives labels at their own rates, whatever the item.

    The probability of a class is its share among the annotator's labels, shrunk towards its share
    among all labels as if `pooled` more labels had been seen. With two classes and annotators who
    mostly use one of them, much of what looks like a good prediction is this.

        P(k gives l) = (labels[k, l] + pooled · share[l]) / (labels[k] + pooled)

    When it fails: It never distinguishes items. In accuracy it looks strong where one class is
    common; the log loss shows that it is not.

    Parameters
    ----------
    pooled
        Pseudo-count of labels with the marginals of all annotators.
    """

    pooled: Positive = 2.0

    def _fit(
        self, features: Features, annotations: Annotations, context: FitOptions
    ) -> OwnMajorityTendency:
        return OwnMajorityTendency(np.log(label_marginals(annotations, self.pooled)))

    def restore(self, state: State) -> OwnMajorityTendency:
        return OwnMajorityTendency(**state.arrays)
