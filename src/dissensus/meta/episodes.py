"""Episodes: small tasks cut from large ones, many at a time out of one pool of embedded inputs.

An episode takes some classes of one source task, a few items of each as its support and some more
as its queries; the labels of the support are those of a pseudo-crowd. A batch draws all its
episodes from one pool of items, each of which is embedded once: eight times as many episodes in the
same time.

What a batch holds follows from seed, epoch and its number alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._relation import Floats, Integers
from ..errors import DataError, MethodError
from ..params import Count, NonNegative, Settings
from .pseudo import PseudoCrowd, annotate
from .tasks import Tasks

__all__ = ["EpisodeSource", "Episodes", "Sizes"]


class Episodes(NamedTuple):
    """A batch of episodes over one pool of inputs."""

    x: Tensor  # (place, …): inputs of the pool
    support: Tensor  # (episode, item): places of the items with labels, and of some without
    label: Tensor  # (episode, item, annotator): what was said of them; -1 for nothing
    clean: Tensor  # (episode, item): their true classes
    query: Tensor  # (episode, query): places
    truth: Tensor  # (episode, query): true classes
    asked: Tensor  # (episode, query, annotator): what the same annotators say of the queries
    classes: Tensor  # (episode, class): which classes of the source these are
    confusion: Tensor  # (episode, annotator, true, given): of the annotators, known to nobody


@dataclass(frozen=True, kw_only=True)
class Sizes(Settings):
    """How large episodes are. Of several sizes every batch draws one.

    Parameters
    ----------
    ways
        Classes.
    shots
        Labelled items per class.
    annotators
        How many annotators there are.
    queries
        Items per class to be classified.
    unlabelled
        More items per class in the support that nobody labelled.
    uneven
        How far classes differ in their number of items, in support and queries alike: 0 for not at
        all; at 1 all shares of classes are equally likely.
    pool_classes, pool_items
        Classes in the pool of a batch, and items of each, at least as many as an episode needs.
    """

    ways: tuple = (5,)  # type: ignore[type-arg] # of counts
    shots: tuple = (1, 3, 5)  # type: ignore[type-arg] # of counts
    annotators: tuple = (3, 5, 7)  # type: ignore[type-arg] # of counts
    queries: Count = 5
    unlabelled: int = 0
    uneven: NonNegative = 0.0
    pool_classes: Count = 20
    pool_items: Count = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("ways", 2), ("shots", 1), ("annotators", 1)):
            given = getattr(self, name)
            if not given or not all(isinstance(one, int) and one >= least for one in given):
                raise MethodError(f"{name} = {given!r}, but it must be numbers, at least {least}")
        if self.unlabelled < 0:
            raise MethodError(f"unlabelled = {self.unlabelled}, but it must be at least 0")

    @property
    def least(self) -> int:
        """How many items a class needs, to have a query beside the largest support."""
        return max(self.shots) + self.unlabelled + 1

    @property
    def wanted(self) -> int:
        """How many items of every class are in the pool, where there are as many."""
        most = 2 if self.uneven else 1  # a class that is more frequent than others takes more
        return max(self.pool_items, most * (max(self.shots) + self.queries) + self.unlabelled)


@dataclass(frozen=True, eq=False)
class EpisodeSource:
    """Batches of episodes, for the training loop.

    Parameters
    ----------
    tasks
        Where items come from.
    sizes
        How large episodes are.
    crowd
        Who labels their supports; `None` for the annotators of the source itself.
    per_epoch
        Episodes in an epoch.
    """

    tasks: Tasks
    sizes: Sizes
    crowd: PseudoCrowd | None
    per_epoch: int = 3200
    augment: Callable[[Tensor], Tensor] | None = None

    def __post_init__(self) -> None:
        if self.crowd is None and (self.tasks.annotations is None or self.tasks.turns > 1):
            raise DataError("the source has no annotators of its own for items as they are")
        if not self._choices:
            raise DataError(
                f"no task has two classes of {self.sizes.least} items or more; give more items, or "
                "smaller episodes"
            )

    @cached_property
    def _choices(self) -> list[Integers]:
        return self.tasks.usable(self.sizes.least)

    def __len__(self) -> int:
        return self.per_epoch

    def describe(self, what: str) -> str:
        """Return in words what it holds."""
        return f"queries in {self.per_epoch} episodes of classes held out"

    def digest(self) -> str:
        """Return a short text that other episodes do not have."""
        told = f"{self.tasks.digest()} {self.sizes} {self.crowd}"
        return blake2b(told.encode(), digest_size=8).hexdigest()

    def n_batches(self, size: int) -> int:
        """Return how many batches of `size` episodes an epoch has."""
        return -(-self.per_epoch // size)

    def batches(
        self,
        size: int,
        seed: int,
        epoch: int,
        shuffle: bool = True,  # there is no order
        *,
        start: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> Iterator[Episodes]:
        """Yield batches of `size` episodes, from number `start` on."""
        for number in range(start, self.n_batches(size)):
            wanted = min(size, self.per_epoch - number * size)
            made = self.draw(np.random.default_rng([seed, epoch, number]), wanted)
            mine = slice(rank, None, ranks) if rank < wanted else slice(1)
            yield Episodes(made.x, *(part[mine] for part in made[1:]))

    def draw(self, rng: np.random.Generator, n_episodes: int) -> Episodes:
        """Return episodes out of one new pool."""
        sizes = self.sizes
        classes = self._choices[rng.integers(len(self._choices))]
        ways = min(int(rng.choice(sizes.ways)), len(classes))
        shots, n_annotators = int(rng.choice(sizes.shots)), int(rng.choice(sizes.annotators))
        pool = rng.permutation(classes)[: max(sizes.pool_classes, ways)]
        positions, items, x = self._pool(rng, pool)  # (class of the pool, item): places, or -1
        among = rng.random((n_episodes, len(pool))).argsort(axis=1)[:, :ways]
        picked = _Picked(rng, positions[among], shots, sizes)
        if self.crowd is None:
            every = items[np.concatenate([picked.support, picked.query], axis=1)]
            annotations = self.tasks.heard(every, pool[among])
            label, asked = np.split(annotations, [picked.support.shape[1]], axis=1)
            confusion = np.full((n_episodes, annotations.shape[2], ways, ways), np.nan)
        else:
            confusion = self.crowd.draw(rng, n_episodes, n_annotators, ways)
            label = annotate(rng, confusion, picked.clean, self.crowd.per_item)
            asked = annotate(rng, confusion, picked.truth, self.crowd.per_item)
        label = np.where(picked.silent[:, :, None], -1, label)
        parts = (
            picked.support,
            label,
            picked.clean,
            picked.query,
            picked.truth,
            asked,
            pool[among],
            confusion.astype(np.float32),
        )
        return Episodes(x, *(torch.from_numpy(np.ascontiguousarray(part)) for part in parts))

    def _pool(self, rng: np.random.Generator, pool: Integers) -> tuple[Integers, Integers, Tensor]:
        """Return the places of the pool's items, which items these are, and their inputs."""
        tasks, wanted = self.tasks, self.sizes.wanted
        turn, plain = np.divmod(pool, tasks.n_classes)
        positions = np.full((len(pool), wanted), -1)
        items: list[Integers] = []
        turns: list[Integers] = []
        for row, members in enumerate(tasks.members[each] for each in plain.tolist()):
            some = rng.permutation(members)[:wanted]
            positions[row, : len(some)] = sum(len(each) for each in items) + np.arange(len(some))
            items.append(some)
            turns.append(np.full(len(some), turn[row]))
        chosen = np.concatenate(items)
        return positions, chosen, tasks.inputs(chosen, np.concatenate(turns))


