"""Sums over annotations, and the most frequent label with the tie-breaks of CROWDLAB."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._relation import Array, Floats, Integers
from ..annotations import Annotations

__all__ = [
    "agreement_with_others",
    "best",
    "by_annotator",
    "by_cell",
    "by_item",
    "majority",
    "worst_class",
]

_TIE = 1e-12  # scores closer than this are equal


def by_item(annotations: Annotations, values: Array) -> Floats:
    """Return the sum of what belongs to the labels of every item: (item)."""
    return _summed(annotations.item, values, annotations.n_items)


def by_annotator(annotations: Annotations, values: Array) -> Floats:
    """Return the sum of what belongs to the labels of every annotator: (annotator)."""
    return _summed(annotations.annotator, values, annotations.n_annotators)


def by_cell(annotations: Annotations, values: Array) -> Floats:
    """Return the sum of what belongs to the labels of one class on one item: (item, class)."""
    cells = _summed(_cells(annotations), values, annotations.n_items * annotations.n_classes)
    return cells.reshape(annotations.n_items, annotations.n_classes)


def agreement_with_others(annotations: Annotations) -> Floats:
    """Return the share of others' labels on an annotator's items that equal theirs: (annotator).

    Those who share no item with anybody get the mean of the rest. What somebody says of an item
    more than once is not compared with itself.
    """
    alone, own = _repeats(annotations)
    same = annotations.votes().ravel()[_cells(annotations)] - own
    others = annotations.labels_per_item[annotations.item] - alone
    compared = by_annotator(annotations, others)
    agreed = by_annotator(annotations, same)
    known = compared > 0
    agreement = np.divide(agreed, compared, where=known, out=np.zeros(len(known)))
    agreement[~known] = agreement[known].mean() if known.any() else 1.0
    return agreement


def majority(annotations: Annotations, posterior: Floats) -> Integers:
    """Return the most frequent label of every item, -1 where there is none: (item).

    Among equals decide: the belief (item, class), then how rarely the class is named at all, then
    how often those who named it agree with the most frequent label where that is clear, then the
    order of classes.
    """
    votes = annotations.votes()
    label = votes.argmax(axis=1)
    tied = np.flatnonzero((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1)
    tied = tied[annotations.labels_per_item[tied] > 0]
    if len(tied):
        likely = _narrow(votes[tied] == votes[tied].max(axis=1, keepdims=True), posterior[tied])
        likely = _narrow(likely, np.broadcast_to(-votes.sum(axis=0), likely.shape))
        label[tied] = likely.argmax(axis=1)
        still = likely.sum(axis=1) > 1
        if still.any():
            rows = tied[still]
            label[rows] = _by_company(annotations, label, tied, rows, likely[still], votes[rows])
    return np.where(annotations.labels_per_item > 0, label, -1)


def best(posterior: Floats, otherwise: Integers) -> Integers:
    """Return the best class of every item; among equals, or where there is none, the other."""
    top = posterior.max(axis=1, keepdims=True)
    several = (posterior >= top - _TIE).sum(axis=1) > 1
    return np.where(several | (otherwise < 0), otherwise, posterior.argmax(axis=1))


def worst_class(annotations: Annotations, same: npt.NDArray[np.bool_], quality: Floats) -> Integers:
    """Return the class that every annotator gives with the least right, -1 for none: (annotator).

    Among equals: the class given most often, then that on the items of best quality, the first.
    """
    n_classes = annotations.n_classes
    cells = annotations.annotator * np.int64(n_classes) + annotations.label

    def summed(values: Array) -> Floats:
        return _summed(cells, values, annotations.n_annotators * n_classes).reshape(-1, n_classes)

    given = summed(np.ones(len(annotations)))
    often = np.maximum(given, 1)
    worst = _narrow(given > 0, -summed(same) / often)
    worst = _narrow(worst, given)
    worst = _narrow(worst, summed(quality) / often)
    return np.where(worst.any(axis=1), worst.argmax(axis=1), -1)


def _by_company(
    annotations: Annotations,
    label: Integers,
    tied: Integers,
    rows: Integers,
    likely: npt.NDArray[np.bool_],
    votes: Floats,
) -> Integers:
    """Return labels of tied items by how good those are who named each class: (row)."""
    clear = np.ones(annotations.n_items, dtype=bool)
    clear[tied] = False
    counted = clear[annotations.item]
    given = by_annotator(annotations, counted)
    agreed = by_annotator(annotations, counted & (label[annotations.item] == annotations.label))
    agreement = np.divide(agreed, given, where=given > 0, out=np.zeros(len(given)))
    agreement[given == 0] = agreement[given > 0].mean() if counted.any() else 0.0
    few = annotations.take(rows)
    company = by_cell(few, agreement[few.annotator]) / np.maximum(votes, 1)
    return _narrow(likely, company).argmax(axis=1)


def _narrow(among: npt.NDArray[np.bool_], score: Floats) -> npt.NDArray[np.bool_]:
    """Return which of the candidates in every row have the highest score."""
    score = np.where(among, score, -np.inf)
    return among & (score >= score.max(axis=1, keepdims=True) - _TIE)


def _summed(positions: Array, values: Array, size: int) -> Floats:
    return np.bincount(positions, values, minlength=size).astype(np.float64, copy=False)


def _cells(annotations: Annotations) -> Integers:
    return annotations.item * np.int64(annotations.n_classes) + annotations.label


def _repeats(annotations: Annotations) -> tuple[Integers, Integers]:
    """Return how often the annotator labelled the item, and so labelled it: (annotation) each."""
    annotator = annotations.item * np.int64(annotations.n_annotators) + annotations.annotator
    new = np.diff(annotator, prepend=-1) != 0
    if new.all():
        once = np.ones(len(annotations), dtype=np.int64)
        return once, once
    other = new | (np.diff(annotations.label.astype(np.int64), prepend=-1) != 0)
    return _run_lengths(new), _run_lengths(other)


def _run_lengths(starts: npt.NDArray[np.bool_]) -> Integers:
    """Return for every place how long the run is that it stands in."""
    first = np.flatnonzero(starts)
    length = np.diff(first, append=len(starts))
    return np.repeat(length, length)
