"""Three causes of disagreement on an item, and their posterior probabilities.

Annotator a names the class they perceive with probability `accuracy[a]`, else any other class.

    clear      all perceive one class t, drawn from `prior`;
    ambiguous  a share θ of the annotators perceives class s, the others t; θ is 1/3, 1/2 or 2/3;
    hard       all perceive one class t, but with probability δ an annotator guesses uniformly;
               δ is 1/6, 1/2 or 5/6.

The labels of an item have a likelihood under each cause; those of annotators who guess anyway are
uninformative. EM estimates the share of items that are not clear, and `accuracy`, for which guesses
on hard items do not count as errors. Hard and ambiguous items are equally common a priori: few
labels hardly distinguish them. So are all pairs of classes; the pair of an item is the two classes
that its better annotators named most.

One parameter per annotator is deliberate: confusion matrices learned from the same labels would
absorb the errors on hard and ambiguous items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.arrays import Array, Floats, Integers
from ..answers.annotations import Annotations
from .label_sums import by_annotator, by_cell

CLEAR, AMBIGUOUS, HARD = range(3)

_SHARES = (1 / 3, 1 / 2, 2 / 3)  # θ
_GUESSING = (0.0, 1 / 6, 1 / 2, 5 / 6)  # δ; 0 for a clear item
_STRENGTH, _ACCURACY = 4.0, 0.8  # Beta prior of accuracies
_START = 0.2  # initial share of items that are not clear
_MAX_ITER, _TOLERANCE = 50, 1e-4
_MAX_LABELS, _LAST_ITER = 200_000, 3  # above so many labels, most iterations use a part of them


class CauseProbabilities(NamedTuple):
    """Posterior of the causes, and the fitted accuracies."""

    probability: Floats  # (item, cause): clear, ambiguous, hard; below two labels, clear
    accuracy: Floats  # (annotator)
    trace: tuple[float, ...]  # the log posterior after every iteration


class _FitContext(NamedTuple):
    """Constants of the fit; items with two labels or more."""

    annotations: Annotations
    item: Array  # (annotation)
    cell: Integers  # (annotation): its position in (item, class)
    position: Array  # (annotation): 0 and 1 for the pair's two classes, 2 for any other

    def by_item(self, values: Floats) -> Floats:
        """Return sums over the labels of an item: (item)."""
        return np.add.reduceat(values, self.annotations.index[:-1])  # none is empty

    def of_label(self, first: Floats, second: Floats, neither: Floats) -> Floats:
        """Return the annotator's value for the class of every label: (annotation)."""
        return np.stack([first, second, neither])[self.position, self.annotations.annotator]


class _Posterior(NamedTuple):
    """Posterior of what was perceived."""

    one: Floats  # (δ, item, class): one class; δ = 0 if clear
    two: Floats  # (θ, item): two classes
    log_evidence: float


