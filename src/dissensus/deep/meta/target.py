"""An adapted task: its classes, its annotators, and which annotator to ask about which item next.

With the posterior[n, k] of item n and the confusion[r, k, l] of annotator r, the expected
information of a label about the truth is, in nats (H is the entropy):

    gain[n, r] = H(Σ_k posterior[n, k] confusion[r, k]) − Σ_k posterior[n, k] H(confusion[r, k])

The pair of the largest gain is asked for. Annotators with few labels look average, so this soon
settles on the first who seems good. A share of the questions, `explore`, goes to the pair of the
largest gain among the annotators with the fewest labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ...answers.annotations import Annotations
from ...base.arrays import Array, Floats, Integers
from ...base.names import Names, as_names, indices_of
from ...errors import DataError, MethodError
from .base import AdaptedTasks, Embed, as_float32
from .em import safe_log
from .episodes import Items
from .sections import EmbeddingView, Stage, in_plane, stage_names

if TYPE_CHECKING:
    from .few_shot import FewShotCrowd


_BATCH = 1024
_SHOWN = 1000  # further items in a view, at most


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
    x
        What it takes, of the support.
    """

    def __init__(
        self,
        *,
        model: FewShotCrowd,
        annotations: Annotations,
        classes: Array,
        task: AdaptedTasks,
        embed: Embed,
        x: Tensor,
    ) -> None:
        self.model, self.annotations, self.task, self.embed = model, annotations, task, embed
        self.x = x
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

    def _with_labels(self, items: Items, annotations: Annotations, start: int) -> Items:
        """Return items with their labels by annotators of the support."""
        labels = annotations.recode(self.classes_)
        batch = (labels.item >= start) & (labels.item < start + items.u.shape[1])
        annotator = indices_of(labels.annotators, self.annotators_)[labels.annotator[batch]]
        if (annotator < 0).any():
            name = labels.annotators[labels.annotator[batch][annotator < 0][0]]
            raise DataError(f"annotator {name!r} has no labels in the support of this task")
        code = annotator.astype(np.int64) * len(self.classes_) + labels.label[batch]
        return items._replace(
            item=torch.from_numpy(labels.item[batch].astype(np.int64) - start),
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

    @torch.no_grad()
    def view(
        self,
        truth: Mapping[str, Any] | ArrayLike | None = None,
        *,
        new: Any = None,
        names: Sequence[str] | None = None,
        seed: int = 0,
    ) -> EmbeddingView:
        """Return the items in the plane, with their classes before and after every step of EM.

        Its `plot()` is a chart.

        Parameters
        ----------
        truth
            Known classes: by name of the item, or of all items in order.
        new
            Inputs of further items, which have no annotations; the first 1000 are shown.
        names
            Names of these; by default numbers after those of the support.
        seed
            Random seed of t-SNE.
        """
        n_labelled, n_support = self.annotations.n_items, len(self.x)
        x = self.x if new is None else torch.cat([self.x, self.model.prepare(new)[:_SHOWN]])
        u = as_float32(self.embed(x))[None]
        numbers = [str(number) for number in range(n_labelled, len(x))]
        further = [*numbers[: n_support - n_labelled], *names] if names is not None else numbers
        items = as_names([*self.annotations.items.tolist(), *further[: len(numbers)]])
        votes = np.zeros((len(x), len(self.classes_)))
        votes[:n_labelled] = self.annotations.votes()
        votes[votes.sum(axis=1) == 0] = 1
        stages = [votes / votes.sum(axis=1, keepdims=True)]
        new_items = Items.of(u[:, n_support:], n_classes=len(self.classes_))
        for task in self.task.stages():
            posterior = torch.cat([task.posterior, task.log_truth(new_items).exp()], dim=1)
            stages.append(_numpy(posterior))
        return EmbeddingView(
            items=items,
            classes=as_names(self.classes_),
            position=in_plane(_numpy(u), seed),
            labelled=np.pad(self.annotations.labels_per_item > 0, (0, len(numbers))),
            stages=tuple(map(Stage, stage_names(len(stages) - 1), stages)),
            truth=self._codes(items, truth),
        )

    def _codes(self, items: Names, truth: Mapping[str, Any] | ArrayLike | None) -> Integers:
        """Return codes of known classes, -1 for others."""
        if truth is None:
            return np.full(len(items), -1)
        if not isinstance(truth, Mapping):
            values = np.asarray(truth).tolist()
            if len(values) != len(items):
                raise DataError(f"{len(values)} known classes, but {len(items)} items")
            truth = dict(zip(items.tolist(), values, strict=True))
        names = as_names([truth.get(name, "") for name in items.tolist()])
        return indices_of(names, as_names(self.classes_))

    def next(self, budget: int = 10, **settings: Any) -> dict[str, Array]:
        """Return which annotators to ask about which items; see `target.plan`."""
        return plan(self, budget, **settings)


def _numpy(values: Tensor) -> Floats:
    return values[0].detach().double().numpy()


def entropy(p: Tensor) -> Tensor:
    """Return the entropy along the last axis, in nats."""
    return -(p * safe_log(p)).sum(dim=-1)


def information(posterior: Tensor, confusion: Tensor) -> Tensor:
    """Return the expected information gain of a label: (episode, item, annotator), in nats.

    Parameters
    ----------
    posterior
        Of the items: (episode, item, class).
    confusion
        Of the annotators: (episode, annotator, true, given).

    Examples
    --------
    >>> knows, guesses = torch.eye(2), torch.full((2, 2), 0.5)
    >>> information(torch.full((1, 1, 2), 0.5), torch.stack([knows, guesses])[None]).exp()
    tensor([[[2., 1.]]])
    """
    label = torch.einsum("enk,erkl->enrl", posterior, confusion)
    noise = torch.einsum("enk,erk->enr", posterior, entropy(confusion))
    return entropy(label) - noise


def plan(
    task: FewShotTask, budget: int, *, explore: float = 0.1, seed: int = 0
) -> dict[str, Array]:
    """Return which annotators to ask about which items, the most informative pairs first.

    Parameters
    ----------
    task
        The task so far; pairs with a label are left out.
    budget
        Number of labels to ask for.
    explore
        Share of questions for the annotators with the fewest labels.
    seed
        Random seed.
    """
    annotations, rng = task.annotations, np.random.default_rng(seed)
    posterior = torch.from_numpy(task.posterior)[None]
    confusion = torch.from_numpy(task.confusion)[None]
    gain = information(posterior, confusion)[0].numpy()
    value = gain + 1e-9 * rng.random(gain.shape)
    value[annotations.item, annotations.annotator] = -np.inf
    load = annotations.labels_per_annotator.astype(float)
    item, annotator = [], []
    for _ in range(min(budget, int(np.isfinite(value).sum()))):
        eligible = value
        if rng.random() < explore:
            free = np.isfinite(value).any(axis=0)
            least = load == load[free].min()
            eligible = np.where(least & free, value, -np.inf)
        n, r = np.unravel_index(eligible.argmax(), value.shape)
        item.append(n)
        annotator.append(r)
        load[r] += 1
        value[n, r] = -np.inf
        value[n] -= np.where(np.isfinite(value[n]), abs(gain).max() + 1, 0)  # other items first
    pairs = np.array(item, dtype=int), np.array(annotator, dtype=int)
    return {
        "item": annotations.items[pairs[0]],
        "annotator": annotations.annotators[pairs[1]],
        "gain": gain[pairs],
    }
