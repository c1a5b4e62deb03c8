"""The data of a hierarchical fit: components of items, annotations by annotator, sums over them.

Fits run in the precision of the components, on arrays whose first axis is the class or direction:
sums over classes then add whole rows. Sorted by annotator (`in_order`), the annotations of an
annotator are a slice.

Components are principal components of item features, linear or with an RBF kernel. Features are
either standardized or, for embeddings meant to be compared by cosine, scaled to length
one (`cosine`). Kernel components are those of

    exp(−gamma · ‖x − y‖² / mean ‖x − y‖²)

on at most `_ANCHORS` of the items; a ridge on a linear head then is kernel regression. Components
keep their natural variances, so a ridge shrinks directions that vary little. Their total variance
is one, so the same prior standard deviations suit all data. All of it is computed in 32 bits.

    B. Schölkopf, A. Smola, K.-R. Müller. Nonlinear component analysis as a kernel eigenvalue
    problem. Neural Computation 10(5), 1998. doi:10.1162/089976698300017467
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from scipy.linalg import eigh, helmert

from ...answers.annotations import Annotations, Floats, Integers
from ...base.arrays import Array
from ...errors import DataError
from ..nn.estimator import standardization
from ..nn.features import Features, Vectors

OWN = 64  # components in heads of annotators: the first
_MANY = 48  # labels from which an annotator's head is a matrix product of its own
_ANCHORS = 1000
_PIECE = 4096  # items compared with the anchors at a time
_TINY = 1e-6  # smallest variance of a component, relative to the first: 32 bits carry no less


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
            x=x,
            item=annotations.item.astype(np.int64),
            annotator=annotations.annotator.astype(np.int64),
            target=np.eye(annotations.n_classes)[annotations.label],
            metadata=np.zeros((annotations.n_annotators, 0)) if metadata is None else metadata,
            basis=class_basis(annotations.n_classes, ordinal),
            weight=weight,
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
        unit = np.ones(len(self.item), self.x.dtype)
        return unit if self.weight is None else self.weight.astype(self.x.dtype)

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
        starts = (np.cumsum(self.count) - self.count)[present]
        if len(starts):
            out[..., present] = np.add.reduceat(values, starts, axis=-1)
        return out

    @cached_property
    def by_item(self) -> Any:
        """Matrix that sums over the annotations of an item: (item, annotation)."""
        cells = self.item, np.arange(len(self.item))
        unit = np.ones(len(self.item), self.x.dtype)
        return sparse.csr_array((unit, cells), shape=(len(self.x), len(self.item)))

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
        starts = np.cumsum(self.count) - self.count
        size = np.ceil(2 * np.log2(np.maximum(count, 1))).astype(int)
        padded = np.concatenate([self.own_x, np.zeros_like(self.own_x[:1])])
        blocks = []
        for size_class in np.unique(size[count > 0]):
            row = np.flatnonzero((size == size_class) & (count > 0))
            label = np.arange(count[row].max())
            position = np.where(label < count[row, None], starts[row, None] + label, len(self.item))
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


class Kernel(NamedTuple):
    """What components are taken of."""

    unit_length: bool  # whether vectors are scaled to length one
    gamma: float  # of the RBF kernel; 0: linear


KERNELS = {"linear": Kernel(False, 0.0), "rbf": Kernel(False, 1.0), "cosine": Kernel(True, 1.0)}


@dataclass(frozen=True, eq=False)
class Components:
    """A map from features to components."""

    mean: Vectors  # (feature): zero for unit length
    scale: Vectors  # (feature): zero for unit length
    gamma: float
    mean_square: float  # mean squared distance of anchors
    anchors: Vectors  # (anchor, feature), scaled; (0, feature) if linear
    mean_kernel: Vectors  # (anchor): mean kernel with every anchor
    basis: Vectors  # (anchor or feature, component)

    def of(self, features: Features) -> Vectors:
        """Return the components of items: (item, component)."""
        check_width(features, len(self.mean))
        out = np.empty((len(features), self.basis.shape[1]), np.float32)
        for start in range(0, len(features), _PIECE):
            x = _scaled(features.vectors[start : start + _PIECE], self.mean, self.scale)
            if self.gamma:
                x = _kernel(x, self.anchors, self.gamma / self.mean_square)
                x -= x.mean(axis=1, keepdims=True)
                x += self.mean_kernel.mean() - self.mean_kernel
            out[start : start + _PIECE] = x @ self.basis
        return out

    def arrays(self) -> dict[str, Any]:
        """Return every field as an array."""
        return {name: np.atleast_1d(value) for name, value in vars(self).items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Components:
        """Return the map with these fields."""
        numbers = {name: arrays[name].item() for name in ("gamma", "mean_square")}
        return cls(**(arrays | numbers))


def fit_components(
    vectors: Vectors, most: int, kernel: Kernel, seed: int = 0
) -> tuple[Components, Vectors]:
    """Return a map to at most `most` components of vectors (item, feature), and the components."""
    gamma = float(kernel.gamma)
    mean, scale = np.zeros((2, vectors.shape[1]), np.float32)
    if not kernel.unit_length:
        wide = torch.from_numpy(vectors.astype(np.float64))
        mean, scale = (values.numpy().astype(np.float32) for values in standardization(wide))
    x = _scaled(vectors, mean, scale)
    anchors, mean_kernel, mean_square = x[:0], np.zeros(0, np.float32), 1.0
    if gamma:
        anchors = x
        if len(x) > _ANCHORS:
            sample = np.random.default_rng([seed, 0xA2C4]).permutation(len(x))[:_ANCHORS]
            anchors = x[np.sort(sample)]
        mean_square = float(_squares(anchors, anchors).mean()) or 1.0
        gram = _kernel(anchors, anchors, gamma / mean_square)
        mean_kernel = gram.mean(axis=0)
        gram += mean_kernel.mean() - mean_kernel - mean_kernel[:, None]
    else:
        gram = (x - x.mean(axis=0)).T @ x
    last = len(gram) - 1
    spectrum = eigh(gram, subset_by_index=(max(last + 1 - most, 0), last), driver="evr")
    value, basis = (part.astype(np.float32) for part in spectrum)
    columns = np.flatnonzero(value > _TINY * max(value[-1], _TINY))[::-1]
    basis = np.ascontiguousarray(basis[:, columns])
    if gamma:
        basis /= np.sqrt(value[columns])
    components = Components(
        mean=mean,
        scale=scale,
        gamma=gamma,
        mean_square=mean_square,
        anchors=anchors,
        mean_kernel=mean_kernel,
        basis=basis,
    )
    x = components.of(Features(vectors))
    size = np.float32(np.sqrt(x.var(axis=0, dtype=np.float64).sum()) or 1.0)
    return replace(components, basis=basis / size), x / size


def check_width(features: Features, width: int) -> None:
    """Raise if vectors have another width than those the model was fitted to."""
    if len(features) and features.vectors.shape[1] != width:
        raise DataError(
            f"vectors of {features.vectors.shape[1]} features, but the model was fitted to {width}"
        )


def _scaled(vectors: Vectors, mean: Vectors, scale: Vectors) -> Vectors:
    """Return standardized features or, if `scale` is zero, vectors of length one."""
    if scale.any():
        return (vectors - mean) * scale
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _TINY)


def _squares(x: Vectors, y: Vectors) -> Vectors:
    """Return squared distances: (row of x, row of y)."""
    out = x @ y.T
    out *= -2
    out += (x**2).sum(axis=1)[:, None]
    out += (y**2).sum(axis=1)
    return np.maximum(out, 0, out=out)


def _kernel(x: Vectors, y: Vectors, rate: float) -> Vectors:
    """Return exp(−rate · squared distance): (row of x, row of y)."""
    out = _squares(x, y)
    out *= np.float32(-rate)
    return np.exp(out, out=out)
