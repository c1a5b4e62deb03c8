"""What models of annotators are measured by: they leave out annotators, items, or what is shared.

The consensus is the same for all annotators, alone or seen through a confusion matrix of each.
An annotator's own rates are the same for all items, and classifiers learned independently share
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from scipy.special import log_softmax

from ...answers.annotations import Annotations, Floats, Integers
from ...base.arrays import Array
from ...base.progress import out_of_time, share_of_time
from ...params import Count, NonNegative, Positive
from ...registry import aggregators
from ..nn.features import Features
from .base import FitOptions, State, Tendency, TendencyMethod
from .linear import Linear
from .pairs import KERNELS, Components, Kernel, Pairs, class_basis, fit_components
from .shrunk import Priors, ShrunkLinear, fit_shrunk

_SHARED = (0.06, 0.12, 0.25, 0.5, 1.0, 2.0)
_SEARCH = 0.6  # of the time, for choosing kernel and prior
_TYPICAL = 0.5  # prior with which kernels are compared


class PosteriorClassifier:
    """A classifier of posterior probabilities: components and one linear head."""

    def __init__(self, components: Components, weight: Floats, level: Floats) -> None:
        self.components, self.weight, self.level = components, weight, level

    def log_posterior(self, features: Features, item: Integers) -> Floats:
        """Return log-probabilities of the classes of items: (item, class)."""
        items, row = np.unique(np.asarray(item), return_inverse=True)
        x = self.components.of(features.take(items))
        return log_softmax(x @ self.weight.T + self.level, axis=1)[row]

    def state(self) -> State:
        """Return what was learned."""
        head = State({}, {"weight": self.weight, "level": self.level})
        return State.join(components=State({}, self.components.arrays()), head=head)

    @classmethod
    def from_state(cls, state: State) -> PosteriorClassifier:
        """Return the classifier with this state."""
        components = Components.from_arrays(state.part("components").arrays)
        return cls(components, **state.part("head").arrays)

    @classmethod
    def fit(
        cls,
        features: Features,
        posterior: Floats,
        *,
        kernels: list[Kernel],
        most: int,
        folds: int,
        seed: int,
    ) -> PosteriorClassifier:
        """Fit to posteriors (item, class); items whose row is zero are ignored."""
        labelled = np.flatnonzero(posterior.sum(axis=1) > 0)
        features, posterior = features.take(labelled), posterior[labelled]
        folds = min(folds, len(labelled))
        fold = np.random.default_rng([seed, 0xF01D]).permutation(len(labelled)) % folds

        def losses(kernel: Kernel, priors: Sequence[float]) -> Floats:
            """Return the held-out log-loss under every prior."""
            out = np.zeros(len(priors))
            for number in range(folds) if folds > 1 else ():
                held = fold == number
                components, x = fit_components(features.vectors[~held], most, kernel, seed)
                held_x = components.of(features.take(np.flatnonzero(held)))
                data, start = _pairs(x, posterior[~held]), None
                for index, shared in enumerate(priors):
                    heads, start = fit_shrunk(data, Priors(shared), start=start)
                    log = log_softmax(held_x @ _weight(heads).T + heads.level, axis=1)
                    out[index] -= float((posterior[held] * log).sum())
            return out

        kernel, shared = kernels[0], _TYPICAL
        with share_of_time(_SEARCH):
            if len(kernels) > 1 and not out_of_time():
                kernel = min(kernels, key=lambda candidate: float(losses(candidate, [_TYPICAL])[0]))
            if not out_of_time():
                shared = _SHARED[int(losses(kernel, _SHARED).argmin())]
        components, x = fit_components(features.vectors, most, kernel, seed)
        data = _pairs(x, posterior)
        heads = fit_shrunk(data, Priors(shared), tol=1e-7, max_iter=200).heads
        return cls(components, _weight(heads), heads.level)


def _weight(heads: ShrunkLinear) -> Floats:
    """Return the shared head: (class, component)."""
    return heads.basis.T @ heads.weight


def _pairs(x: Array, posterior: Floats) -> Pairs:
    """Return the data of a fit with one annotator."""
    basis = class_basis(posterior.shape[1], ordinal=False)
    annotator = np.zeros(len(x), dtype=np.int64)
    return Pairs(
        x=x,
        item=np.arange(len(x)),
        annotator=annotator,
        target=posterior,
        metadata=np.zeros((1, 0)),
        basis=basis,
    )


def majority_posterior(annotations: Annotations) -> Floats:
    """Return the majority label of every item, divided equally between ties: (item, class)."""
    votes = annotations.votes()
    most = votes.max(axis=1, keepdims=True)
    ahead = ((votes == most) & (most > 0)).astype(np.float64)
    return ahead / np.maximum(ahead.sum(axis=1, keepdims=True), 1)


class ConsensusTendency(Tendency):
    """The same prediction for every annotator."""

    def __init__(self, classifier: PosteriorClassifier, n_annotators: int) -> None:
        self.classifier, self.n_annotators = classifier, n_annotators
        self.n_classes = len(classifier.level)

    def log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        return self.classifier.log_posterior(features, item)

    def state(self) -> State:
        notes = {"n_annotators": self.n_annotators}
        return State.join(notes, classifier=self.classifier.state())

    def with_annotator(self, features: Features, label: Integers, options: FitOptions) -> Tendency:
        return ConsensusTendency(self.classifier, self.n_annotators + 1)


@dataclass(frozen=True, kw_only=True)
class Consensus(TendencyMethod):
    """One prediction for all annotators, learned from majority labels.

    One prediction for all annotators: a classifier of the majority label.

    This is what most work with annotations does. It cannot distinguish annotators, and it is more
    confident than they are: the majority of five is nearly certain where each of the five is not.
    Ridge and kernel are chosen by the held-out log-loss of majority labels, as for any classifier.

        P(k gives l to x) = p_l(x),   p learned from majority labels

    When it fails: Wherever annotators differ: it is the same for all, and overconfident about each
    of them.

    Parameters
    ----------
    kernel
        Of the components, as in `linear`.
    components
        Maximal number of components.
    folds
        Folds of the cross-validation.
    """

    kernel: Literal["auto", "linear", "rbf", "cosine"] = "auto"
    components: Count = 256
    folds: Annotated[int, Ge(2)] = 3

    def classifier(
        self, features: Features, posterior: Floats, context: FitOptions
    ) -> PosteriorClassifier:
        """Return a classifier of posteriors."""
        kernels = list(KERNELS.values()) if self.kernel == "auto" else [KERNELS[self.kernel]]
        return PosteriorClassifier.fit(
            features,
            posterior,
            kernels=kernels,
            most=self.components,
            folds=self.folds,
            seed=context.seed,
        )

    def _fit(self, features: Features, annotations: Annotations, context: FitOptions) -> Tendency:
        classifier = self.classifier(features, majority_posterior(annotations), context)
        return ConsensusTendency(classifier, annotations.n_annotators)

    def restore(self, state: State) -> Tendency:
        classifier = PosteriorClassifier.from_state(state.part("classifier"))
        return ConsensusTendency(classifier, state.notes["n_annotators"])


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


@dataclass(frozen=True, kw_only=True)
class Independent(Linear):
    """A classifier per annotator, learned from their labels alone.

    A classifier per annotator, learned from their labels alone.

    Annotators share nothing: with thousands of labels each this suffices, with forty it is worse
    than the consensus. All have the same ridge, chosen by cross-validation.

        P(k gives · to x) = softmax(W[k] x),   learned from the labels of k alone

    When it fails: With few labels per annotator: with forty each it is worse than the consensus.
    """

    shared: Positive | None = 1.0  # unused: `start` leaves the shared head out
    bias: NonNegative | None = 2.0
    slope: NonNegative | None = 0.0
    metadata: NonNegative | None = 0.0

    def start(self, has_metadata: bool) -> Priors:
        priors = super().start(has_metadata)
        return priors._replace(shared=0.0, level=0.0, own=priors.own or 0.5)

    def grid(self, has_metadata: bool) -> dict[str, Sequence[float]]:
        return {"own": (0.06, 0.12, 0.25, 0.5, 1.0, 2.0)} if self.own is None else {}


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
