"""Label counts of items, which most measures need.

Only cells with a vote are stored, so the size is that of the annotations. `distinct` merges items
with equal counts into one row, which makes resampling cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..base.arrays import Floats, Integers
from ..answers.annotations import Annotations
from ..answers.base import Relation

_ROOM = 8  # cells per label up to which counting in a full table is cheaper than sorting


@dataclass(frozen=True, eq=False)
class Votes:
    """Label counts, one row for an item or for all items with equal counts.

    Dense where that is not much larger than the labels, else sparse.
    """

    counts: Floats | sparse.csr_array[Any, Any]  # (row, class)
    times: Integers  # (row): how many items have these counts

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return self.counts.shape[1]

    @cached_property
    def table(self) -> sparse.csr_array[Any, Any]:
        """The counts as a sparse table: (row, class)."""
        return sparse.csr_array(self.counts)

    @cached_property
    def size(self) -> Floats:
        """The number of labels: (row)."""
        return self.counts @ np.ones(self.n_classes)

    @property
    def squares(self) -> Floats:
        """Sums of squared counts: (row)."""
        if isinstance(self.counts, np.ndarray):
            return np.einsum("ij,ij->i", self.counts, self.counts)
        return np.asarray(self.table.power(2).sum(axis=1), dtype=np.float64)

    def around(self, values: Floats, center: Floats) -> Floats:
        """Return squared distances from the center of a row, summed over labels: (row)."""
        if isinstance(self.counts, np.ndarray):
            return np.einsum("ij,ij->i", self.counts, (values - center[:, None]) ** 2)
        away = self.table.copy()
        row_center = np.repeat(center, np.diff(away.indptr))
        away.data = away.data * (values[away.indices] - row_center) ** 2
        return np.asarray(away.sum(axis=1), dtype=np.float64)

    def coincidences(self, weights: Floats) -> Floats:
        """Return the weighted sum of outer products of the counts: (class, class)."""
        if isinstance(self.counts, np.ndarray):
            return self.counts.T @ (self.counts * weights[:, None])
        return (self.table.T @ sparse.diags_array(weights) @ self.table).toarray()

    def distinct(self) -> Votes:
        """Return every row once, in an order that does not depend on the order of items."""
        # A sum of random 64-bit numbers identifies a row; the probability that two of 10^6 rows
        # collide is 3e-8.
        mark = np.random.default_rng(0).integers(2**63, size=self.n_classes, dtype=np.uint64)
        cells = mark[self.table.indices] * self.table.data.astype(np.uint64)
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(cells, dtype=np.uint64)])
        name = total[self.table.indptr[1:]] - total[self.table.indptr[:-1]]
        _, first, position = np.unique(name, return_index=True, return_inverse=True)
        times = np.bincount(position, self.times, minlength=len(first)).astype(np.int64)
        return Votes(self.table[first], times)


def count_votes(annotations: Annotations) -> Votes:
    """Return the counts of every item, also of those without labels."""
    width = annotations.n_classes
    cell = np.repeat(np.arange(annotations.n_items) * np.int64(width), annotations.labels_per_item)
    cell += annotations.label
    times = np.ones(annotations.n_items, dtype=np.int64)
    if annotations.n_items * width <= _ROOM * len(annotations):
        counts = np.bincount(cell, minlength=annotations.n_items * width)
        return Votes(counts.reshape(annotations.n_items, width).astype(np.float64), times)
    cells, counts = np.unique(cell, return_counts=True)
    row, label = np.divmod(cells, max(width, 1))
    index = np.zeros(annotations.n_items + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=annotations.n_items), out=index[1:])
    table: sparse.csr_array[Any, Any] = sparse.csr_array(
        (counts.astype(np.float64), label, index), shape=(annotations.n_items, width)
    )
    return Votes(table, times)


def repeats_previous(annotations: Relation) -> npt.NDArray[np.bool_]:
    """Return whether a label is by the same annotator on the same item as the one before.

    >>> repeats_previous(Annotations.from_columns("aab", "xxx", "010")).tolist()
    [False, True, False]
    """
    repeats = np.zeros(len(annotations), dtype=bool)
    item, annotator = annotations.item, annotations.annotator
    repeats[1:] = (item[1:] == item[:-1]) & (annotator[1:] == annotator[:-1])
    return repeats
