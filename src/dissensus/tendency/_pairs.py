"""The data of a hierarchical fit: annotations, sums by item and annotator, and blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import helmert

from ..annotations import Annotations, Floats, Integers

OWN = 64  # components in heads of annotators: the first


class _Block(NamedTuple):
    """Annotators with similar numbers of labels."""

    annotator: Integers  # (row)
    position: Integers  # (row, label): index of the annotation; len(annotations) is padding
    x: Floats  # (row, label, component): zero for padding


@dataclass(frozen=True, eq=False)
class Pairs:
    """The data of a fit."""

    x: Floats  # (item, component)
    item: Integers  # (annotation)
    annotator: Integers
    target: Floats  # (annotation, class): probabilities, one-hot for given labels
    metadata: Floats  # (annotator, feature)
    basis: Floats  # (direction, class)
    weight: Floats | None = None  # (annotation)

    @classmethod
    def of(
        cls,
        x: Floats,
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
        """The same data with annotators, and annotations of an item, in that order."""
        annotator = np.argsort(self.order)[self.annotator]
        rows = np.lexsort((annotator, self.item))
        return replace(
            self,
            item=self.item[rows],
            annotator=annotator[rows],
            target=self.target[rows],
            metadata=self.metadata[self.order],
            weight=None if self.weight is None else self.weight[rows],
        )

    @cached_property
    def by_item(self) -> Any:
        """Matrix that sums over the annotations of an item: (item, annotation)."""
        return _sum_by(self.item, len(self.x))

    @cached_property
    def by_annotator(self) -> Any:
        """Matrix that sums over the annotations of an annotator: (annotator, annotation)."""
        return _sum_by(self.annotator, self.n_annotators)

    @cached_property
    def blocks(self) -> list[_Block]:
        """Annotators by number of labels, within a factor of √2."""
        count = np.bincount(self.annotator, minlength=self.n_annotators)
        order = np.argsort(self.annotator, kind="stable")
        first = np.concatenate([[0], np.cumsum(count)[:-1]])
        size = np.ceil(2 * np.log2(np.maximum(count, 1))).astype(int)
        first_few = self.x[:, :OWN]
        padded = np.concatenate([first_few[self.item], np.zeros((1, first_few.shape[1]))])
        blocks = []
        for each in np.unique(size[count > 0]):
            row = np.flatnonzero((size == each) & (count > 0))
            label = np.arange(count[row].max())
            position = order[np.minimum(first[row, None] + label, len(order) - 1)]
            position = np.where(label < count[row, None], position, len(order))
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


def _sum_by(code: Integers, size: int) -> Any:
    cells = code, np.arange(len(code))
    return sparse.csr_array((np.ones(len(code)), cells), shape=(size, len(code)))
