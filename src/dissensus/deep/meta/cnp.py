"""A conditional neural process: one network summarizes the support, another answers queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from ...params import Count
from .base import Adapter, AdapterSettings, HeadTasks, check_n_classes
from .items import Items


class CnpAdapter(Adapter):
    """An encoder of the support and a decoder of queries."""

    def __init__(self, width: int, n_classes: int, hidden: int) -> None:
        super().__init__()
        self.n_classes = n_classes
        self.encode = _mlp(width + n_classes, hidden, hidden)
        self.decode = _mlp(width + hidden, hidden, n_classes)

    def adapt(self, support: Items) -> HeadTasks:
        check_n_classes("cnp", self.n_classes, support.n_classes)
        shares = support.shares()
        context = self.encode(torch.cat([support.u, shares], dim=2)).mean(dim=1, keepdim=True)

        def logits(u: Tensor) -> Tensor:
            return self.decode(torch.cat([u, context.expand(-1, u.shape[1], -1)], dim=2))

        return HeadTasks(shares, logits)


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

    A conditional neural process: one network summarizes the support, another answers queries.

        context = mean over the support of encode(u[n], vote shares[n])
        P(t | u) = softmax decode(u, context)

    It is trained with the embedding, and for a fixed number of classes.

    When it fails: It works for the number of classes it was trained for and for supports as those
    of the source tasks; the mean over the support underfits.

        M. Garnelo et al. Conditional neural processes. ICML 2018. arXiv:1807.01613

    Parameters
    ----------
    hidden
        Width of the layers.
    """

    joint: ClassVar[bool] = True

    hidden: Count = 128

    def build(self, width: int, n_classes: int) -> CnpAdapter:
        return CnpAdapter(width, n_classes, self.hidden)
