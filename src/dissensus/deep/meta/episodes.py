"""Episodes: small tasks cut from large ones, many at a time out of one pool of embedded inputs.

An episode takes some classes of one source task, a few items of each as its support and some more
as its queries; the support is labelled by pseudo-annotators. A batch draws all its episodes from
one pool of items, each of which is embedded once: eight times as many episodes in the same time.
A batch follows from seed, epoch and its number alone.

Episodes of a batch have the same number of items and annotators. Their `Items` store annotations as
a list, so that a step costs as much as there are annotations, whatever the number of annotators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from ...answers.annotations import Annotations
from ...base.arrays import Floats, Integers
from ...errors import DataError, MethodError
from ...params import Count, NonNegative, Settings
from .pseudo_annotators import PseudoAnnotators, annotate
from .tasks import Tasks

_TINY = 1e-12


class Episodes(NamedTuple):
    """A batch of episodes over one pool of inputs."""

    x: Tensor  # (position, …): inputs of the pool
    support: Tensor  # (episode, item): positions of labelled and unlabelled items
    label: Tensor  # (episode, item, annotator): their labels; -1 for unlabelled
    clean: Tensor  # (episode, item): their true classes
    query: Tensor  # (episode, query): positions
    truth: Tensor  # (episode, query): true classes
    query_label: Tensor  # (episode, query, annotator): labels of the same annotators
    classes: Tensor  # (episode, class): codes in the source
    confusion: Tensor  # (episode, annotator, true, given): of the pseudo-annotators


@dataclass(frozen=True, kw_only=True)
class Sizes(Settings):
    """Sizes of episodes. Of several sizes every batch draws one.

    Parameters
    ----------
    ways
        Number of classes.
    shots
        Labelled items per class.
    annotators
        Number of annotators.
    queries
        Items per class to classify.
    unlabelled
        Unlabelled items per class in the support.
    uneven
        Class imbalance of support and queries: 0 for none; with 1 all class shares are equally
        likely. Embedding and priors are learned without it; the weight of class frequencies in
        predictions, and the choice of the adapter, are learned with it.
    pool_classes, pool_items
        Classes in the pool of a batch, and items of each; at least what an episode needs.
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
            sizes = getattr(self, name)
            if not sizes or not all(isinstance(size, int) and size >= least for size in sizes):
                raise MethodError(f"{name} = {sizes!r}, but it must be numbers, at least {least}")
        if self.unlabelled < 0:
            raise MethodError(f"unlabelled = {self.unlabelled}, but it must be at least 0")

    @property
    def least(self) -> int:
        """Number of items that a class needs for the largest support and a query."""
        return max(self.shots) + self.unlabelled + 1

    @property
    def pool_size(self) -> int:
        """Number of items of every class in the pool, where there are as many."""
        most = 2 if self.uneven else 1  # for classes above the mean
        return max(self.pool_items, most * (max(self.shots) + self.queries) + self.unlabelled)


