"""Co-annotated items: every two labels on one item, summed for pairs of annotators.

The cost grows with the label pairs of items. Only pairs with a common item are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ..base.arrays import Array, Floats, Integers
from ..answers.annotations import Annotations
from ..errors import OptionError
from .coefficients import corrected
from .statistics import Difference
from .votes import repeats_previous

_MOST = 2**28  # label pairs, and numbers in memory
_PIECE = 2**22
_DENSE = 2**24  # cells up to which pairs are looked up in a full table


def label_pairs(size: Integers, step: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield the positions of every two labels of an item, about `step` pairs at a time.

    Labels are sorted by item, and `size` counts the labels of every item.

    >>> [(left.tolist(), right.tolist()) for left, right in label_pairs(np.array([3, 1, 2]), 9)]
    [([0, 0, 1, 4], [1, 2, 2, 5])]
    """
    size = size.astype(np.int64)
    n_labels = int(size.sum())
    start = np.repeat(np.cumsum(size) - size, size)
    later = np.repeat(size, size) - 1 - (np.arange(n_labels) - start)  # labels after this one
    upto = np.cumsum(later)
    first, done = 0, 0
    while first < n_labels and done < upto[-1]:
        last = max(int(np.searchsorted(upto, done + step, "right")), first + 1)
        left = np.repeat(np.arange(first, last), later[first:last])
        before = np.repeat(upto[first:last] - later[first:last], later[first:last]) - done
        yield left, left + 1 + np.arange(len(left)) - before
        first, done = last, done + len(left)


class PairIndex:
    """Positions of pairs of annotators, which are in ascending order."""

    def __init__(self, one: Integers, other: Integers, n_annotators: int) -> None:
        self._keys, self._n = one * n_annotators + other, n_annotators
        self._table: Integers | None = None
        if n_annotators**2 <= _DENSE:
            self._table = np.full(n_annotators**2, -1)
            self._table[self._keys] = np.arange(len(self._keys))

    def find(self, one: Array, other: Array) -> Integers:
        """Return the positions of pairs, -1 for those that are not indexed."""
        key = one.astype(np.int64) * self._n + other
        if self._table is not None:
            return self._table[key]
        if len(self._keys) == 0:
            return np.full(len(key), -1)
        position = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.where(self._keys[position] == key, position, -1)


def co_annotating(labelled: sparse.csr_array[Any, Any], least: int) -> tuple[Integers, Integers]:
    """Return the pairs of annotators with `least` common items, from (item, annotator).

    The second annotator has the larger code, and pairs are in ascending order.
    """
    common = sparse.triu(labelled.T @ labelled, k=1).tocoo()
    enough = common.data >= least
    one, other = (common.coords[axis][enough].astype(np.int64) for axis in (0, 1))
    order = np.lexsort((other, one))
    return one[order], other[order]


