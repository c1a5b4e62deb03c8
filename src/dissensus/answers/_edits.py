"""Edit distances of many pairs of sequences at once, in padded batches of like length."""

from __future__ import annotations

import numpy as np

from ..base.arrays import Floats, Integers, count_up

_CELLS = 2**22  # of a batch


def edit_distances(
    symbol: Integers, starts: Integers, first: Integers, second: Integers
) -> Integers:
    """Return how many symbols must be inserted, deleted or replaced, for pairs of sequences.

    Sequence s has the symbols at starts[s]:starts[s + 1].

    >>> symbol, starts = np.array([1, 2, 3, 1, 3]), np.array([0, 3, 5])
    >>> edit_distances(symbol, starts, np.array([0, 0]), np.array([1, 0])).tolist()
    [1, 0]
    """
    size = np.diff(starts)
    swap = size[first] > size[second]  # the shorter has the rows
    one, other = np.where(swap, second, first), np.where(swap, first, second)
    out = np.empty(len(first), dtype=np.int64)
    order = np.lexsort((size[one], size[other]))
    position = 0
    while position < len(order):
        count = max(1, _CELLS // (int(size[other[order[position]]]) + 8))
        now = order[position : position + count]
        longest = int(size[other[now[-1]]])
        if longest > 2 * int(size[other[now[0]]]) + 8:  # not much longer than the shortest
            count = int(np.searchsorted(size[other[now]], 2 * size[other[now[0]]] + 8, "right"))
            now = now[: max(count, 1)]
        out[now] = _batch(symbol, starts, one[now], other[now])
        position += len(now)
    return out


def padded(symbol: Integers, starts: Integers, rows: Integers, blank: int = -1) -> Integers:
    """Return sequences as rows of a table, blank after their end: (sequence, place)."""
    size = starts[rows + 1] - starts[rows]
    table = np.full((len(rows), int(size.max(initial=0))), blank, dtype=np.int64)
    place = count_up(size)
    at = np.repeat(starts[rows], size) + place
    table[np.repeat(np.arange(len(rows)), size), place] = symbol[at]
    return table


def _batch(symbol: Integers, starts: Integers, one: Integers, other: Integers) -> Integers:
    a, b = padded(symbol, starts, one, -1), padded(symbol, starts, other, -2)
    n_rows, width = starts[one + 1] - starts[one], starts[other + 1] - starts[other]
    column = np.arange(b.shape[1] + 1)
    row = np.tile(column, (len(a), 1))  # (pair, place): the distance of prefixes
    out = row[np.arange(len(a)), width].copy()
    for i in range(a.shape[1]):
        new = np.empty_like(row)
        new[:, 0] = i + 1
        np.minimum(row[:, :-1] + (a[:, [i]] != b), row[:, 1:] + 1, out=new[:, 1:])
        # An insertion costs one for every place: a running minimum of the rest.
        row = np.minimum.accumulate(new - column, axis=1) + column
        done = n_rows == i + 1
        out[done] = row[done, width[done]]
    return out


def normalized(edits: Integers, first: Integers, second: Integers) -> Floats:
    """Return edits divided by the longer of two lengths, 0 where both are empty."""
    longer = np.maximum(first, second)
    return np.divide(edits, longer, out=np.zeros(len(edits)), where=longer > 0)
