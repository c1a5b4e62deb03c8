"""Source tasks: inputs, their classes, and which classes belong together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from ...answers.annotations import Annotations, Integers
from ...errors import DataError
from ..nn.batches import Source, inputs_of, subset


@dataclass(frozen=True, eq=False)
class Tasks:
    """Items of known class, grouped into tasks.

    Parameters
    ----------
    x
        Inputs: a tensor, or a source that loads them batch by batch.
    label
        Class code of every item.
    task
        Task of every class; episodes stay within one. `None`: all classes belong to one task.
    rotations
        With 4, images rotated by 90, 180 and 270 degrees form new classes.
    annotations
        Annotations of the items with the same class codes, if there are any: they can replace
        pseudo-annotators.
    """

    x: Tensor | Source
    label: Integers  # (item)
    task: Integers | None = None  # (class)
    rotations: int = 1
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        if len(self.x) != len(self.label):
            raise DataError(f"{len(self.x)} inputs, but {len(self.label)} labels")
        if self.annotations is not None:
            self.annotations.check_inputs(self.x)

    @cached_property
    def members(self) -> list[Integers]:
        """The items of every class."""
        order = np.argsort(self.label, kind="stable")
        n_classes = 0 if self.task is None else len(self.task)
        ends = np.cumsum(np.bincount(self.label, minlength=n_classes))
        return np.split(order, ends[:-1])

    @property
    def n_classes(self) -> int:
        """Number of classes, without rotations."""
        return len(self.members)

    def usable(self, least: int) -> list[Integers]:
        """Return the classes of every task that have enough items, with rotations."""
        enough = np.array([len(items) >= least for items in self.members])
        task = np.zeros(len(enough), dtype=int) if self.task is None else self.task
        offsets = self.n_classes * np.arange(self.rotations)[:, None]
        by_task = [np.flatnonzero(enough & (task == each)) for each in np.unique(task)]
        return [(classes + offsets).ravel() for classes in by_task if len(classes) > 1]

    def inputs(self, items: Integers, rotation: Integers) -> Tensor:
        """Return the inputs of items, rotated by multiples of 90 degrees."""
        x = inputs_of(self.x, items)
        for angle in np.unique(rotation[rotation > 0]).tolist():
            rows = torch.from_numpy(np.flatnonzero(rotation == angle))
            x = x.index_copy(0, rows, torch.rot90(x[rows], angle, (-2, -1)))
        return x

    def labels_in_episodes(self, items: Integers, classes: Integers) -> Integers:
        """Return the source's own annotations of items in episodes.

        Labels that are no class of the episode are left out. The annotators of an episode are
        those with labels in it, renumbered.

        Parameters
        ----------
        items
            Codes: (episode, item).
        classes
            Classes of the episodes: (episode, class).

        Returns
        -------
        (episode, item, annotator), -1 for unlabelled.
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
        pairs, column = np.unique(pair, return_inverse=True)
        first = np.searchsorted(pairs, np.arange(n_episodes) * annotations.n_annotators)
        column = column - first[episode]
        labels = np.full((n_episodes, n_items, int(column.max(initial=0)) + 1), -1)
        labels[episode, item, column] = label
        return labels

    def keep(self, classes: Integers) -> Tasks:
        """Return the tasks with some of the classes."""
        code = np.full(self.n_classes, -1)
        code[classes] = np.arange(len(classes))
        some = self.items(np.flatnonzero(code[self.label] >= 0))
        task = None if self.task is None else self.task[classes]
        annotations = some.annotations
        if annotations is not None:
            annotations = _recoded(annotations, code, len(classes))
        return Tasks(some.x, code[some.label], task, self.rotations, annotations)

    def items(self, items: Integers) -> Tasks:
        """Return the tasks with some of the items; classes keep their codes."""
        x = subset(self.x, items)
        annotations = None if self.annotations is None else self.annotations.take(items)
        return Tasks(x, self.label[items], self.task, self.rotations, annotations)

    def unrotated(self) -> Tasks:
        """Return the tasks without rotations."""
        return replace(self, rotations=1)

    def digest(self) -> str:
        """Return a digest of the contents."""
        digest = blake2b(f"{len(self.x)} {self.rotations}".encode(), digest_size=8)
        for part in (self.label, np.zeros(0) if self.task is None else self.task):
            digest.update(np.asarray(part).astype("<i8").tobytes())
        if isinstance(self.x, Tensor):
            digest.update(self.x.contiguous().view(torch.uint8).numpy().data)
        return digest.hexdigest()


def _recoded(annotations: Annotations, code: Integers, n_classes: int) -> Annotations:
    """Return annotations with other class codes, without those of missing classes."""
    label = code[annotations.label]
    kept = label >= 0
    return annotations.keep(kept).with_codes(label=label[kept], classes=n_classes)
