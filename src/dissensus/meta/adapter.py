"""What every way of adapting to a task promises.

An `Adapter` learns a task from its support: some embedded items with what annotators said of them.
It is part of the network that is trained, so its own settings (priors, scale, temperature) are
learned with the embedding; at test time nothing is, and adapting takes no gradient steps of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from ..params import Settings
from .items import Items

if TYPE_CHECKING:
    from .episodes import Episodes

__all__ = ["Adapted", "Adapter", "Embed", "Rule", "logarithm", "whole"]


Embed = Callable[[Tensor], Tensor]  # inputs → embeddings


class Adapted(ABC):
    """Tasks that were learned, one per episode."""

    posterior: Tensor  # (episode, item, class): of the support

    @abstractmethod
    def log_truth(self, items: Items) -> Tensor:
        """Return log-probabilities of the classes of other items: (episode, item, class)."""

    @property
    def confusion(self) -> Tensor:
        """What annotators make of every class: (episode, annotator, true, given)."""
        raise NotImplementedError(f"{type(self).__name__} learns nothing about annotators")


class Adapter(nn.Module, ABC):
    """A way to learn a task from its support."""

    @abstractmethod
    def adapt(self, support: Items) -> Adapted:
        """Return the tasks of all episodes, learned."""

    def learn(self, embedding: Embed, x: Tensor, annotations: Items) -> tuple[Adapted, Embed]:
        """Return a single task, learned, and the embedding to look at other items with.

        Parameters
        ----------
        embedding
            What makes embeddings.
        x
            Inputs of the support: (item, …).
        annotations
            What was said of them; its own embeddings are not looked at.
        """
        return self.adapt(annotations._replace(u=whole(embedding(x))[None])), embedding

    def classify(self, embedding: nn.Module, episodes: Episodes) -> tuple[Tensor, Adapted | None]:
        """Return log-probabilities of the queries' classes, and the tasks that were learned.

        Every input of the pool is embedded once, however many episodes it is in.
        """
        u = embedding(episodes.x)
        with torch.autocast(u.device.type, enabled=False):
            u = whole(u)
            n_classes = episodes.classes.shape[1]
            support = Items.of(u[episodes.support], episodes.label, n_classes=n_classes)
            task = self.adapt(support)
            return task.log_truth(Items.of(u[episodes.query], n_classes=n_classes)), task


@dataclass(frozen=True, kw_only=True)
class Rule(Settings, ABC):
    """The settings of a way to adapt, as the registry knows it."""

    joint: ClassVar[bool] = False  # whether it has to be trained with the embedding

    @abstractmethod
    def build(self, width: int, n_classes: int) -> Adapter:
        """Return the adapter of embeddings of some width, trained on tasks of so many classes."""


def whole(values: Tensor) -> Tensor:
    """Return floats of 32 bits or more, as EM needs them."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def logarithm(value: float) -> nn.Parameter:
    """Return a positive number as a parameter to be learned: its logarithm."""
    return nn.Parameter(torch.tensor(log(value)))
