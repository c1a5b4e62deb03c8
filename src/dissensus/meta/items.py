"""The items of some episodes: their embeddings, and what annotators said of them.

Episodes of a batch have the same number of items and annotators; where one has fewer, the rest is
padding, with `present` at 0 and -1 for every label. Inside, annotations are a list, so that a step
costs as much as there are annotations, however many annotators there are.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from ..annotations import Annotations

__all__ = ["Items", "share"]

_TINY = 1e-12


class Items(NamedTuple):
    """Items of a batch of episodes, with or without annotations."""

    u: Tensor  # (episode, item, feature)
    present: Tensor  # (episode, item): 1, or 0 for padding
    item: Tensor  # (annotation): episode · n_items + item
    annotations: Tensor  # (annotation): (episode · n_annotators + annotator) · n_classes + label
    n_annotators: int
    n_classes: int

    @classmethod
    def of(
        cls,
        u: Tensor,
        label: Tensor | None = None,
        *,
        n_classes: int,
        present: Tensor | None = None,
    ) -> Self:
        """Return items by their embeddings and a matrix of labels.

        Parameters
        ----------
        u
            Embeddings: (episode, item, feature).
        label
            What every annotator said: (episode, item, annotator), -1 for nothing.
        n_classes
            How many classes there are.
        present
            Which items are there: (episode, item); by default all.
        """
        if present is None:
            present = torch.ones_like(u[:, :, 0]) if u.shape[2] else u.new_ones(u.shape[:2])
        if label is None:
            label = torch.full((*u.shape[:2], 0), -1, device=u.device)
        episode, item, annotator = torch.nonzero(label >= 0, as_tuple=True)
        n_annotators = label.shape[2]
        annotations = (episode * n_annotators + annotator) * n_classes + label[
            episode, item, annotator
        ]
        return cls(
            u, present.to(u), episode * u.shape[1] + item, annotations, n_annotators, n_classes
        )

    @classmethod
    def of_annotations(cls, annotations: Annotations, n_items: int) -> Self:
        """Return the items of one task by what was said of them, without embeddings as yet.

        Items behind those of the annotations are without labels.
        """
        n_classes = annotations.n_classes
        return cls(
            torch.zeros(1, n_items, 0),
            torch.ones(1, n_items),
            torch.from_numpy(annotations.item.astype(np.int64)),
            torch.from_numpy(
                annotations.annotator.astype(np.int64) * n_classes + annotations.label
            ),
            annotations.n_annotators,
            n_classes,
        )

    @property
    def label(self) -> Tensor:
        """What was said: (annotation)."""
        return self.annotations % self.n_classes

    @property
    def annotator(self) -> Tensor:
        """Who said it: (annotation), episode · n_annotators + annotator."""
        return self.annotations // self.n_classes

    def by_item(self, values: Tensor) -> Tensor:
        """Return values of annotations added up by item: (episode, item, …)."""
        n_episodes, n_items = self.u.shape[:2]
        total = values.new_zeros(n_episodes * n_items, *values.shape[1:])
        total = total.index_add(0, self.item, values)
        return total.reshape(n_episodes, n_items, *values.shape[1:])

    def by_annotations(self, values: Tensor) -> Tensor:
        """Return values of annotations added up: (episode, annotator, given class, …)."""
        sizes = len(self.u), self.n_annotators, self.n_classes
        total = values.new_zeros(sizes[0] * sizes[1] * sizes[2], *values.shape[1:])
        return total.index_add(0, self.annotations, values).reshape(*sizes, *values.shape[1:])

    def per_annotation(self, values: Tensor) -> Tensor:
        """Return values of items, once per annotation: (annotation, …)."""
        return values.flatten(0, 1)[self.item]

    def votes(self) -> Tensor:
        """Return how many annotators chose every class: (episode, item, class)."""
        chosen = torch.nn.functional.one_hot(self.label, self.n_classes)
        return self.by_item(chosen.to(self.u.dtype))

    def shares(self) -> Tensor:
        """Return the share of votes; of items that nobody labelled, equal ones."""
        votes = self.votes()
        silent = votes.sum(dim=2, keepdim=True) == 0
        return share(votes + silent.to(votes))

    def repeat(self, times: int) -> Self:
        """Return every episode several times, one copy after the other."""
        copy = torch.arange(times, device=self.u.device)[:, None]
        n_episodes, n_items = self.u.shape[:2]
        n_said = n_episodes * self.n_annotators * self.n_classes
        return self._replace(
            u=self.u.repeat(times, 1, 1),
            present=self.present.repeat(times, 1),
            item=(self.item + copy * n_episodes * n_items).flatten(),
            annotations=(self.annotations + copy * n_said).flatten(),
        )


def share(values: Tensor, dim: int = -1) -> Tensor:
    """Return values divided by their sum."""
    return values / values.sum(dim=dim, keepdim=True).clamp(min=_TINY)
