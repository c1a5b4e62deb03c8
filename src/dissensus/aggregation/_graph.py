"""The bipartite graph of items and annotators, for methods that pass messages along its edges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..base.arrays import Array, Floats, Integers
from ..answers.annotations import Annotations


class Edges(NamedTuple):
    """Pairs of an item and an annotator, and how often each of two classes was given."""

    item: Integers  # (edge), ascending
    annotator: Array  # (edge)
    given: Floats  # (edge, class): number of labels
    n_items: int
    n_annotators: int

    @classmethod
    def of(cls, annotations: Annotations) -> Edges:
        """Return the graph of annotations with at most two classes; repeated labels add up."""
        item = annotations.item.astype(np.int64)
        given = np.eye(2)[annotations.label.astype(np.int64)]
        new = np.ones(len(item), dtype=bool)  # rows are sorted by item, then annotator
        new[1:] = (item[1:] != item[:-1]) | (
            annotations.annotator[1:] != annotations.annotator[:-1]
        )
        first = np.flatnonzero(new)
        if len(first) < len(item):
            given = np.add.reduceat(given, first, axis=0)
        annotator = annotations.annotator[first]
        return cls(item[first], annotator, given, annotations.n_items, annotations.n_annotators)

    @property
    def sign(self) -> Floats:
        """Labels of the second class less labels of the first: (edge)."""
        return self.given[:, 1] - self.given[:, 0]

    def by_item(self, value: Floats) -> Floats:
        """Return values of edges, summed for every item."""
        return np.bincount(self.item, value, self.n_items).astype(float)

    def by_annotator(self, value: Floats) -> Floats:
        """Return values of edges, summed for every annotator."""
        return np.bincount(self.annotator, value, self.n_annotators).astype(float)


def group_sum(group: Array, size: int) -> sparse.csr_array[Any, Any]:
    """Return the matrix that adds up the rows of every group: (group, row)."""
    ones, order = np.ones(len(group)), np.arange(len(group))
    return sparse.csr_array((ones, (group, order)), shape=(size, len(group)))
