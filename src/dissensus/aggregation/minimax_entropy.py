"""Minimax conditional entropy (Zhou et al. 2012, 2014): annotators and items both confuse classes.

Of item i, if its class is t, annotator a says g with probability proportional to

    exp(by_annotator[a, t, g] + by_item[i, t, g])

Among all ways in which labels may have come about, this one has the largest entropy that keeps
what every annotator and every item does on average; the truth is chosen to make that entropy
small. Both kinds of numbers are held near zero by quadratic penalties, that of items in the
measure in which they have fewer labels than annotators. All classes are equally common.

EM climbs the penalised likelihood. The curvature of a softmax has a bound (Böhning 1992), so steps
that it allows never fall, and need no search. Items should have more than three labels each.

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
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from .._relation import Floats, Integers
from ..annotations import Annotations, Part
from ..engine import add
from ..params import Count, NonNegative, Positive
from ._alternating import AlternatingAggregator, Reached, expected, first_posterior
from ._base import Fit, first_best, share
from ._em import logs, normalise

__all__ = ["MinimaxEntropy", "Tendencies"]

_STEPS = 3  # of both kinds in every round
_CELLS = 2**21  # numbers to work on at once
_FEW = 3.0  # labels per item are worth a note,
_MANY = 100  # unless there are not so many labels at all


class Tendencies(NamedTuple):
    """What minimax entropy learns: how much more than others each says what of which class."""

    by_annotator: Floats  # (annotator, true class, given class)
    by_item: Floats  # (item, true class, given class)

    def reindex(self, indices: Integers, n_items: int) -> Tendencies:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        average = self.by_annotator.mean(axis=0, keepdims=True)
        by_annotator = np.concatenate([self.by_annotator, average])[indices]
        return Tendencies(by_annotator, np.zeros((n_items, *average.shape[1:])))


class Pull(NamedTuple):
    """Where what is believed pulls the numbers of annotators, and how many labels pull."""

    slope: Floats  # (annotator, true class, given class)
    labels: Floats  # (annotator, true class)


@dataclass(frozen=True, kw_only=True)
class MinimaxEntropy(AlternatingAggregator[Tendencies]):
    """Confusion by annotators and items together, by minimax conditional entropy.

    Parameters
    ----------
    tol
        Stop when a round changes no belief by more than this.
    strength
        How strongly numbers are held near zero, times the square of the number of classes.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> MinimaxEntropy().fit(annotations).labels.tolist()
    ['0', '1']
    """

    learns: ClassVar[type] = Tendencies

    max_iter: Count = 50
    tol: NonNegative = 1e-4
    strength: Positive = 0.25

    def begin(self, fit: Fit) -> Reached[Tendencies]:
        return Reached(
            Tendencies(*map(np.zeros, self._shapes(fit.annotations))), first_posterior(fit)
        )

    def advance(self, fit: Fit, last: Reached[Tendencies]) -> Reached[Tendencies]:
        params = self._maximise(fit, last.params, last.posterior)
        posterior, evidence = expected(fit, partial(_expect, params=params))
        return Reached(params, posterior, evidence - self._penalty(fit.annotations, params))

    def settled(
        self, trace: list[float], now: Reached[Tendencies], before: Reached[Tendencies]
    ) -> bool:
        return bool(np.abs(now.posterior - before.posterior).max(initial=0.0) <= self.tol)

    def notes(self, annotations: Annotations) -> tuple[str, ...]:
        labels = len(annotations) / max(int(np.count_nonzero(annotations.labels_per_item)), 1)
        few = f"items have {labels:.2g} labels on average, few for this method"
        return (few,) if labels <= _FEW and len(annotations) >= _MANY else ()

    def judge(self, fit: Fit, params: Tendencies) -> tuple[Floats, Integers]:
        posterior, _ = expected(fit, partial(_expect, params=params))
        return posterior, first_best(posterior)

    def quality(self, params: Tendencies, agreement: Floats) -> Floats:
        """Return the probability of being right about an item without tendencies."""
        return self.confusion(params).diagonal(axis1=1, axis2=2).mean(axis=1)

    def confusion(self, params: Tendencies) -> Floats:
        return _softmax(params.by_annotator)

    def chances(self, params: Tendencies, item: Integers, annotator: Integers) -> Floats:
        return _softmax(params.by_annotator[annotator] + params.by_item[item])

    def n_numbers(self, annotations: Annotations) -> int:
        cells = (annotations.n_annotators + annotations.n_items) * annotations.n_classes**2
        return super().n_numbers(annotations) + 3 * cells

    def _shapes(self, annotations: Annotations) -> tuple[tuple[int, ...], tuple[int, ...]]:
        square = (annotations.n_classes, annotations.n_classes)
        return (annotations.n_annotators, *square), (annotations.n_items, *square)

    def _rates(self, annotations: Annotations) -> tuple[float, float]:
        """Return the penalties' factors for annotators and items, as many as have labels."""
        rate = self.strength * annotations.n_classes**2
        annotators = int(np.count_nonzero(annotations.labels_per_annotator))
        return rate, rate * int(np.count_nonzero(annotations.labels_per_item)) / max(annotators, 1)

    def _penalty(self, annotations: Annotations, params: Tendencies) -> float:
        rates = self._rates(annotations)
        return sum(0.5 * rate * float((x**2).sum()) for rate, x in zip(rates, params, strict=True))

    def _maximise(self, fit: Fit, params: Tendencies, posterior: Floats) -> Tendencies:
        """Return numbers under which what is believed is more probable."""
        rate, item_rate = self._rates(fit.annotations)
        for _ in range(_STEPS):
            work = partial(_move, params=params, posterior=posterior, rate=item_rate)
            told = [*fit.engine.each(work, fit.parts)]
            pull = add([part for part, _ in told])
            params = Tendencies(
                _climb(params.by_annotator, pull.slope, pull.labels, rate),
                np.concatenate([items for _, items in told]),
            )
        return params


