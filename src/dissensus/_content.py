"""The order of items, annotators and classes by their labels, not by their names.

What is drawn at random in this order does not depend on names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._relation import Integers
from .annotations import Annotations

_ROUNDS = 4

_Hashes = npt.NDArray[np.uint64]


def content_order(
    annotations: Annotations, *, ordered: bool = False
) -> tuple[Integers, Integers, Integers]:
    """Return items, annotators and classes by code, in an order that renaming does not change.

    All start equal and are distinguished by their labels, then by those of their neighbours.
    Ordered classes keep their order.

    >>> one = Annotations.from_columns("aabbc", "xyxyx", "01110")
    >>> two = Annotations.from_columns("ccbba", "pqpqp", "01110")
    >>> [one.items[content_order(one)[0]].tolist(), two.items[content_order(two)[0]].tolist()]
    [['a', 'c', 'b'], ['c', 'a', 'b']]
    """
    codes = [annotations.item, annotations.annotator, annotations.label]
    sizes = [annotations.n_items, annotations.n_annotators, annotations.n_classes]
    hashes = [np.full(size, axis, dtype=np.uint64) for axis, size in enumerate(sizes)]
    if ordered:
        hashes[2] += np.arange(sizes[2], dtype=np.uint64)
    for _ in range(_ROUNDS):
        row = np.zeros(len(annotations), dtype=np.uint64)
        for code, value in zip(codes, hashes, strict=True):
            row = _mix(row + value[code])
        for axis, code in enumerate(codes):
            total = np.zeros(sizes[axis], dtype=np.uint64)
            np.add.at(total, code, row)
            hashes[axis] = _mix(hashes[axis] + total)
    orders: list[Any] = [np.argsort(value, kind="stable") for value in hashes]
    return orders[0], orders[1], np.arange(sizes[2]) if ordered else orders[2]


def _mix(value: _Hashes) -> _Hashes:
    """Return numbers with well mixed bits (Steele, Lea & Flood 2014)."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