@dataclass(frozen=True, eq=False)
class EpisodeSource:
    """Batches of episodes, for the training loop.

    Parameters
    ----------
    tasks
        Source tasks.
    sizes
        Sizes of the episodes.
    annotators
        Pseudo-annotators; `None` for the source's own annotations.
    per_epoch
        Episodes in an epoch.
    """

    tasks: Tasks
    sizes: Sizes
    annotators: PseudoAnnotators | None
    per_epoch: int = 3200
    augment: Callable[[Tensor], Tensor] | None = None

    def __post_init__(self) -> None:
        if self.annotators is None and (self.tasks.annotations is None or self.tasks.rotations > 1):
            raise DataError("the source has no annotations of its own, or rotated classes")
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

    def describe(self, name: str) -> str:
        """Return a description for the log."""
        return f"queries in {self.per_epoch} episodes of classes held out"

    def digest(self) -> str:
        """Return a digest of the contents."""
        content = f"{self.tasks.digest()} {self.sizes} {self.annotators}"
        return blake2b(content.encode(), digest_size=8).hexdigest()

    def n_batches(self, size: int) -> int:
        """Return the number of batches in an epoch."""
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
            n_episodes = min(size, self.per_epoch - number * size)
            episodes = self.draw(np.random.default_rng([seed, epoch, number]), n_episodes)
            own = slice(rank, None, ranks) if rank < n_episodes else slice(1)
            yield Episodes(episodes.x, *(part[own] for part in episodes[1:]))

    def draw(self, rng: np.random.Generator, n_episodes: int) -> Episodes:
        """Return episodes from a new pool."""
        sizes = self.sizes
        classes = self._choices[rng.integers(len(self._choices))]
        ways = min(int(rng.choice(sizes.ways)), len(classes))
        shots, n_annotators = int(rng.choice(sizes.shots)), int(rng.choice(sizes.annotators))
        pool = rng.permutation(classes)[: max(sizes.pool_classes, ways)]
        positions, items, x = self._pool(rng, pool)  # (class of the pool, item), or -1
        rows = rng.random((n_episodes, len(pool))).argsort(axis=1)[:, :ways]  # (episode, class)
        selection = _Selection(rng, positions[rows], shots, sizes)
        if self.annotators is None:
            episode_items = items[np.concatenate([selection.support, selection.query], axis=1)]
            annotations = self.tasks.labels_in_episodes(episode_items, pool[rows])
            label, query_label = np.split(annotations, [selection.support.shape[1]], axis=1)
            confusion = np.full((n_episodes, annotations.shape[2], ways, ways), np.nan)
        else:
            confusion = self.annotators.draw(rng, n_episodes, n_annotators, ways)
            label = annotate(rng, confusion, selection.clean, self.annotators.per_item)
            query_label = annotate(rng, confusion, selection.truth, self.annotators.per_item)
        arrays = {
            "support": selection.support,
            "label": np.where(selection.unlabelled[:, :, None], -1, label),
            "clean": selection.clean,
            "query": selection.query,
            "truth": selection.truth,
            "query_label": query_label,
            "classes": pool[rows],
            "confusion": confusion.astype(np.float32),
        }
        tensors = {k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in arrays.items()}
        return Episodes(x=x, **tensors)

    def _pool(self, rng: np.random.Generator, pool: Integers) -> tuple[Integers, Integers, Tensor]:
        """Return positions in the pool, the items at these, and their inputs."""
        tasks, pool_size = self.tasks, self.sizes.pool_size
        rotation, unrotated = np.divmod(pool, tasks.n_classes)
        positions = np.full((len(pool), pool_size), -1)
        items: list[Integers] = []
        rotations: list[Integers] = []
        n_items = 0
        for row, code in enumerate(unrotated.tolist()):
            members = rng.permutation(tasks.members[code])[:pool_size]
            positions[row, : len(members)] = n_items + np.arange(len(members))
            items.append(members)
            rotations.append(np.full(len(members), rotation[row]))
            n_items += len(members)
        pool_items = np.concatenate(items)
        return positions, pool_items, tasks.inputs(pool_items, np.concatenate(rotations))


class _Selection:
    """Positions in the pool of support and queries of every episode."""

    def __init__(
        self, rng: np.random.Generator, positions: Integers, shots: int, sizes: Sizes
    ) -> None:
        n_episodes, ways, n_items = positions.shape  # (episode, class, item)
        available = (positions >= 0).sum(axis=2)  # (episode, class)
        order = np.where(positions >= 0, rng.random(positions.shape), 2.0).argsort(axis=2)
        positions = np.take_along_axis(positions, order, axis=2)
        room = int(available.min()) - sizes.unlabelled
        queries = max(min(sizes.queries, room - 1), 1)
        shots = max(min(shots, room - queries), 1)
        n_queries, n_labelled = np.full((2, n_episodes, ways), [[[queries]], [[shots]]])
        if sizes.uneven:
            shares = rng.dirichlet(np.full(ways, 1 / sizes.uneven), size=n_episodes)
            most = room * shots // (shots + queries)
            n_labelled = _counts(rng, shares, shots, least=1, most=most)
            n_queries = _counts(rng, shares, queries, least=0, most=room - most)
        first, last = n_queries[:, :, None], (n_queries + n_labelled)[:, :, None]
        number = np.arange(n_items)
        query, labelled = number < first, (number >= first) & (number < last)
        unlabelled = (number >= last) & (number < last + sizes.unlabelled)
        code = np.broadcast_to(np.arange(ways)[:, None], positions.shape)
        self.query, self.truth = _select(positions, query), _select(code, query)
        support = labelled | unlabelled
        self.support, self.clean = _select(positions, support), _select(code, support)
        self.unlabelled = _select(unlabelled, support)


def _select(values: Any, mask: Any) -> Any:
    """Return the values under a mask with equally many in every episode."""
    return values[mask].reshape(len(values), -1)