def cause_probabilities(
    annotations: Annotations, accuracy: Floats, prior: Floats
) -> CauseProbabilities:
    """Return the posterior of the causes of every item, and the accuracies of annotators.

    Parameters
    ----------
    annotations
        The annotations.
    accuracy
        Initial accuracies of the annotators.
    prior
        Class prior.
    """
    probability = np.tile([1.0, 0.0, 0.0], (annotations.n_items, 1))
    rows = np.flatnonzero(annotations.labels_per_item > 1)
    if annotations.n_classes < 2 or len(rows) == 0:
        return CauseProbabilities(probability, accuracy, ())
    not_clear, max_iter = _START, _MAX_ITER
    step = -(-len(annotations) // _MAX_LABELS)
    if step > 1:  # start from a fit to a part of the items
        part = _fit_context(annotations.take(rows[::step]), accuracy)
        _, accuracy, not_clear, _ = _fit(part, accuracy, prior, not_clear, _MAX_ITER)
        max_iter = _LAST_ITER
    context = _fit_context(annotations.take(rows), accuracy)
    posterior, accuracy, _, trace = _fit(context, accuracy, prior, not_clear, max_iter)
    hard = posterior.one[1:].sum(axis=(0, 2))
    clear = posterior.one[0].sum(axis=1)
    probability[rows] = np.stack([clear, posterior.two.sum(axis=0), hard], axis=1)
    return CauseProbabilities(probability, accuracy, trace)


def _fit(
    context: _FitContext, accuracy: Floats, prior: Floats, not_clear: float, max_iter: int
) -> tuple[_Posterior, Floats, float, tuple[float, ...]]:
    """Return the posterior, accuracies, the share of items that are not clear, and the trace."""
    trace: list[float] = []
    while True:
        posterior = _e_step(context, accuracy, prior, not_clear)
        log_beta = _ACCURACY * np.log(accuracy) + (1 - _ACCURACY) * np.log1p(-accuracy)
        log_prior = _STRENGTH * log_beta.sum() + np.log(not_clear) + np.log1p(-not_clear)
        trace.append(posterior.log_evidence + float(log_prior))
        clear = posterior.one[0].sum(axis=1)  # (item)
        updated = _update_accuracy(context, accuracy, posterior)
        share = float((1 - clear).sum() + 1) / (len(clear) + 2)
        change = max(abs(share - not_clear), float(np.abs(updated - accuracy).max()))
        if change < _TOLERANCE or len(trace) == max_iter:
            return posterior, accuracy, not_clear, tuple(trace)
        accuracy, not_clear = updated, share


def _fit_context(annotations: Annotations, accuracy: Floats) -> _FitContext:
    """Return the constants of the fit, with the two classes that better annotators named."""
    uniform = 1 / annotations.n_classes
    better = np.maximum((accuracy - uniform) / (1 - uniform), 0.01)
    support = by_cell(annotations, better[annotations.annotator])
    first = support.argmax(axis=1)
    support[np.arange(annotations.n_items), first] = -1.0
    item, second = annotations.item, support.argmax(axis=1)
    cell = item * np.int64(annotations.n_classes) + annotations.label
    other = np.where(second[item] == annotations.label, 1, 2)
    position = np.where(first[item] == annotations.label, 0, other)
    return _FitContext(annotations, item, cell, position)


def _e_step(context: _FitContext, accuracy: Floats, prior: Floats, not_clear: float) -> _Posterior:
    annotations, n_classes = context.annotations, context.annotations.n_classes
    one = np.empty((len(_GUESSING), annotations.n_items, n_classes))
    for position, guessing in enumerate(_GUESSING):
        share = 1 - not_clear if guessing == 0 else not_clear / 2 / (len(_GUESSING) - 1)
        hit, miss = np.log(_given_one(accuracy, guessing, n_classes))
        one[position] = by_cell(annotations, (hit - miss)[annotations.annotator])
        one[position] += context.by_item(miss[annotations.annotator])[:, None]
        one[position] += np.log(prior * share)
    n_pairs = n_classes * (n_classes - 1) / 2
    two = np.empty((len(_SHARES), annotations.n_items))
    for position, share in enumerate(_SHARES):
        log_given = np.log(_given_two(accuracy, share, n_classes))
        two[position] = context.by_item(context.of_label(*log_given))
    two += np.log(not_clear / 2 / len(_SHARES) / n_pairs)
    top = np.maximum(one.max(axis=(0, 2)), two.max(axis=0))
    np.exp(one - top[:, None], out=one)
    np.exp(two - top, out=two)
    total = two.sum(axis=0) + np.einsum("dik->i", one)
    one /= total[:, None]
    two /= total
    return _Posterior(one, two, float((np.log(total) + top).sum()))


def _update_accuracy(context: _FitContext, accuracy: Floats, posterior: _Posterior) -> Floats:
    """Return how often annotators named the class they perceived: (annotator)."""
    annotations, n_classes = context.annotations, context.annotations.n_classes
    annotator, wrong = annotations.annotator, (1 - accuracy) / (n_classes - 1)
    named = np.zeros(len(annotations))  # probability that the label is the perceived class
    perceived = np.zeros(len(annotations))  # probability that the annotator did not guess
    for guessing, of_class in zip(_GUESSING, posterior.one, strict=True):
        hit, miss = _given_one(accuracy, guessing, n_classes)
        same = of_class.ravel()[context.cell]
        correct = same * ((1 - guessing) * accuracy / hit)[annotator]
        other = of_class.sum(axis=1)[context.item] - same
        named += correct
        perceived += correct + other * ((1 - guessing) * wrong / miss)[annotator]
    for share, of_pair in zip(_SHARES, posterior.two, strict=True):
        first, second, neither = _given_two(accuracy, share, n_classes)
        hit = context.of_label(
            share * accuracy / first, (1 - share) * accuracy / second, 0 * neither
        )
        weight = of_pair[context.item]
        named += weight * hit
        perceived += weight
    total = by_annotator(annotations, perceived) + _STRENGTH
    return (by_annotator(annotations, named) + _STRENGTH * _ACCURACY) / total


def _given_one(accuracy: Floats, guessing: float, n_classes: int) -> Floats:
    """Return the probability of the perceived class, and of any other: (2, annotator)."""
    wrong = (1 - accuracy) / (n_classes - 1)
    return (1 - guessing) * np.stack([accuracy, wrong]) + guessing / n_classes


def _given_two(accuracy: Floats, share: float, n_classes: int) -> Floats:
    """Return the probability of the first class, the second, and any other: (3, annotator)."""
    wrong = (1 - accuracy) / (n_classes - 1)
    first = share * accuracy + (1 - share) * wrong
    return np.stack([first, (1 - share) * accuracy + share * wrong, wrong])