class _Picked:
    """Which places of the pool are support and which are queries, in every episode."""

    def __init__(
        self, rng: np.random.Generator, positions: Integers, shots: int, sizes: Sizes
    ) -> None:
        n_episodes, ways, n_items = positions.shape  # (episode, class, item)
        has = (positions >= 0).sum(axis=2)  # (episode, class)
        mixed = np.where(positions >= 0, rng.random(positions.shape), 2.0).argsort(axis=2)
        positions = np.take_along_axis(positions, mixed, axis=2)
        room = int(has.min()) - sizes.unlabelled
        queries = max(min(sizes.queries, room - 1), 1)
        shots = max(min(shots, room - queries), 1)
        asked, labelled = np.full((2, n_episodes, ways), [[[queries]], [[shots]]])
        if sizes.uneven:
            shares = rng.dirichlet(np.full(ways, 1 / sizes.uneven), size=n_episodes)
            most = room * shots // (shots + queries)
            labelled = _counts(rng, shares, shots, 1, most)
            asked = _counts(rng, shares, queries, 0, room - most)
        first, last = asked[:, :, None], (asked + labelled)[:, :, None]
        number = np.arange(n_items)
        query, format_value = number < first, (number >= first) & (number < last)
        silent = (number >= last) & (number < last + sizes.unlabelled)
        code = np.broadcast_to(np.arange(ways)[:, None], positions.shape)
        self.query, self.truth = _chosen(positions, query), _chosen(code, query)
        self.support, self.clean = (
            _chosen(positions, format_value | silent),
            _chosen(code, format_value | silent),
        )
        self.silent = _chosen(silent, format_value | silent)


def _chosen(values: Any, mask: Any) -> Any:
    """Return the values under a mask that is equally full in every episode."""
    return values[mask].reshape(len(values), -1)


def _counts(rng: np.random.Generator, shares: Floats, mean: int, least: int, most: int) -> Integers:
    """Return how many items every class has, between least and most: (episode, class)."""
    count = np.full(shares.shape, least)
    for _ in range(shares.shape[1] * (mean - least)):  # one more item for a class that has room
        weight = (shares + 1e-12) * (count < most)
        steps = (weight / weight.sum(axis=1, keepdims=True)).cumsum(axis=1)
        pick = (rng.random((len(shares), 1)) > steps[:, :-1]).sum(axis=1)
        count[np.arange(len(shares)), pick] += 1
    return count
