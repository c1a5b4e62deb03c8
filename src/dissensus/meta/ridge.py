"""A ridge-regression head in closed form on shares of votes.

With U the embeddings of the support and a column of ones, and Y the shares of votes, one column per
class, both less 1/K:

    W = Uᵀ (U Uᵀ + gamma)⁻¹ Y,    P(t | u) = softmax(sharpness · u W)

The inverse has as many rows as the support has items, and gradients pass through it.

    L. Bertinetto, J. F. Henriques, P. H. S. Torr, A. Vedaldi. Meta-learning with differentiable
    closed-form solvers. ICLR 2019. arXiv:1805.08136
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..params import Positive
from .adapter import Adapted, Adapter, Rule, logarithm
from .items import Items

__all__ = ["Ridge", "RidgeAdapter"]


class RidgeTask(Adapted):
    """A linear map from embeddings to classes."""

    def __init__(self, posterior: Tensor, weight: Tensor, sharpness: Tensor) -> None:
        self.posterior, self.weight, self.sharpness = posterior, weight, sharpness

    def log_truth(self, items: Items) -> Tensor:
        return (self.sharpness * _widened(items.u) @ self.weight).log_softmax(dim=2)


class RidgeAdapter(Adapter):
    """Ridge regression of vote shares on embeddings."""

    def __init__(self, settings: Ridge) -> None:
        super().__init__()
        self.log_gamma = logarithm(settings.gamma)
        self.log_sharpness = logarithm(settings.sharpness)

    def adapt(self, support: Items) -> RidgeTask:
        shares = support.shares()
        heard = (support.votes().sum(dim=2) > 0) & (support.present > 0)
        u = _widened(support.u) * heard[:, :, None]
        target = (shares - 1 / support.n_classes) * heard[:, :, None]
        eye = torch.eye(u.shape[1], dtype=u.dtype, device=u.device)
        inner = u @ u.transpose(1, 2) + self.log_gamma.exp() * eye
        weight = u.transpose(1, 2) @ torch.linalg.solve(inner, target)
        return RidgeTask(shares, weight, self.log_sharpness.exp())


def _widened(u: Tensor) -> Tensor:
    return torch.cat([u, torch.ones_like(u[:, :, :1])], dim=2)


@dataclass(frozen=True, kw_only=True)
class Ridge(Rule):
    """Ridge regression on shares of votes.

    Parameters
    ----------
    gamma
        Strength of the penalty.
    sharpness
        Factor on what it says, before the softmax.
    """

    gamma: Positive = 1.0
    sharpness: Positive = 5.0

    def build(self, width: int, n_classes: int) -> RidgeAdapter:
        return RidgeAdapter(self)
