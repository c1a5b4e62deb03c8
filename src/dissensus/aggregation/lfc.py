"""Learning from crowds (Raykar et al. 2010): a classifier of the items, learned with the crowd.

Items come with features. A logistic classifier says how probable every class of an item is before
anybody has labelled it, weights[:, t] · features; annotator a makes of class t what
`confusion[a, t, g]` says. EM learns both at once: the classifier from the belief in the truth, by
Newton steps, and that belief from classifier and labels. The objective is the likelihood with
smoothed confusion and a normal prior on the weights, and never falls. Without features there is
only the constant one, and the model is that of `dawid-skene`.

    V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni, L. Moy. Learning from
    crowds. Journal of Machine Learning Research 11, 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from .._relation import Floats, Integers
from ..annotations import Annotations, Part
from ..engine import add
from ..errors import DataError
from ..params import NonNegative
from ._alternating import AlternatingAggregator, Reached, expected, first_posterior
from ._base import Fit, first_best, share
from ._em import logs, normalise
from .dawid_skene import Confusion

__all__ = ["Lfc", "Taught"]

_STEPS = (1, 10)  # Newton steps in a round, with features and where only the constant is known
_GAIN = 1e-12  # a step that gains less than this share is the last; losses below it are rounding
_HALVINGS = 30
_RIDGE = 1e-9  # classes may all be moved alike, and nothing would change


class Taught(NamedTuple):
    """What the crowd has taught: a classifier, and what is known of the crowd."""

    weights: Floats  # (1 + feature, true class): the constant comes first
    log_prior: Floats  # (true class): how common classes are among the items
    log_given: Floats  # (annotator and given class, true class)

    @property
    def crowd(self) -> Confusion:
        """What is known of the annotators."""
        return Confusion(self.log_prior, self.log_given)

    def reindex(self, indices: Integers, n_items: int) -> Taught:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        return self._replace(log_given=self.crowd.reindex(indices, n_items).log_given)


@dataclass(frozen=True, kw_only=True)
class Lfc(AlternatingAggregator[Taught]):
    """A logistic classifier and one confusion matrix per annotator, fitted together with EM.

    It uses the `features` of a fit, (item, feature), best of about unit size, and those given to
    `result.predict`. Items that nobody labelled get the classifier's opinion as their posterior.

    Parameters
    ----------
    smoothing
        Pseudo-count added to every cell of a confusion matrix.
    decay
        How strongly the weights of features are held near zero; the constant is free.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Lfc().fit(annotations, features=np.array([[-1.0], [1.0]])).labels.tolist()
    ['0', '1']
    """

    learns: ClassVar[type] = Taught

    smoothing: NonNegative = 0.01
    decay: NonNegative = 1.0

    def begin(self, fit: Fit) -> Reached[Taught]:
        n_classes = fit.annotations.n_classes
        weights = np.zeros((_design(fit).shape[1], n_classes))
        nothing = np.empty((0, n_classes))
        return Reached(Taught(weights, nothing, nothing), first_posterior(fit))

    def advance(self, fit: Fit, last: Reached[Taught]) -> Reached[Taught]:
        design, heard = _design(fit), np.concatenate([~part.blank for part in fit.parts])
        given_true = add(fit.engine.each(partial(_learn, posterior=last.posterior), fit.parts))
        rows = _rows(design[heard], last.posterior[heard])
        params = self._params(design[heard], self._teach(*rows, last.params.weights), given_true)
        posterior, evidence = self._expect(fit, params, _log_softmax(design @ params.weights))
        penalty = 0.5 * self.decay * float((params.weights[1:] ** 2).sum())
        smooth = self.smoothing * float(params.log_given.sum())
        return Reached(params, posterior, evidence + smooth - penalty)

    def judge(self, fit: Fit, params: Taught) -> tuple[Floats, Integers]:
        """Return posterior and labels; items without features are taken for average ones."""
        if fit.features is None:
            log_true = np.tile(params.log_prior, (fit.annotations.n_items, 1))
        else:
            design, known = _design(fit), len(params.weights) - 1
            if design.shape[1] - 1 != known:
                raise DataError(
                    f"{design.shape[1] - 1} features of every item, but the classifier was taught "
                    f"with {known}"
                )
            log_true = _log_softmax(design @ params.weights)
        posterior, _ = self._expect(fit, params, log_true)
        return posterior, first_best(posterior)

    def confusion(self, params: Taught) -> Floats:
        return params.crowd.confusion

    def quality(self, params: Taught, agreement: Floats) -> Floats:
        crowd = params.crowd
        return np.minimum(np.einsum("t,att->a", crowd.prior, crowd.confusion), 1.0)

    def n_numbers(self, annotations: Annotations) -> int:
        return (
            2 * super().n_numbers(annotations)
            + 3 * annotations.n_annotators * annotations.n_classes**2
        )

    def _params(self, design: Floats, weights: Floats, given_true: Floats) -> Taught:
        n_classes = weights.shape[1]
        given = given_true.reshape(-1, n_classes, n_classes) + self.smoothing
        log_given = logs(share(given, axis=1)).reshape(-1, n_classes)
        prior = share(np.exp(_log_softmax(design @ weights)).sum(axis=0))
        return Taught(weights, logs(prior), log_given)

    def _expect(self, fit: Fit, params: Taught, log_true: Floats) -> tuple[Floats, float]:
        """Return the posterior of all items and the log evidence."""
        work = partial(_expect, log_given=params.log_given, log_true=log_true)
        return expected(fit, work)

    def _teach(self, design: Floats, posterior: Floats, weights: Floats) -> Floats:
        """Return weights of a classifier that agrees better with what is believed."""
        decay = np.full((len(weights), 1), self.decay)
        decay[0] = 0.0

        def value(weights: Floats) -> float:
            likely = np.einsum("it,it->", posterior, _log_softmax(design @ weights))
            return float(likely - 0.5 * (decay * weights**2).sum())

        now = value(weights)
        for _ in range(_STEPS[len(weights) == 1]):
            step = _newton_step(design, posterior, weights, decay)
            for _ in range(_HALVINGS):
                then = value(weights + step)
                if then >= now - _GAIN * max(1.0, abs(now)):
                    break
                step /= 2
            else:
                return weights
            gain, now, weights = then - now, then, weights + step
            if gain <= _GAIN * max(1.0, abs(now)):
                break
        return weights


def _newton_step(design: Floats, posterior: Floats, weights: Floats, decay: Floats) -> Floats:
    """Return the step that would be best if the objective were the parabola it looks like."""
    n_features, n_classes = weights.shape
    many = posterior.sum(axis=1, keepdims=True)  # how many items a row stands for
    chance = np.exp(_log_softmax(design @ weights))  # (item, true class)
    slope = design.T @ (posterior - many * chance) - decay * weights
    wide = (chance[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    curve = -(wide * many).T @ wide  # (true class and feature, the same)
    blocks = (design.T @ (wide * many)).reshape(n_features, n_classes, n_features)
    for one in range(n_classes):
        block = slice(one * n_features, (one + 1) * n_features)
        curve[block, block] += blocks[:, one] + np.diagflat(decay)
    ridge = _RIDGE * max(1.0, curve.diagonal().max())
    step = np.linalg.solve(curve + ridge * np.eye(len(curve)), slope.T.ravel())
    return np.asarray(step, dtype=np.float64).reshape(n_classes, n_features).T


def _design(fit: Fit) -> Floats:
    """Return the features with a constant before them: (item, 1 + feature)."""
    constant = np.ones((fit.annotations.n_items, 1))
    if fit.features is None:
        return constant
    features = np.asarray(fit.features, dtype=float).reshape(len(constant), -1)
    if not np.isfinite(features).all():
        bad = fit.annotations.items[~np.isfinite(features).all(axis=1)][0]
        raise DataError(f"the features of item {bad!r} are not all numbers")
    return np.concatenate([constant, features], axis=1)


def _rows(design: Floats, posterior: Floats) -> tuple[Floats, Floats]:
    """Return what to learn a classifier from; one row does where only the constant is known."""
    if design.shape[1] > 1:
        return design, posterior
    return design[:1], posterior.sum(axis=0, keepdims=True)[: len(design)]


def _learn(part: Part, posterior: Floats) -> Floats:
    return part.labels.T @ posterior[part.start : part.stop]


def _expect(part: Part, log_given: Floats, log_true: Floats) -> tuple[float, Floats]:
    """Return log evidence and posterior of a part."""
    joint = part.labels @ log_given
    joint += log_true[part.start : part.stop]
    return normalise(joint, part.allowed)


def _log_softmax(x: Floats) -> Floats:
    x = x - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))
