"""Agreement item by item, and of every annotator with the others."""

from __future__ import annotations

import numpy as np

from .._relation import Floats
from ..annotations import Annotations
from ._statistics import own_votes
from ._votes import Votes, count_votes
from .differences import Difference, Wish, weights_to_difference

__all__ = ["agreement_of_items", "agreement_with_others", "item_agreement"]

_CELLS = 2**22


def item_agreement(annotations: Annotations, *, weights: Wish = "identity") -> Floats:
    """Return for every item the share of its pairs of labels that agree; NaN without a pair.

    >>> item_agreement(Annotations.from_columns("aaabbc", "xyzxyx", "001111")).round(3).tolist()
    [0.333, 1.0, nan]
    """
    return agreement_of_items(annotations, weights_to_difference(weights, annotations.classes))


def agreement_of_items(annotations: Annotations, difference: Difference) -> Floats:
    """Return 1 minus the mean difference between two labels of an item; NaN without a pair."""
    size = annotations.labels_per_item.astype(np.float64)
    pairs = size * (size - 1)
    within = difference.within(count_votes(annotations))
    return 1 - np.divide(within, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)


def agreement_with_others(annotations: Annotations, difference: Difference) -> Floats:
    """Return how much annotators agree with all labels of others beside theirs: (annotator)."""
    votes = count_votes(annotations)
    own, item, annotator = own_votes(annotations)
    apart = np.zeros(len(annotations))  # from all labels on the item, own ones included
    step = max(_CELLS // max(annotations.n_classes, 1), 1)
    for start in range(0, annotations.n_items, step):
        stop = min(start + step, annotations.n_items)
        rows = slice(annotations.index[start], annotations.index[stop])
        toward = difference.toward(votes.table[start:stop].toarray())  # (item, class)
        position = np.repeat(np.arange(stop - start), annotations.labels_per_item[start:stop])
        apart[rows] = toward[position, annotations.label[rows]]
    mine = Votes(own, np.ones(len(item), dtype=np.int64))
    pairs = mine.size * (votes.size[item] - mine.size)
    n = annotations.n_annotators
    total = np.bincount(annotations.annotator, apart, minlength=n)
    total -= np.bincount(annotator, difference.within(mine), minlength=n)
    count = np.bincount(annotator, pairs, minlength=n)
    return 1 - np.divide(total, count, out=np.full(n, np.nan), where=count > 0)
