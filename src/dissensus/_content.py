"""Random folds and samples that follow the content of annotations, not names or row order.

Items, annotators and classes get hash values from what they are connected with, refined a few times
as in colour refinement of graphs: other names give the same values. Items that nothing but their
name distinguishes have equal values; they are numbered, so that they spread evenly over the folds.

    B. Weisfeiler, A. Leman. The reduction of a graph to canonical form and the algebra which
    appears therein. NTI Series 2(9), 1968.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._relation import Integers
from .annotations import Annotations

_REFINEMENTS = 3
_ODD = np.uint64(0x9E3779B97F4A7C15)
Hashes = npt.NDArray[np.uint64]


def content_hashes(annotations: Annotations) -> tuple[Hashes, Hashes, Hashes]:
    """Return hash values of items, annotators and classes that do not depend on names."""
    rows = (annotations.item, annotations.annotator, annotations.label)
    sizes = (annotations.n_items, annotations.n_annotators, annotations.n_classes)
    values = [_mix(np.full(size, kind)) for kind, size in enumerate(sizes, 1)]
    for _ in range(_REFINEMENTS):
        link = np.zeros(len(annotations), dtype=np.uint64)
        for row, value in zip(rows, values, strict=True):
            link = _mix(link + value[row])
        for row, value in zip(rows, values, strict=True):
            total = np.zeros(len(value), dtype=np.uint64)
            np.add.at(total, row, link)  # sums of integers: the order of rows does not matter
            value[:] = _mix(value + total)
    return values[0], values[1], values[2]


def content_folds(annotations: Annotations, folds: int, seed: int) -> Integers:
    """Return the random fold of every annotation.

    >>> folds = content_folds(Annotations.from_columns("aabbcc", "xyxyxy", "001100"), 2, 0)
    >>> len(folds), folds.max() < 2
    (6, np.True_)
    """
    item, annotator, label = content_hashes(annotations)
    item = _mix(item + np.uint64(seed))
    link = _mix(_mix(item[annotations.item] + annotator[annotations.annotator]))
    link = _mix(link + label[annotations.label])
    return ((link + _numbers(item)[annotations.item]) % np.uint64(folds)).astype(np.int64)


def content_sample(annotations: Annotations, n_labels: int, seed: int) -> Annotations:
    """Return the annotations, or those on a random sample of items with about so many labels."""
    if len(annotations) <= n_labels:
        return annotations
    item = _mix(content_hashes(annotations)[0] + np.uint64(seed))
    order = np.argsort(_mix(item + _numbers(item)), kind="stable")
    n_items = max(1, annotations.n_items * n_labels // len(annotations))
    return annotations.take(np.sort(order[:n_items]))


def _mix(values: npt.NDArray[Any]) -> Hashes:
    """Return well-mixed 64-bit hash values of integers."""
    mixed = values.astype(np.uint64) * _ODD
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(29)
    return mixed


def _numbers(values: Hashes) -> Hashes:
    """Return the position of every value among those equal to it."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    first = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))[: len(values)]
    size = np.diff(np.append(first, len(values)))
    out = np.empty(len(values), dtype=np.uint64)
    out[order] = np.arange(len(values)) - np.repeat(first, size)
    return out
