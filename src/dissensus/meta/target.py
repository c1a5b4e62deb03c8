"""An adapted task: its classes, its annotators, and what to label next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .._relation import Array, Floats, indices_of
from ..annotations import Annotations
from ..errors import DataError, MethodError
from .adapter import AdaptedTasks, Embed, as_float32
from .items import Items

if TYPE_CHECKING:
    from .few_shot import FewShotCrowd

_BATCH = 1024


class FewShotTask:
    """A task learned from few annotated items.

    Parameters
    ----------
    model
        The fitted model.
    annotations
        Annotations of the support.
    classes
        The classes, in the dtype of the labels.
    task
        The adapted task.
    embed
        The embedding network.
    """

    def __init__(
        self,
        model: FewShotCrowd,
        annotations: Annotations,
        classes: Array,
        task: AdaptedTasks,
        embed: Embed,
    ) -> None:
        self.model, self.annotations, self.task, self.embed = model, annotations, task, embed
        self.classes_, self.annotators_ = classes, annotations.annotators

    @torch.no_grad()
    def predict_proba(self, X: Any, annotations: Annotations | None = None) -> Floats:
        """Return the probability of every class: (item, class).

        Annotations of these items by annotators of the support are used too.
        """
        x = self.model.prepare(X)
        log_truth = []
        for start in range(0, len(x), _BATCH):
            u = as_float32(self.embed(x[start : start + _BATCH]))[None]
            items = Items.of(u, n_classes=len(self.classes_))
            if annotations is not None:
                items = self._with_labels(items, annotations, start)
            log_truth.append(self.task.log_truth(items)[0])
        return torch.cat(log_truth).double().softmax(dim=1).numpy()

    def _with_labels(self, items: Items, more: Annotations, start: int) -> Items:
        """Return items with their labels by annotators of the support."""
        more = more.recode(self.classes_)
        batch = (more.item >= start) & (more.item < start + items.u.shape[1])
        annotator = indices_of(more.annotators, self.annotators_)[more.annotator[batch]]
        if (annotator < 0).any():
            name = more.annotators[more.annotator[batch][annotator < 0][0]]
            raise DataError(f"annotator {name!r} has no labels in the support of this task")
        code = annotator.astype(np.int64) * len(self.classes_) + more.label[batch]
        return items._replace(
            item=torch.from_numpy(more.item[batch].astype(np.int64) - start),
            code=torch.from_numpy(code),
            n_annotators=self.annotations.n_annotators,
        )

    def predict(self, X: Any) -> Array:
        """Return the most probable class of every item."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @property
    def posterior(self) -> Floats:
        """Posterior probabilities of the support: (item, class)."""
        return _numpy(self.task.posterior)[: self.annotations.n_items]

    @property
    def labels(self) -> Array:
        """The most probable class of every item of the support."""
        return self.classes_[self.posterior.argmax(axis=1)]

    @property
    def confusion(self) -> Floats:
        """Confusion matrices: (annotator, true, given)."""
        try:
            return _numpy(self.task.confusion)
        except NotImplementedError:
            raise MethodError(
                f"{self.model.adapter_} has no model of annotators; adapters of the em family do"
            ) from None

    @property
    def annotators(self) -> dict[str, Array]:
        """A table of the annotators: number of labels, and estimated accuracy."""
        return {
            "annotator": self.annotators_,
            "n_labels": self.annotations.labels_per_annotator,
            "accuracy": np.einsum("t,att->a", self.posterior.mean(axis=0), self.confusion),
        }

    def next(self, budget: int = 10, **settings: Any) -> dict[str, Array]:
        """Return which annotators to ask about which items; see `dissensus.meta.active.plan`."""
        from .active import plan

        return plan(self, budget, **settings)


def _numpy(values: Tensor) -> Floats:
    return values[0].detach().double().numpy()
