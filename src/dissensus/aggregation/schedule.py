"""Weighted interval scheduling: of overlapping spans, those with the largest summed weight."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..base.arrays import Floats, Integers
from ..answers.matching import overlaps

Kept = npt.NDArray[np.bool_]  # (span)
PairsOfSpans = tuple[Integers, Integers]


def schedule(item: Integers, place: Floats, weight: Floats) -> Kept:
    """Return the spans of the largest summed weight that do not overlap, on every item.

    In the order of ends, a span is taken if its weight and the best choice among the spans that
    end before it starts weigh more than the best choice without it. All items advance at once.

    >>> place = np.array([[0.0, 4.0], [3.0, 6.0], [5.0, 9.0]])
    >>> schedule(np.zeros(3, int), place, np.array([2.0, 3.0, 2.0])).tolist()
    [True, False, True]
    """
    order = np.lexsort((place[:, 0], place[:, 1], item))
    kept = np.zeros(len(order), dtype=bool)
    kept[order] = _schedule_sorted(item[order], place[order], weight[order])
    return kept


def _schedule_sorted(item: Integers, place: Floats, weight: Floats) -> Kept:
    """Return the choice among spans sorted by item and end."""
    values, rank = np.unique(place, return_inverse=True)
    start, end = item * len(values) + rank.reshape(place.shape).T
    before = np.searchsorted(end, start, side="right")  # those end before this one starts
    first = np.searchsorted(item, item)  # of the item
    step = np.arange(len(item)) - first
    best = np.zeros(len(item) + 1)  # weight of the best choice among the spans before
    taken = np.zeros(len(item), dtype=bool)
    by_step = np.argsort(step, kind="stable")
    for rows in np.split(by_step, np.cumsum(np.bincount(step))[:-1]) if len(item) else ():
        without = np.where(rows > first[rows], best[rows], 0.0)
        rest = np.where(before[rows] > first[rows], best[before[rows]], 0.0)
        taken[rows] = weight[rows] + rest > without
        best[rows + 1] = np.maximum(weight[rows] + rest, without)
    kept = np.zeros(len(item), dtype=bool)
    here = np.flatnonzero(np.append(item[1:] != item[:-1], True)) if len(item) else first
    lowest = first[here]
    while len(here):  # from the last span of every item back to the first
        kept[here[taken[here]]] = True
        here = np.where(taken[here], before[here], here) - 1
        left = here >= lowest
        here, lowest = here[left], lowest[left]
    return kept


def allow_nested(
    item: Integers, place: Floats, weight: Floats, kept: Kept, together: PairsOfSpans
) -> Kept:
    """Return the choice and further spans that overlap only spans they may be kept together with.

    The heaviest of every item is added first.
    """
    first, second = overlaps(item, place)
    n_spans = len(item)
    allowed = np.isin(first * n_spans + second, together[0] * n_spans + together[1])
    allowed |= np.isin(first * n_spans + second, together[1] * n_spans + together[0])
    one, two = (
        np.concatenate(pair)[np.tile(~allowed, 2)] for pair in ((first, second), (second, first))
    )
    kept = kept.copy()
    while True:
        blocked = np.zeros(n_spans, dtype=bool)
        blocked[one[kept[two]]] = True
        free = np.flatnonzero(~kept & ~blocked)
        if len(free) == 0:
            return kept
        free = free[np.lexsort((free, -weight[free], item[free]))]
        kept[free[np.flatnonzero(np.diff(item[free], prepend=-1))]] = True
