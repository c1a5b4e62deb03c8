"""The contract of adapters, which learn a task from its support set.

The support is some embedded items with annotations. An `Adapter` is part of the trained network, so
its own parameters (priors, scale, temperature) are meta-learned with the embedding; at test time
they are fixed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from ...errors import OptionError
from ...params import Settings
from .items import Items

if TYPE_CHECKING:
    from .episodes import Episodes

Embed = Callable[[Tensor], Tensor]  # inputs → embeddings


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


def check_n_classes(name: str, trained: int, given: int) -> None:
    """Fail where an adapter was trained on tasks of another number of classes."""
    if given != trained:
        raise OptionError(
            f"{name} was trained on tasks of {trained} classes, not of {given}; adapters of the em "
            "family take any number"
        )


def as_float32(values: Tensor) -> Tensor:
    """Return floats of at least 32 bits, as EM needs them."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def log_parameter(value: float) -> nn.Parameter:
    """Return the logarithm of a positive number as a parameter."""
    return nn.Parameter(torch.tensor(log(value)))
