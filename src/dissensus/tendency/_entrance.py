"""What queries look at: tokens of places, or of the frames of a video.

Tokens are scaled, either each by its own spread (`layer`, as on top of an image transformer) or
every feature by its spread over the training items (`feature`, which keeps what is large large).
Where items have the same places, each place may get a learned vector that tells it apart.

The tokens of every frame of a video are first asked by a few queries that all annotators share;
a learned vector tells the frames apart. What they found, frame after frame, are the new tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ._base import Layout, Seen
from .qformer import QFormer, Shape

__all__ = ["Entrance", "FrameEntrance", "Scaling"]

_START = 0.02
_APART = 0.3  # spread of vectors that tell places and frames apart, at the start
_TINY = 1e-6


class Scaling(nn.Module):
    """Numbers of every feature, brought to mean zero and spread one over the training items."""

    mean: Tensor  # (feature)
    scale: Tensor  # (feature)

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))

    def fit(self, rows: Tensor) -> None:
        """Scale by these rows (row, feature); what never varies becomes zero."""
        spread = rows.std(dim=0, unbiased=False)
        self.mean.copy_(rows.mean(dim=0))
        self.scale.copy_(torch.where(spread > _TINY, 1 / spread.clamp(min=_TINY), 0.0))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) * self.scale


class Entrance(nn.Module):
    """Scaled tokens of places."""

    def __init__(self, features: int, n_places: int, scale: str, positions: bool) -> None:
        super().__init__()
        self.width = features
        self.scaling: nn.Module = nn.LayerNorm(features) if scale == "layer" else Scaling(features)
        start = _APART * torch.randn(n_places, features)
        self.positions = nn.Parameter(start) if positions else None

    def fit(self, tokens: Tensor) -> None:
        """Scale by these tokens: (token, feature)."""
        if isinstance(self.scaling, Scaling):
            self.scaling.fit(tokens)

    def forward(self, seen: Seen) -> tuple[Tensor, Tensor]:
        """Return tokens (item, place, feature), and where there are any."""
        tokens = self.scaling(seen.values)
        if self.positions is not None:
            tokens = tokens + self.positions[: tokens.shape[1]]
        return tokens, seen.mask


class FrameEntrance(nn.Module):
    """Tokens of the frames of a video, `n_queries` for each."""

    def __init__(
        self, layout: Layout, shape: Shape, scale: str, positions: bool, n_queries: int
    ) -> None:
        super().__init__()
        n_frames, n_places = layout.positions
        self.width = shape.width
        self.positions = Entrance(layout.token_features, n_places, scale, positions)
        self.queries = nn.Parameter(_START * torch.randn(1, n_queries, shape.width))
        self.asks = QFormer(shape, layout.token_features)
        self.times = nn.Parameter(_APART * torch.randn(n_frames, 1, shape.width))

    def fit(self, tokens: Tensor) -> None:
        """Scale by these tokens: (token, feature)."""
        self.positions.fit(tokens)

    def forward(self, seen: Seen) -> tuple[Tensor, Tensor]:
        """Return tokens (item, frame and query, width), and where there are any."""
        shape = seen.mask.shape[:2]  # item, frame
        flat = Seen(seen.vector, seen.values.flatten(0, 1), seen.mask.flatten(0, 1))
        tokens, mask = self.positions(flat)
        there = mask.any(dim=1)
        # A frame of which nothing is there is looked at all the same, and then hidden.
        found = self.asks(self.queries, tokens, mask | ~there[:, None]).values
        found = found.reshape(*shape, *found.shape[1:]) + self.times[: shape[1]]
        shown = there.reshape(shape)[:, :, None].expand(-1, -1, found.shape[2])
        return found.flatten(1, 2), shown.flatten(1)
