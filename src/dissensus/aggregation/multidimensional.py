"""Welinder et al. (2010): items are points, and annotators divide them by planes of their own.

An item of the second class has `feature` near (1, …, 1), one of the first class near (-1, …, -1):
normal around these with standard deviation `spread`. Annotator a gives the second class with
probability

    Φ(direction[a] · feature[i] - threshold[a])

so the length of `direction` is how precisely an annotator perceives items, and the threshold is
their bias; in several dimensions, annotators may differ in what they pay attention to. Directions
are normal around `mean_direction`, thresholds around zero, both with a wide standard deviation. The
prevalence is uniform.

Parameters are those of maximum posterior density: EM over the class behind every feature. The
log-likelihood of a probit has a curvature of at most one per label, so steps within this bound
never lower the objective. The posterior is P(class | feature). Defaults are those of the authors'
program with one dimension, as in the survey of Zheng et al. (2017).

    P. Welinder, S. Branson, S. Belongie, P. Perona. The multidimensional wisdom of crowds. Advances
    in Neural Information Processing Systems 23, 2010.
    Y. Zheng, G. Li, Y. Li, C. Shan, R. Cheng. Truth inference in crowdsourcing: is the problem
    solved? Proceedings of the VLDB Endowment 10(5), 2017. doi:10.14778/3055540.3055547
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from .._probability import log_normalize, normalize
from .._relation import Array, Floats, Integers
from ..annotations import Annotations, Part
from ..engine import add
from ..params import Count, NonNegative, Positive
from ._alternating import AlternatingAggregator, State, expectation, start_posterior
from ._base import FitContext
from ._graph import group_sum

_STEPS = 4  # of features and of annotators in every iteration
_SETTLING = 100  # steps for items with known annotators
_SIDES = np.array([-1.0, 1.0])  # the centres of the classes
_HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)
_NOISE = 0.5  # standard deviation of the first features, where there are several dimensions


class Planes(NamedTuple):
    """Parameters of the multidimensional model."""

    feature: Floats  # (item, dimension)
    plane: Floats  # (annotator, dimension and one): direction and threshold
    prior: Floats  # (true class)

    def reindex(self, indices: Integers, n_items: int) -> Planes:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        plane = np.concatenate([self.plane, self.plane.mean(axis=0, keepdims=True)])[indices]
        return self._replace(feature=np.zeros((n_items, self.feature.shape[1])), plane=plane)


class Bound(NamedTuple):
    """A quadratic lower bound of the log-likelihood; it adds up over parts of the items."""

    gradient: Floats  # (group, parameter)
    curvature: Floats  # (group, parameter, parameter)


@dataclass(frozen=True, kw_only=True)
class Multidimensional(AlternatingAggregator[Planes]):
    """Items as points and annotators as planes that divide them; two classes only.

    Parameters
    ----------
    dimensions
        Dimensions of the features; beyond one, the first features are random (by the seed).
    spread
        Standard deviation of features around their class.
    mean_direction
        Mean of every component of the directions' prior.
    deviation
        Standard deviation of the priors of directions and thresholds.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Multidimensional().fit(annotations).labels.tolist()
    ['0', '1']
    """

    params_type: ClassVar[type] = Planes
    max_classes: ClassVar[int] = 2

    max_iter: Count = 500
    dimensions: Count = 1
    spread: Positive = 2.0
    mean_direction: NonNegative = 2.0
    deviation: Positive = 10.0

    def first_state(self, fit: FitContext) -> State[Planes]:
        posterior = start_posterior(fit)
        feature = np.repeat(_centre(posterior)[:, None], self.dimensions, axis=1)
        if self.dimensions > 1:
            random = np.random.default_rng(fit.seed)
            feature += _NOISE * random.standard_normal(feature.shape)
        plane = np.tile(self._mean_plane, (fit.annotations.n_annotators, 1))
        n_classes = fit.annotations.n_classes
        return State(Planes(feature, plane, np.full(n_classes, 1 / n_classes)), posterior)

    def advance(self, fit: FitContext, last: State[Planes]) -> State[Planes]:
        params = last.params
        for _ in range(_STEPS):
            work = partial(self._move, params=params, posterior=last.posterior)
            parts = [*fit.engine.each(work, fit.parts)]
            bound = reduce(add, [bound for _, bound in parts])
            params = params._replace(
                feature=np.concatenate([feature for feature, _ in parts]),
                plane=_ascend(params.plane, bound, self._mean_plane, self.deviation),
            )
        posterior, density = expectation(fit, partial(self._e_step, params=params))
        far = ((params.plane - self._mean_plane) ** 2).sum() / self.deviation**2
        return State(params, posterior, density - 0.5 * float(far))

    def part_posterior(self, part: Part, params: Planes) -> Floats:
        feature = params.feature[part.start : part.stop]
        for _ in range(_SETTLING):
            feature = self._step(part, feature, params.plane, self._classify(part, feature)[1])
        return self._classify(part, feature)[1]

    def confusion(self, params: Planes) -> Floats:
        """Return the probabilities of labels, whatever the feature of the item."""
        direction, threshold = params.plane[:, :-1], params.plane[:, -1]
        centre = direction.sum(axis=1)[:, None] * _SIDES - threshold[:, None]
        length = np.sqrt(1 + self.spread**2 * (direction**2).sum(axis=1))[:, None]
        second = ndtr(centre / length)  # (annotator, true class)
        n_classes = len(params.prior)
        return normalize(np.stack([1 - second, second], axis=2)[:, :n_classes, :n_classes])

    def n_floats(self, annotations: Annotations) -> int:
        square = (self.dimensions + 1) ** 2
        size = len(annotations) + annotations.n_items + annotations.n_annotators
        return super().n_floats(annotations) + 3 * size * square

    @property
    def _mean_plane(self) -> Floats:
        return np.append(np.full(self.dimensions, self.mean_direction), 0.0)

    def _move(self, part: Part, params: Planes, posterior: Floats) -> tuple[Floats, Bound]:
        """Return better features of a part, and the bound for annotators after that."""
        feature, plane = params.feature[part.start : part.stop], params.plane
        feature = self._step(part, feature, plane, posterior[part.start : part.stop])
        beside = np.append(feature, np.full((len(feature), 1), -1.0), axis=1)
        slope = _slope(part, feature, plane)
        return feature, _bound(slope, beside[part.item], part.annotator, len(plane))

    def _step(self, part: Part, feature: Floats, plane: Floats, posterior: Floats) -> Floats:
        """Return better features of the items of a part."""
        slope = _slope(part, feature, plane)
        bound = _bound(slope, plane[part.annotator, :-1], part.item, len(feature))
        return _ascend(feature, bound, _centre(posterior)[:, None], self.spread)

    def _classify(self, part: Part, feature: Floats) -> tuple[float, Floats]:
        """Return the log density of the features of a part, and P(class | feature)."""
        sides = _SIDES[: part.n_classes]
        far = ((feature[:, :, None] - sides) ** 2).sum(axis=1)  # (item, class)
        joint = np.where(part.blank[:, None], 0.0, -0.5 * far / self.spread**2)
        return log_normalize(joint - np.log(len(sides)), part.allowed)

    def _e_step(self, part: Part, params: Planes) -> tuple[float, Floats]:
        """Return the log density of features and labels, and P(class | feature)."""
        feature = params.feature[part.start : part.stop]
        density, posterior = self._classify(part, feature)
        return density + float(log_ndtr(_margin(part, feature, params.plane)[1]).sum()), posterior


def _centre(posterior: Floats) -> Floats:
    """Return the expected centre of every item's class: (item)."""
    return posterior @ _SIDES[: posterior.shape[1]]


