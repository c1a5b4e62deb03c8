"""The validation split of the source: for early stopping, tuning and choosing adapters.

Whole tasks are held out where there are at least four, otherwise whole classes of every task, where
enough are left on both sides; otherwise some items of every class. Without a trainable embedding
nothing is held out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.arrays import Array
from ...errors import DataError
from .episodes import Sizes
from .tasks import Tasks

_LEAST_TASKS = 4


class Split(NamedTuple):
    """Source tasks for training, and those held out."""

    train: Tasks
    held_out: Tasks
    description: str  # of the held-out part


def split(tasks: Tasks, share: float, sizes: Sizes, seed: int) -> Split:
    """Return training and held-out tasks; the latter without rotations."""
    rng = np.random.default_rng([seed, 0x5E1D])
    task = np.zeros(tasks.n_classes, dtype=int) if tasks.task is None else tasks.task
    large_enough = [len(items) >= sizes.least for items in tasks.members]
    names = [name for name in np.unique(task) if sum(np.array(large_enough)[task == name]) > 1]
    if not names:
        raise DataError(
            f"no task has two classes of {sizes.least} items or more; give more items, or smaller "
            "episodes"
        )
    if len(names) >= _LEAST_TASKS:
        held_out = rng.permutation(names)[: max(round(share * len(names)), 1)]
        held_out_class = np.isin(task, held_out)
        return _by_class(tasks, held_out_class, f"{len(held_out)} of {len(names)} tasks")
    held_out_class = np.zeros(tasks.n_classes, dtype=bool)
    ways = max(sizes.ways)
    for name in names:
        classes = np.flatnonzero((task == name) & large_enough)
        count = max(round(share * len(classes)), ways)
        if len(classes) - count >= ways:
            held_out_class[rng.permutation(classes)[:count]] = True
    if held_out_class.any() and all((~held_out_class & (task == name)).any() for name in names):
        return _by_class(
            tasks, held_out_class, f"{held_out_class.sum()} of {len(held_out_class)} classes"
        )
    return _by_item(tasks, share, sizes.least, rng)


def without_split(tasks: Tasks) -> Split:
    """Return all tasks on both sides, for an embedding that is not trained."""
    return Split(tasks, tasks.unrotated(), "nothing")


def _by_class(tasks: Tasks, held_out: Array, description: str) -> Split:
    train = tasks.keep(np.flatnonzero(~held_out))
    validation = tasks.keep(np.flatnonzero(held_out))
    return Split(train, validation.unrotated(), description)


def _by_item(tasks: Tasks, share: float, least: int, rng: np.random.Generator) -> Split:
    held_out = np.zeros(len(tasks.label), dtype=bool)
    for items in tasks.members:
        count = max(round(share * len(items)), least)
        if len(items) - count < least:
            count = len(items) // 2
        held_out[rng.permutation(items)[:count]] = True
    description = f"{held_out.sum()} of {len(held_out)} items"
    train, validation = (
        tasks.items(np.flatnonzero(~held_out)),
        tasks.items(np.flatnonzero(held_out)),
    )
    return Split(train, validation.unrotated(), description)