class CoAnnotations:
    """Label pairs of different annotators on one item, summed for every pair of annotators."""

    def __init__(
        self, annotations: Annotations, difference: Difference, min_overlap: int = 1
    ) -> None:
        self.annotations, self.difference, self.min_overlap = annotations, difference, min_overlap
        size = annotations.labels_per_item.astype(np.int64)
        n_pairs = int((size * (size - 1) // 2).sum())
        if n_pairs > _MOST:
            raise OptionError(
                f"{n_pairs:,} pairs of labels are too many to compare "
                f"(at most {_MOST:,}); keep fewer annotators, or take fleiss or alpha"
            )
        first = np.flatnonzero(~repeats_previous(annotations))
        repeats = np.diff(np.append(first, len(annotations)))
        self._vote = np.repeat(1 / repeats, repeats)  # (annotation)
        labelled: sparse.csr_array[Any, Any] = sparse.csr_array(
            (np.ones(len(first)), (annotations.item[first], annotations.annotator[first])),
            shape=(annotations.n_items, annotations.n_annotators),
        )
        self.one, self.other = co_annotating(labelled, 1)
        if len(self.one) * annotations.n_classes > _MOST:
            raise OptionError(
                f"{len(self.one):,} pairs of annotators with {annotations.n_classes} classes do "
                "not fit into memory; keep fewer annotators, or take fleiss or alpha"
            )
        self._index = PairIndex(self.one, self.other, annotations.n_annotators)
        self._whole = self._summed(None)
        self.overlap = np.round(self._whole[0], 9)  # (pair): items in common

    def _label_pairs(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield pairs of annotations of one item, and their pair of different annotators."""
        annotator = self.annotations.annotator
        for left, right in label_pairs(self.annotations.labels_per_item, _PIECE):
            pair = self._index.find(annotator[left], annotator[right])
            apart = pair >= 0
            yield left[apart], right[apart], pair[apart]

    def _summed(self, times: Floats | None) -> tuple[Floats, Floats, Floats, Floats]:
        """Return overlap, differences, and the labels of both on common items: (pair[, class])."""
        n, k = len(self.one), self.annotations.n_classes
        overlap, apart = np.zeros((2, n))
        sides = np.zeros((2, n * k))
        weight = None if times is None else times[self.annotations.item]
        for left, right, pair in self._label_pairs():
            vote = self._vote[left] * self._vote[right]
            if weight is not None:
                vote = vote * weight[left]
            labels = [self.annotations.label[side].astype(np.int64) for side in (left, right)]
            overlap += np.bincount(pair, vote, n)
            apart += np.bincount(pair, vote * self.difference.cells(*labels), n)
            for side, label in zip(sides, labels, strict=True):
                side += np.bincount(pair * k + label, vote, n * k)
        return overlap, apart, sides[0].reshape(n, k), sides[1].reshape(n, k)

    def values(self, measure: str, times: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the agreement of every pair and its standard error; items count `times` each."""
        overlap, apart, left, right = self._whole if times is None else self._summed(times)
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = apart / overlap
            left, right = left / overlap[:, None], right / overlap[:, None]
            if measure == "percent":
                expected = np.ones_like(apart)
            elif measure == "scott":
                mean = (left + right) / 2
                expected = (mean * self.difference.toward(mean)).sum(axis=-1)
            else:
                expected = (left * self.difference.toward(right)).sum(axis=-1)
            value = corrected(apart, expected)
            error = np.sqrt(np.maximum(apart * (1 - apart), 0) / overlap) / expected
        kept = (overlap > 0) & (self.overlap >= self.min_overlap)
        return np.where(kept, value, np.nan), np.where(kept, error, np.nan)

    def influence(self, measure: str) -> Floats:
        """Return how far the mean over pairs would move if an item counted more: (item).

        For two annotators the root of the summed squares is the standard error of Fleiss, Cohen
        and Everitt (1969).
        """
        overlap, apart, left_given, right_given = self._whole
        if measure == "scott":
            left_given = right_given = (left_given + right_given) / 2
        left_expected = self.difference.toward(right_given)  # (pair, class)
        right_expected = self.difference.toward(left_given)
        total = (left_given * left_expected).sum(axis=-1)
        known = (total > 0) & (self.overlap >= self.min_overlap)
        with np.errstate(invalid="ignore", divide="ignore"):
            base = np.where(known, apart / total, 0)
            slope = np.where(known, overlap / total, 0)
        n_values = int((~np.isnan(self.values(measure)[0])).sum())
        out = np.zeros(self.annotations.n_items)
        item = self.annotations.item
        for left, right, pair in self._label_pairs():
            one, other = (self.annotations.label[side].astype(np.int64) for side in (left, right))
            both = (overlap * base)[pair]
            with np.errstate(invalid="ignore", divide="ignore"):
                expected = left_expected[pair, one] + right_expected[pair, other]
                expected = np.where(known[pair], expected / total[pair], 0)
            moved = base[pair] + slope[pair] * self.difference.cells(one, other) - both * expected
            vote = self._vote[left] * self._vote[right]
            out -= np.bincount(item[left], vote * moved, minlength=len(out))
        return out / max(n_values, 1)