def _margin(part: Part, feature: Floats, plane: Floats) -> tuple[Floats, Floats]:
    """Return the side of every label, and how far the item is on this side: (annotation)."""
    side = _SIDES[part.label.astype(np.intp)]
    own = plane[part.annotator]
    inner = np.einsum("nd,nd->n", feature[part.item], own[:, :-1]) - own[:, -1]
    return side, side * inner


def _slope(part: Part, feature: Floats, plane: Floats) -> Floats:
    """Return the derivative of every label's log-likelihood by the inner product."""
    side, margin = _margin(part, feature, plane)
    return side * np.exp(-0.5 * margin**2 - _HALF_LOG_TWO_PI - log_ndtr(margin))


def _bound(slope: Floats, rate: Floats, group: Array, size: int) -> Bound:
    """Return gradient and curvature by parameters that change inner products at a rate."""
    total = group_sum(group, size)
    square = (rate[:, :, None] * rate[:, None, :]).reshape(len(rate), -1)
    width = rate.shape[1]
    return Bound(total @ (slope[:, None] * rate), (total @ square).reshape(size, width, width))


def _ascend(here: Floats, bound: Bound, mean: Floats, deviation: float) -> Floats:
    """Return better parameters, with a normal prior: the maximum of the quadratic bound."""
    precision = deviation**-2
    gradient = bound.gradient + precision * (mean - here)
    curvature = bound.curvature + precision * np.eye(here.shape[1])
    return here + np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
