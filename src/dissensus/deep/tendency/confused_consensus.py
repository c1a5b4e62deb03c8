"""The truth of an item, seen through every annotator's confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...answers.annotations import Annotations, Floats, Integers
from ..nn.features import Features
from ...params import NonNegative
from ...registry import aggregators
from .base import FitOptions, State, Tendency
from .baselines import Consensus, PosteriorClassifier


class ConfusedTendency(Tendency):
    """A classifier of the truth, and confusion matrices."""

    def __init__(self, classifier: PosteriorClassifier, confusion: Floats) -> None:
        self.classifier, self.confusion = classifier, confusion  # (annotator, true, given)
        self.n_annotators, self.n_classes = confusion.shape[:2]

    def log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        posterior = np.exp(self.classifier.log_posterior(features, item))
        return np.log(np.einsum("nt,ntl->nl", posterior, self.confusion[np.asarray(annotator)]))

    def state(self) -> State:
        own = State({}, {"confusion": self.confusion})
        return State.join(classifier=self.classifier.state(), own=own)


def count_confusion(annotations: Annotations, posterior: Floats, pooled: float) -> Floats:
    """Return confusion matrices counted under a posterior: (annotator, true, given)."""
    given_true = annotations.part(0, annotations.n_items).labels.T @ posterior  # (… given, true)
    counts = given_true.reshape(annotations.n_annotators, annotations.n_classes, -1).swapaxes(1, 2)
    overall = counts.sum(axis=0) + np.eye(annotations.n_classes) + 0.01
    smoothed = counts + (pooled + 0.01) * overall / overall.sum(axis=1, keepdims=True)
    return smoothed / smoothed.sum(axis=2, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class ConfusedConsensus(Consensus):
    """The consensus, seen through every annotator's confusion matrix.

    The truth of an item, seen through every annotator's confusion matrix.

        P(k says l of x) = Σ_t P(x is t) π[k, t, l]

    The truth is estimated by an aggregator (Dawid and Skene's by default), a classifier learns its
    posterior, and π is counted under that posterior, with rows of annotators with few labels shrunk
    towards those of all. Annotators differ in how they err, but not in the items on which they err.

    When it fails: Where annotators differ by item rather than by class, as with taste. There may be
    no truth to be confused about.

    Parameters
    ----------
    labels
        The aggregator that estimates the truth, as the registry writes it.
    pooled
        Pseudo-count of labels with the confusion of all annotators, in every row.
    """

    labels: str = "dawid-skene"
    pooled: NonNegative = 5.0

    def _fit(self, features: Features, annotations: Annotations, context: FitOptions) -> Tendency:
        posterior = np.array(aggregators.create(self.labels).fit(annotations).posterior)
        posterior[annotations.labels_per_item == 0] = 0
        confusion = count_confusion(annotations, posterior, self.pooled)
        return ConfusedTendency(self.classifier(features, posterior, context), confusion)

    def restore(self, state: State) -> Tendency:
        classifier = PosteriorClassifier.from_state(state.part("classifier"))
        return ConfusedTendency(classifier, state.part("own").arrays["confusion"])
