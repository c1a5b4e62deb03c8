"""Which annotators label which item, for all items at once.

Rows are items, each with distinct annotators in ascending order. Where more than half of all
annotators label an item, those who do not are drawn instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.arrays import Codes, Integers, smallest_dtype


def drawn(n_items: int, most: int, n_annotators: int, rng: np.random.Generator) -> Codes:
    """Return `most` annotators for every item, every set of them equally probable.

    Repeats are drawn again, as often as needed, which treats all annotators alike.

    >>> drawn(2, 3, 3, np.random.default_rng(0)).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    if 2 * most > n_annotators:
        return others(drawn(n_items, n_annotators - most, n_annotators, rng), n_annotators)
    dtype: Any = smallest_dtype(n_annotators)
    rows = rng.integers(n_annotators, size=(n_items, most), dtype=dtype)
    rows.sort(axis=1)
    again = np.flatnonzero(repeated(rows).any(axis=1))
    while len(again):
        some = rows[again]
        twice = repeated(some)
        some[twice] = rng.integers(n_annotators, size=int(twice.sum()), dtype=dtype)
        some.sort(axis=1)
        rows[again] = some
        again = again[repeated(some).any(axis=1)]
    return rows


def loads(total: int, cap: int, n_annotators: int, rng: np.random.Generator) -> Integers:
    """Return how many labels every annotator gives, none more than `cap`."""
    load = np.zeros(n_annotators, dtype=np.int64)
    while left := total - int(load.sum()):
        free = np.flatnonzero(load < cap)
        load[free] += rng.multinomial(left, np.full(len(free), 1 / len(free)))
        np.minimum(load, cap, out=load)
    return load


def assign_loads(n_items: int, load: Integers, rng: np.random.Generator) -> Codes:
    """Return annotators for every item, each as often as `load` says, at most once per item.

    The labels of all annotators are shuffled and assigned in order. An annotator who is then in a
    row twice is swapped with one of another row, if that makes fewer repeats. Such a swap always
    exists while no load exceeds the number of items, so random tries come to an end.
    """
    n_annotators = len(load)
    most = int(load.sum()) // n_items
    if 2 * most > n_annotators:
        return others(assign_loads(n_items, n_items - load, rng), n_annotators)
    slots = np.repeat(np.arange(n_annotators, dtype=smallest_dtype(n_annotators)), load)
    rng.shuffle(slots)
    rows = slots.reshape(n_items, most)
    rows.sort(axis=1)
    again = np.flatnonzero(repeated(rows).any(axis=1))
    owner = np.empty(n_items, dtype=np.int64)
    while len(again):
        turn = np.arange(len(again))
        position = repeated(rows[again]).argmax(axis=1)
        other, spot = rng.integers(n_items, size=len(again)), rng.integers(most, size=len(again))
        owner[again] = turn
        owner[other] = turn
        mine, theirs = rows[again], rows[other]  # (pair, slot)
        give, take = mine[turn, position][:, None], theirs[turn, spot][:, None]
        fits = (owner[again] == turn) & (owner[other] == turn)  # no row in two swaps
        fits &= ~(theirs == give).any(axis=1)
        fits &= ~(mine == take).any(axis=1) | ((theirs == take).sum(axis=1) > 1)
        rows[again[fits], position[fits]] = take[fits, 0]
        rows[other[fits], spot[fits]] = give[fits, 0]
        touched = np.concatenate([again, other[fits]])
        rows[touched] = np.sort(rows[touched], axis=1)
        again = np.unique(touched)
        again = again[repeated(rows[again]).any(axis=1)]
    return rows


def others(absent: Codes, n_annotators: int) -> Codes:
    """Return the annotators who are not in a row.

    >>> others(np.array([[1], [0]], dtype=np.uint8), 3).tolist()
    [[0, 2], [1, 2]]
    """
    present = np.ones((len(absent), n_annotators), dtype=bool)
    np.put_along_axis(present, absent, False, axis=1)
    codes = np.nonzero(present)[1].astype(smallest_dtype(n_annotators))
    return codes.reshape(len(absent), n_annotators - absent.shape[1])


def repeated(rows: Codes) -> npt.NDArray[np.bool_]:
    """Return where a sorted row has the same annotator as before."""
    same = np.zeros(rows.shape, dtype=bool)
    np.equal(rows[:, 1:], rows[:, :-1], out=same[:, 1:])
    return same
