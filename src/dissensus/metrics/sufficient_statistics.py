"""Sufficient statistics of the measures that need only the label counts of items.

Every item contributes a row, so another weighting of the items (a resample, or one annotator less)
is another sum of the same rows: `ItemStatistics.weighted` for weights, `without_each` for
annotators. With r the label counts of an item, m their sum and d the difference of classes:

    units     1 with a label                  paired    1 with two labels or more
    apart     r · d r / (m (m - 1))           differ    r · d r / (m - 1)
    share     r / m                           given     r, where m > 1
    pairs     (r r' - diag r) / (m - 1): the coincidences, only where ranks define the difference
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..base.arrays import Floats
from ..answers.annotations import Annotations
from ..errors import OptionError
from .statistics import Difference
from .votes import Votes, count_votes, repeats_previous

_FULL = 96  # columns up to which a dense matrix is multiplied
_CELLS = 2**22
_MAX_PAIRS = 2**24


class SufficientStatistics(NamedTuple):
    """Sums over items, for one or more weightings of them."""

    units: Floats  # (weighting): items with a label
    paired: Floats  # (weighting): items with two labels or more
    observed: Floats  # (weighting): mean difference between two labels of an item, NaN without
    differ: Floats  # (weighting): summed, with every label counting once
    shares: Floats  # (weighting, class): mean class proportions
    given: Floats  # (weighting, class): labels on items with a pair
    pairs: Floats  # (weighting, class, class): coincidences

    @classmethod
    def from_columns(cls, columns: Floats, n_classes: int) -> SufficientStatistics:
        """Cut the columns: (weighting, column)."""
        share, given, pairs = np.split(columns[:, 4:], [n_classes, 2 * n_classes], axis=1)
        units, paired, apart, differ = columns[:, :4].T
        pairs = pairs.reshape(len(columns), n_classes, -1)
        with np.errstate(invalid="ignore", divide="ignore"):
            observed = np.where(paired > 0, apart / paired, np.nan)
            return cls(units, paired, observed, differ, share / units[:, None], given, pairs)


class ItemStatistics:
    """What every row of votes adds to the sums."""

    def __init__(self, votes: Votes, difference: Difference, with_pairs: bool = False) -> None:
        self.votes, self.difference, self.with_pairs = votes, difference, with_pairs
        size = votes.size
        apart, differ, self._per_label = np.zeros((3, len(size)))
        np.divide(difference.within(votes), size - 1, out=differ, where=size > 1)
        np.divide(differ, size, out=apart, where=size > 1)
        np.divide(1.0, size, out=self._per_label, where=size > 0)
        # Units, paired, apart and differ: (row, 4).
        self.scalars = np.stack([size > 0, size > 1, apart, differ], axis=1).astype(np.float64)

    @cached_property
    def total_columns(self) -> Floats:
        """The sums over all items: (column)."""
        size, counts = self.votes.size, self.votes.counts
        times = self.votes.times.astype(np.float64)
        parts = [times @ self.scalars, (times * self._per_label) @ counts]
        parts.append((times * (size > 1)) @ counts)
        if self.with_pairs:
            scale = np.divide(times, size - 1, out=np.zeros(len(size)), where=size > 1)
            parts.append((self.votes.coincidences(scale) - np.diag(scale @ counts)).ravel())
        return np.concatenate(parts)

    @cached_property
    def columns(self) -> Floats | sparse.csr_array[Any, Any]:
        """All contributions: (row, column); dense where there are few columns."""
        votes = self.votes
        blocks = [sparse.csr_array(self.scalars)]
        for scale in (self._per_label, (votes.size > 1).astype(float)):
            blocks.append(sparse.csr_array(sparse.diags_array(scale) @ votes.table))
        if self.with_pairs:
            blocks.append(self._pairs)
        if sum(block.shape[1] for block in blocks) <= _FULL:
            return np.hstack([block.toarray() for block in blocks])
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    @cached_property
    def _pairs(self) -> sparse.csr_array[Any, Any]:
        """Coincidences of every row: (row, class and class)."""
        votes, k = self.votes, self.votes.n_classes
        if k * k > _MAX_PAIRS:
            raise OptionError(f"{k} classes are too many for ordinal differences; take interval")
        cells = np.diff(votes.table.indptr)  # of every row
        row = np.repeat(np.arange(len(cells)), cells**2)
        # Cell c of a row is combined with all cells of this row in turn.
        one = np.repeat(np.arange(len(votes.table.data)), np.repeat(cells, cells))
        begin = np.cumsum(cells**2) - cells**2
        other = votes.table.indptr[row] + (np.arange(len(row)) - begin[row]) % np.maximum(
            cells[row], 1
        )
        count = votes.table.data
        joint = count[one] * count[other] - np.where(one == other, count[one], 0)
        scale = np.divide(1, votes.size - 1, out=np.zeros(len(cells)), where=votes.size > 1)
        label = votes.table.indices.astype(np.int64)
        return sparse.csr_array(
            sparse.coo_array(
                (joint * scale[row], (row, label[one] * k + label[other])),
                shape=(len(cells), k * k),
            )
        )

    def weighted(self, weights: Floats | None = None) -> SufficientStatistics:
        """Return the sums under weights (weighting, row), or over all items."""
        sums = self.total_columns[None] if weights is None else weights @ self.columns
        return SufficientStatistics.from_columns(sums, self.votes.n_classes)


def without_each(
    annotations: Annotations, difference: Difference, with_pairs: bool = False
) -> Iterator[tuple[slice, SufficientStatistics]]:
    """Yield the sums without one annotator, for a range of annotators at a time.

    Only the items of an annotator change.
    """
    all_votes = count_votes(annotations)
    whole = ItemStatistics(all_votes, difference, with_pairs)
    own, item, annotator = own_votes(annotations)
    n_columns = len(whole.total_columns)
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
                ItemStatistics(Votes(table, once), difference, with_pairs).columns
                for table in (after, before)
            )
            whose = sparse.csr_array(
                (np.ones(len(rows)), (annotator[rows] - first, np.arange(len(rows)))),
                shape=(last - first, len(rows)),
            )
            added = whose @ (new - old)
            change += added if isinstance(added, np.ndarray) else added.toarray()
        changed = whole.total_columns + change
        yield slice(first, last), SufficientStatistics.from_columns(changed, annotations.n_classes)


def own_votes(annotations: Annotations) -> tuple[sparse.csr_array[Any, Any], Any, Any]:
    """Return label counts for every annotated pair of item and annotator, with their codes."""
    item, annotator = annotations.item.astype(np.int64), annotations.annotator.astype(np.int64)
    new = ~repeats_previous(annotations)
    begin = np.append(np.flatnonzero(new), len(annotations))
    own: sparse.csr_array[Any, Any] = sparse.csr_array(
        (np.ones(len(annotations)), annotations.label.astype(np.int64), begin),
        shape=(len(begin) - 1, annotations.n_classes),
    )
    own.sum_duplicates()
    return own, item[new], annotator[new]
