"""Liao et al. (2024), PADL: what an annotator prefers, and how far they err from it at random.

    z ~ N(μ_k(x), σ_k(x)²) on the logits,   P(k says · of x) = mean over draws of softmax(z)

μ and log σ are heads of every annotator on a body that all share. Labels are learned through draws;
what is predicted is the preference alone, softmax(μ_k(x)). The published method segments images.

    Z. Liao, S. Hu, Y. Xie, Y. Xia. Modeling annotator preference and stochastic annotation error
    for medical image segmentation. Medical Image Analysis 92, 2024. arXiv:2111.13410
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from ..nn.tables import Table
from ..params import Count
from ._vector_net import NetworkMethod, Sizes, VectorNet, body

__all__ = ["Padl", "PadlNet"]

_SPREAD = -1.0  # log σ at the start


class PadlNet(VectorNet):
    """A body, and two heads for every annotator."""

    def __init__(self, sizes: Sizes, method: Padl) -> None:
        super().__init__(sizes)
        self.samples = method.samples
        self.body = body(sizes.features, method.hidden, method.dropout)
        start = torch.randn(sizes.n_annotators, 2, sizes.n_classes, method.hidden + 1)
        start = start / method.hidden**0.5
        start[:, 1] *= 0.1
        start[:, 1, :, -1] = _SPREAD
        self.heads = Table(start)  # (annotator, μ or log σ, class, hidden + 1)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        head = self.heads(annotator)
        told = torch.einsum("nd,nscd->nsc", self.body(x)[row], head[..., :-1]) + head[..., -1]
        prefers, spread = told[:, 0], told[:, 1].clamp(-6, 3).exp()
        if not self.training:
            return prefers.log_softmax(dim=1)
        drawn = prefers + spread * torch.randn(self.samples, *prefers.shape, device=x.device)
        return drawn.log_softmax(dim=2).logsumexp(dim=0) - log(self.samples)


@dataclass(frozen=True, kw_only=True)
class Padl(NetworkMethod):
    """What every annotator prefers, and how far they err from it at random.

    Parameters
    ----------
    samples
        Draws of the error in every step.
    """

    samples: Count = 10

    def build(self, sizes: Sizes) -> PadlNet:
        return PadlNet(sizes, self)
