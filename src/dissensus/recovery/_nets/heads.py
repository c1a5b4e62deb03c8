"""Members on one vector per item: each a hidden layer, or none, and a linear head."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from ...nn.batches import Source
from .._base import Views
from .members import Members, dropped, scaling, start

__all__ = ["Heads"]


class Heads(Members):
    """n networks of one hidden layer over the same vectors.

    Parameters
    ----------
    n
        How many.
    width, n_classes
        Of the vectors, and of what comes out.
    hidden
        Width of the hidden layer; 0 for none.
    dropout, input_dropout
        Shares that are left out in every step, of the hidden layer and of the vectors.
    strict
        Leave out the same for all members.
    seed
        Decides the starts.
    """

    def __init__(
        self,
        n: int,
        width: int,
        n_classes: int,
        *,
        hidden: int,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        strict: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(
            n, width, n_classes=n_classes, hidden=hidden, dropout=dropout,
            input_dropout=input_dropout,
        )  # fmt: skip
        self.dropout, self.input_dropout, self.strict = dropout, input_dropout, strict
        if hidden:
            self.first = start(n, width, hidden, seed=seed)
            self.shift = nn.Parameter(torch.zeros(n, 1, hidden))
        self.last = start(n, hidden or width, n_classes, seed=seed)
        self.bias = nn.Parameter(torch.zeros(n, 1, n_classes))

    def see(self, views: Views) -> Tensor:
        vectors = np.array(views.vectors, dtype=np.float32)
        return torch.from_numpy(vectors.reshape(len(vectors), self.shape["width"])).to(self.mean)

    def fit_scale(self, x: Tensor | Source) -> None:
        assert isinstance(x, Tensor)
        self.mean, self.scale = scaling(x)

    def log_members(self, x: Tensor) -> Tensor:
        return self.logits(x).log_softmax(dim=-1)

    def logits(self, x: Tensor) -> Tensor:
        """Return what comes out of every member: (member, item, class)."""
        return torch.baddbmm(self.bias, self.inside(x), self.last)

    def inside(self, x: Tensor) -> Tensor:
        """Return what the last layer sees: (member, item, hidden)."""
        found = ((x - self.mean) * self.scale).expand(self.n, -1, -1)
        found = self.without(found, self.input_dropout)
        if self.shape["hidden"]:
            found = torch.relu(torch.baddbmm(self.shift, found, self.first))
            found = self.without(found, self.dropout)
        return found

    def without(self, x: Tensor, share: float) -> Tensor:
        """Return x without a random share of its numbers, while training."""
        return dropped(x, share, together=self.strict, training=self.training)
