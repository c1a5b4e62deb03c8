"""A conditional neural process: a network reads the support and says what it makes of a query.

    r = mean over the support of encode(u[n], shares of votes[n])
    P(t | u) = softmax decode(u, r)

It learns everything, also how to weigh votes, so it has to be trained with the embedding, and it
knows tasks of one number of classes only.

    M. Garnelo et al. Conditional neural processes. ICML 2018. arXiv:1807.01613
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from ..errors import OptionError
from ..params import Count
from .adapter import Adapted, Adapter, Rule
from .items import Items

__all__ = ["Cnp", "CnpAdapter"]


class CnpTask(Adapted):
    """What was read, one vector per episode."""

    def __init__(self, posterior: Tensor, read: Tensor, decode: nn.Module) -> None:
        self.posterior, self.read, self.decode = posterior, read, decode

    def log_truth(self, items: Items) -> Tensor:
        read = self.read[:, None].expand(-1, items.u.shape[1], -1)
        return self.decode(torch.cat([items.u, read], dim=2)).log_softmax(dim=2)


class CnpAdapter(Adapter):
    """Two networks: one reads the support, one answers queries."""

    def __init__(self, width: int, n_classes: int, hidden: int) -> None:
        super().__init__()
        self.n_classes = n_classes
        self.encode = _layers(width + n_classes, hidden, hidden)
        self.decode = _layers(width + hidden, hidden, n_classes)

    def adapt(self, support: Items) -> CnpTask:
        if support.n_classes != self.n_classes:
            raise OptionError(
                f"cnp was trained on tasks of {self.n_classes} classes, not of "
                f"{support.n_classes}; adapters of the em family take any number"
            )
        shares = support.shares()
        weight = support.present[:, :, None]
        read = self.encode(torch.cat([support.u, shares], dim=2)) * weight
        return CnpTask(shares, read.sum(dim=1) / weight.sum(dim=1).clamp(min=1), self.decode)


def _layers(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, out),
    )


@dataclass(frozen=True, kw_only=True)
class Cnp(Rule):
    """A conditional neural process.

    Parameters
    ----------
    hidden
        Width of its layers.
    """

    joint: ClassVar[bool] = True

    hidden: Count = 128

    def build(self, width: int, n_classes: int) -> CnpAdapter:
        return CnpAdapter(width, n_classes, self.hidden)
