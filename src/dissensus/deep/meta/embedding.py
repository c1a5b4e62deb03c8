"""The embedding network: an encoder, and an optional head on frozen features.

Features of a frozen encoder are computed before training, and standardized to mean zero and mean
squared length one on the source. The head is a weight per feature, initialized at one, or a linear
map initialized as the identity: a random one would lose information if the source has few classes.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

Head = Literal["none", "weights", "linear"]


class Embedding(nn.Module):
    """x → embedding.

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
