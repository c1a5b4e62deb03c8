"""Three stories of how an item came by its labels, and how probable each is.

Annotator a names the class they see with probability `right[a]`, else any other. What they see:

    clear      all see one class t, drawn from `prior`;
    ambiguous  a share θ of the annotators sees class s, the others t; θ is 1/3, 1/2 or 2/3;
    hard       all see one class t, but with probability δ somebody sees nothing and guesses;
               δ is 1/6, 1/2 or 5/6.

The labels of an item have a likelihood under each story, and the label of somebody who guesses
anyway speaks for none. EM finds how common it is that an item is not clear, and `right`, in which
guesses on hard items do not count as errors. Hard and ambiguous items are taken to be as common as
each other: with few labels they are easily mistaken. So are all pairs of classes; the pair of an
item is the two classes that its better annotators named most.

One probability per annotator is deliberate. Whole confusion matrices, learned from the same labels,
have room for the errors on hard and ambiguous items, and then nothing is left to explain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._relation import Array, Floats, Integers
from ..annotations import Annotations
from .label_sums import by_annotator, by_cell

__all__ = ["AMBIGUOUS", "CLEAR", "HARD", "CauseProbabilities", "cause_probabilities"]

CLEAR, AMBIGUOUS, HARD = range(3)

_SHARES = (1 / 3, 1 / 2, 2 / 3)  # θ
_BLIND = (0.0, 1 / 6, 1 / 2, 5 / 6)  # δ; nobody is blind to a clear item
_STRENGTH, _ACCURACY = 4.0, 0.8  # labels that everybody is taken to have given before, and right
_START = 0.2  # share of items that are not clear, to begin with
_ROUNDS, _STILL = 50, 1e-4


class CauseProbabilities(NamedTuple):
    """What EM found out."""

    chance: Floats  # (item, story): clear, ambiguous, hard; below two labels, clear
    right: Floats  # (annotator)
    trace: tuple[float, ...]  # the log posterior after every round


class _FitContext(NamedTuple):
    """What does not change from round to round; items with two labels or more."""

    annotations: Annotations
    item: Array  # (annotation)
    cell: Integers  # (annotation): the place of its item and label in (item, class)
    position: Array  # (annotation): 0 and 1 for the pair's two classes, 2 for any other

    def by_cell(self, values: Floats) -> Floats:
        """Return sums over the labels of one class on one item: (item, class)."""
        n_items, n_classes = self.annotations.n_items, self.annotations.n_classes
        cells = np.bincount(self.cell, values, minlength=n_items * n_classes)
        return cells.astype(np.float64, copy=False).reshape(n_items, n_classes)

    def by_item(self, values: Floats) -> Floats:
        """Return sums over the labels of an item: (item)."""
        return np.add.reduceat(values, self.annotations.index[:-1])  # none is empty


class _Expected(NamedTuple):
    """How probable everything is that may have been seen."""

    one: Floats  # (δ, item, class): one class is seen; δ = 0 is the clear story
    two: Floats  # (θ, item): two are
    evidence: float


def cause_probabilities(annotations: Annotations, right: Floats, prior: Floats) -> CauseProbabilities:
    """Return how probable every story of every item is, and how often annotators are right.

    Parameters
    ----------
    annotations
        The annotations.
    right
        How often annotators are right, to begin with.
    prior
        How common every class is.
    """
    chance = np.tile([1.0, 0.0, 0.0], (annotations.n_items, 1))
    rows = np.flatnonzero(annotations.labels_per_item > 1)  # others tell nothing
    if annotations.n_classes < 2 or len(rows) == 0:
        return CauseProbabilities(chance, right, ())
    context = _fit_context(annotations.take(rows), right)
    odd, trace = _START, list[float]()
    while True:
        told = _expect(context, right, prior, odd)
        trace.append(told.evidence + _log_prior(right, odd))
        clear = told.one[0].sum(axis=1)  # (item)
        better = _right(context, right, told)
        other = float((1 - clear).sum() + 1) / (len(rows) + 2)
        still = max(abs(other - odd), float(np.abs(better - right).max())) < _STILL
        if still or len(trace) == _ROUNDS:
            break
        right, odd = better, other
    hard = sum(posterior.sum(axis=1) for posterior in told.one[1:])
    chance[rows] = np.stack([clear, told.two.sum(axis=0), hard], axis=1)
    return CauseProbabilities(chance, right, tuple(trace))


def _fit_context(annotations: Annotations, right: Floats) -> _FitContext:
    """Return what does not change; the pair is the two classes that better annotators named."""
    chance = 1 / annotations.n_classes
    better = np.maximum((right - chance) / (1 - chance), 0.01)
    support = by_cell(annotations, better[annotations.annotator])
    first = support.argmax(axis=1)
    support[np.arange(annotations.n_items), first] = -1.0
    item, second = annotations.item, support.argmax(axis=1)
    cell = item * np.int64(annotations.n_classes) + annotations.label
    other = np.where(second[item] == annotations.label, 1, 2)
    return _FitContext(annotations, item, cell, np.where(first[item] == annotations.label, 0, other))


def _expect(context: _FitContext, right: Floats, prior: Floats, odd: float) -> _Expected:
    """Return how probable everything is that may have been seen."""
    annotations, n_classes = context.annotations, context.annotations.n_classes
    one = np.empty((len(_BLIND), annotations.n_items, n_classes))
    for position, blind in enumerate(_BLIND):
        share = 1 - odd if blind == 0 else odd / 2 / (len(_BLIND) - 1)
        hit, miss = (np.log(chance) for chance in _label_probabilities(right, blind, n_classes))
        one[position] = context.by_cell((hit - miss)[annotations.annotator])
        one[position] += context.by_item(miss[annotations.annotator])[:, None]
        one[position] += np.log(prior * share)
    n_pairs = n_classes * (n_classes - 1) / 2
    two = np.empty((len(_SHARES), annotations.n_items))
    for position, share in enumerate(_SHARES):
        first, second, neither = (np.log(table) for table in _split(right, share, n_classes))
        two[position] = context.by_item(_of(context, first, second, neither))
    two += np.log(odd / 2 / len(_SHARES) / n_pairs)
    top = np.maximum(one.max(axis=(0, 2)), two.max(axis=0))
    np.exp(one - top[:, None], out=one)
    np.exp(two - top, out=two)
    total = two.sum(axis=0) + np.einsum("dik->i", one)
    one /= total[:, None]
    two /= total
    return _Expected(one, two, float((np.log(total) + top).sum()))


def _right(context: _FitContext, right: Floats, told: _Expected) -> Floats:
    """Return how often annotators named what they saw: (annotator)."""
    annotations, n_classes = context.annotations, context.annotations.n_classes
    wrong = (1 - right) / (n_classes - 1)
    named = np.zeros(len(annotations))  # how probably a label is the class that was seen
    sampled = np.zeros(len(annotations))  # how probably anything was seen
    for blind, posterior in zip(_BLIND, told.one, strict=True):
        hit, miss = _label_probabilities(right, blind, n_classes)
        same = posterior.ravel()[context.cell]
        saw = same * ((1 - blind) * right / hit)[annotations.annotator]
        other = posterior.sum(axis=1)[context.item] - same
        named += saw
        sampled += saw + other * ((1 - blind) * wrong / miss)[annotations.annotator]
    for share, posterior in zip(_SHARES, told.two, strict=True):
        first, second, neither = _split(right, share, n_classes)
        hit = _of(context, share * right / first, (1 - share) * right / second, 0 * neither)
        weight = posterior[context.item]
        named += weight * hit
        sampled += weight
    total = by_annotator(annotations, sampled) + _STRENGTH
    return (by_annotator(annotations, named) + _STRENGTH * _ACCURACY) / total


def _label_probabilities(right: Floats, blind: float, n_classes: int) -> tuple[Floats, Floats]:
    """Return how probable it is to name the class, and another, when some see nothing."""
    wrong = (1 - right) / (n_classes - 1)
    return (1 - blind) * right + blind / n_classes, (1 - blind) * wrong + blind / n_classes


def _split(right: Floats, share: float, n_classes: int) -> tuple[Floats, Floats, Floats]:
    """Return how probable it is to name the first class, the second, and one of the others."""
    wrong = (1 - right) / (n_classes - 1)
    first = share * right + (1 - share) * wrong
    return first, (1 - share) * right + share * wrong, wrong


def _of(context: _FitContext, first: Floats, second: Floats, neither: Floats) -> Floats:
    """Return for every label what its annotator has for the class that it is: (annotation)."""
    return np.stack([first, second, neither])[context.position, context.annotations.annotator]


def _log_prior(right: Floats, odd: float) -> float:
    """Return the log density of the parameters, up to a constant."""
    hits = _ACCURACY * np.log(right) + (1 - _ACCURACY) * np.log1p(-right)
    return float(_STRENGTH * hits.sum() + np.log(odd) + np.log1p(-odd))
