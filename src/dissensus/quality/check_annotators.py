"""Annotators who always give one class, and annotators with identical labels.

Both are compared with the labels of others on the same items. An annotator who always gives one
class is reported if others would hardly have given it every time. Two annotators are copies if
their labels on all common items are equal, and neither the labels of others on these items, nor
their own label marginals, nor their accuracy make that probable. Only pairs with common items are
compared, and of very large data a sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..base.arrays import Floats, Integers
from ..metrics.votes import repeats_previous
from ..answers.annotations import Annotations
from ..pages.wording import first_quoted, many, quoted, verb
from ..pages.sections import KNOWING, SERIOUS, Finding

_LEAST = 5  # labels of one class to judge
_COMMON = 20  # items that copies have in common
_FALSE_ALARM = 1e-4  # of a false alarm
_PAIRS = 2 * 10**7  # label pairs to compare
_PRIOR = 2.0  # pseudo-labels of others with the usual frequencies


class Streams:
    """The labels of annotators, and how often an item got the same label."""

    def __init__(self, annotations: Annotations) -> None:
        self.annotations = annotations
        self.item = annotations.item.astype(np.int64)
        # The cell (item and class) of every annotation, and the cells' counts.
        _, self.cell, self.count = np.unique(
            self.item * annotations.n_classes + annotations.label,
            return_inverse=True,
            return_counts=True,
        )
        least = np.full(annotations.n_annotators, annotations.n_classes, dtype=np.int64)
        most = np.full(annotations.n_annotators, -1, dtype=np.int64)
        np.minimum.at(least, annotations.annotator, annotations.label)
        np.maximum.at(most, annotations.annotator, annotations.label)
        self.only = np.where(least == most, most, -1)  # (annotator): their only class, or -1


def check_streams(annotations: Annotations) -> Iterator[Finding]:
    """Find annotators who always give one class, and annotators with equal labels."""
    if len(annotations):
        streams = Streams(annotations)
        yield from _one_class(streams)
        yield from _copies(streams)


def _one_class(streams: Streams) -> Iterator[Finding]:
    """Find annotators who always give one class where others would not."""
    annotations, only = streams.annotations, streams.only
    load, cell, count = annotations.labels_per_annotator, streams.cell, streams.count
    usual = np.bincount(annotations.label, minlength=annotations.n_classes) / len(annotations)
    others = annotations.labels_per_item[streams.item] - 1
    probability = (count[cell] - 1 + _PRIOR * usual[annotations.label]) / (others + _PRIOR)
    log = np.bincount(
        annotations.annotator, np.log(probability), minlength=annotations.n_annotators
    )
    flagged = np.flatnonzero((only >= 0) & (load >= _LEAST) & (log < np.log(_FALSE_ALARM)))
    if len(flagged) == 0:
        return
    flagged = flagged[np.argsort(-load[flagged], kind="stable")]
    total = int(load[flagged].sum())
    yield Finding(
        "always-the-same",
        f"{many(len(flagged), 'annotator')} always {verb(len(flagged), 'give')} one class where "
        f"others do not ({total / len(annotations):.1%} of the labels).",
        len(flagged),
        tuple(
            f"{quoted(annotations.annotators[one])}: {load[one]} × "
            f"{quoted(annotations.classes[only[one]])}"
            for one in flagged[:3]
        ),
        "review their work; models of annotators (dawid-skene) account for it, votes do not",
        severity=SERIOUS if total > 0.2 * len(annotations) else KNOWING,
    )


def _copies(streams: Streams) -> Iterator[Finding]:
    """Find annotators with equal labels on all common items."""
    annotations = streams.annotations
    pairs = _same_everywhere(streams)
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
        names = ", ".join(first_quoted(annotations.annotators[group == one], 4))
        more = ", …" if size[one] > 4 else ""
        examples.append(f"{names}{more}: the same on {common} items")
    n_annotators = int(size[clusters].sum())
    yield Finding(
        "copies",
        f"{many(n_annotators, 'annotator')} gave the same labels as another wherever both labelled "
        "an item.",
        n_annotators,
        tuple(examples),
        "copies, or two who know more than the rest: review where they differ from the others",
        severity=SERIOUS if size.max() > 2 else KNOWING,
    )


def _same_everywhere(streams: Streams) -> Integers:
    """Return pairs of annotators with equal labels on all common items, and their number.

    Labels given once are compared, of annotators who use two classes.
    """
    annotations, count = streams.annotations, streams.count
    none = np.empty((0, 3), dtype=np.int64)
    twice = repeats_previous(annotations)
    twice[:-1] |= twice[1:]
    able = (streams.only < 0) & (annotations.labels_per_annotator >= _COMMON)
    kept = ~twice & able[annotations.annotator]
    size = np.bincount(streams.item[kept], minlength=annotations.n_items).astype(float)
    if (size**2).sum() > _PAIRS:  # a part of the items, drawn once for all
        order = np.random.default_rng(0).permutation(annotations.n_items)
        inside = np.zeros(annotations.n_items, dtype=bool)
        inside[order[np.cumsum(size[order] ** 2) <= _PAIRS]] = True
        kept &= inside[streams.item]
    if not kept.any():
        return none
    annotator, item = annotations.annotator[kept].astype(np.int64), streams.item[kept]
    cell, ones = streams.cell[kept], np.ones(len(annotator))
    shape = annotations.n_annotators, len(count)
    co_annotated: Any = sparse.csr_array(
        (ones, (annotator, item)), shape=(shape[0], annotations.n_items)
    )
    gave: Any = sparse.csr_array((ones, (annotator, cell)), shape=shape)
    common = sparse.triu(co_annotated @ co_annotated.T, k=1).tocsr()
    enough = common >= _COMMON
    if enough.nnz == 0:
        return none
    alike = sparse.triu(gave @ gave.T, k=1).tocsr().multiply(enough).tocoo()
    shared = common[alike.row, alike.col]
    all_same = np.flatnonzero(alike.data == shared)
    if len(all_same) == 0:
        return none
    one, other = alike.row[all_same], alike.col[all_same]
    rare: Any = sparse.csr_array((_log_probability(streams)[kept], (annotator, cell)), shape=shape)
    rare = rare @ gave.T
    log = np.maximum(rare[one, other], rare[other, one])
    right = _with_most(streams)
    both = right[one] * right[other] + (1 - right[one]) * (1 - right[other])
    log = np.maximum(log, shared[all_same] * np.log(both))  # good annotators agree without copying
    certain = all_same[log < np.log(_FALSE_ALARM / enough.nnz)]
    return np.stack([alike.row, alike.col, shared])[:, certain].T.astype(np.int64)


def _with_most(streams: Streams) -> Floats:
    """Return how often every annotator gives the majority label of the others."""
    annotations, cell, count = streams.annotations, streams.cell, streams.count
    owner = np.empty(len(count), dtype=np.int64)  # the item of every cell
    owner[cell] = streams.item
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


def _log_probability(streams: Streams) -> Floats:
    """Return the log probability of every label, the larger of two estimates.

    From the labels of others on the item: two annotators are left out of the count, and `_PRIOR`
    pseudo-labels agree as often as two labels do given that one of them is this class. Or from the
    label marginals of this annotator.
    """
    annotations, cell, count = streams.annotations, streams.cell, streams.count
    size = annotations.labels_per_item[streams.item]
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
