"""A ridge-regression head in closed form on vote shares."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...params import Positive
from .base import Adapter, AdapterSettings, HeadTasks, log_parameter
from .items import Items


class RidgeAdapter(Adapter):
    """Ridge regression of vote shares on embeddings."""

    def __init__(self, settings: Ridge) -> None:
        super().__init__()
        self.log_gamma = log_parameter(settings.gamma)
        self.log_sharpness = log_parameter(settings.sharpness)

    def adapt(self, support: Items) -> HeadTasks:
        shares = support.shares()
        labelled = support.votes().sum(dim=2) > 0
        u = _with_intercept(support.u) * labelled[:, :, None]
        target = (shares - 1 / support.n_classes) * labelled[:, :, None]
        eye = torch.eye(u.shape[1], dtype=u.dtype, device=u.device)
        gram = u @ u.transpose(1, 2) + self.log_gamma.exp() * eye
        weight = u.transpose(1, 2) @ torch.linalg.solve(gram, target)
        sharpness = self.log_sharpness.exp()
        return HeadTasks(shares, lambda u: sharpness * _with_intercept(u) @ weight)


def _with_intercept(u: Tensor) -> Tensor:
    return torch.cat([u, torch.ones_like(u[:, :, :1])], dim=2)


@dataclass(frozen=True, kw_only=True)
class Ridge(AdapterSettings):
    """Ridge regression on vote shares.

    A ridge-regression head in closed form on vote shares.

    With U the embeddings of the support and a column of ones, and Y the vote shares less 1/K, one
    column per class:

        W = Uᵀ (U Uᵀ + gamma)⁻¹ Y,    P(t | u) = softmax(sharpness · u W)

    The inverse has as many rows as the support has items, and gradients pass through it.

    When it fails: Vote shares count all annotators the same, so spammers go into the regression in
    full.

        L. Bertinetto, J. F. Henriques, P. H. S. Torr, A. Vedaldi. Meta-learning with differentiable
        closed-form solvers. ICLR 2019. arXiv:1805.08136

    Parameters
    ----------
    gamma
        Ridge penalty.
    sharpness
        Factor on the logits.
    """

    gamma: Positive = 1.0
    sharpness: Positive = 5.0

    def build(self, width: int, n_classes: int) -> RidgeAdapter:
        return RidgeAdapter(self)
