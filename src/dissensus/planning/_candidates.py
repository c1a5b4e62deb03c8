"""Candidate pairs of item and annotator, without scoring all pairs.

Items are grouped by their two most probable classes and these probabilities, rounded. For every
group all annotators are scored once, and its items get the best of them, and a few at random, as
candidates. So the cost is that of groups × annotators and of the candidates, never of items ×
annotators. Where only listed pairs may be requested, these are the candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.arrays import Floats, Integers
from .information import information_table
from ._posterior_state import pair_keys
from .policy import NoiseModel

BEST, WIDE, _DRAWN = 8, 32, 4  # candidates of an item: the best, at least and most; at random
_FEW = BEST + _DRAWN  # annotators who are all candidates
_MAX_WIDTH = 128  # candidates of a group, as some have labelled the item already
_STEPS = 32  # to which probabilities are rounded
_MAX_JUDGED = 1024  # annotators scored for every group; of more, the best for some group
_GROUPS = 32  # groups to choose these by


class Pairs(NamedTuple):
    """Pairs of an item and an annotator."""

    item: Integers
    annotator: Integers

    def unknown(self, known: Integers, n_annotators: int) -> Pairs:
        """Return those that are not among ascending keys, each once."""
        keys = np.sort(pair_keys(self.item, self.annotator, n_annotators))
        keys = keys[np.diff(keys, prepend=-1) > 0]
        if len(known):
            position = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            keys = keys[known[position] != keys]
        return Pairs(keys // n_annotators, keys % n_annotators)


def listed_pairs(keys: Integers, free: Integers, items: Integers, n_annotators: int) -> Pairs:
    """Return the listed pairs of free annotators and these items."""
    item, annotator = keys // n_annotators, keys % n_annotators
    kept = np.isin(annotator, free) & np.isin(item, items)
    return Pairs(item[kept], annotator[kept])


def random_pairs(items: Integers, free: Integers, rng: np.random.Generator) -> Pairs:
    """Return a few annotators at random for every item; all, where they are few."""
    if len(free) <= _FEW:
        return Pairs(np.repeat(items, len(free)), np.tile(free, len(items)))
    drawn = free[rng.integers(len(free), size=(len(items), _DRAWN))]
    return Pairs(np.repeat(items, _DRAWN), drawn.ravel())


def best_pairs(
    items: Integers,
    free: Integers,
    posterior: Floats,
    noise_model: NoiseModel,
    cost: Floats,
    width: int,
    rng: np.random.Generator,
) -> Pairs:
    """Return for every item the most informative annotators per cost, and a few at random."""
    if len(free) <= _FEW:
        return random_pairs(items, free, rng)
    group, mean, size = _group_items(posterior[items])
    judged = _most_informative(mean, size, free, noise_model, cost)
    gain = information_table(mean, noise_model.matrix[judged], noise_model.noise[judged])
    gain = gain / cost[judged] * (1 + 1e-6 * rng.random(gain.shape))
    width = min(len(judged), _MAX_WIDTH, width)
    best = np.argpartition(-gain, width - 1, axis=1)[:, :width]  # (group, candidate)
    few = random_pairs(items, free, rng)
    return Pairs(
        np.concatenate([np.repeat(items, width), few.item]),
        np.concatenate([judged[best[group]].ravel(), few.annotator]),
    )


def _group_items(posterior: Floats) -> tuple[Integers, Floats, Integers]:
    """Return the group of every item, its mean posterior, and its size."""
    n_items, n_classes = posterior.shape
    if n_classes < 2:
        return np.zeros(n_items, dtype=np.int64), posterior[:1], np.array([n_items])
    top = np.argsort(-posterior, axis=1, kind="stable")[:, :2]
    step = np.rint(np.take_along_axis(posterior, top, axis=1) * _STEPS).astype(np.int64)
    (first, second), (much, less) = top.T, step.T
    key = ((first * n_classes + second) * (_STEPS + 1) + much) * (_STEPS + 1) + less
    _, group, size = np.unique(key, return_inverse=True, return_counts=True)
    columns = [np.bincount(group, column) for column in posterior.T]
    return group, np.stack(columns, axis=1) / size[:, None], size


def _most_informative(
    posterior: Floats, size: Integers, free: Integers, noise_model: NoiseModel, cost: Floats
) -> Integers:
    """Return the annotators to judge: all, or of very many the best for large groups."""
    if len(free) <= _MAX_JUDGED:
        return free
    largest = np.argsort(-size, kind="stable")[:_GROUPS]
    gain = information_table(posterior[largest], noise_model.matrix[free], noise_model.noise[free])
    gain /= cost[free]
    relative = (gain / np.maximum(gain.max(axis=1, keepdims=True), 1e-300)).max(axis=0)
    return free[np.argsort(-relative, kind="stable")[:_MAX_JUDGED]]
