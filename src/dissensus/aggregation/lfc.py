"""Learning from crowds (Raykar et al. 2010): a classifier and confusion matrices, fitted together.

Items have features. A logistic classifier with scores weights[:, t] · features is the prior of an
item's class; annotators have confusion matrices `confusion[a, t, g]`. The E-step combines
classifier and labels, the M-step fits the classifier to the posterior by Newton steps. The
objective is the likelihood with smoothed confusion and a normal prior on the weights, and never
falls. Without features there is only the intercept, and the model is that of `dawid-skene`.

    P(labels of i, t) = softmax(features[i] · weights)[t] · Π_a confusion[a, t, label of a on i]

When it fails: Where features are many and items few, the classifier learns the labels by heart
and confirms them; where classes are not linearly separable it pulls posteriors towards wrong
boundaries.

    V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni, L. Moy. Learning from
    crowds. Journal of Machine Learning Research 11, 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import ClassVar, NamedTuple

import numpy as np

from ..answers.annotations import Annotations, Part
from ..base.arrays import Floats, Integers
from ..base.engine import add
from ..base.probability import log_normalize, normalize, safe_log
from ..errors import DataError
from ..params import NonNegative
from .classes import ClassContext
from .dawid_skene import Confusion
from .em import Alternating, State, expectation, start_posterior

_STEPS = (1, 10)  # Newton steps in an iteration, with features and with the intercept alone
_GAIN = 1e-12  # relative gain of the last step; smaller losses are rounding errors
_HALVINGS = 30
_RIDGE = 1e-9  # the scores of classes are determined up to a constant


class LfcParams(NamedTuple):
    """Parameters of the classifier and of the annotators."""

    weights: Floats  # (1 + feature, true class): the intercept comes first
    log_prior: Floats  # (true class): prevalence among the items
    log_given: Floats  # (annotator and given class, true class)

    @property
    def annotators(self) -> Confusion:
        """Prevalence and confusion matrices."""
        return Confusion(self.log_prior, self.log_given)

    @property
    def prior(self) -> Floats:
        """Prevalence of the classes: (true class)."""
        return self.annotators.prior

    @property
    def confusion(self) -> Floats:
        """Confusion matrices: (annotator, true class, given class)."""
        return self.annotators.confusion

    def reindex(self, indices: Integers, n_items: int) -> LfcParams:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        return self._replace(log_given=self.annotators.reindex(indices, n_items).log_given)


@dataclass(frozen=True, kw_only=True)
class Lfc(Alternating[LfcParams]):
    """A logistic classifier and one confusion matrix per annotator, fitted together with EM.

    It uses the `features` of a fit, (item, feature), best of about unit variance, and those given
    to `result.predict`. The posterior of unlabelled items is the classifier's prediction.

    Parameters
    ----------
    smoothing
        Pseudo-count added to every cell of a confusion matrix.
    decay
        L2 penalty of the weights; the intercept is free.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Lfc().fit(annotations, features=np.array([[-1.0], [1.0]])).labels.tolist()
    ['0', '1']
    """

    params_type: ClassVar[type] = LfcParams

    smoothing: NonNegative = 0.01
    decay: NonNegative = 1.0

    def first_state(self, fit: ClassContext) -> State[LfcParams]:
        n_classes = fit.answers.n_classes
        weights = np.zeros((_design(fit).shape[1], n_classes))
        nothing = np.empty((0, n_classes))
        return State(LfcParams(weights, nothing, nothing), start_posterior(fit))

    def advance(self, fit: ClassContext, last: State[LfcParams]) -> State[LfcParams]:
        design, labelled = _design(fit), np.concatenate([~part.blank for part in fit.parts])
        given_true = reduce(
            add, fit.engine.each(partial(_given_true, posterior=last.posterior), fit.parts)
        )
        rows = _rows(design[labelled], last.posterior[labelled])
        params = self._params(
            design[labelled], self._fit_classifier(*rows, last.params.weights), given_true
        )
        posterior, evidence = self._e_step(fit, params, _log_softmax(design @ params.weights))
        penalty = 0.5 * self.decay * float((params.weights[1:] ** 2).sum())
        smooth = self.smoothing * float(params.log_given.sum())
        return State(params, posterior, evidence + smooth - penalty)

    def posterior(self, fit: ClassContext, params: LfcParams) -> Floats:
        """Return the posterior; items without features count as average ones."""
        if fit.features is None:
            log_true = np.tile(params.log_prior, (fit.answers.n_items, 1))
        else:
            design, n_features = _design(fit), len(params.weights) - 1
            if design.shape[1] - 1 != n_features:
                raise DataError(
                    f"{design.shape[1] - 1} features of every item, but the classifier was trained "
                    f"with {n_features}"
                )
            log_true = _log_softmax(design @ params.weights)
        return self._e_step(fit, params, log_true)[0]

    def n_floats(self, annotations: Annotations) -> int:
        return (
            2 * super().n_floats(annotations)
            + 3 * annotations.n_annotators * annotations.n_classes**2
        )

    def _params(self, design: Floats, weights: Floats, given_true: Floats) -> LfcParams:
        n_classes = weights.shape[1]
        cells = given_true.reshape(-1, n_classes, n_classes) + self.smoothing
        log_given = safe_log(normalize(cells, axis=1)).reshape(-1, n_classes)
        prior = normalize(np.exp(_log_softmax(design @ weights)).sum(axis=0))
        return LfcParams(weights, safe_log(prior), log_given)

    def _e_step(
        self, fit: ClassContext, params: LfcParams, log_true: Floats
    ) -> tuple[Floats, float]:
        """Return the posterior of all items and the log evidence."""
        work = partial(_e_step, log_given=params.log_given, log_true=log_true)
        return expectation(fit, work)

    def _fit_classifier(self, design: Floats, posterior: Floats, weights: Floats) -> Floats:
        """Return weights of a classifier that agrees better with the posterior."""
        decay = np.full((len(weights), 1), self.decay)
        decay[0] = 0.0

        def value(weights: Floats) -> float:
            likely = np.einsum("it,it->", posterior, _log_softmax(design @ weights))
            return float(likely - 0.5 * (decay * weights**2).sum())

        present = value(weights)
        for _ in range(_STEPS[len(weights) == 1]):
            step = _newton_step(design, posterior, weights, decay)
            for _ in range(_HALVINGS):
                candidate = value(weights + step)
                if candidate >= present - _GAIN * max(1.0, abs(present)):
                    break
                step /= 2
            else:
                return weights
            gain, present, weights = candidate - present, candidate, weights + step
            if gain <= _GAIN * max(1.0, abs(present)):
                break
        return weights


def _newton_step(design: Floats, posterior: Floats, weights: Floats, decay: Floats) -> Floats:
    """Return the Newton step of the weights."""
    n_features, n_classes = weights.shape
    many = posterior.sum(axis=1, keepdims=True)  # items that a row represents
    probability = np.exp(_log_softmax(design @ weights))  # (item, true class)
    gradient = design.T @ (posterior - many * probability) - decay * weights
    wide = (probability[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    hessian = -(wide * many).T @ wide  # (true class and feature, the same)
    blocks = (design.T @ (wide * many)).reshape(n_features, n_classes, n_features)
    for true_class in range(n_classes):
        block = slice(true_class * n_features, (true_class + 1) * n_features)
        hessian[block, block] += blocks[:, true_class] + np.diagflat(decay)
    ridge = _RIDGE * max(1.0, hessian.diagonal().max())
    step = np.linalg.solve(hessian + ridge * np.eye(len(hessian)), gradient.T.ravel())
    return np.asarray(step, dtype=np.float64).reshape(n_classes, n_features).T


def _design(fit: ClassContext) -> Floats:
    """Return the design matrix, the intercept first: (item, 1 + feature)."""
    intercept = np.ones((fit.answers.n_items, 1))
    if fit.features is None:
        return intercept
    features = np.asarray(fit.features, dtype=float).reshape(len(intercept), -1)
    if not np.isfinite(features).all():
        bad = fit.answers.items[~np.isfinite(features).all(axis=1)][0]
        raise DataError(f"the features of item {bad!r} are not all numbers")
    return np.concatenate([intercept, features], axis=1)


def _rows(design: Floats, posterior: Floats) -> tuple[Floats, Floats]:
    """Return the training data of the classifier; with the intercept alone, one row is enough."""
    if design.shape[1] > 1:
        return design, posterior
    return design[:1], posterior.sum(axis=0, keepdims=True)[: len(design)]


def _given_true(part: Part, posterior: Floats) -> Floats:
    return part.labels.T @ posterior[part.start : part.stop]


def _e_step(part: Part, log_given: Floats, log_true: Floats) -> tuple[float, Floats]:
    """Return log evidence and posterior of a part."""
    joint = part.labels @ log_given
    joint += log_true[part.start : part.stop]
    return log_normalize(joint, part.allowed)


def _log_softmax(x: Floats) -> Floats:
    x = x - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))