def _softmax(x: Floats) -> Floats:
    return share(np.exp(x - x.max(axis=-1, keepdims=True)))


def _chunks(
    part: Part, by_annotator: Floats, by_item: Floats
) -> Iterator[tuple[slice, Integers, Floats]]:
    """Yield some annotations after the other: where they are, their items, log probabilities."""
    item, size = part.item, max(_CELLS // part.n_classes**2, 1)
    by_annotator = by_annotator - by_annotator.max(axis=2, keepdims=True)  # so nothing overflows
    by_item = by_item - by_item.max(axis=2, keepdims=True)
    for start in range(0, len(item), size):
        these = slice(start, start + size)
        x = by_annotator[part.annotator[these]] + by_item[item[these]]
        x -= logs(np.einsum("ntg->nt", np.exp(x)))[:, :, None]
        yield these, item[these], x  # (annotation, true class, given class)


def _expect(part: Part, params: Tendencies) -> tuple[float, Floats]:
    """Return log evidence and posterior of a part; all classes are equally common."""
    joint = np.full((part.stop - part.start, part.n_classes), -np.log(part.n_classes))
    by_item = params.by_item[part.start : part.stop]
    for these, item, log_given in _chunks(part, params.by_annotator, by_item):
        annotations = log_given[np.arange(len(item)), :, part.label[these]]
        joint += _sums(item, len(joint)) @ annotations
    return normalise(joint, part.allowed)


def _move(part: Part, params: Tendencies, posterior: Floats, rate: float) -> tuple[Pull, Floats]:
    """Return the pull on annotators once items have moved, and the numbers of the items."""
    posterior, labels = posterior[part.start : part.stop], np.diff(part.index)
    by_annotator, by_item = params.by_annotator, params.by_item[part.start : part.stop]
    slope = _slope(part, by_annotator, by_item, posterior, part.item, len(labels))
    by_item = _climb(by_item, slope, posterior * labels[:, None], rate)
    who, size = part.annotator, part.n_annotators
    slope = _slope(part, by_annotator, by_item, posterior, who, size)
    return Pull(slope, _sums(who, size) @ posterior[part.item]), by_item


def _climb(here: Floats, slope: Floats, labels: Floats, rate: float) -> Floats:
    """Return numbers that are better, or as good: a softmax curves by half a label at most."""
    return here + (slope - rate * here) / (0.5 * labels[:, :, None] + rate)


def _slope(
    part: Part, by_annotator: Floats, by_item: Floats, posterior: Floats, whose: Any, size: int
) -> Floats:
    """Return the slope of the expected log likelihood: (whose, true class, given class)."""
    total = np.zeros((size, part.n_classes**2))
    for these, item, log_given in _chunks(part, by_annotator, by_item):
        believed = posterior[item]  # (annotation, true class)
        slope = -believed[:, :, None] * np.exp(log_given)
        slope[np.arange(len(item)), :, part.label[these]] += believed
        total += _sums(whose[these], size) @ slope.reshape(-1, part.n_classes**2)
    return total.reshape(size, part.n_classes, part.n_classes)


def _sums(whose: Any, size: int) -> sparse.csr_array[Any, Any]:
    """Return the matrix that adds up rows that belong together."""
    order = np.arange(len(whose))
    return sparse.csr_array((np.ones(len(whose)), (whose, order)), shape=(size, len(whose)))
