"""A new task that was learned: its classes, its annotators, and what to ask next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .._relation import Array, Floats, indices_of
from ..annotations import Annotations
from ..errors import DataError, MethodError
from .adapter import Adapted, Embed, whole
from .items import Items

if TYPE_CHECKING:
    from .few_shot import FewShotCrowd

__all__ = ["FewShotTask"]

_PIECE = 1024  # items that are classified at once


class FewShotTask:
    """A task learned from few items and what annotators said of them.

    Parameters
    ----------
    model
        What it was learned with.
    annotations
        What it was learned from.
    task
        What was learned.
    embed
        What embeddings are made with.
    """

    def __init__(
        self, model: FewShotCrowd, annotations: Annotations, task: Adapted, embed: Embed
    ) -> None:
        self.model, self.annotations, self.task, self.embed = model, annotations, task, embed
        self.classes_, self.annotators_ = annotations.classes, annotations.annotators

    @torch.no_grad()
    def predict_proba(
        self,
        X: Any,  # noqa: N803
        annotations: Annotations | None = None,
    ) -> Floats:
        """Return the probability of every class: (item, class).

        Annotations on these items, by annotators of the support, count too if they are given.
        """
        x = self.model.prepare(X)
        found = []
        for at in range(0, len(x), _PIECE):
            u = whole(self.embed(x[at : at + _PIECE]))[None]
            items = Items.of(u, n_classes=self.annotations.n_classes)
            if annotations is not None:
                items = self._heard(items, annotations, at)
            found.append(self.task.log_truth(items)[0])
        return torch.cat(found).double().softmax(dim=1).numpy()

    def _heard(self, items: Items, more: Annotations, start: int) -> Items:
        """Return items with what annotators of the support said of them."""
        more = more.recode(self.classes_)
        here = (more.item >= start) & (more.item < start + items.u.shape[1])
        who = indices_of(more.annotators, self.annotators_)[more.annotator[here]]
        if (who < 0).any():
            name = more.annotators[more.annotator[here][who < 0][0]]
            raise DataError(f"annotator {name!r} labelled nothing that this task was learned from")
        n_classes = self.annotations.n_classes
        annotations = torch.from_numpy(who.astype(np.int64) * n_classes + more.label[here])
        item = torch.from_numpy(more.item[here].astype(np.int64) - start)
        return items._replace(
            item=item, annotations=annotations, n_annotators=self.annotations.n_annotators
        )

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the most probable class of every item."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @property
    def posterior(self) -> Floats:
        """What is believed of the items it was learned from: (item, class)."""
        return _numbers(self.task.posterior)[: self.annotations.n_items]

    @property
    def labels(self) -> Array:
        """The most probable class of every item it was learned from."""
        return self.classes_[self.posterior.argmax(axis=1)]

    @property
    def confusion(self) -> Floats:
        """What annotators make of every class: (annotator, true, given)."""
        try:
            return _numbers(self.task.confusion)
        except NotImplementedError:
            raise MethodError(
                f"{self.model.rule_} learns nothing about annotators; adapters of the em and vb "
                "families do"
            ) from None

    @property
    def annotators(self) -> dict[str, Array]:
        """A table of the annotators: labels given, and how often they are taken to be right."""
        share = self.posterior.mean(axis=0)
        right = np.einsum("t,att->a", share, self.confusion)
        return {
            "annotator": self.annotators_,
            "n_labels": self.annotations.labels_per_annotator,
            "accuracy": right,
        }

    def next(self, budget: int = 10, **settings: Any) -> dict[str, Array]:
        """Return whom to ask about which item next; see `dissensus.meta.active.ask`."""
        from .active import ask

        return ask(self, budget, **settings)


def _numbers(values: Tensor) -> Floats:
    return values[0].detach().double().numpy()