def _counts(
    rng: np.random.Generator, shares: Floats, mean: int, *, least: int, most: int
) -> Integers:
    """Return the number of items of every class, between least and most: (episode, class)."""
    count = np.full(shares.shape, least)
    for _ in range(shares.shape[1] * (mean - least)):  # one more item for a class that has room
        weight = (shares + 1e-12) * (count < most)
        steps = (weight / weight.sum(axis=1, keepdims=True)).cumsum(axis=1)
        pick = (rng.random((len(shares), 1)) > steps[:, :-1]).sum(axis=1)
        count[np.arange(len(shares)), pick] += 1
    return count


class Items(NamedTuple):
    """Items of a batch of episodes, with or without annotations."""

    u: Tensor  # (episode, item, feature)
    item: Tensor  # (annotation): episode · n_items + item
    code: Tensor  # (annotation): (episode · n_annotators + annotator) · n_classes + label
    n_annotators: int
    n_classes: int

    @classmethod
    def of(cls, u: Tensor, label: Tensor | None = None, *, n_classes: int) -> Self:
        """Return items by their embeddings and a matrix of labels.

        Parameters
        ----------
        u
            Embeddings: (episode, item, feature).
        label
            Labels: (episode, item, annotator), -1 for unlabelled.
        n_classes
            Number of classes.
        """
        if label is None:
            label = torch.full((*u.shape[:2], 0), -1, device=u.device)
        episode, item, annotator = torch.nonzero(label >= 0, as_tuple=True)
        n_annotators = label.shape[2]
        code = (episode * n_annotators + annotator) * n_classes + label[episode, item, annotator]
        return cls(
            u=u,
            item=episode * u.shape[1] + item,
            code=code,
            n_annotators=n_annotators,
            n_classes=n_classes,
        )

    @classmethod
    def of_annotations(cls, annotations: Annotations, n_items: int) -> Self:
        """Return the items of one task by their annotations, without embeddings.

        Items after those of the annotations are unlabelled.
        """
        annotator, n_classes = annotations.annotator.astype(np.int64), annotations.n_classes
        return cls(
            u=torch.zeros(1, n_items, 0),
            item=torch.from_numpy(annotations.item.astype(np.int64)),
            code=torch.from_numpy(annotator * n_classes + annotations.label),
            n_annotators=annotations.n_annotators,
            n_classes=n_classes,
        )

    @property
    def label(self) -> Tensor:
        """Labels: (annotation)."""
        return self.code % self.n_classes

    @property
    def annotator(self) -> Tensor:
        """Annotators: (annotation), episode · n_annotators + annotator."""
        return self.code // self.n_classes

    def sum_by_item(self, values: Tensor) -> Tensor:
        """Return sums of values of annotations by item: (episode, item, …)."""
        return self._sum(values, self.item, self.u.shape[:2])

    def sum_by_label(self, values: Tensor) -> Tensor:
        """Return sums of values of annotations: (episode, annotator, given class, …)."""
        return self._sum(values, self.code, (len(self.u), self.n_annotators, self.n_classes))

    def _sum(self, values: Tensor, index: Tensor, shape: tuple[int, ...]) -> Tensor:
        total = values.new_zeros(int(np.prod(shape)), *values.shape[1:])
        return total.index_add(0, index, values).reshape(*shape, *values.shape[1:])

    def per_annotation(self, values: Tensor) -> Tensor:
        """Return values of items, once per annotation: (annotation, …)."""
        return values.flatten(0, 1)[self.item]

    def votes(self) -> Tensor:
        """Return vote counts: (episode, item, class)."""
        one_hot = torch.nn.functional.one_hot(self.label, self.n_classes)
        return self.sum_by_item(one_hot.to(self.u.dtype))

    def shares(self) -> Tensor:
        """Return vote shares; those of unlabelled items are equal."""
        votes = self.votes()
        unlabelled = votes.sum(dim=2, keepdim=True) == 0
        return normalize(votes + unlabelled.to(votes))

    def repeat(self, times: int) -> Self:
        """Return every episode several times, one copy after the other."""
        copy = torch.arange(times, device=self.u.device)[:, None]
        n_episodes, n_items = self.u.shape[:2]
        n_codes = n_episodes * self.n_annotators * self.n_classes
        return self._replace(
            u=self.u.repeat(times, 1, 1),
            item=(self.item + copy * n_episodes * n_items).flatten(),
            code=(self.code + copy * n_codes).flatten(),
        )


def normalize(values: Tensor, dim: int = -1) -> Tensor:
    """Return values divided by their sum."""
    return values / values.sum(dim=dim, keepdim=True).clamp(min=_TINY)
