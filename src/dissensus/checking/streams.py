"""Annotators who do not look: always the same class, or the very labels of somebody else.

Both are told from chance by what others said about the same items. An annotator who always says
one class is found if others would hardly have said it every time. Two annotators are copies if
they gave the same label to all items on which they met, and neither what others say of these
items nor their own habits nor how good they are makes that probable. Only pairs that met are
looked at, and of very large data a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from .._relation import Array, Floats, Integers
from ..annotations import Annotations
from ._finding import KNOWING, SERIOUS, CheckContext, Finding, listed, many, quoted, verb

__all__ = ["check_copies", "check_one_class"]

_LEAST = 5  # labels of one class that may mean something
_COMMON = 20  # items that copies have in common
_FALSE_ALARM = 1e-4  # of a false alarm
_PAIRS = 2 * 10**7  # pairs of labels to look at
_PRIOR = 2.0  # imagined others who say what is usual


def check_one_class(context: CheckContext) -> Iterator[Finding]:
    """Find annotators who always say one class where others would not."""
    annotations = context.annotations
    if not isinstance(annotations, Annotations) or len(annotations) == 0 or context.free_text:
        return
    load = annotations.labels_per_annotator
    only = _only_class(annotations)
    cell, count = context.cells
    usual = np.bincount(annotations.label, minlength=annotations.n_classes) / len(annotations)
    others = annotations.labels_per_item[context.item] - 1
    probability = (count[cell] - 1 + _PRIOR * usual[annotations.label]) / (others + _PRIOR)
    log = np.bincount(
        annotations.annotator, np.log(probability), minlength=annotations.n_annotators
    )
    found = np.flatnonzero((only >= 0) & (load >= _LEAST) & (log < np.log(_FALSE_ALARM)))
    if len(found) == 0:
        return
    found = found[np.argsort(-load[found], kind="stable")]
    total = int(load[found].sum())
    yield Finding(
        "always-the-same",
        SERIOUS if total > 0.2 * len(annotations) else KNOWING,
        f"{many(len(found), 'annotator')} always {verb(len(found), 'say')} one class where others "
        "do not "
        f"({total / len(annotations):.1%} of the labels).",
        len(found),
        tuple(
            f"{context.name('annotators', annotator)}: {load[annotator]} × {quoted(annotations.classes[only[annotator]])}"
            for annotator in found[:3]
        ),
        "look at their work; models of annotators (dawid-skene) take care of them, votes do not",
    )


def _only_class(annotations: Annotations) -> Integers:
    """Return the only class an annotator ever gave, -1 where there are several or none."""
    least = np.full(annotations.n_annotators, annotations.n_classes, dtype=np.int64)
    most = np.full(annotations.n_annotators, -1, dtype=np.int64)
    np.minimum.at(least, annotations.annotator, annotations.label)
    np.maximum.at(most, annotations.annotator, annotations.label)
    return np.where(least == most, most, -1)


def check_copies(context: CheckContext) -> Iterator[Finding]:
    """Find annotators who gave the same labels wherever they met."""
    annotations = context.annotations
    if not isinstance(annotations, Annotations) or context.free_text:
        return
    kept = _kept(context)
    if not kept.any():
        return
    pairs = _same_everywhere(context, kept)
    if len(pairs) == 0:
        return
    graph = sparse.coo_array(
        (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(annotations.n_annotators,) * 2
    )
    _, group = connected_components(graph, directed=False)
    size = np.bincount(group)
    clusters = np.flatnonzero(size > 1)
    clusters = clusters[np.argsort(-size[clusters], kind="stable")]
    examples = []
    for one in clusters[:3]:
        common = pairs[group[pairs[:, 0]] == one, 2].max()
        names = ", ".join(listed(annotations.annotators[group == one], 4))
        more = ", …" if size[one] > 4 else ""
        examples.append(f"{names}{more}: the same on {common} items")
    people = int(size[clusters].sum())
    yield Finding(
        "copies",
        SERIOUS if size.max() > 2 else KNOWING,  # a single pair may both be good
        f"{many(people, 'annotator')} gave the same labels as another wherever both labelled "
        "an item.",
        people,
        tuple(examples),
        "copies, or two who know more than the rest: look where they differ from the others",
    )


def _kept(context: CheckContext) -> Array:
    """Return annotations to compare: one for each pair, of annotators who use two classes."""
    annotations, same = context.annotations, context.same_pair
    assert isinstance(annotations, Annotations)
    twice = same.copy()
    twice[:-1] |= same[1:]
    able = (_only_class(annotations) < 0) & (annotations.labels_per_annotator >= _COMMON)
    kept = ~twice & able[annotations.annotator]
    size = np.bincount(context.item[kept], minlength=annotations.n_items).astype(float)
    if (size**2).sum() > _PAIRS:  # a part of the items, drawn once for all
        order = np.random.default_rng(0).permutation(annotations.n_items)
        inside = np.zeros(annotations.n_items, dtype=bool)
        inside[order[np.cumsum(size[order] ** 2) <= _PAIRS]] = True
        kept &= inside[context.item]
    return kept


def _same_everywhere(context: CheckContext, kept: Array) -> Integers:
    """Return pairs of annotators and their common items, where all labels are the same."""
    annotations = context.annotations
    assert isinstance(annotations, Annotations)
    annotator, item = annotations.annotator[kept].astype(np.int64), context.item[kept]
    cell, count = context.cells
    n_annotators = annotations.n_annotators

    def matrix(column: Any, values: Floats, width: int) -> Any:
        return sparse.csr_array((values, (annotator, column)), shape=(n_annotators, width))

    ones = np.ones(len(annotator))
    co_annotated = matrix(item, ones, annotations.n_items)
    gave = matrix(cell[kept], ones, len(count))
    common = sparse.triu(co_annotated @ co_annotated.T, k=1).tocsr()
    enough = common >= _COMMON
    if enough.nnz == 0:
        return np.empty((0, 3), dtype=np.int64)
    alike = sparse.triu(gave @ gave.T, k=1).tocsr().multiply(enough).tocoo()
    shared = common[alike.row, alike.col]
    all_same = np.flatnonzero(alike.data == shared)
    if len(all_same) == 0:
        return np.empty((0, 3), dtype=np.int64)
    one, other = alike.row[all_same], alike.col[all_same]
    rare = matrix(cell[kept], _log_probability(context)[kept], len(count)) @ gave.T
    log = np.maximum(rare[one, other], rare[other, one])
    right = _with_most(context)
    both = right[one] * right[other] + (1 - right[one]) * (1 - right[other])
    log = np.maximum(log, shared[all_same] * np.log(both))  # good ones agree without copying
    certain = all_same[log < np.log(_FALSE_ALARM / enough.nnz)]
    table = np.stack([alike.row, alike.col, shared])[:, certain].T
    return table.astype(np.int64)


def _with_most(context: CheckContext) -> Floats:
    """Return how often every annotator says what most others say of an item."""
    annotations = context.annotations
    assert isinstance(annotations, Annotations)
    cell, count = context.cells
    owner = np.empty(len(count), dtype=np.int64)  # the item of every cell
    owner[cell] = context.item
    starts = np.flatnonzero(np.r_[True, np.diff(owner) > 0])
    position = np.zeros(annotations.n_items, dtype=np.int64)  # of an item among those with labels
    position[owner[starts]] = np.arange(len(starts))
    top = np.maximum.reduceat(count, starts)[position[owner]]
    first = np.flatnonzero(count == top)
    first = first[np.r_[True, np.diff(owner[first]) > 0]]
    rest = count.copy()
    rest[first] = 0
    second = np.maximum.reduceat(rest, starts)[position[owner]]
    rival = top.copy()  # the most common other class of the item
    rival[first] = second[first]
    hit = count[cell] - 1 >= rival[cell]
    hits = np.bincount(annotations.annotator[hit], minlength=annotations.n_annotators)
    return (hits + 0.5) / (annotations.labels_per_annotator + 1)


def _log_probability(context: CheckContext) -> Floats:
    """Return for every label how probable it was, whatever is the more probable of two ways.

    Either as what others say about the item: two annotators are left out of the count, and
    `_PRIOR` imagined ones agree as often as two labels do once one of them is this class. Or as
    what this annotator says of any item: those who nearly always say one class agree by habit.
    """
    annotations = context.annotations
    assert isinstance(annotations, Annotations)
    cell, count = context.cells
    size = annotations.labels_per_item[context.item]
    co_annotated = np.bincount(annotations.label, size - 1, minlength=annotations.n_classes)
    agreed = np.bincount(annotations.label, count[cell] - 1, minlength=annotations.n_classes)
    usual = (agreed + 1) / (co_annotated + 2)  # (class)
    same = np.maximum(count[cell] - 2, 0)
    others = np.maximum(size - 2, 0)
    about_item = (same + _PRIOR * usual[annotations.label]) / (others + _PRIOR)
    own = annotations.annotator * np.int64(annotations.n_classes) + annotations.label
    _, position, often = np.unique(own, return_inverse=True, return_counts=True)
    of_annotator = often[position] / annotations.labels_per_annotator[annotations.annotator]
    return np.log(np.maximum(about_item, of_annotator))
