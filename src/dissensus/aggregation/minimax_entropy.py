"""Minimax conditional entropy (Zhou et al. 2012, 2014): confusion by annotators and items.

Annotator a gives item i of class t the label g with probability proportional to

    exp(by_annotator[a, t, g] + by_item[i, t, g])

Among all label distributions with the observed average confusion of every annotator and item, this
one has maximum entropy; the truth is chosen to minimize it. Both kinds of parameters have quadratic
penalties; that of items is scaled by the ratio of labels per annotator to labels per item. The
prevalence is uniform.

EM maximizes the penalized likelihood. The curvature of a softmax is bounded (Böhning 1992), so
steps within the bound never lower it and need no line search. Items should have more than three
labels each.

When it fails: With three labels per item or fewer: parameters of items then fit the noise. On 23
public sets it loses up to 34 points to the best method, and it is among the slowest.

    D. Zhou, J. Platt, S. Basu, Y. Mao. Learning from the wisdom of crowds by minimax entropy.
    Advances in Neural Information Processing Systems 25, 2012.
    D. Zhou, Q. Liu, J. Platt, C. Meek. Aggregating ordinal labels from crowds by minimax
    conditional entropy. ICML, PMLR 32, 2014.
    D. Böhning. Multinomial logistic regression algorithm. Annals of the Institute of Statistical
    Mathematics 44(1), 1992. doi:10.1007/BF00048682
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..answers.annotations import Annotations, Part
from ..base.arrays import Floats, Integers
from ..base.engine import add
from ..base.probability import log_normalize, normalize, safe_log
from ..method import Fitted
from ..params import Count, NonNegative, Positive
from .aggregation import ClassAggregation
from .classes import ClassContext
from .em import Alternating, State, expectation, start_posterior
from .message_passing import group_sum

_STEPS = 3  # of both kinds in every iteration
_CELLS = 2**21  # floats to work on at once
_FEW = 3.0  # labels per item up to which there is a note,
_MANY = 100  # if there are at least as many labels


class Confusions(NamedTuple):
    """Parameters of minimax entropy, as log-odds."""

    by_annotator: Floats  # (annotator, true class, given class)
    by_item: Floats  # (item, true class, given class)

    def reindex(self, indices: Integers, n_items: int) -> Confusions:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        average = self.by_annotator.mean(axis=0, keepdims=True)
        by_annotator = np.concatenate([self.by_annotator, average])[indices]
        return Confusions(by_annotator, np.zeros((n_items, *average.shape[1:])))


class Gradient(NamedTuple):
    """The gradient by parameters of annotators, and the expected number of labels."""

    value: Floats  # (annotator, true class, given class)
    labels: Floats  # (annotator, true class)


@dataclass(frozen=True, kw_only=True)
class MinimaxEntropy(Alternating[Confusions]):
    """Confusion by annotators and items together, by minimax conditional entropy.

    Parameters
    ----------
    tol
        Largest change of a posterior at which the fit has converged.
    strength
        Strength of the quadratic penalties, times the squared number of classes.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> MinimaxEntropy().fit(annotations).labels.tolist()
    ['0', '1']
    """

    params_type: ClassVar[type] = Confusions

    max_iter: Count = 50
    tol: NonNegative = 1e-4
    strength: Positive = 0.25

    def first_state(self, fit: ClassContext) -> State[Confusions]:
        return State(Confusions(*map(np.zeros, self._shapes(fit.answers))), start_posterior(fit))

    def advance(self, fit: ClassContext, last: State[Confusions]) -> State[Confusions]:
        params = self._m_step(fit, last.params, last.posterior)
        posterior, evidence = expectation(fit, partial(_e_step, params=params))
        return State(params, posterior, evidence - self._penalty(fit.answers, params))

    def has_converged(
        self, trace: list[float], state: State[Confusions], last: State[Confusions]
    ) -> bool:
        return bool(np.abs(state.posterior - last.posterior).max(initial=0.0) <= self.tol)

    def result(self, fit: ClassContext, posterior: Floats, fitted: Fitted) -> ClassAggregation:
        annotations = fit.answers
        labels = len(annotations) / max(int(np.count_nonzero(annotations.labels_per_item)), 1)
        if labels <= _FEW and len(annotations) >= _MANY:
            few = f"items have {labels:.2g} labels on average, few for this method"
            fitted = fitted._replace(notes=(few,))
        return super().result(fit, posterior, fitted)

    def part_posterior(self, part: Part, params: Confusions) -> Floats:
        return _e_step(part, params)[1]

    def quality(self, params: Confusions, agreement: Floats) -> Floats:
        """Return the probability of being right about an average item."""
        return self.confusion(params).diagonal(axis1=1, axis2=2).mean(axis=1)

    def confusion(self, params: Confusions) -> Floats:
        return _softmax(params.by_annotator)

    def label_probabilities(
        self, params: Confusions, item: Integers, annotator: Integers
    ) -> Floats:
        return _softmax(params.by_annotator[annotator] + params.by_item[item])

    def n_floats(self, annotations: Annotations) -> int:
        cells = (annotations.n_annotators + annotations.n_items) * annotations.n_classes**2
        return super().n_floats(annotations) + 3 * cells

    def _shapes(self, annotations: Annotations) -> tuple[tuple[int, ...], tuple[int, ...]]:
        square = (annotations.n_classes, annotations.n_classes)
        return (annotations.n_annotators, *square), (annotations.n_items, *square)

    def _rates(self, annotations: Annotations) -> tuple[float, float]:
        """Return the strength of the penalties for annotators and items."""
        rate = self.strength * annotations.n_classes**2
        annotators = int(np.count_nonzero(annotations.labels_per_annotator))
        return rate, rate * int(np.count_nonzero(annotations.labels_per_item)) / max(annotators, 1)

    def _penalty(self, annotations: Annotations, params: Confusions) -> float:
        rates = self._rates(annotations)
        return sum(0.5 * rate * float((x**2).sum()) for rate, x in zip(rates, params, strict=True))

    def _m_step(self, fit: ClassContext, params: Confusions, posterior: Floats) -> Confusions:
        """Return parameters with a larger expected log-likelihood."""
        rate, item_rate = self._rates(fit.answers)
        for _ in range(_STEPS):
            work = partial(_move, params=params, posterior=posterior, rate=item_rate)
            parts = [*fit.engine.each(work, fit.parts)]
            gradient = reduce(add, [part for part, _ in parts])
            params = Confusions(
                _ascend(params.by_annotator, gradient.value, gradient.labels, rate),
                np.concatenate([items for _, items in parts]),
            )
        return params


def _softmax(x: Floats) -> Floats:
    return normalize(np.exp(x - x.max(axis=-1, keepdims=True)))


def _chunks(
    part: Part, by_annotator: Floats, by_item: Floats
) -> Iterator[tuple[slice, Integers, Floats]]:
    """Yield chunks of annotations: their range, their items, log P(label | truth)."""
    item, size = part.item, max(_CELLS // part.n_classes**2, 1)
    by_annotator = by_annotator - by_annotator.max(axis=2, keepdims=True)  # so nothing overflows
    by_item = by_item - by_item.max(axis=2, keepdims=True)
    for start in range(0, len(item), size):
        rows = slice(start, start + size)
        x = by_annotator[part.annotator[rows]] + by_item[item[rows]]
        x -= safe_log(np.einsum("ntg->nt", np.exp(x)))[:, :, None]
        yield rows, item[rows], x  # (annotation, true class, given class)


def _e_step(part: Part, params: Confusions) -> tuple[float, Floats]:
    """Return log evidence and posterior of a part."""
    joint = np.full((part.stop - part.start, part.n_classes), -np.log(part.n_classes))
    by_item = params.by_item[part.start : part.stop]
    for rows, item, log_given in _chunks(part, params.by_annotator, by_item):
        log_label = log_given[np.arange(len(item)), :, part.label[rows]]
        joint += group_sum(item, len(joint)) @ log_label
    return log_normalize(joint, part.allowed)


def _move(
    part: Part, params: Confusions, posterior: Floats, rate: float
) -> tuple[Gradient, Floats]:
    """Update the parameters of items, and return the gradient of annotators after that."""
    posterior, labels = posterior[part.start : part.stop], np.diff(part.index)
    by_annotator, by_item = params.by_annotator, params.by_item[part.start : part.stop]
    gradient = _gradient(
        part, by_annotator, by_item, posterior=posterior, group=part.item, size=len(labels)
    )
    by_item = _ascend(by_item, gradient, posterior * labels[:, None], rate)
    annotator, size = part.annotator, part.n_annotators
    gradient = _gradient(
        part, by_annotator, by_item, posterior=posterior, group=annotator, size=size
    )
    return Gradient(gradient, group_sum(annotator, size) @ posterior[part.item]), by_item


def _ascend(params: Floats, gradient: Floats, labels: Floats, rate: float) -> Floats:
    """Return better parameters: the curvature of a softmax is at most half a label."""
    return params + (gradient - rate * params) / (0.5 * labels[:, :, None] + rate)


def _gradient(
    part: Part, by_annotator: Floats, by_item: Floats, posterior: Floats, group: Any, size: int
) -> Floats:
    """Return the gradient of the expected log-likelihood: (group, true class, given class)."""
    total = np.zeros((size, part.n_classes**2))
    for rows, item, log_given in _chunks(part, by_annotator, by_item):
        truth = posterior[item]  # (annotation, true class)
        gradient = -truth[:, :, None] * np.exp(log_given)
        gradient[np.arange(len(item)), :, part.label[rows]] += truth
        total += group_sum(group[rows], size) @ gradient.reshape(-1, part.n_classes**2)
    return total.reshape(size, part.n_classes, part.n_classes)
