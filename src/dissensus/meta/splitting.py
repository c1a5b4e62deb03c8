"""What of the source is held out: to choose the epoch, fit the adapter's numbers and choose one.

Whole tasks are held out where there are at least four, otherwise whole classes of every task, where
enough are left on both sides; otherwise some items of every class. What the embedding has not
learned from tells most about tasks to come. Where it learns nothing, nothing is held out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._relation import Array
from ..errors import DataError
from .episodes import Sizes
from .tasks import Tasks

__all__ = ["Split", "split", "whole"]

_TASKS = 4


class Split(NamedTuple):
    """Source tasks to learn from, and those held out."""

    learned: Tasks
    held: Tasks
    told: str  # what was held out, in words


def split(tasks: Tasks, share: float, sizes: Sizes, seed: int) -> Split:
    """Return what to learn from and what is held out; the latter is not turned."""
    rng = np.random.default_rng([seed, 0x5E1D])
    task = np.zeros(tasks.n_classes, dtype=int) if tasks.task is None else tasks.task
    usable = [len(items) >= sizes.least for items in tasks.members]
    names = [name for name in np.unique(task) if sum(np.array(usable)[task == name]) > 1]
    if not names:
        raise DataError(
            f"no task has two classes of {sizes.least} items or more; give more items, or smaller "
            "episodes"
        )
    if len(names) >= _TASKS:
        held = rng.permutation(names)[: max(round(share * len(names)), 1)]
        chosen = np.isin(task, held)
        return _by_class(tasks, chosen, f"{len(held)} of {len(names)} tasks")
    chosen = np.zeros(tasks.n_classes, dtype=bool)
    ways = max(sizes.ways)
    for name in names:
        mine = np.flatnonzero((task == name) & usable)
        count = max(round(share * len(mine)), ways)
        if len(mine) - count >= ways:
            chosen[rng.permutation(mine)[:count]] = True
    if chosen.any() and all((~chosen & (task == name)).any() for name in names):
        return _by_class(tasks, chosen, f"{chosen.sum()} of {len(chosen)} classes")
    return _by_item(tasks, share, sizes.least, rng)


def whole(tasks: Tasks) -> Split:
    """Return all tasks on both sides, for an embedding that learns nothing from them."""
    return Split(tasks, tasks.plain(), "nothing")


def _by_class(tasks: Tasks, held: Array, told: str) -> Split:
    learned = tasks.keep(np.flatnonzero(~held))
    other = tasks.keep(np.flatnonzero(held))
    return Split(learned, other.plain(), told)


def _by_item(tasks: Tasks, share: float, least: int, rng: np.random.Generator) -> Split:
    held = np.zeros(len(tasks.label), dtype=bool)
    for items in tasks.members:
        count = max(round(share * len(items)), least)
        if len(items) - count < least:
            count = len(items) // 2
        held[rng.permutation(items)[:count]] = True
    told = f"{held.sum()} of {len(held)} items"
    learned, other = tasks.items(np.flatnonzero(~held)), tasks.items(np.flatnonzero(held))
    return Split(learned, other.plain(), told)
