"""Sums over items, from which all measures of counts follow.

Every item adds its own terms, so another weighting of the items (a resample, or one annotator less)
only needs the same terms added up again: `Terms.under` for weights, `without_each` for annotators.
With r the counts of an item, m their sum and d the difference of classes:

    units     1 with a label                  paired    1 with two labels or more
    apart     r · d r / (m (m - 1))           differ    r · d r / (m - 1)
    share     r / m                           given     r, where m > 1
    pairs     (r r' - diag r) / (m - 1): the coincidences, only where ranks decide the difference
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._relation import Floats
from ..annotations import Annotations
from ..errors import OptionError
from ._votes import Votes, count_votes
from .differences import Difference

__all__ = ["Sums", "Terms", "own_votes", "without_each"]

_SCALARS = 4
_FULL = 96  # columns up to which a full matrix is multiplied
_CELLS = 2**22
_MOST_PAIRS = 2**24


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of terms for one or more weightings of the items."""

    columns: Floats  # (weighting, column)
    n_classes: int

    @property
    def units(self) -> Floats:
        """Items with a label: (weighting)."""
        return self.columns[:, 0]

    @property
    def paired(self) -> Floats:
        """Items with two labels or more: (weighting)."""
        return self.columns[:, 1]

    @property
    def apart(self) -> Floats:
        """Mean differences between the labels of an item, added up: (weighting)."""
        return self.columns[:, 2]

    @property
    def differ(self) -> Floats:
        """The same with every label counting once: (weighting)."""
        return self.columns[:, 3]

    @property
    def share(self) -> Floats:
        """Shares of the classes within items, added up: (weighting, class)."""
        return self.columns[:, _SCALARS : _SCALARS + self.n_classes]

    @property
    def given(self) -> Floats:
        """Labels of the classes on items with a pair: (weighting, class)."""
        return self.columns[:, _SCALARS + self.n_classes : _SCALARS + 2 * self.n_classes]

    @property
    def pairs(self) -> Floats:
        """Coincidences: (weighting, class, class)."""
        k = self.n_classes
        return self.columns[:, _SCALARS + 2 * k :].reshape(-1, k, k)


@dataclass(frozen=True, eq=False)
class Terms:
    """What every row of votes adds to the sums."""

    votes: Votes
    difference: Difference
    with_pairs: bool = False

    @cached_property
    def within(self) -> Floats:
        """The difference between the labels of a row, over all ordered pairs: (row)."""
        return self.difference.within(self.votes)

    @cached_property
    def scalars(self) -> Floats:
        """Units, paired, apart and differ: (row, 4)."""
        size = self.votes.size
        paired = size > 1
        apart, differ = np.zeros((2, len(size)))
        np.divide(self.within, size - 1, out=differ, where=paired)
        np.divide(differ, size, out=apart, where=paired)
        return np.stack([size > 0, paired, apart, differ], axis=1).astype(np.float64)

    @cached_property
    def total(self) -> Sums:
        """The sums over all items as they are."""
        votes, size = self.votes, self.votes.size
        times = votes.times.astype(np.float64)
        given = votes.added(times * (size > 1))
        parts = [times @ self.scalars, votes.added(times * self._per_label), given]
        if self.with_pairs:
            scale = np.divide(times, size - 1, out=np.zeros(len(size)), where=size > 1)
            parts.append((votes.coincidences(scale) - np.diag(votes.added(scale))).ravel())
        return Sums(np.concatenate(parts)[None], votes.n_classes)

    @property
    def _per_label(self) -> Floats:
        size = self.votes.size
        return np.divide(1.0, size, out=np.zeros(len(size)), where=size > 0)

    @cached_property
    def columns(self) -> Floats | sparse.csr_array[Any, Any]:
        """All terms: (row, column); a full matrix where there are few columns."""
        votes = self.votes
        scaled = [votes.spread(self._per_label), votes.spread((votes.size > 1).astype(float))]
        blocks = [sparse.csr_array(self.scalars)]
        blocks += [
            sparse.csr_array(
                (votes.table.data * by, votes.table.indices, votes.table.indptr),
                shape=votes.table.shape,
            )
            for by in scaled
        ]
        if self.with_pairs:
            blocks.append(self._pairs)
        if sum(block.shape[1] for block in blocks) <= _FULL:
            return np.hstack([block.toarray() for block in blocks])
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    @cached_property
    def _pairs(self) -> sparse.csr_array[Any, Any]:
        """Coincidences of every row: (row, class and class)."""
        votes, k = self.votes, self.votes.n_classes
        if k * k > _MOST_PAIRS:
            raise OptionError(f"{k} classes are too many for ordinal differences; take interval")
        cells = np.diff(votes.table.indptr)  # of every row
        row = np.repeat(np.arange(len(cells)), cells**2)
        # Cell c of a row meets all cells of this row in turn.
        one = np.repeat(np.arange(len(votes.table.data)), np.repeat(cells, cells))
        begin = np.cumsum(cells**2) - cells**2
        other = votes.table.indptr[row] + (np.arange(len(row)) - begin[row]) % np.maximum(
            cells[row], 1
        )
        count = votes.table.data
        meets = count[one] * count[other] - np.where(one == other, count[one], 0)
        scale = np.divide(1, votes.size - 1, out=np.zeros(len(cells)), where=votes.size > 1)
        label = votes.table.indices.astype(np.int64)
        return sparse.csr_array(
            sparse.coo_array(
                (meets * scale[row], (row, label[one] * k + label[other])),
                shape=(len(cells), k * k),
            )
        )

    def under(self, weights: Floats) -> Sums:
        """Return the sums when rows count as often as the weights say: (weighting, row)."""
        return Sums(weights @ self.columns, self.votes.n_classes)


