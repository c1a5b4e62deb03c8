"""Which answers take part: those not of authors themselves, random folds, random samples.

Folds and samples follow the content of annotations, not names or row order. Items, annotators and
classes get hash values from what they are connected with, refined a few times as in colour
refinement of graphs: other names give the same values. Items of the same annotators that nothing
but their name distinguishes are numbered, so that they are spread over the folds.

    B. Weisfeiler, A. Leman. The reduction of a graph to canonical form and the algebra which
    appears therein. NTI Series 2(9), 1968.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..base.arrays import Integers
from ..base.names import text
from ..errors import DataError
from .annotations import Annotations
from .base import Relation
from .numbers import Numbers

__all__ = ["author_codes", "without_own"]

_REFINEMENTS = 4  # of hash values by those of neighbours
_ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads the bits of small integers

Hashes = npt.NDArray[np.uint64]

T = TypeVar("T", Annotations, Numbers)


def author_codes(answers: Relation, authors: Mapping[str, str]) -> Integers:
    """Return the author of every item by code; -1 where it is not known or is no annotator."""
    code = {name: number for number, name in enumerate(answers.annotators.tolist())}
    items = answers.items.tolist()
    author = [code.get(text(authors[item]), -1) if item in authors else -1 for item in items]
    return np.array(author, dtype=np.int64)


def without_own(answers: T, authors: Mapping[str, str]) -> tuple[T, int]:
    """Return answers without those of authors about their own items, and how many these were.

    >>> from dissensus import Numbers
    >>> grades = Numbers.from_columns(["a", "a", "b"], ["ann", "bob", "ann"], [9, 4, 6])
    >>> without_own(grades, {"a": "ann", "b": "bob"})
    (<Numbers: 2 answers by 2 annotators on 2 items; 4 to 6>, 1)
    """
    author = author_codes(answers, authors)
    if not (author >= 0).any():
        raise DataError("no item has an author among the annotators; write both as in the labels")
    own = author[answers.item] == answers.annotator
    return answers.keep(~own), int(own.sum())


def content_order(
    annotations: Annotations, *, ordered: bool = False
) -> tuple[Integers, Integers, Integers]:
    """Return items, annotators and classes by code, in an order that renaming does not change.

    >>> one = Annotations.from_columns("aabbc", "xyxyx", "01110")
    >>> two = Annotations.from_columns("ccbba", "pqpqp", "01110")
    >>> orders = [each.items[content_order(each)[0]].tolist() for each in (one, two)]
    >>> orders[1] == [{"a": "c", "b": "b", "c": "a"}[name] for name in orders[0]]
    True
    """
    orders = [np.argsort(hashes, kind="stable") for hashes in content_hashes(annotations, ordered)]
    return orders[0], orders[1], np.arange(annotations.n_classes) if ordered else orders[2]


def content_hashes(
    annotations: Annotations, ordered: bool = False
) -> tuple[Hashes, Hashes, Hashes]:
    """Return hash values of items, annotators and classes that do not depend on names.

    Ordered classes are distinguished by their order.
    """
    rows = (annotations.item, annotations.annotator, annotations.label)
    sizes = (annotations.n_items, annotations.n_annotators, annotations.n_classes)
    values = [_mix(np.full(size, kind)) for kind, size in enumerate(sizes, 1)]
    if ordered:
        values[2] = _mix(values[2] + np.arange(sizes[2], dtype=np.uint64))
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
    """Return the random fold of every annotation; those on one item are in different folds.

    >>> annotations = Annotations.from_columns("aabbcc", "xyxyxy", "001100")
    >>> np.sort(content_folds(annotations, 2, 0).reshape(3, 2)).tolist()
    [[0, 1], [0, 1], [0, 1]]
    """
    item, annotator, label = content_hashes(annotations)
    link = _mix(annotator[annotations.annotator] + label[annotations.label] + np.uint64(seed))
    order = np.lexsort((link, annotations.item))
    position = np.empty(len(annotations), dtype=np.int64)
    position[order] = np.arange(len(annotations)) - annotations.index[annotations.item]
    offset = _numbered(item + np.uint64(seed), _annotator_sets(annotations)) % np.uint64(folds)
    return (position + offset[annotations.item].astype(np.int64)) % folds


def content_sample(annotations: Annotations, n_labels: int, seed: int) -> Annotations:
    """Return the annotations, or those on a random sample of items with about so many labels."""
    if len(annotations) <= n_labels:
        return annotations
    item = content_hashes(annotations)[0] + np.uint64(seed)
    order = np.argsort(_numbered(item, _annotator_sets(annotations)), kind="stable")
    n_items = max(1, annotations.n_items * n_labels // len(annotations))
    return annotations.take(np.sort(order[:n_items]))


def _mix(values: npt.NDArray[Any]) -> Hashes:
    """Return well-mixed 64-bit hash values of integers."""
    mixed = values.astype(np.uint64) * _ODD
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(29)
    return mixed


def _annotator_sets(annotations: Annotations) -> Hashes:
    """Return a hash value of the set of annotators of every item."""
    total = np.zeros(annotations.n_items, dtype=np.uint64)
    np.add.at(total, annotations.item, _mix(annotations.annotator.astype(np.uint64) + _ODD))
    return total


def _numbered(values: Hashes, groups: Hashes) -> Hashes:
    """Return other hash values; equal ones within a group are numbered, so that they differ."""
    order = np.lexsort((groups, values))
    new = np.ones(len(values), dtype=bool)
    new[1:] = (np.diff(values[order]) != 0) | (np.diff(groups[order]) != 0)
    starts = np.flatnonzero(new)
    number = np.empty(len(values), dtype=np.uint64)
    number[order] = np.arange(len(values)) - np.repeat(starts, np.diff(np.append(starts, len(new))))
    return _mix(_mix(values) + number)
