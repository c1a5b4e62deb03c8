"""The contract of adapters, which learn a task from its support set, and what is trained with them.

The support is some embedded items with annotations. An `Adapter` is part of the trained network, so
its own parameters (priors, scale, temperature) are meta-learned with the embedding; at test time
they are fixed.

An `Embedding` is an encoder with an optional head on frozen features. What is trained is an
embedding with an adapter, on episodes (`EpisodeLearner`), or with a classifier of all classes
(`ClassLearner`). The loss of an episode is that of its queries after adapting to its support.
Batch normalization uses the statistics of the whole pool in training, and running ones afterwards:
the prediction of a query does not depend on other queries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ...errors import OptionError
from ...params import Settings
from ..nn import Batch, Learner
from .episodes import Episodes, Items

_ADAPTER_LR = 5.0  # relative learning rate of the few parameters of an adapter

Embed = Callable[[Tensor], Tensor]  # inputs → embeddings
Head = Literal["none", "weights", "linear"]


class AdaptedTasks(ABC):
    """Adapted tasks, one per episode."""

    posterior: Tensor  # (episode, item, class): of the support

    @abstractmethod
    def log_truth(self, items: Items) -> Tensor:
        """Return log-probabilities of the classes of other items: (episode, item, class)."""

    def stages(self) -> list[AdaptedTasks]:
        """Return the tasks after every step of adapting, themselves last."""
        return [self]

    @property
    def confusion(self) -> Tensor:
        """Confusion matrices: (episode, annotator, true, given)."""
        raise NotImplementedError(f"{type(self).__name__} has no model of annotators")


class HeadTasks(AdaptedTasks):
    """Tasks with a head for every episode, and without a model of annotators."""

    def __init__(self, posterior: Tensor, logits: Embed) -> None:
        self.posterior, self.logits = posterior, logits

    def log_truth(self, items: Items) -> Tensor:
        return self.logits(items.u).log_softmax(dim=2)


class Adapter(nn.Module, ABC):
    """Learns tasks from their supports."""

    @abstractmethod
    def adapt(self, support: Items) -> AdaptedTasks:
        """Return the adapted tasks of all episodes."""

    def adapt_one(
        self, embedding: Embed, x: Tensor, annotated: Items
    ) -> tuple[AdaptedTasks, Embed]:
        """Return one adapted task, and the embedding to use with it.

        Parameters
        ----------
        embedding
            The embedding network.
        x
            Inputs of the support: (item, …).
        annotated
            Their annotations; the embeddings in it are ignored.
        """
        return self.adapt(annotated._replace(u=as_float32(embedding(x))[None])), embedding

    def classify(
        self, embedding: nn.Module, episodes: Episodes
    ) -> tuple[Tensor, AdaptedTasks | None]:
        """Return log-probabilities of the queries' classes, and the adapted tasks.

        Every input of the pool is embedded once, whatever the number of its episodes.
        """
        u = embedding(episodes.x)
        with torch.autocast(u.device.type, enabled=False):
            u = as_float32(u)
            n_classes = episodes.classes.shape[1]
            support = Items.of(u[episodes.support], episodes.label, n_classes=n_classes)
            task = self.adapt(support)
            return task.log_truth(Items.of(u[episodes.query], n_classes=n_classes)), task


@dataclass(frozen=True, kw_only=True)
class AdapterSettings(Settings, ABC):
    """Settings of an adapter, as in the registry."""

    joint: ClassVar[bool] = False  # whether it has to be trained with the embedding

    @abstractmethod
    def build(self, width: int, n_classes: int) -> Adapter:
        """Return an adapter for embeddings of a width, to be trained on tasks of n_classes."""


def check_n_classes(name: str, trained: int, n_classes: int) -> None:
    """Fail where an adapter was trained on tasks of another number of classes."""
    if n_classes != trained:
        raise OptionError(
            f"{name} was trained on tasks of {trained} classes, not of {n_classes}; adapters of "
            "the em family take any number"
        )


def as_float32(values: Tensor) -> Tensor:
    """Return floats of at least 32 bits, as EM needs them."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def log_parameter(value: float) -> nn.Parameter:
    """Return the logarithm of a positive number as a parameter."""
    return nn.Parameter(torch.tensor(log(value)))


class Embedding(nn.Module):
    """x → embedding.

    Features of a frozen encoder are computed before training, and standardized to mean zero and
    mean squared length one on the source. The head is a weight per feature, initialized at one, or
    a linear map initialized as the identity: a random one would lose information if the source has
    few classes.

    Parameters
    ----------
    network
        x → vector.
    width
        Number of features.
    head
        What is trained on top.
    """

    mean: Tensor  # (feature)
    length: Tensor  # ()

    def __init__(self, network: nn.Module, width: int, head: Head = "none") -> None:
        super().__init__()
        self.network, self.width = network, width
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("length", torch.ones(()))
        self.weights = nn.Parameter(torch.ones(width)) if head == "weights" else None
        self.linear = nn.Linear(width, width, bias=False) if head == "linear" else None
        if self.linear is not None:
            nn.init.eye_(self.linear.weight)

    def fit_scale(self, vectors: Tensor) -> None:
        """Set mean and scale by these vectors: (item, feature)."""
        self.mean.copy_(vectors.mean(dim=0))
        self.length.copy_((vectors - self.mean).square().sum(dim=1).mean().sqrt().clamp(min=1e-6))

    def forward(self, x: Tensor) -> Tensor:
        """Return embeddings: (item, feature)."""
        if x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        u = (self.network(x) - self.mean) / self.length
        if self.weights is not None:
            u = u * self.weights
        return u if self.linear is None else self.linear(u)


class EpisodeLearner(Learner):
    """An embedding and an adapter, trained on the loss of the queries."""

    def __init__(self, embedding: Embedding, adapter: Adapter, lr: float) -> None:
        super().__init__()
        self.embedding, self.adapter, self.lr = embedding, adapter, lr

    def loss(self, batch: Episodes) -> Tensor:
        log_truth, tasks = self.adapter.classify(self.embedding, batch)
        return self.query_loss(log_truth, batch, tasks)

    def query_loss(self, log_truth: Tensor, batch: Episodes, tasks: AdaptedTasks | None) -> Tensor:
        """Return the mean loss of queries with these log-probabilities: (episode, query, class)."""
        return -log_truth.gather(2, batch.truth[:, :, None]).mean()

    def weight(self, batch: Episodes) -> int:
        return batch.query.numel()

    def groups(self) -> list[dict[str, Any]]:
        return [
            {"params": list(self.embedding.parameters())},
            {"params": list(self.adapter.parameters()), "lr": _ADAPTER_LR * self.lr},
        ]


class ClassLearner(Learner):
    """An embedding with a linear classifier of all source classes."""

    def __init__(self, embedding: Embedding, n_classes: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.head = nn.Linear(embedding.width, n_classes)

    def log_truth(self, x: Tensor) -> Tensor:
        return self.head(self.embedding(x)).float().log_softmax(dim=1)

    def loss(self, batch: Batch) -> Tensor:
        return torch.nn.functional.nll_loss(self.log_truth(batch.x)[batch.row], batch.label)
