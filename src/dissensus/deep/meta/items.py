"""The items of some episodes: their embeddings and annotations.

Episodes of a batch have the same number of items and annotators. Annotations are stored as a list,
so that a step costs as much as there are annotations, whatever the number of annotators.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from ...answers.annotations import Annotations

_TINY = 1e-12


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
        return cls(u, episode * u.shape[1] + item, code, n_annotators, n_classes)

    @classmethod
    def of_annotations(cls, annotations: Annotations, n_items: int) -> Self:
        """Return the items of one task by their annotations, without embeddings.

        Items after those of the annotations are unlabelled.
        """
        annotator, n_classes = annotations.annotator.astype(np.int64), annotations.n_classes
        return cls(
            torch.zeros(1, n_items, 0),
            torch.from_numpy(annotations.item.astype(np.int64)),
            torch.from_numpy(annotator * n_classes + annotations.label),
            annotations.n_annotators,
            n_classes,
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
