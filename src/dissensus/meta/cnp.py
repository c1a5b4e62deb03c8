"""A conditional neural process: one network summarizes the support, another answers queries.

    context = mean over the support of encode(u[n], vote shares[n])
    P(t | u) = softmax decode(u, context)

It is trained with the embedding, and for a fixed number of classes.

    M. Garnelo et al. Conditional neural processes. ICML 2018. arXiv:1807.01613
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from ..errors import OptionError
from ..params import Count
from .adapter import AdaptedTasks, Adapter, AdapterSettings
from .items import Items


class CnpTasks(AdaptedTasks):
    """The context vector of every episode."""

    def __init__(self, posterior: Tensor, context: Tensor, decode: nn.Module) -> None:
        self.posterior, self.context, self.decode = posterior, context, decode

    def log_truth(self, items: Items) -> Tensor:
        context = self.context[:, None].expand(-1, items.u.shape[1], -1)
        return self.decode(torch.cat([items.u, context], dim=2)).log_softmax(dim=2)


class CnpAdapter(Adapter):
    """An encoder of the support and a decoder of queries."""

    def __init__(self, width: int, n_classes: int, hidden: int) -> None:
        super().__init__()
        self.n_classes = n_classes
        self.encode = _mlp(width + n_classes, hidden, hidden)
        self.decode = _mlp(width + hidden, hidden, n_classes)

    def adapt(self, support: Items) -> CnpTasks:
        if support.n_classes != self.n_classes:
            raise OptionError(
                f"cnp was trained on tasks of {self.n_classes} classes, not of "
                f"{support.n_classes}; adapters of the em family take any number"
            )
        shares = support.shares()
        weight = support.present[:, :, None]
        context = self.encode(torch.cat([support.u, shares], dim=2)) * weight
        return CnpTasks(shares, context.sum(dim=1) / weight.sum(dim=1).clamp(min=1), self.decode)


def _mlp(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, out),
    )


@dataclass(frozen=True, kw_only=True)
class Cnp(AdapterSettings):
    """A conditional neural process.

    Parameters
    ----------
    hidden
        Width of the layers.
    """

    joint: ClassVar[bool] = True

    hidden: Count = 128

    def build(self, width: int, n_classes: int) -> CnpAdapter:
        return CnpAdapter(width, n_classes, self.hidden)
