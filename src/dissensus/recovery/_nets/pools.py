"""Members that look at different places: each has its own attention over words or patches.

    attention_mt = softmax over places t of query_m · place_t
    vector_m     = Σ_t attention_mt place_t,   then a hidden layer and a linear head

The diversity term takes off the loss `diverse` times the Jensen-Shannon divergence of what members
look at, so that they look elsewhere; what they look at is there to be seen (`attention`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..._relation import Floats
from ...nn.batches import Batch, Source
from .._base import Places, Views
from .members import Members, dropped, scaling, start

__all__ = ["PlacesSource", "Pools"]

_FAR, _TINY = -1e9, 1e-12
_LOOK = 2048  # items by which places are scaled


class PlacesSource:
    """Vectors of places with the mask as one more feature: (item, place, feature + 1)."""

    def __init__(self, positions: Places) -> None:
        self.positions = positions

    def __len__(self) -> int:
        return len(self.positions.values)

    def __getitem__(self, items: Any, /) -> Tensor:
        rows = np.asarray(items)
        mask = np.asarray(self.positions.mask[rows])
        last = int(np.flatnonzero(mask.any(axis=0)).max(initial=0)) + 1
        values = np.asarray(self.positions.values[rows, :last], dtype=np.float32)
        both = np.concatenate([values, mask[:, :last, None].astype(np.float32)], axis=2)
        return torch.from_numpy(both).to(torch.get_default_dtype())


class Pools(Members):
    """n heads, each with its own attention over places.

    Parameters
    ----------
    n
        How many.
    width, n_classes
        Of the vectors, and of what comes out.
    hidden
        Width of the hidden layer.
    dropout
        Share that is left out in every step, of the pooled vector and of the hidden layer.
    diverse
        Weight of looking elsewhere.
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
        diverse: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(n, width, n_classes=n_classes, hidden=hidden)
        self.dropout, self.diverse = dropout, diverse
        self.query = start(n, width, 1, seed=seed)
        self.first = start(n, width, hidden, seed=seed)
        self.shift = nn.Parameter(torch.zeros(n, 1, hidden))
        self.last = start(n, hidden, n_classes, seed=seed)
        self.bias = nn.Parameter(torch.zeros(n, 1, n_classes))

    def see(self, views: Views) -> PlacesSource:
        assert views.positions is not None
        return PlacesSource(views.positions)

    def fit_scale(self, x: Tensor | Source) -> None:
        some = x[torch.arange(min(len(x), _LOOK))]
        self.mean, self.scale = scaling(some[..., :-1][some[..., -1] > 0])

    def attend(self, x: Tensor) -> Tensor:
        """Return what members look at: (member, item, place)."""
        # Scaled places times a query are places times a scaled query, but for a constant.
        query = self.query[:, :, 0] * self.scale
        score = torch.einsum("itf,mf->mit", x[..., :-1], query)
        return score.masked_fill(x[..., -1] == 0, _FAR).softmax(dim=-1)

    def log_members(self, x: Tensor) -> Tensor:
        found = torch.einsum("mit,itf->mif", self.attend(x), x[..., :-1])
        pooled = self.without((found - self.mean) * self.scale)
        hidden = self.without(torch.relu(torch.baddbmm(self.shift, pooled, self.first)))
        return torch.baddbmm(self.bias, hidden, self.last).log_softmax(dim=-1)

    def without(self, x: Tensor) -> Tensor:
        """Return x without a random share of its numbers, while training."""
        return dropped(x, self.dropout, together=False, training=self.training)

    def extra(self, batch: Batch) -> Tensor | float:
        if not self.diverse or self.n < 2:
            return 0.0
        attention = self.attend(batch.x)
        apart = _entropy(attention.mean(dim=0)) - _entropy(attention).mean(dim=0)  # (item)
        return -self.diverse * self.n * apart.mean()

    @torch.no_grad()
    def attention(self, views: Views) -> Floats:
        """Return what every member looks at: (member, item, place)."""
        source = self.see(views)
        n_places = source.positions.mask.shape[1]
        found = []
        for at in range(0, len(source), 256):
            looked = self.attend(source[torch.arange(at, min(at + 256, len(source)))])
            found.append(nn.functional.pad(looked, (0, n_places - looked.shape[2])))
        return torch.cat(found, dim=1).double().numpy()


def _entropy(p: Tensor) -> Tensor:
    return -(p * p.clamp(min=_TINY).log()).sum(dim=-1)  # with a gradient also at zero
