"""A network of two layers whose weights are normal variables."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ...nn.batches import Batch
from .heads import Heads

__all__ = ["Bayes"]

_NARROW = -5.0  # softplus of it is the spread that weights begin with


class Bayes(Heads):
    """Heads whose weights are drawn anew for every batch while training, and their means in use."""

    def __init__(self, n: int, width: int, n_classes: int, *, hidden: int, seed: int = 0) -> None:
        super().__init__(n, width, n_classes, hidden=hidden, seed=seed)
        self.shape = {"n": n, "width": width, "n_classes": n_classes, "hidden": hidden}
        self.prior = 0.0
        self.first_spread = nn.Parameter(torch.full_like(self.first, _NARROW))
        self.last_spread = nn.Parameter(torch.full_like(self.last, _NARROW))

    def believing(self, weight: float) -> None:
        """Set the weight of the prior beside one item."""
        self.prior = weight

    def inside(self, x: Tensor) -> Tensor:
        found = ((x - self.mean) * self.scale).expand(self.n, -1, -1)
        found = torch.baddbmm(self.shift, found, self.drawn(self.first, self.first_spread))
        return torch.relu(found)

    def logits(self, x: Tensor) -> Tensor:
        last = self.drawn(self.last, self.last_spread)
        return torch.baddbmm(self.bias, self.inside(x), last)

    def drawn(self, mean: Tensor, spread: Tensor) -> Tensor:
        """Return weights: drawn while training, their means in use."""
        if not self.training:
            return mean
        return mean + softplus(spread) * torch.randn_like(mean)

    def extra(self, batch: Batch) -> Tensor | float:
        pairs = ((self.first, self.first_spread), (self.last, self.last_spread))
        return self.prior * sum((_from_prior(mean, spread) for mean, spread in pairs), 0.0)


def _from_prior(mean: Tensor, spread: Tensor) -> Tensor:
    """Return the divergence of normal variables from standard ones."""
    wide = softplus(spread)
    return ((wide**2 + mean**2 - 1) / 2 - torch.log(wide)).sum()
