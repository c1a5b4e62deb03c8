"""Source tasks: inputs, their classes, and which classes belong together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._relation import Integers
from ..annotations import Annotations
from ..errors import DataError
from ..nn.batches import Source, inputs_of

__all__ = ["Tasks"]


@dataclass(frozen=True, eq=False)
class Tasks:
    """Source tasks: items of known class.

    Parameters
    ----------
    x
        Inputs: a tensor, or anything that loads them when asked.
    label
        Class of every item, as a code.
    task
        Task of every class; episodes stay within one. `None`: all classes are of one task.
    turns
        With 4, every class of images also stands upside down and on both sides, as a new class.
    annotations
        What annotators of the source said of its items, classes by the same codes, if there are
        any: then these can label the episodes in the place of pseudo-annotators.
    """

    x: Tensor | Source
    label: Integers  # (item)
    task: Integers | None = None  # (class)
    turns: int = 1
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        if len(self.x) != len(self.label):
            raise DataError(f"{len(self.x)} inputs, but {len(self.label)} labels")
        if self.annotations is not None and self.annotations.n_items != len(self.x):
            raise DataError(
                f"{len(self.x)} inputs, but annotations on {self.annotations.n_items} items"
            )

    @cached_property
    def members(self) -> list[Integers]:
        """The items of every class."""
        order = np.argsort(self.label, kind="stable")
        n_classes = 0 if self.task is None else len(self.task)
        ends = np.cumsum(np.bincount(self.label, minlength=n_classes))
        return np.split(order, ends[:-1])

    @property
    def n_classes(self) -> int:
        """How many classes there are, before they are turned."""
        return len(self.members)

    def usable(self, least: int) -> list[Integers]:
        """Return the classes of every task that have enough items, turned ones too."""
        enough = np.array([len(items) >= least for items in self.members])
        task = np.zeros(len(enough), dtype=int) if self.task is None else self.task
        found = []
        for each in np.unique(task):
            plain = np.flatnonzero(enough & (task == each))
            turned = [plain + turn * self.n_classes for turn in range(self.turns)]
            if len(plain) > 1:
                found.append(np.concatenate(turned))
        return found

    def inputs(self, items: Integers, turn: Integers) -> Tensor:
        """Return the inputs of items, turned by so many right angles."""
        x = inputs_of(self.x, items)
        for angle in np.unique(turn[turn > 0]).tolist():
            rows = torch.from_numpy(np.flatnonzero(turn == angle))
            x = x.index_copy(0, rows, torch.rot90(x[rows], angle, (-2, -1)))
        return x

    def heard(self, items: Integers, classes: Integers) -> Integers:
        """Return what annotators of the source said of items of episodes.

        Labels that are no class of the episode are left out. Annotators are numbered anew in every
        episode, those alone who said something.

        Parameters
        ----------
        items
            Codes: (episode, item).
        classes
            Which classes an episode has: (episode, class).

        Returns
        -------
        (episode, item, annotator), -1 for nothing.
        """
        assert self.annotations is not None
        n_episodes, n_items = items.shape
        annotations = self.annotations.take(items.ravel())
        episode, item = np.divmod(annotations.item, n_items)
        code = np.full((n_episodes, self.n_classes), -1)
        np.put_along_axis(code, classes, np.arange(classes.shape[1])[None], axis=1)
        label = code[episode, annotations.label]
        kept = label >= 0
        episode, item, label = episode[kept], item[kept], label[kept]
        pair = episode * annotations.n_annotators + annotations.annotator[kept]
        known, position = np.unique(pair, return_inverse=True)
        first = np.searchsorted(known, np.arange(n_episodes) * annotations.n_annotators)
        position = position - first[episode]
        found = np.full((n_episodes, n_items, int(position.max(initial=0)) + 1), -1)
        found[episode, item, position] = label
        return found

    def keep(self, classes: Integers) -> Tasks:
        """Return the tasks of some classes alone."""
        position = np.full(self.n_classes, -1)
        position[classes] = np.arange(len(classes))
        some = self.items(np.flatnonzero(position[self.label] >= 0))
        task = None if self.task is None else self.task[classes]
        annotations = (
            None if some.annotations is None else _renamed(some.annotations, position, len(classes))
        )
        return Tasks(some.x, position[some.label], task, self.turns, annotations)

    def items(self, items: Integers) -> Tasks:
        """Return the tasks of some items alone; classes keep their codes."""
        x = self.x[torch.from_numpy(items)] if isinstance(self.x, Tensor) else _Part(self.x, items)
        annotations = None if self.annotations is None else self.annotations.take(items)
        return Tasks(x, self.label[items], self.task, self.turns, annotations)

    def plain(self) -> Tasks:
        """Return the same without turned classes."""
        return replace(self, turns=1)

    def digest(self) -> str:
        """Return a short text that other sources do not have."""
        digest = blake2b(f"{len(self.x)} {self.turns}".encode(), digest_size=8)
        for part in (self.label, np.zeros(0) if self.task is None else self.task):
            digest.update(np.asarray(part).astype("<i8").tobytes())
        if isinstance(self.x, Tensor):
            digest.update(self.x.contiguous().view(torch.uint8).numpy().data)
        return digest.hexdigest()


def _renamed(annotations: Annotations, position: Integers, n_classes: int) -> Annotations:
    """Return annotations with other codes of classes; those of classes that are gone are left."""
    code = position[annotations.label]
    kept = code >= 0
    return Annotations.from_codes(
        annotations.item[kept],
        annotations.annotator[kept],
        code[kept],
        items=annotations.n_items,
        annotators=annotations.annotators,
        classes=n_classes,
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """Some of the inputs that are loaded when asked for."""

    x: Any
    items: Integers

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, items: Any, /) -> Tensor:
        return self.x[torch.from_numpy(self.items[np.asarray(items)])]
