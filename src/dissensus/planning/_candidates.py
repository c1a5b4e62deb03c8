"""Which pairs of an item and an annotator are worth a look, without looking at all of them.

Items are alike when their two best classes are the same and about equally probable. For every
group of such items all annotators are judged once, and its items get the best of them, and a few
at random, as candidates. So the cost is that of groups × annotators and of the candidates, never
of items × annotators. Where only some pairs may be asked at all, they are the candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._relation import Floats, Integers
from ._information import information_table
from ._lookahead import Lookahead
from ._posterior_state import pair_keys
from .policy import NoiseModel

__all__ = ["Pairs", "best_pairs", "listed_pairs", "random_pairs", "width_for"]

_BEST, _WIDE, _DRAWN = 8, 32, 4  # candidates of an item: of the best, up to so many; at random
_FEW = _BEST + _DRAWN  # annotators who are all candidates
_MOST = 128  # of a group to look at, as some have seen the item already
_LEVELS = 32  # steps in which probabilities are taken for equal
_MOST_JUDGED = 1024  # annotators to judge for every group; of more, those who are best somewhere
_GROUPS = 32  # groups to choose the panel by


class Pairs(NamedTuple):
    """Pairs of an item and an annotator."""

    item: Integers
    annotator: Integers

    def unknown(self, known: Integers, n_annotators: int) -> Pairs:
        """Return those that are not among keys in ascending order, each once."""
        keys = np.sort(pair_keys(self.item, self.annotator, n_annotators))
        keys = keys[np.diff(keys, prepend=-1) > 0]
        if len(known):
            position = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            keys = keys[known[position] != keys]
        return Pairs(keys // n_annotators, keys % n_annotators)


def listed_pairs(keys: Integers, free: Integers, items: Integers, n_annotators: int) -> Pairs:
    """Return the pairs of a list whose annotators are free and whose items are among these."""
    item, annotator = keys // n_annotators, keys % n_annotators
    open_to = np.zeros(n_annotators, dtype=bool)
    open_to[free] = True
    wanted = np.zeros(int(item.max(initial=-1)) + 1, dtype=bool)
    wanted[items[items < len(wanted)]] = True
    kept = open_to[annotator] & wanted[item]
    return Pairs(item[kept], annotator[kept])


def width_for(labels: float, room: Integers) -> int:
    """Return how many good annotators to look at, so that they have room for so many labels."""
    return int(np.clip(np.ceil(labels / max(float(np.median(room)), 1.0)), _BEST, _WIDE))


def random_pairs(items: Integers, free: Integers, rng: np.random.Generator) -> Pairs:
    """Return a few annotators at random for every item; all, where they are few."""
    if len(free) <= _FEW:
        return Pairs(np.repeat(items, len(free)), np.tile(free, len(items)))
    drawn = free[rng.integers(len(free), size=(len(items), _DRAWN))]
    return Pairs(np.repeat(items, _DRAWN), drawn.ravel())


def best_pairs(
    items: Integers,
    free: Integers,
    lookahead: Lookahead,
    noise_model: NoiseModel,
    cost: Floats,
    n_seen: Integers,  # (item): how many annotators have seen it
    width: int,
    rng: np.random.Generator,
) -> Pairs:
    """Return for every item those whose answers tell most for their cost, and a few at random."""
    if len(free) <= _FEW:
        return random_pairs(items, free, rng)
    group, posterior, size = _alike(lookahead.posterior[items])
    judged = _judged(posterior, size, free, noise_model, cost)
    gain = information_table(posterior, noise_model.matrix[judged], noise_model.noise[judged])
    gain = gain / cost[judged] * (1 + 1e-6 * rng.random(gain.shape))
    width = min(len(judged), _MOST, width + int(n_seen[items].max(initial=0)))
    best = np.argpartition(-gain, width - 1, axis=1)[:, :width]  # (group, candidate)
    few = random_pairs(items, free, rng)
    return Pairs(
        np.concatenate([np.repeat(items, width), few.item]),
        np.concatenate([judged[best[group]].ravel(), few.annotator]),
    )


def _alike(posterior: Floats) -> tuple[Integers, Floats, Integers]:
    """Return the group of every item, the mean belief in it, and its size."""
    n_items, n_classes = posterior.shape
    if n_classes < 2:
        return np.zeros(n_items, dtype=np.int64), posterior[:1], np.array([n_items])
    top = np.argsort(-posterior, axis=1, kind="stable")[:, :2]
    level = np.rint(np.take_along_axis(posterior, top, axis=1) * _LEVELS).astype(np.int64)
    (first, second), (much, less) = top.T, level.T
    key = ((first * n_classes + second) * (_LEVELS + 1) + much) * (_LEVELS + 1) + less
    _, group, size = np.unique(key, return_inverse=True, return_counts=True)
    columns = [np.bincount(group, column) for column in posterior.T]
    return group, np.stack(columns, axis=1) / size[:, None], size


def _judged(
    posterior: Floats, size: Integers, free: Integers, noise_model: NoiseModel, cost: Floats
) -> Integers:
    """Return the annotators to judge: all, or of very many those who are best in large groups."""
    if len(free) <= _MOST_JUDGED:
        return free
    largest = np.argsort(-size, kind="stable")[:_GROUPS]
    gain = information_table(posterior[largest], noise_model.matrix[free], noise_model.noise[free])
    gain /= cost[free]
    standing = (gain / np.maximum(gain.max(axis=1, keepdims=True), 1e-300)).max(axis=0)
    return free[np.argsort(-standing, kind="stable")[:_MOST_JUDGED]]
