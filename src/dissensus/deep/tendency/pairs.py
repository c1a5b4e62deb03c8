"""The data of a hierarchical fit: annotations by annotator, and sums over them.

Fits run in the precision of the components, on arrays whose first axis is the class or direction:
sums over classes then add whole rows. Sorted by annotator (`in_order`), the annotations of an
annotator are a slice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import helmert

from ...base.arrays import Array
from ...answers.annotations import Annotations, Floats, Integers

OWN = 64  # components in heads of annotators: the first
_MANY = 48  # labels from which an annotator's head is a matrix product of its own


class _Block(NamedTuple):
    """Annotators with similar numbers of labels."""

    annotator: Integers  # (row)
    position: Integers  # (row, label): index of the annotation; len(annotations) is padding
    x: Array  # (row, label, component): zero for padding


@dataclass(frozen=True, eq=False)
class Pairs:
    """The data of a fit."""

    x: Array  # (item, component)
    item: Integers  # (annotation)
    annotator: Integers
    target: Floats  # (annotation, class): probabilities, one-hot for given labels
    metadata: Floats  # (annotator, feature)
    basis: Floats  # (direction, class)
    weight: Floats | None = None  # (annotation)

    @classmethod
    def of(
        cls,
        x: Array,
        annotations: Annotations,
        *,
        metadata: Floats | None = None,
        ordinal: bool = False,
        weight: Floats | None = None,
    ) -> Pairs:
        """Return the data of annotations on items with components `x`."""
        return cls(
            x,
            annotations.item.astype(np.int64),
            annotations.annotator.astype(np.int64),
            np.eye(annotations.n_classes)[annotations.label],
            np.zeros((annotations.n_annotators, 0)) if metadata is None else metadata,
            class_basis(annotations.n_classes, ordinal),
            weight,
        )

    @property
    def n_annotators(self) -> int:
        """Number of annotators."""
        return len(self.metadata)

    @cached_property
    def order(self) -> Integers:
        """The annotators, sorted by their annotations and metadata."""
        rows = np.argsort(self.annotator, kind="stable")
        ends = np.cumsum(np.bincount(self.annotator, minlength=self.n_annotators))[:-1]
        columns = [self.item, self.target, *([] if self.weight is None else [self.weight])]
        split = [np.split(column[rows], ends) for column in columns]
        keys = [
            tuple(part.tobytes() for part in key) for key in zip(*split, self.metadata, strict=True)
        ]
        return np.array(sorted(range(self.n_annotators), key=keys.__getitem__), dtype=np.int64)

    @cached_property
    def in_order(self) -> Pairs:
        """The same data with annotators in that order, and annotations sorted by them and items."""
        annotator = np.argsort(self.order)[self.annotator]
        rows = np.lexsort((self.item, annotator))
        return replace(
            self,
            item=self.item[rows],
            annotator=annotator[rows],
            target=self.target[rows],
            metadata=self.metadata[self.order],
            weight=None if self.weight is None else self.weight[rows],
        )

    # What follows is of data in order.

    @cached_property
    def count(self) -> Integers:
        """The number of annotations of every annotator."""
        return np.bincount(self.annotator, minlength=self.n_annotators)

    @cached_property
    def target_of_class(self) -> Array:
        """The target, class first, in the precision of the components: (class, annotation)."""
        return np.ascontiguousarray(self.target.T, dtype=self.x.dtype)

    @cached_property
    def weight_or_one(self) -> Array:
        """The weight of every annotation."""
        one = np.ones(len(self.item), self.x.dtype)
        return one if self.weight is None else self.weight.astype(self.x.dtype)

    @cached_property
    def own_x(self) -> Array:
        """The first components of the item of every annotation: (annotation, component)."""
        return self.x[self.item, :OWN]

    @cached_property
    def own_squares(self) -> Floats:
        """Sums of their squares by annotator: (annotator, component)."""
        squares = self.weight_or_one[:, None] * self.own_x**2
        return self.sum_by_annotator(squares.T).T.astype(np.float64)

    @cached_property
    def squares(self) -> Floats:
        """Sums of the squares of components over annotations: (component)."""
        weight = np.bincount(self.item, weights=self.weight_or_one, minlength=len(self.x))
        return weight @ (self.x**2)

    def repeat(self, values: Array) -> Array:
        """Return values of annotators (…, annotator) for every annotation: (…, annotation)."""
        return np.repeat(values, self.count, axis=-1)

    def sum_by_annotator(self, values: Array) -> Array:
        """Return sums of values (…, annotation) by annotator: (…, annotator)."""
        out = np.zeros((*values.shape[:-1], self.n_annotators), values.dtype)
        present = np.flatnonzero(self.count)
        first = (np.cumsum(self.count) - self.count)[present]
        if len(first):
            out[..., present] = np.add.reduceat(values, first, axis=-1)
        return out

    @cached_property
    def by_item(self) -> Any:
        """Matrix that sums over the annotations of an item: (item, annotation)."""
        cells = self.item, np.arange(len(self.item))
        one = np.ones(len(self.item), self.x.dtype)
        return sparse.csr_array((one, cells), shape=(len(self.x), len(self.item)))

    @cached_property
    def slices(self) -> list[tuple[int, slice]]:
        """Annotators with many labels, and their annotations."""
        end = np.cumsum(self.count)
        return [
            (int(k), slice(int(end[k] - self.count[k]), int(end[k])))
            for k in np.flatnonzero(self.count >= _MANY)
        ]

    @cached_property
    def blocks(self) -> list[_Block]:
        """The other annotators by number of labels, within a factor of √2."""
        count = np.where(self.count < _MANY, self.count, 0)
        first = np.cumsum(self.count) - self.count
        size = np.ceil(2 * np.log2(np.maximum(count, 1))).astype(int)
        padded = np.concatenate([self.own_x, np.zeros_like(self.own_x[:1])])
        blocks = []
        for each in np.unique(size[count > 0]):
            row = np.flatnonzero((size == each) & (count > 0))
            label = np.arange(count[row].max())
            position = np.where(label < count[row, None], first[row, None] + label, len(self.item))
            blocks.append(_Block(row, position, padded[position]))
        return blocks


def class_basis(n_classes: int, ordinal: bool) -> Floats:
    """Return the map from directions to classes: (direction, class).

    Nominal classes have contrasts of length one: a constant added to all logits changes no
    probability.

    >>> class_basis(3, ordinal=True).tolist()
    [[-1.0, 0.0, 1.0]]
    >>> class_basis(2, ordinal=False).round(2).tolist()
    [[0.71, -0.71]]
    """
    if not ordinal:
        return helmert(n_classes) if n_classes > 1 else np.zeros((1, 1))
    position = np.arange(n_classes, dtype=np.float64)
    return (position - position.mean())[None]
