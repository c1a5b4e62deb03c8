"""The network that makes embeddings: an encoder, and what is put on top of frozen features.

Vectors of an encoder that learns nothing are made before training, and moved and scaled so that
the source has its mean at zero and a mean squared length of one. On top of them come weights of
features that begin at one, or a linear map that begins as the identity: a map that begins at random
forgets what the features know, if the source has few classes.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

__all__ = ["Embedding", "Head"]

Head = Literal["none", "weights", "linear"]


class Embedding(nn.Module):
    """x → embedding.

    Parameters
    ----------
    network
        x → vector.
    width
        How many numbers a vector has.
    head
        What is learned on top.
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
        """Move and scale by these vectors: (item, feature)."""
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
