"""Features scaled to mean zero and standard deviation one over the training items."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def standardization(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and one over the standard deviation, 0 for constant features.

    >>> standardization(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
    (tensor([2., 5.]), tensor([1., 0.]))
    """
    std = vectors.std(dim=0, unbiased=False)
    return vectors.mean(dim=0), torch.where(std > 1e-6, 1 / std.clamp(min=1e-6), 0.0)


class Standardize(nn.Module):
    """Scale features to mean zero and standard deviation one over the training items."""

    mean: Tensor  # (feature)
    scale: Tensor  # (feature)

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def fit(self, x: Tensor) -> None:
        """Estimate mean and scale from rows (row, feature), in double precision."""
        mean, scale = standardization(x.double())
        self.mean.copy_(mean)
        self.scale.copy_(scale)

    def forward(self, x: Tensor) -> Tensor:
        """Return scaled features: (…, feature)."""
        return (x - self.mean) * self.scale
