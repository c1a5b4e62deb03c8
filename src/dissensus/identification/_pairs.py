"""The meetings of annotators on items, pair by pair, and what a consensus says of every pair.

Only annotators who met count; the cost is that of the twos of labels on every item. Labels that an
annotator gave to an item more than once are left aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._probability import normalize
from .._relation import Array, Floats, Integers
from ..aggregation.dawid_skene_map import trust
from ..annotations import Annotations
from .leave_one_out import Others

__all__ = ["Look", "Met", "look", "meet"]

# The shares of copied labels that are tried.
_SHARES = np.array([0.01, 0.02, 0.04, 0.07, *np.arange(0.1, 0.95, 0.1), 0.15, 0.97])
_STRENGTH, _ACCURACY = 1.0, 0.7  # of the prior behind the confusion matrices
_CELLS = 2**18  # numbers to hold at a time
_SMALL = 2**11  # with so many annotators a table of all pairs is quicker than a search


class Met(NamedTuple):
    """Whose labels are looked at, and which pairs met often enough."""

    rows: Integers  # (row): places of annotations, by item
    size: Integers  # (item): how many rows it has
    one: Integers  # (pair)
    other: Integers  # (pair)
    n_meetings: int
    looked: float
    n_annotators: int

    def finder(self) -> Callable[[Array, Array], Integers]:
        """Return what tells which pair two annotators are, -1 if they did not meet enough."""
        size, keys = self.n_annotators, self.one * self.n_annotators + self.other
        if size <= _SMALL:
            table = np.full(size**2, -1, dtype=np.int32)
            table[keys] = np.arange(len(keys))
            return lambda one, other: table[one.astype(np.int64) * size + other].astype(np.int64)

        def search(one: Array, other: Array) -> Integers:
            key = one.astype(np.int64) * size + other
            position = np.searchsorted(keys[:-1], key)
            return (
                np.where(keys[position] == key, position, -1)
                if len(keys)
                else np.full(len(key), -1)
            )

        return search


class Look(NamedTuple):
    """What one consensus says of every pair."""

    common: Integers
    equal: Integers
    errors: Integers
    expected: Floats
    deviation: Floats
    expected_errors: Floats
    share: Floats
    z: Floats


def meet(annotations: Annotations, least: int, most: int, seed: int) -> Met:
    """Return the rows to look at: labels given once, by annotators with enough of them."""
    item = annotations.item.astype(np.int64)
    again = (item[1:] == item[:-1]) & (annotations.annotator[1:] == annotations.annotator[:-1])
    once = np.ones(len(annotations), dtype=bool)
    once[1:] &= ~again
    once[:-1] &= ~again
    labels = np.bincount(annotations.annotator[once], minlength=annotations.n_annotators)
    once &= (labels >= least)[annotations.annotator]
    size = np.bincount(item[once], minlength=annotations.n_items)
    meetings = int((size * (size - 1) // 2).sum())
    share = 1.0
    if meetings > most:
        share = most / meetings
        chosen = np.random.default_rng(seed).random(annotations.n_items) < share
        once &= chosen[item]
        size = np.where(chosen, size, 0)
        meetings = int((size * (size - 1) // 2).sum())
    rows = np.flatnonzero(once)
    start = np.concatenate([[0], np.cumsum(size)])
    labelled: sparse.csr_array[Any, Any] = sparse.csr_array(
        (np.ones(len(rows), dtype=np.int32), annotations.annotator[rows].astype(np.int32), start),
        shape=(annotations.n_items, annotations.n_annotators),
    )
    common = sparse.triu(labelled.T @ labelled, k=1).tocoo()
    enough = common.data >= least
    one, other = (common.coords[axis][enough].astype(np.int64) for axis in (0, 1))
    order = np.lexsort((other, one))
    return Met(rows, size, one[order], other[order], meetings, share, annotations.n_annotators)


def meetings(met: Met, most: int) -> Iterator[tuple[Integers, Integers, int]]:
    """Yield the places of two labels on an item, for all twos, about so many at a time."""
    start = np.repeat(np.cumsum(met.size) - met.size, met.size)
    after = np.repeat(met.size, met.size) - 1 - (np.arange(len(met.rows)) - start)
    upto = np.cumsum(after)  # (row): meetings of this row and those before with later ones
    first, done = 0, 0
    while done < met.n_meetings:
        last = max(int(np.searchsorted(upto, done + most)), first + 1)
        row = np.repeat(np.arange(first, last), after[first:last])
        before = np.repeat(upto[first:last] - after[first:last], after[first:last]) - done
        done += len(row)
        yield met.rows[row], met.rows[row + 1 + np.arange(len(row)) - before], done
        first = last


class Tally:
    """Sums over the meetings of every pair, under one consensus."""

    def __init__(self, annotations: Annotations, view: Others, met: Met) -> None:
        n_classes = annotations.n_classes
        pseudo = trust(_STRENGTH, _ACCURACY, n_classes).T
        confusion = normalize(view.record.counts + pseudo)  # (annotator, true class, given class)
        self.annotations, self.view = annotations, view
        self.both = _both(confusion, met.one, met.other)  # (pair, true class)
        self.given = np.ascontiguousarray(confusion.swapaxes(1, 2)).reshape(-1, n_classes)
        self.sums = np.zeros((6, len(met.one)))
        self.fit = np.zeros((len(_SHARES), len(met.one)))

    def add(self, one: Integers, other: Integers, pair: Integers) -> None:
        """Add meetings: the places of two labels, and whose they are."""
        annotations, n_pairs = self.annotations, len(self.both)
        posterior = self.view.without_pair(one, other)  # (meeting, true class)
        label, best = annotations.label[one], posterior.argmax(axis=1)
        same = label == annotations.label[other]
        alike = np.einsum("mt,mt->m", posterior, self.both[pair])
        right = self.chance(one, best)
        right *= self.chance(other, best)
        wrong = alike - np.einsum("mt,mt->m", posterior, right)
        counted = (np.ones(len(pair)), same, same & (label != best), alike, alike * (1 - alike))
        for position, value in enumerate((*counted, wrong)):
            self.sums[position] += np.bincount(pair, value, minlength=n_pairs)
        mine, theirs = self.chance(one[same], label[same]), self.chance(other[same], label[same])
        either = np.einsum("mt,mt->m", posterior[same], mine + theirs) / 2
        # How much more probable an equal label is as a copy than by two on their own.
        gain = either / np.einsum("mt,mt,mt->m", posterior[same], mine, theirs) - 1
        for position, copied in enumerate(_SHARES):
            fit = np.log1p(copied * gain)
            self.fit[position] += np.bincount(pair[same], fit, minlength=n_pairs)

    def chance(self, position: Integers, label: Array) -> Floats:
        """Return how probably annotators say a label, for every truth: (annotation, true class)."""
        cell = (
            self.annotations.annotator[position].astype(np.int64) * self.annotations.n_classes
            + label
        )
        return self.given.take(cell, axis=0)

    def look(self) -> Look:
        """Return what the sums say."""
        common, equal, errors = (np.round(value).astype(np.int64) for value in self.sums[:3])
        fit = self.fit + np.log1p(-_SHARES)[:, None] * (common - equal)
        z = np.sqrt(2 * np.maximum(fit.max(axis=0), 0.0))
        copied = np.where(z > 0, _SHARES[fit.argmax(axis=0)], 0.0)
        expected, variance, wrong = self.sums[3:]
        return Look(common, equal, errors, expected, np.sqrt(variance), wrong, copied, z)


def look(
    annotations: Annotations, views: list[Others], met: Met, progress: Callable[[int, int], None]
) -> list[Look]:
    """Return how well a copied share explains every pair, under every consensus."""
    tallies = [Tally(annotations, view, met) for view in views]
    find = met.finder()
    for one, other, done in meetings(met, max(1, _CELLS // annotations.n_classes, len(met.one))):
        pair = find(annotations.annotator[one], annotations.annotator[other])
        kept = np.flatnonzero(pair >= 0)
        for tally in tallies:
            tally.add(one[kept], other[kept], pair[kept])
        progress(done, met.n_meetings)
    return [tally.look() for tally in tallies]


def _both(confusion: Floats, one: Integers, other: Integers) -> Floats:
    """Return how probably two annotators say the same, for every truth: (pair, true class)."""
    n_classes = confusion.shape[-1]
    out = np.empty((len(one), n_classes))
    step = max(1, _CELLS // n_classes**2)
    for first in range(0, len(one), step):
        now = slice(first, first + step)
        out[now] = np.einsum("ptg,ptg->pt", confusion[one[now]], confusion[other[now]])
    return out
