"""Scheduling: which of the probable spans of a text to keep, where spans may not overlap.

Those with the largest summed weight are kept (weighted interval scheduling), and besides them spans
that overlap only such as one annotator marked together with them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..answers.marks import Marks
from ..answers.matching import overlaps
from ..base.arrays import Floats, Integers

Selection = npt.NDArray[np.bool_]  # (span)
PairsOfSpans = tuple[Integers, Integers]


def without_overlaps(
    answers: Marks, members: Integers, *, item: Integers, place: Floats, weight: Floats
) -> Selection:
    """Return which candidates to keep, nested ones where one annotator nests: (candidate).

    `members` are the candidates of all marks; only candidates with a positive weight are kept.
    """
    at = np.flatnonzero(weight > 0)
    item, place, weight_there = item[at], place[at], weight[at]
    scheduled = schedule(item, place, weight_there)
    first, second = overlaps(answers.answer, answers.place)  # marks of one annotator
    if len(first):
        row = np.full(len(weight), -1)
        row[at] = np.arange(len(at))
        nested = row[members[first]], row[members[second]]
        present = (nested[0] >= 0) & (nested[1] >= 0)
        scheduled = allow_nested(
            item=item,
            place=place,
            weight=weight_there,
            selected=scheduled,
            nested=(nested[0][present], nested[1][present]),
        )
    selected = np.zeros(len(weight), dtype=bool)
    selected[at] = scheduled
    return selected


def schedule(item: Integers, place: Floats, weight: Floats) -> Selection:
    """Return the spans of the largest summed weight that do not overlap, on every item.

    In the order of ends, a span is taken if its weight and the best choice among the spans that
    end before it starts weigh more than the best choice without it. All items advance at once.

    >>> place = np.array([[0.0, 4.0], [3.0, 6.0], [5.0, 9.0]])
    >>> schedule(np.zeros(3, int), place, np.array([2.0, 3.0, 2.0])).tolist()
    [True, False, True]
    """
    order = np.lexsort((place[:, 0], place[:, 1], item))
    selected = np.zeros(len(order), dtype=bool)
    selected[order] = _schedule_sorted(item[order], place[order], weight[order])
    return selected


def _schedule_sorted(item: Integers, place: Floats, weight: Floats) -> Selection:
    """Return the choice among spans sorted by item and end."""
    values, rank = np.unique(place, return_inverse=True)
    start, end = item * len(values) + rank.reshape(place.shape).T
    n_before = np.searchsorted(end, start, side="right")  # those end before this one starts
    item_start = np.searchsorted(item, item)  # of the item
    step = np.arange(len(item)) - item_start
    best = np.zeros(len(item) + 1)  # weight of the best choice among the spans before
    is_taken = np.zeros(len(item), dtype=bool)
    by_step = np.argsort(step, kind="stable")
    for rows in np.split(by_step, np.cumsum(np.bincount(step))[:-1]) if len(item) else ():
        without = np.where(rows > item_start[rows], best[rows], 0.0)
        earlier = np.where(n_before[rows] > item_start[rows], best[n_before[rows]], 0.0)
        is_taken[rows] = weight[rows] + earlier > without
        best[rows + 1] = np.maximum(weight[rows] + earlier, without)
    selected = np.zeros(len(item), dtype=bool)
    row = np.flatnonzero(np.append(item[1:] != item[:-1], True)) if len(item) else item_start
    lowest = item_start[row]
    while len(row):  # from the last span of every item back to the first
        selected[row[is_taken[row]]] = True
        row = np.where(is_taken[row], n_before[row], row) - 1
        remaining = row >= lowest
        row, lowest = row[remaining], lowest[remaining]
    return selected


def allow_nested(
    item: Integers, place: Floats, weight: Floats, selected: Selection, nested: PairsOfSpans
) -> Selection:
    """Return the choice and further spans that overlap only spans they may be kept together with.

    The heaviest of every item is added first.
    """
    first, second = overlaps(item, place)
    n_spans = len(item)
    allowed = np.isin(first * n_spans + second, nested[0] * n_spans + nested[1])
    allowed |= np.isin(first * n_spans + second, nested[1] * n_spans + nested[0])
    mark, rival = (
        np.concatenate(pair)[np.tile(~allowed, 2)] for pair in ((first, second), (second, first))
    )
    selected = selected.copy()
    while True:
        blocked = np.zeros(n_spans, dtype=bool)
        blocked[mark[selected[rival]]] = True
        free = np.flatnonzero(~selected & ~blocked)
        if len(free) == 0:
            return selected
        free = free[np.lexsort((free, -weight[free], item[free]))]
        selected[free[np.flatnonzero(np.diff(item[free], prepend=-1))]] = True