def without_each(
    annotations: Annotations, difference: Difference, with_pairs: bool = False
) -> Iterator[tuple[slice, Sums]]:
    """Yield the sums without one annotator, for a range of annotators at a time.

    Only items that somebody labelled change, so the cost is the labels beside every label.
    """
    all_votes = count_votes(annotations)
    whole = Terms(all_votes, difference, with_pairs)
    own, item, annotator = own_votes(annotations)
    n_columns = whole.total.columns.shape[1]
    step = max(_CELLS * 4 // n_columns, 1)
    for first in range(0, annotations.n_annotators, step):
        last = min(first + step, annotations.n_annotators)
        change = np.zeros((last - first, n_columns))
        mine = np.flatnonzero((annotator >= first) & (annotator < last))
        few = max(_CELLS // (4 * min(n_columns, _FULL)), 1)
        for start in range(0, len(mine), few):
            rows = mine[start : start + few]
            before = all_votes.table[item[rows]]
            after = sparse.csr_array(before - own[rows])
            after.eliminate_zeros()
            once = np.ones(len(rows), dtype=np.int64)
            new, old = (
                Terms(Votes(table, once), difference, with_pairs).columns
                for table in (after, before)
            )
            whose = sparse.csr_array(
                (np.ones(len(rows)), (annotator[rows] - first, np.arange(len(rows)))),
                shape=(last - first, len(rows)),
            )
            added = whose @ (new - old)
            change += added if isinstance(added, np.ndarray) else added.toarray()
        yield slice(first, last), Sums(whole.total.columns + change, annotations.n_classes)


def own_votes(annotations: Annotations) -> tuple[sparse.csr_array[Any, Any], Any, Any]:
    """Return what every annotator said on every item they labelled, with item and annotator."""
    item, annotator = annotations.item.astype(np.int64), annotations.annotator.astype(np.int64)
    new = np.ones(len(annotations), dtype=bool)
    new[1:] = (np.diff(item) != 0) | (np.diff(annotator) != 0)
    begin = np.append(np.flatnonzero(new), len(annotations))
    own: sparse.csr_array[Any, Any] = sparse.csr_array(
        (np.ones(len(annotations)), annotations.label.astype(np.int64), begin),
        shape=(len(begin) - 1, annotations.n_classes),
    )
    own.sum_duplicates()
    return own, item[new], annotator[new]
