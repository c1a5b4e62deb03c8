"""Matching marks: which marks of several annotators mean the same, on all items at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..base.arrays import Codes, Floats, Integers, count_up
from ..base.names import Names, as_names
from .annotations import Annotations
from .base import Candidates

if TYPE_CHECKING:
    from .marks import Marks, Spans

NO, YES = 0, 1  # answers to a candidate
_DIGITS = 9  # of sums that are compared
_BATCH = 2**22  # pairs of marks to compare at once


class Pairs(NamedTuple):
    """Pairs of marks on the same item, and how similar they are."""

    first: Integers
    second: Integers
    similarity: Floats

    def among(self, free: Codes) -> Pairs:
        """Return the pairs whose marks are both left."""
        both_free = free[self.first] & free[self.second]
        return Pairs(self.first[both_free], self.second[both_free], self.similarity[both_free])


def overlapping(
    low: Floats, high: Floats, item: Integers, most: int = _BATCH
) -> Iterator[tuple[Integers, Integers]]:
    """Yield all pairs of intervals on the same item that meet, about `most` at a time."""
    value, rank = np.unique(np.concatenate([low, high]), return_inverse=True)
    key = item * len(value) + rank[: len(low)]
    order = np.argsort(key, kind="stable")
    end = np.searchsorted(key[order], (item * len(value) + rank[len(low) :])[order], "right")
    after = np.maximum(end - np.arange(len(low)) - 1, 0)
    total = np.concatenate([[0], np.cumsum(after)])
    cuts = np.searchsorted(total, np.arange(0, total[-1] + most, most))
    for start, stop in zip(cuts, np.append(cuts[1:], len(low)), strict=True):
        size = after[start:stop]
        earlier = np.repeat(np.arange(start, start + len(size)), size)
        yield order[earlier], order[earlier + 1 + count_up(size)]


def batches(cells: Integers) -> Iterator[slice]:
    """Yield ranges of pairs of answers with not too many pairs of marks, `cells`, in all."""
    cumulative = np.concatenate([[0], np.cumsum(cells)])
    start = 0
    while start < len(cells):
        stop = int(np.searchsorted(cumulative, cumulative[start] + _BATCH, side="right")) - 1
        yield slice(start, stop := max(stop, start + 1))
        start = stop


def best_match(
    pair: Integers, first: Integers, second: Integers, value: Floats, n_pairs: int
) -> Floats:
    """Return the largest sum of values of a one-to-one match within every pair of answers.

    Only where a mark has several partners is there anything to assign.
    """
    from scipy.optimize import linear_sum_assignment

    total = np.bincount(pair, value, minlength=n_pairs).astype(float)
    contested = np.zeros(n_pairs, dtype=bool)
    for mark in (first, second):
        order = np.lexsort((mark, pair))
        repeated = (np.diff(mark[order]) == 0) & (np.diff(pair[order]) == 0)
        contested[pair[order][1:][repeated]] = True
    rows = np.flatnonzero(contested[pair])
    ends = np.flatnonzero(np.diff(pair[rows])) + 1
    for group in np.split(rows, ends) if len(rows) else ():
        rows_of, columns_of = first[group], second[group]
        table = np.zeros((np.ptp(rows_of) + 1, np.ptp(columns_of) + 1))
        table[rows_of - rows_of.min(), columns_of - columns_of.min()] = value[group]
        total[pair[group[0]]] = table[linear_sum_assignment(table, maximize=True)].sum()
    return total


def group_marks(pairs: Pairs, annotator: Integers) -> Integers:
    """Return the group of every mark: (mark); at most one mark of an annotator is in a group.

    Greedily: the mark with the largest summed similarity to those left takes every other
    annotator's most similar mark. Marks that are not connected do not influence each other, so
    every connected component takes a step at once. Marks are in an order that does not depend on
    names, which settles ties.
    """
    from scipy import sparse  # slow to import, and every verb looks for marks

    n_marks = len(annotator)
    leader = np.arange(n_marks)
    free = np.ones(n_marks, dtype=bool)
    while len(pairs.first):
        shape = (n_marks, n_marks)
        graph = sparse.coo_array((pairs.similarity, (pairs.first, pairs.second)), shape=shape)
        component = sparse.csgraph.connected_components(graph, directed=False)[1]
        first = np.concatenate([pairs.first, pairs.second])
        second = np.concatenate([pairs.second, pairs.first])
        value = np.concatenate([pairs.similarity, pairs.similarity]).round(_DIGITS)
        support = np.bincount(first, value, minlength=n_marks).round(_DIGITS)
        marks = np.unique(first)
        order = marks[np.lexsort((marks, -support[marks], component[marks]))]
        leaders = order[np.flatnonzero(np.diff(component[order], prepend=-1))]
        leads = np.zeros(n_marks, dtype=bool)
        leads[leaders] = True
        near = np.flatnonzero(leads[first])
        leading, following = first[near], second[near]
        order = np.lexsort((following, -value[near], annotator[following], leading))
        leading, following = leading[order], following[order]
        best = np.ones(len(order), dtype=bool)
        best[1:] = (np.diff(leading) != 0) | (np.diff(annotator[following]) != 0)
        leader[following[best]] = leading[best]
        free[leaders], free[following[best]] = False, False
        pairs = pairs.among(free)
    return np.unique(leader, return_inverse=True)[1]


def match_marks(marks: Marks, least: float, gold: Marks | None) -> Candidates:
    """Return one candidate per group of similar marks, with the answer of all who looked."""
    place = marks.place if gold is None else np.vstack([marks.place, gold.place])
    item, annotator = marks.mark_item, marks.annotator[marks.answer].astype(np.int64)
    if gold is not None:
        item = np.concatenate([item, gold.mark_item])
        annotator = np.concatenate([annotator, np.full(gold.n_elements, marks.n_annotators)])
    order = np.lexsort((*place.T[::-1], item))  # names do not decide ties
    corners = marks.corners(place)[order]
    pairs = marks.similar_pairs(corners, item[order], annotator[order], least)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = group_marks(pairs, annotator[order])
    where = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    where[group] = item
    return _yes_or_no(marks, gold, group, where)


def _yes_or_no(marks: Marks, gold: Marks | None, group: Integers, where: Integers) -> Candidates:
    """Return candidates on items, with whether every annotator who looked marked them."""
    order = np.argsort(where, kind="stable")  # candidates by item
    group = np.argsort(order)[group]
    where = where[order]
    rows = _Rows(marks, where)
    label = np.full(rows.size, NO, dtype=np.uint8)
    label[rows.at(group[: marks.n_elements], marks.answer)] = YES
    truth = None
    if gold is not None:
        truth = np.where(gold.labels_per_item[where] > 0, NO, -1)
        truth[group[marks.n_elements :]] = YES
    names = _names(marks, where, count_up(np.bincount(where, minlength=marks.n_items)))
    return Candidates(rows.annotations(label, names, as_names(["no", "yes"])), where, group, truth)


def span_candidates(spans: Spans, gold: Spans | None) -> Candidates:
    """Return every distinct span with the answer of all who looked: a label, other or none."""
    place, item = spans.place, spans.mark_item
    if gold is not None:
        place, item = np.vstack([place, gold.place]), np.concatenate([item, gold.mark_item])
    table = np.column_stack([item, place])
    spot, group = np.unique(table, axis=0, return_inverse=True)
    where = spot[:, 0].astype(np.int64)
    rows, members = _Rows(spans, where), group
    n_labels = len(spans.classes)
    label = np.full(rows.size, n_labels, dtype=np.int64)  # none
    near, mark = _meeting(spot, np.column_stack([spans.mark_item, spans.place]))
    label[rows.at(near, spans.answer[mark])] = n_labels + 1  # other
    at = rows.at(group[: spans.n_elements], spans.answer)
    label[at] = spans.label
    is_second = label[at] != spans.label  # a second label of one annotator for the same span
    truth = None
    if gold is not None:
        truth = np.where(gold.labels_per_item[where] > 0, n_labels, -1)
        truth[_meeting(spot, np.column_stack([gold.mark_item, gold.place]))[0]] = n_labels + 1
        truth[group[spans.n_elements :]] = spans.label_codes(gold)
    start, end = (as_names(border) for border in spot[:, 1:].astype(np.int64).T)
    names = spans.items[where] + " " + start + "-" + end
    codes = label if truth is None else np.concatenate([label, truth])
    classes = _class_names(spans, other=bool((codes > n_labels).any()))
    annotations = rows.annotations(label, names, classes, (at[is_second], spans.label[is_second]))
    return Candidates(annotations, where, members, truth)


def overlaps(item: Integers, place: Floats) -> tuple[Integers, Integers]:
    """Return all pairs of spans on the same item that share a position."""
    pieces = [
        (left[real], right[real])
        for left, right in overlapping(place[:, 0], place[:, 1], item)
        for real in [(place[left, 0] < place[right, 1]) & (place[right, 0] < place[left, 1])]
    ]
    first, second = zip(*pieces, strict=True)
    return np.concatenate(first), np.concatenate(second)


def _meeting(spot: Floats, mark: Floats) -> tuple[Integers, Integers]:
    """Return all pairs of a candidate and a mark, (item, start, end), that share a position."""
    stacked = np.vstack([spot, mark])
    pair = overlaps(stacked[:, 0].astype(np.int64), stacked[:, 1:])
    left, right = np.minimum(*pair), np.maximum(*pair)
    mixed = (left < len(spot)) & (right >= len(spot))
    return left[mixed], right[mixed] - len(spot)


class _Rows:
    """One row for every candidate and every answer on its item."""

    def __init__(self, marks: Marks, where: Integers) -> None:
        self.marks = marks
        looked = marks.labels_per_item[where]
        self.index = np.concatenate([[0], np.cumsum(looked)])
        self.offset = self.index[:-1] - marks.index[where]
        self.answer = np.repeat(-self.offset, looked) + np.arange(self.index[-1])

    @property
    def size(self) -> int:
        return int(self.index[-1])

    def at(self, candidate: Integers, answer: Integers) -> Integers:
        """Return the rows of candidates and answers."""
        return self.offset[candidate] + answer

    def annotations(
        self,
        label: Integers | Codes,
        names: Names,
        classes: Names,
        more: tuple[Integers, Integers | Codes] | None = None,
    ) -> Annotations:
        """Return one label per row, and more for some rows."""
        row = np.arange(self.size)
        if more is not None:
            row, label = np.concatenate([row, more[0]]), np.concatenate([label, more[1]])
        return Annotations.from_codes(
            np.searchsorted(self.index, row, side="right") - 1,
            self.marks.annotator[self.answer[row]],
            label,
            items=names,
            annotators=self.marks.annotators,
            classes=classes,
        )


def _names(marks: Marks, where: Integers, number: Integers) -> Names:
    """Return names of candidates: the item and a number."""
    return marks.items[where] + " " + as_names(number + 1)


def _class_names(spans: Spans, *, other: bool) -> Names:
    """Return the labels of spans, none, and other where it is used."""
    labels = spans.classes.tolist() if spans.labelled else ["span"]
    more = ["none", "other"] if other else ["none"]
    return as_names([*labels, *(f"({name})" if name in labels else name for name in more)])
