"""The input layers of a query model: tokens of an item, or of the frames of a video.

Tokens are normalized, either each on its own (`layer`, as on top of an image transformer) or every
feature over the training items (`feature`, which preserves differences between tokens). If all
items have the same number of tokens, tokens may get learned position embeddings.

For videos, the tokens of every frame are first summarized by a few queries that all annotators
share, plus a position embedding of the frame; these summaries are the tokens of the video.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..nn.features import FeatureBatch, Layout
from ..nn.standardize import Standardize
from .qformer import QFormer, Shape

_INIT_STD = 0.02
_POSITION_STD = 0.3  # of position embeddings


class TokenLayer(nn.Module):
    """Normalized tokens, with position embeddings if `positions`."""

    def __init__(self, n_features: int, n_tokens: int, scale: str, positions: bool) -> None:
        super().__init__()
        self.width = n_features
        self.norm: nn.Module = (
            nn.LayerNorm(n_features) if scale == "layer" else Standardize(n_features)
        )
        start = _POSITION_STD * torch.randn(n_tokens, n_features)
        self.positions = nn.Parameter(start) if positions else None

    def fit(self, tokens: Tensor) -> None:
        """Normalize by these tokens: (token, feature)."""
        if isinstance(self.norm, Standardize):
            self.norm.fit(tokens)

    def forward(self, x: FeatureBatch) -> tuple[Tensor, Tensor]:
        """Return tokens (item, token, feature) and their mask."""
        tokens = self.norm(x.values)
        if self.positions is not None:
            tokens = tokens + self.positions[: tokens.shape[1]]
        return tokens, x.mask


class FrameLayer(nn.Module):
    """Tokens of a video: `n_queries` summaries of every frame."""

    def __init__(
        self, layout: Layout, shape: Shape, scale: str, positions: bool, n_queries: int
    ) -> None:
        super().__init__()
        n_frames, n_tokens = layout.tokens
        self.width = shape.width
        self.tokens = TokenLayer(layout.token_features, n_tokens, scale, positions)
        self.queries = nn.Parameter(_INIT_STD * torch.randn(1, n_queries, shape.width))
        self.qformer = QFormer(shape, layout.token_features)
        self.positions = nn.Parameter(_POSITION_STD * torch.randn(n_frames, 1, shape.width))

    def fit(self, tokens: Tensor) -> None:
        """Normalize by these tokens: (token, feature)."""
        self.tokens.fit(tokens)

    def forward(self, x: FeatureBatch) -> tuple[Tensor, Tensor]:
        """Return tokens (item, frame and query, width) and their mask."""
        shape = x.mask.shape[:2]  # item, frame
        flat = FeatureBatch(x.vector, x.values.flatten(0, 1), x.mask.flatten(0, 1))
        tokens, mask = self.tokens(flat)
        present = mask.any(dim=1)
        # Attention over a frame without tokens is undefined: unmask it, then mask its summary.
        out = self.qformer(self.queries, tokens, mask | ~present[:, None]).values
        out = out.reshape(*shape, *out.shape[1:]) + self.positions[: shape[1]]
        out_mask = present.reshape(shape)[:, :, None].expand(-1, -1, out.shape[2])
        return out.flatten(1, 2), out_mask.flatten(1)
