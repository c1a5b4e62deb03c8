"""One prediction for all annotators: a classifier of the majority label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from scipy.special import log_softmax

from ...base.arrays import Array
from ...base.time_limit import out_of_time, share_of_time
from ...answers.annotations import Annotations, Floats, Integers
from ..nn.features import Features
from ...params import Count
from .base import FitOptions, State, Tendency, TendencyMethod
from .components import KERNELS, Components, Kernel, fit_components
from .pairs import Pairs, class_basis
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
            for each in range(folds) if folds > 1 else ():
                held = fold == each
                components, x = fit_components(features.vectors[~held], most, kernel, seed)
                there = components.of(features.take(np.flatnonzero(held)))
                data, start = _pairs(x, posterior[~held]), None
                for index, shared in enumerate(priors):
                    heads, start = fit_shrunk(data, Priors(shared), start=start)
                    log = log_softmax(there @ _weight(heads).T + heads.level, axis=1)
                    out[index] -= float((posterior[held] * log).sum())
            return out

        kernel, shared = kernels[0], _TYPICAL
        with share_of_time(_SEARCH):
            if len(kernels) > 1 and not out_of_time():
                kernel = min(kernels, key=lambda each: float(losses(each, [_TYPICAL])[0]))
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
    return Pairs(x, np.arange(len(x)), annotator, posterior, np.zeros((1, 0)), basis)


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
            features, posterior, kernels, self.components, self.folds, context.seed
        )

    def _fit(self, features: Features, annotations: Annotations, context: FitOptions) -> Tendency:
        classifier = self.classifier(features, majority_posterior(annotations), context)
        return ConsensusTendency(classifier, annotations.n_annotators)

    def restore(self, state: State) -> Tendency:
        classifier = PosteriorClassifier.from_state(state.part("classifier"))
        return ConsensusTendency(classifier, state.notes["n_annotators"])
